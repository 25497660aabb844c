"""rules, suspects, cluster, compare, completion, and fit by every method, as a user meets them."""

import io
import json
import re
import sqlite3
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kernelweave.cli import main
from kernelweave.cli.console import certificate, warn_unless_converged
from kernelweave.cli.fit import fit as fit_command
from kernelweave.io import load
from kernelweave.tables import METHODS

N = 100
RANDOM = np.random.default_rng(3)
GROUP = np.arange(N) % 3
TABLE = pd.DataFrame(
    {
        "case_id": RANDOM.permutation(N) * 7,
        "age": np.where(RANDOM.random(N) < 0.1, np.nan, 30 + 20 * GROUP + RANDOM.normal(0, 3, N)),
        "dose": RANDOM.normal(size=N),
        "town": RANDOM.choice(["Ulm", "Köln"], N),
        "seen": [f"2024-{1 + i % 12:02d}-07" for i in range(N)],
        "unit": "mg",
        "ill": np.where(GROUP > 0, "yes", "no"),
    }
)
WRONG = [4, 40]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with the table, two of its labels wrong."""
    monkeypatch.chdir(tmp_path)
    table = TABLE.copy()
    table.loc[WRONG, "ill"] = ["no" if ill == "yes" else "yes" for ill in table.loc[WRONG, "ill"]]
    table.to_csv("t.csv", index=False, sep=";", encoding="latin-1")
    return tmp_path


def run(capsys, *argv, code=0):
    """Return standard output and standard error of a command that ends with ``code``."""
    capsys.readouterr()
    found = main([str(arg) for arg in argv])
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


def fit(capsys, method, *options):
    cost = ["--C", 1] if METHODS[method].has_cost else []
    arguments = ("--target", "ill", "--method", method, *cost, "--quiet", "--no-report")
    run(capsys, "fit", "t.csv", *arguments, *options)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_from_file_to_prediction(folder, capsys, method):
    out, err = run(
        capsys, "fit", "t.csv", "--target", "ill", "--method", method, "--json", "--test-share", 0.3
    )
    report = json.loads(out)
    assert err == ""
    assert report["method"] == method
    assert report["kinds"]["case_id"] == "none"
    assert (report["C_search"] is not None) == METHODS[method].has_cost
    assert any("semicolons" in note for note in report["notes"])
    about = json.loads(run(capsys, "info", "t.kw", "--json")[0])
    assert about["estimator"] == report["estimator"]
    assert "fitted to" in run(capsys, "info", "t.kw")[0]
    if method == "pairs":
        (folder / "p.csv").write_text("first,second\n0,3\n0,1\n")
        out, _ = run(capsys, "predict", "t.kw", "t.csv", "--pairs", "p.csv", "--quiet")
        scored = pd.read_csv(io.StringIO(out))
        assert scored.columns.tolist() == ["first", "second", "score", "same"]
        assert scored["score"][0] > scored["score"][1]
        assert "scores pairs" in run(capsys, "predict", "t.kw", "t.csv", code=2)[1]
        return
    out, err = run(capsys, "predict", "t.kw", "t.csv")
    assert "note: columns are separated by semicolons" in err
    predicted = pd.read_csv(io.StringIO(out))["ill"]
    assert (predicted == TABLE["ill"]).mean() > 0.9
    records = json.loads(run(capsys, "predict", "t.kw", "t.csv", "--json", "--quiet")[0])
    assert [record["ill"] for record in records] == predicted.tolist()


def test_a_gram_matrix(folder, capsys):
    np.save("lab.npy", (GROUP[:, None] > 0) == (GROUP > 0))
    fit(capsys, "mkl", "--gram", "lab=lab.npy")
    out, _ = run(capsys, "info", "t.kw")
    assert "lab" in out
    run(capsys, "predict", "t.kw", "t.csv", "--quiet")
    TABLE.head(3).to_csv("few.csv", index=False)
    _, err = run(capsys, "predict", "t.kw", "few.csv", code=2)
    assert "The matrix 'lab' has 100 rows, but the table 3; give the table a column 'lab'" in err
    TABLE.head(3).assign(lab=[5, 6, 7]).to_csv("few.csv", index=False)
    run(capsys, "predict", "t.kw", "few.csv")
    np.save("flat.npy", np.zeros(4))
    options = ("--target", "ill", "--gram", "lab=flat.npy")
    assert "must be square, got (4,)" in run(capsys, "fit", "t.csv", *options, code=2)[1]


def test_rules(folder, capsys):
    fit(capsys, "rules", "--ignore", "seen")
    ensemble = load("t.kw")[-1]
    out, err = run(capsys, "rules", "t.kw")
    assert err == ""
    assert "age <=" in out
    assert "intercept" in out
    top = json.loads(run(capsys, "rules", "t.kw", "--top", 1, "--json")[0])
    assert [rule["rule"] for rule in top["rules"]] == [ensemble.rules_[0].text]
    assert run(capsys, "rules", "t.kw", "--quiet")[0] == ""

    query, _ = run(capsys, "rules", "t.kw", "--sql", "--dialect", "sqlite", "--table", "cases")
    with sqlite3.connect(":memory:") as database:
        TABLE.to_sql("cases", database)
        answers = database.execute(query).fetchall()
    names = {}
    exec(run(capsys, "rules", "t.kw", "--python")[0], names)
    expected = load("t.kw").predict(TABLE).tolist()
    assert [answer[-1] for answer in answers] == expected
    rows = TABLE.to_dict("records")
    assert [names["predict"](row)[0] for row in rows] == expected

    fit(capsys, "mkl")
    assert "MKLClassifier, which has no rules" in run(capsys, "rules", "t.kw", code=2)[1]


def test_rules_about_dates_warn(folder, capsys):
    TABLE.assign(ill=np.where(TABLE["seen"] > "2024-06", "yes", "no")).to_csv("t.csv", index=False)
    fit(capsys, "rules")
    _, err = run(capsys, "rules", "t.kw", "--sql")
    assert "'seen' must be given as years with decimals" in err


def test_suspects(folder, capsys):
    fit(capsys, "noisy")
    out, _ = run(capsys, "suspects", "t.kw")
    assert all(str(row) in out for row in WRONG)
    out, _ = run(
        capsys, "suspects", "t.kw", "--top", 2, "--json", "--data", "t.csv", "--out", "s.csv"
    )
    report = json.loads(out)
    assert {found["row"] for found in report["suspects"]} == set(WRONG)
    assert 0 <= report["noise_level"] < 0.3
    assert set(pd.read_csv("s.csv")["row"]) == set(WRONG)
    assert "town" in pd.read_csv("s.csv").columns

    fit(capsys, "mkl")
    assert "with --data, or fit again" in run(capsys, "suspects", "t.kw", code=2)[1]
    out, _ = run(capsys, "suspects", "t.kw", "--top", 2, "--data", "t.csv", "--json")
    assert {found["row"] for found in json.loads(out)["suspects"]} == set(WRONG)


def test_cluster(folder, capsys):
    hints = ["--ignore", "ill", "--ignore", "seen", "--ignore", "town", "--ignore", "dose"]
    out, err = run(capsys, "cluster", "t.csv", "--clusters", 3, *hints)
    assert len(pd.read_csv(io.StringIO(out))) == N
    assert "3 clusters of" in err
    assert run(capsys, "cluster", "t.csv", *hints, "--quiet", "--out", "c.csv") == ("", "")
    assert pd.read_csv("c.csv").columns.tolist() == ["cluster"]
    out, _ = run(capsys, "cluster", "t.csv", "--target", "ill", "--json")
    report = json.loads(out)
    assert len(report["sizes"]) == 2
    assert sum(report["sizes"]) == len(report["clusters"]) == N
    assert report["kernels"][0]["weight"] > 0
    fit(capsys, "pairs")
    _, err = run(capsys, "cluster", "t.csv", "--model", "t.kw", "--clusters", 2)
    assert "2 clusters of" in err
    _, err = run(capsys, "cluster", "t.csv", "--target", "ill", "--pairs", "p.csv", code=2)
    assert "--target and --pairs cannot be given together" in err


def test_compare(folder, capsys):
    options = ("--target", "ill", "--folds", 2, "--methods", "noisy", "--ignore", "seen")
    out, err = run(capsys, "compare", "t.csv", *options)
    assert err == ""
    for text in ("SVC", "gradient boosting", "logistic regression", "kernelweave noisy"):
        assert text in out
    assert (folder / "t-compare.png").read_bytes().startswith(b"\x89PNG")
    out, _ = run(capsys, "compare", "t.csv", *options, "--json", "--no-plot")
    report = json.loads(out)
    assert report["rows"] == N
    assert [len(scores) for scores in report["scores"].values()] == [2] * 4
    _, err = run(capsys, "compare", "t.csv", *options, "--plot", "absent/x.png", code=2)
    assert "--plot: absent/x.png is in a folder that does not exist" in err


def test_a_page_is_written_beside_the_model(folder, capsys):
    options = ("fit", "t.csv", "--target", "ill", "--C", 1)
    out, _ = run(capsys, *options)
    assert "t.html" in out
    page = (folder / "t.html").read_text(encoding="utf-8")
    assert "On 25 rows that were held out, the model reaches accuracy" in page
    assert "accuracy on held-out rows, 95% interval" in page
    assert "The model was then fitted to all 100 rows." in page
    assert "Not measured" not in page
    assert "t.csv" in page
    run(capsys, *options, "--test-share", 0, "--quiet")
    assert "Not measured" in (folder / "t.html").read_text(encoding="utf-8")
    (folder / "t.html").unlink()
    run(capsys, *options, "--report", "own.html", "--quiet")
    assert (folder / "own.html").exists()
    run(capsys, *options, "--no-report", "--quiet")
    assert not (folder / "t.html").exists()


def test_hints_after_rules_that_did_not_converge(folder, capsys, monkeypatch):
    """Each names what stopped the fit, and options of the command that change it."""
    options = ("fit", "t.csv", "--target", "ill", "--method", "rules", "--C", 10, "--quiet")
    _, err = run(capsys, *options, "--max-iter", 2, "--tol", 1e-6)
    assert err.endswith("raise --max-iter (now 2) or --tol.\n")
    few = {"max_length": 3, "max_nodes": 3}
    rules = replace(METHODS["rules"], arguments=lambda problem, settings: few)
    monkeypatch.setitem(METHODS, "rules", rules)
    _, err = run(capsys, *options)
    assert "the search for rules ended at its limit, so lower --C or raise --tol." in err
    assert "--max-iter" not in err


def test_every_hint_names_an_option_of_its_command(folder, capsys):
    """Hints after a fit are printed by fit, so it must have the options that they name."""
    known = {option for param in fit_command.params for option in param.opts}
    base = {"converged": False, "relative_gap": 0.1, "inner_solves": 5}
    for limit, full in ((5, True), (5, False), (200, True), (None, True)):
        warn_unless_converged({**base, "max_iter": limit, "searched_in_full": full})
        named = re.findall(r"--[\w-]+", capsys.readouterr().err)
        assert named
        assert set(named) <= known


def test_hints_for_python_are_not_printed(folder, capsys):
    """Other commands than fit cannot change the tolerance of a model."""
    fit(capsys, "mkl", "--max-iter", 1, "--tol", 1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, err = run(capsys, "suspects", "t.kw", "--data", "t.csv", "--json")
    assert "stopped after" in err
    assert "Hint" not in err
    assert "max_iter" not in err


LONG = ["a rather long name of a class, number one", "a rather long name of a class, number two"]


def test_long_names_leave_the_numbers_whole(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = {g: f"{LONG[g % 2]}, {g}" for g in range(3)}
    TABLE.assign(ill=[names[g] for g in GROUP]).to_csv("t.csv", index=False)
    fit(capsys, "rules")
    out, _ = run(capsys, "rules", "t.kw", "--top", 2)
    for rule in load("t.kw")[-1].rules_[:2]:
        for weight in rule.weights:
            assert f"{weight:+.4g}" in out
        assert f"{rule.coverage:.1%}" in out
    monkeypatch.setenv("COLUMNS", "60")
    out, _ = run(capsys, "rules", "t.kw", "--top", 2)
    assert "Of every rule the class with the largest weight" in out
    fit(capsys, "noisy", "--max-rows", 90)
    out, _ = run(capsys, "suspects", "t.kw", "--top", 3)
    report = json.loads(run(capsys, "suspects", "t.kw", "--top", 3, "--json")[0])
    for suspect in report["suspects"]:
        assert f"{suspect['quality']:.3f}" in out


def test_the_certificate_of_landmarks():
    told = {"objective": 2.0, "tol": 1e-3, "converged": True, "relative_gap": 0.19}
    vacuous = {**told, "relative_landmark_gap": 2e-4}
    nystroem = "approximate kernels, not certified: within 2.0e-04 of the optimum of the Nystroem"
    assert certificate(vacuous)[1] == f"2, {nystroem} problem (tol 0.001)"
    useful = {**vacuous, "relative_gap": 9e-3}
    assert certificate(useful)[1].endswith("(tol 0.001), 9.0e-03 of that of the exact kernels")
    assert certificate(useful)[1].startswith(f"2, {nystroem}")
    stopped = {**vacuous, "converged": False}
    assert certificate(stopped)[1] == f"2, {nystroem} problem (tol 0.001, not reached)"
    exact = {**vacuous, "relative_gap": 9e-4}
    assert certificate(exact)[1] == "2, certified within 9.0e-04 of the optimum (tol 0.001)"
    # An objective at rounding counts as reached, whatever its gap.
    rounding = {**told, "relative_landmark_gap": None, "objective": 1e-30, "relative_gap": 1.0}
    assert "within 1.0e+00 of the optimum, which is rounding error (tol" in certificate(rounding)[1]
