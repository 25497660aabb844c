"""``kernelweave report``: a page about a model file."""

from functools import cache
from pathlib import Path

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
from kernelweave.io import load, save
from quick import first
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
    assert rows(page, "performance", table=-1)[0][-1] == "fold 3"
    assert page.find("h1")[0].text() == "Predicting size"
    # The file of the model keeps no rows, but it has as many as the table.
    assert "table.csv has as many rows as the model was fitted to" in page.find("header")[0].text()
    assert "Data filetable.csv" in section(folder / "sizes.html", "reproduce")
    # The target is in the table, but nothing may learn from it.
    assert [line[0] for line in rows(page, "data")[1:]] == list(FRAME.columns)


def test_options(folder, capsys):
    words = ["--data", "table.csv", "--out", "a.html", "--title", "<Sizes>"]
    assert run(capsys, "sizes.kw", *words) == (0, "a.html\n", "")
    page = parse((folder / "a.html").read_text(encoding="utf-8"))
    assert page.find("h1")[0].text() == "<Sizes>"
    words = section(folder / "a.html", "performance")
    assert "Scores of this model on the 60 rows of table.csv; it was not refitted." in words
    assert "folds" not in words


@pytest.fixture
def fitted(folder, capsys):
    """Fit a model to some rows of the table, and leave the others in new.csv."""
    table = pd.read_csv("table.csv")
    table[:45].to_csv("old.csv", index=False)
    table[45:].to_csv("new.csv", index=False)
    table[30:].to_csv("both.csv", index=False)
    (folder / "old.kw").write_bytes(fit_old())
    return folder


@cache
def fit_old():
    """Return the bytes of a model of old.csv."""
    words = ["--target", "size", "--ignore", "mass", "--time", "1", "--quiet", "--no-report"]
    assert main(["fit", "old.csv", *words]) == 0
    return Path("old.kw").read_bytes()


def test_what_the_fit_has_measured_is_kept_in_the_file(fitted, capsys):
    assert run(capsys, "old.kw")[0] == 0
    words = section(fitted / "old.html", "performance")
    assert "left out" in words
    assert "the model in the file was then fitted to all 45 rows." in words
    head = parse((fitted / "old.html").read_text(encoding="utf-8")).find("header")[0].text()
    assert "constant prediction" in head
    assert "Not measured" not in head
    assert "Importance, with standard errors" in head
    assert "It looks most at" in head


def test_new_rows_score_the_model_as_it_is(fitted, capsys):
    assert run(capsys, "old.kw", "--data", "new.csv")[0] == 0
    head = parse((fitted / "old.html").read_text(encoding="utf-8")).find("header")[0].text()
    assert "on the 15 rows of new.csv; it was not refitted" in head
    assert "were fitted to" not in head
    words = section(fitted / "old.html", "performance")
    assert "When it was fitted" in words
    new = pd.read_csv("new.csv")
    right = (load("old.kw").predict(new) == new["size"]).mean()
    lines = rows(parse((fitted / "old.html").read_text(encoding="utf-8")), "performance")
    assert {line[0]: line[1] for line in lines}["accuracy"] == f"{right:.1%}"


@pytest.mark.parametrize("shuffled", first(1, [True, False]))
def test_rows_that_the_model_was_fitted_to_are_not_scored(fitted, capsys, shuffled):
    table = pd.read_csv("old.csv")
    columns = list(table)[::-1] if shuffled else list(table)
    table.sample(frac=1, random_state=0)[columns].to_csv("old.csv", index=False)
    assert run(capsys, "old.kw", "--data", "old.csv")[0] == 0
    page = parse((fitted / "old.html").read_text(encoding="utf-8"))
    head = page.find("header")[0].text()
    assert "The rows of old.csv are rows that the model was fitted to." in head
    assert "left out" in page.find("p", class_="score")[0].text()
    assert "not refitted" not in page.text()


def test_some_rows_that_the_model_was_fitted_to_are_counted(fitted, capsys):
    assert run(capsys, "old.kw", "--data", "both.csv")[0] == 0
    head = parse((fitted / "old.html").read_text(encoding="utf-8")).find("header")[0].text()
    assert "15 of the 30 rows of both.csv equal rows that the model was fitted to" in head
    assert "on the 30 rows of both.csv; it was not refitted" in head


def test_rows_without_a_target_are_left_out(folder, capsys):
    table = FRAME.assign(size=np.where(np.arange(60) < 5, None, TWO))
    table.to_csv("holes.csv", index=False)
    assert run(capsys, "sizes.kw", "--data", "holes.csv", "--cv", "2")[0] == 0
    assert "on 55 rows, each predicted without it in 2 folds" in section(
        folder / "sizes.html", "performance"
    )


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
        (["--data", "table.csv", "--cv", "1"], "'--cv': 1 is not in the range x>=2"),
        (["--cv", "5"], "--cv: fits the model again on folds of a table, so it needs --data FILE."),
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
    said = f"on {n} rows, each predicted without it in 3 folds"
    assert said in section(folder / "sizes.html", "performance")
    assert run(capsys, "sizes.kw", "--data", "three.csv", "--cv", "3", "--quiet") == (0, "", "")
    assert run(capsys, "sizes.kw", "--data", "three.csv")[2] == ""
    assert f"{3 * n} rows" in section(folder / "sizes.html", "data")
