"""``kernelweave fit`` by every method, and its page and hints."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from command_table import GROUP, TABLE, fit, run
from kernelweave.io import describe, load, save
from kernelweave.tables import METHODS
from source_table import source_table


@pytest.mark.parametrize("method", METHODS)
def test_every_method_from_file_to_prediction(patients, capsys, method):
    out, err = run(
        capsys, "fit", "t.csv", "--target", "ill", "--method", method, "--json", "--test-share", 0.3
    )
    report = json.loads(out)
    assert err == ""
    assert report["method"] == method
    assert report["kinds"]["case_id"] == "none"
    assert (report["C_search"] is not None) == (METHODS[method].cost == "C")
    assert any("semicolons" in note for note in report["notes"])
    about = json.loads(run(capsys, "info", "t.kw", "--json")[0])
    assert about["estimator"] == report["estimator"]
    assert "fitted to" in run(capsys, "info", "t.kw")[0]
    if method == "pairs":
        (patients / "p.csv").write_text("first,second\n0,3\n0,1\n")
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


def test_whole_groups_are_left_out(patients, capsys):
    table = TABLE.assign(visit=np.arange(len(TABLE)) // 4)
    table.to_csv("visits.csv", index=False)
    options = ("--target", "ill", "--groups", "visit", "--time", 1, "--no-report", "--json")
    report = json.loads(run(capsys, "fit", "visits.csv", *options)[0])
    assert any("rows with the same 'visit' stay together" in note for note in report["notes"])
    assert "visit" not in report["kinds"]
    _, err = run(capsys, "fit", "t.csv", "--target", "ill", "--groups", "ill", code=2)
    assert "groups: must be another column than the target, got 'ill'" in err


def test_a_gram_matrix(patients, capsys):
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


def test_a_page_is_written_beside_the_model(patients, capsys):
    options = ("fit", "t.csv", "--target", "ill", "--C", 1)
    out, _ = run(capsys, *options)
    assert "t.html" in out
    page = (patients / "t.html").read_text(encoding="utf-8")
    assert "AUC on 100 rows left out" in page
    assert "the model in the file was then fitted to all 100 rows." in page
    assert "Not measured" not in page
    assert "t.csv" in page
    run(capsys, *options, "--test-share", 0, "--quiet")
    assert "Not measured" in (patients / "t.html").read_text(encoding="utf-8")
    (patients / "t.html").unlink()
    options += ("--test-share", 0)
    run(capsys, *options, "--report", "own.html", "--quiet")
    assert (patients / "own.html").exists()
    run(capsys, *options, "--no-report", "--quiet")
    assert not (patients / "t.html").exists()


@pytest.mark.parametrize("method", ["metric", "mkl"])
def test_the_terminal_and_the_page_list_the_same_columns(patients, capsys, method):
    """In the order of importance, not of weights in a metric or of kernels."""
    options = ("--target", "ill", "--method", method, "--test-share", 0)
    fitted = run(capsys, "fit", "t.csv", *options)[0]
    told = run(capsys, "info", "t.kw")[0]
    known = describe("t.kw")["record"].importance
    page = (patients / "t.html").read_text(encoding="utf-8")
    for text in (fitted, told):
        title = next(line for line in text.splitlines() if "importance" in line)
        assert title.split()[0] == "column"
        table = text[text.index(title) :].split("Importance: mean change of the decision over")[0]
        names = [line.split()[0] for line in table.splitlines()[2:] if line.strip()]
        assert names == list(known.names[: len(names)])
        assert len(names) >= (2 if method == "metric" else 1)
        assert f"over {known.n_rows} rows." in text
    assert f" It looks most at {known.names[0]}" in page
    report = json.loads(run(capsys, "info", "t.kw", "--json")[0])["importance"]
    assert report["names"] == list(known.names)
    assert report["errors"] == list(known.errors)
    assert "Metric weights" not in told
    save(load("t.kw"), "bare.kw")  # without the record of the fit
    told = run(capsys, "info", "bare.kw")[0]
    assert ("Metric weights are no importance" in told) == (method == "metric")
    assert "importance" not in told.replace("no importance", "")


def test_hints_after_rules_that_did_not_converge(patients, capsys, monkeypatch):
    """Each names what stopped the fit, and options of the command that change it."""
    options = ("fit", "t.csv", "--target", "ill", "--method", "rules", "--C", 10)
    options += ("--test-share", 0, "--quiet", "--no-report")
    _, err = run(capsys, *options, "--max-iter", 2, "--tol", 1e-6)
    assert err.endswith("raise --max-iter (now 2) or --tol.\n")
    few = {"max_nodes": 1, "linear_terms": False}  # a linear term alone would converge
    rules = replace(METHODS["rules"], arguments=lambda problem, settings: few)
    monkeypatch.setitem(METHODS, "rules", rules)
    _, err = run(capsys, *options)
    assert "the search for rules ended at its limit, so lower --C or raise --tol." in err
    assert "--max-iter" not in err


SOURCES = ("--source", "scan=scan_*", "--source", "lab=hdl", "--source", "lab=ldl")


@pytest.mark.parametrize("rule", ["off", "complete"])
def test_sources_that_rows_lack(patients, capsys, rule):
    frame = source_table()
    frame[:110].to_csv("s.csv", index=False)
    frame[110:].to_csv("new.csv", index=False)
    options = ("--target", "ill", *SOURCES, "--missing", rule, "--C", 10, "--test-share", 0)
    report = json.loads(run(capsys, "fit", "s.csv", *options, "--json")[0])
    assert report["method"] == "mkl"
    assert f"{frame[:110]['hdl'].isna().sum()} of" not in str(report["notes"])  # whole sources
    lacking = frame[:110]["ldl"].isna() & frame[:110]["hdl"].isna()
    assert f"{lacking.sum()} of 110 rows lack the source 'lab'" in report["notes"]
    assert {"scan", "lab"} <= {kernel["kernel"].partition(": ")[0] for kernel in report["kernels"]}
    predicted = pd.read_csv(io.StringIO(run(capsys, "predict", "s.kw", "new.csv", "--quiet")[0]))
    assert (predicted["ill"].to_numpy() == frame[110:]["ill"].to_numpy()).mean() > 0.7
    out, _ = run(capsys, "evaluate", "s.kw", "new.csv", "--sources")
    assert "lab " in out.split("Without each source")[1]
    out, _ = run(capsys, "explain", "s.kw", "new.csv", "--rows", 0, "--by", "source")
    assert "scan" in out.split()


def test_gaps_may_be_refused(patients, capsys):
    frame = source_table()[["scan_0", "hdl", "ill"]]
    frame.to_csv("s.csv", index=False)
    frame.dropna().to_csv("full.csv", index=False)
    options = ("--target", "ill", "--missing", "refuse", "--time", 1)
    _, err = run(capsys, "fit", "s.csv", *options, code=2)
    assert "Values are missing (or infinite) in 'scan_0'" in err
    run(capsys, "fit", "full.csv", *options, "--no-report", "--quiet")
    assert "Values are missing" in run(capsys, "predict", "full.kw", "s.csv", code=2)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--source", "scan"), "must be NAME=COLUMN,COLUMN or NAME=PATTERN, got 'scan'"),
        (("--source", "scan=nose_*"), "source 'scan': no column to learn from is named nose_*"),
        (("--missing", "complete"), "needs two sources or more, got 0"),
        (("--missing", "off", "--method", "rules"), "method rules: it has no kernels of sources"),
        (("--missing", "off", "--method", "svm"), "method svm: it has no kernels of sources"),
    ],
)
def test_mistakes_about_sources(patients, capsys, options, message):
    source_table().to_csv("s.csv", index=False)
    _, err = run(capsys, "fit", "s.csv", "--target", "ill", *options, code=2)
    assert message in err


def test_rows_without_any_source_are_named(patients, capsys):
    frame = source_table()[["scan_0", "hdl", "ill"]]
    frame[["scan_0", "hdl"]] = frame[["scan_0", "hdl"]].fillna(0.0)
    frame.loc[7, ["scan_0", "hdl"]] = np.nan
    frame.to_csv("s.csv", index=False)
    options = ("--target", "ill", "--source", "a=scan_0", "--source", "b=hdl", "--missing", "off")
    _, err = run(capsys, "fit", "s.csv", *options, "--test-share", 0, "--C", 1, code=2)
    assert "row 7 has none of the sources" in err
