"""``kernelweave report``: a page about a model file."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import (
    MKLClassifier,
    MKLRegressor,
    Overlap,
    PairwiseKernelLearner,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
    rbf_ladder,
)
from kernelweave.cli import main
from kernelweave.io import save
from report_models import COUNTS, FRAME, GROUPS, QUANTITY, TWO, prepared
from report_pages import parse, rows

KERNELS = [rbf_ladder(columns=["age", "height"]), Overlap(columns=["town"])]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with a table and a model."""
    monkeypatch.chdir(tmp_path)
    FRAME.assign(size=TWO, mass=QUANTITY, other=1).to_csv("table.csv", index=False)
    model = prepared(MKLClassifier(KERNELS)).fit(FRAME, pd.Series(TWO, name="size"))
    save(model, "sizes.kw")
    return tmp_path


def run(capsys, *argv):
    capsys.readouterr()
    code = main(["report", *argv])
    out, err = capsys.readouterr()
    return code, out, err


def section(path, name):
    (part,) = parse(path.read_text(encoding="utf-8")).find("section", id=name)
    return part.text()


def test_a_page_without_data(folder, capsys):
    assert run(capsys, "sizes.kw") == (0, "sizes.html\n", "")
    assert "Not measured" in section(folder / "sizes.html", "performance")
    facts = section(folder / "sizes.html", "reproduce")
    assert "Model filesizes.kw" in facts
    assert "Model file written bykernelweave" in facts


def test_the_target_is_known_from_the_model(folder, capsys):
    assert run(capsys, "sizes.kw", "--data", "table.csv", "--cv", "3", "--quiet") == (0, "", "")
    page = parse((folder / "sizes.html").read_text(encoding="utf-8"))
    assert rows(page, "performance")[0][-1] == "fold 3"
    assert page.find("h1")[0].text() == "size by MKLClassifier"
    assert "Data filetable.csv" in section(folder / "sizes.html", "reproduce")
    # The target is in the table, but nothing may learn from it.
    assert [line[0] for line in rows(page, "data")[1:]] == list(FRAME.columns)


def test_options(folder, capsys):
    words = ["--data", "table.csv", "--cv", "0", "--out", "a.html", "--title", "<Sizes>"]
    assert run(capsys, "sizes.kw", *words) == (0, "a.html\n", "")
    page = parse((folder / "a.html").read_text(encoding="utf-8"))
    assert page.find("h1")[0].text() == "<Sizes>"
    assert "was left out" in section(folder / "a.html", "performance")


def test_rows_without_a_target_are_left_out(folder, capsys):
    table = FRAME.assign(size=np.where(np.arange(60) < 5, None, TWO))
    table.to_csv("holes.csv", index=False)
    assert run(capsys, "sizes.kw", "--data", "holes.csv", "--cv", "2")[0] == 0
    assert "2 folds of 55 rows" in section(folder / "sizes.html", "performance")


MODELS = {
    "rules": (RuleEnsembleClassifier(C=10), FRAME, TWO, "size"),
    "numbers": (RuleEnsembleClassifier(C=10), FRAME, np.arange(60) % 2, "flag"),
    "truth": (RuleEnsembleClassifier(C=10), FRAME, np.arange(60) % 2 == 0, "truth"),
    "quantity": (MKLRegressor(), FRAME[["age"]], QUANTITY, "mass"),
    "pairs": (PairwiseKernelLearner(random_state=0), COUNTS, GROUPS, "group"),
}


@pytest.mark.parametrize("name", MODELS)
def test_targets_of_every_type(folder, capsys, name):
    model, X, y, target = MODELS[name]
    save(model.fit(X, y), "model.kw")
    pd.DataFrame(X).assign(**{target: y} if isinstance(X, pd.DataFrame) else {}).to_csv(
        "all.csv", index=False
    )
    words = ["--data", "all.csv"] + (["--target", target] if isinstance(X, pd.DataFrame) else [])
    code, _, err = run(capsys, "model.kw", *words, "--cv", "2")
    assert (code, err) == (0, "")
    measured = "Not measured" not in section(folder / "model.html", "performance")
    assert measured == (name != "pairs")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "size"], "--target: names a column of a table, so it needs --data FILE."),
        (["--data", "table.csv", "--target", "sise"], "has no column 'sise'; did you mean 'size'?"),
        (
            ["--data", "table.csv", "--target", "town"],
            "no class of the model; these are: high, low.",
        ),
        (["--data", "table.csv", "--cv", "1"], "cv: must be 2 folds or more"),
        (["--data", "none.csv"], "none.csv: No such file or directory"),
        (["--out", "no/page.html"], "--out: no/page.html is in a folder that does not exist."),
        (["--out", "."], "--out: . is a folder."),
    ],
)
def test_bad_input_is_one_line(folder, capsys, words, message):
    code, out, err = run(capsys, "sizes.kw", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (folder / "sizes.html").exists()


def test_targets_that_do_not_fit_the_model(folder, capsys):
    save(RuleEnsembleRegressor().fit(FRAME, QUANTITY), "one.kw")
    code, _, err = run(capsys, "one.kw", "--data", "table.csv", "--target", "town")
    assert code == 2
    assert "'town' must hold numbers" in err
    save(RuleEnsembleRegressor().fit(FRAME, np.column_stack([QUANTITY] * 2)), "two.kw")
    code, _, err = run(capsys, "two.kw", "--data", "table.csv", "--target", "mass")
    assert code == 2
    assert "predicts several targets" in err


def test_a_larger_table_is_measured_on_as_many_rows_as_the_model_saw(folder, capsys):
    table = pd.read_csv("table.csv")
    pd.concat([table] * 3).to_csv("three.csv", index=False)
    code, _, err = run(capsys, "sizes.kw", "--data", "three.csv", "--cv", "3")
    n = len(table)
    assert code == 0
    assert f"fitted to {n} rows, so it is measured on as many of the {3 * n} in the table" in err
    assert f"3 folds of {n} rows" in section(folder / "sizes.html", "performance")
    assert run(capsys, "sizes.kw", "--data", "three.csv", "--cv", "3", "--quiet") == (0, "", "")
    assert run(capsys, "sizes.kw", "--data", "three.csv", "--cv", "0")[2] == ""
    assert f"{3 * n} rows" in section(folder / "sizes.html", "data")
