"""``kernelweave evaluate``: how good a model file is on new rows."""

import json

import numpy as np
import pandas as pd
import pytest

from command_table import fit, run
from kernelweave import RBF, MKLClassifier, MKLRegressor
from kernelweave.io import load, save


def write_new(n=90, **changes):
    """Write new rows of the table, and return them."""
    random = np.random.default_rng(8)
    group = np.arange(n) % 3
    table = pd.DataFrame(
        {
            "age": 30 + 20 * group + random.normal(0, 3, n),
            "dose": random.normal(size=n),
            "town": random.choice(["Ulm", "Köln", "Bonn"], n, p=[0.5, 0.45, 0.05]),
            "seen": [f"2024-{1 + i % 12:02d}-07" for i in range(n)],
            "unit": "mg",
            "ill": np.where(group > 0, "yes", "no"),
        }
    ).assign(**changes)
    table.to_csv("new.csv", index=False)
    return table


def test_terminal(patients, capsys):
    """The answer comes first, then scores, classes, confusions and sets."""
    fit(capsys, "mkl")
    write_new()
    out, err = run(capsys, "evaluate", "t.kw", "new.csv")
    lines = out.splitlines()
    assert lines[0] == "t.kw on new.csv: 90 rows, target 'ill' (2 classes)."
    assert lines[1].startswith("AUC ")
    assert "better than a constant prediction (0.500)." in lines[1]
    assert "Probabilities" in lines[2]
    assert lines[3].startswith("The 90% sets hold the true class of ")
    for words in ("log-loss", "F1 of yes", "found (recall)", "true / predicted", "empty"):
        assert words in out
    # Sentences are folded by the terminal; tables fit.
    assert max(len(line) for line in lines[4:] if not line.startswith("Note")) <= 80
    assert err == ""
    assert run(capsys, "evaluate", "t.kw", "new.csv", "--quiet") == ("", "")


@pytest.mark.filterwarnings("ignore:X. 4 values of column 'town'")
def test_json(patients, capsys):
    """JSON holds the same numbers as Python, and nothing that JSON lacks."""
    fit(capsys, "mkl")
    new = write_new()
    options = ("--by", "town", "--sources", "--against", "t.kw", "--json")
    out, _ = run(capsys, "evaluate", "t.kw", "new.csv", *options)
    found = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    scores = {score["name"]: score for score in found["scores"]}
    predicted = load("t.kw").predict(new)
    assert scores["accuracy"]["value"] == (predicted == new["ill"]).mean()
    assert scores["accuracy"]["exact"] is True
    assert found["classes"] == ["no", "yes"]
    assert sum(map(sum, found["confusion"])) == 90
    assert {group["name"] for group in found["groups"]} == {"Ulm", "Köln", "Bonn"}
    assert [group["few"] for group in found["groups"]] == [False, False, True]
    assert {d["better"] for d in found["differences"]} == {None}
    assert found["sources"][0]["name"] in ("age", "seen")  # both tell the group
    assert "No score differs significantly from that of t.kw" in found["verdict"][-1]


def test_rows_of_the_fit(patients, capsys):
    """Rows that the model was fitted to are recognised."""
    fit(capsys, "mkl")
    out, _ = run(capsys, "evaluate", "t.kw", "t.csv")
    assert "Warning: All rows are rows that the model was fitted to" in out
    both = pd.concat([write_new(), pd.read_csv("t.csv", sep=";", encoding="latin-1")[:10]])
    both.to_csv("new.csv", index=False)
    out, _ = run(capsys, "evaluate", "t.kw", "new.csv")
    assert "Warning: 10 of the 100 rows are rows that the model was fitted to" in out
    both[:-9].to_csv("new.csv", index=False)
    out, _ = run(capsys, "evaluate", "t.kw", "new.csv")
    assert "Warning: 1 of the 91 rows is a row that the model was fitted to" in out


def test_page(patients, capsys):
    """The page has the scores, the groups and the other model, with all names escaped."""
    fit(capsys, "mkl")
    fit(capsys, "rules", "--out", "rules.kw")
    write_new(town=["<b>Ulm</b>", "Köln"] * 45)
    options = ("--by", "town", "--against", "rules.kw", "--page", "page.html")
    out, _ = run(capsys, "evaluate", "t.kw", "new.csv", *options)
    assert "page.html" in out
    page = (patients / "page.html").read_text(encoding="utf-8")
    for words in ("on the 90 rows of new.csv", "Beside rules.kw", "By town", "average precision"):
        assert words in page
    assert "&lt;b&gt;Ulm&lt;/b&gt;" in page
    assert "<b>Ulm" not in page
    _, err = run(capsys, "evaluate", "t.kw", "new.csv", "--page", "none/page.html", code=2)
    assert "--page: none/page.html is in a folder that does not exist" in err


def test_regression(patients, capsys):
    """Residuals and intervals of numbers, in the rows' own units and numbers."""
    random = np.random.default_rng(0)
    x = random.uniform(0, 6, 300)
    table = pd.DataFrame({"x": x, "y": 100 + 10 * np.sin(x) + random.normal(size=300)})
    table[:200].to_csv("r.csv", index=False)
    run(capsys, "fit", "r.csv", "--target", "y", "--method", "metric", "--quiet", "--no-report")
    new = table[200:].reset_index(drop=True)
    new.loc[7, "y"] = 1000.0
    new.to_csv("new.csv", index=False)
    out, _ = run(capsys, "evaluate", "r.kw", "new.csv")
    assert "median absolute error" in out
    assert "largest errors  row 7 (is 1,000, predicted" in out
    assert "The 90% intervals hold the true target of " in out
    assert "constant" in out.partition("Share of the rows in their intervals")[2]


@pytest.mark.parametrize(
    ("table", "words", "message"),
    [
        ({"ill": "no"}, "", "all rows have the value 'no' of 'ill', so that AUC and average"),
        ({"ill": "ill"}, "", "'ill' has the value 'ill' in 90 row(s), which is no class of the"),
        ({}, "--target il", "The table has no column 'il'; did you mean 'ill'?"),
        ({}, "--by twn", "The table has no column 'twn'; did you mean 'town'?"),
        ({}, "--weight dose", "--weight: 'dose' must hold numbers that are not negative"),
        ({}, "--positive maybe", "--positive: must be a class of the model (no, yes)"),
        ({}, "--seed -1", "'--seed': -1 is not in the range"),
        ({}, "--weight town", "without gaps, but row 0 has "),
        (
            {},
            "--against r.kw",
            "--against: one of the models predicts classes and the other numbers",
        ),
        ({"age": "old"}, "", "The column 'age' must hold numbers, but has 'old'"),
    ],
)
def test_bad_input(patients, capsys, table, words, message):
    """One sentence and the exit code 2; one class only is a note."""
    fit(capsys, "mkl")
    if "r.kw" in words:
        X = np.linspace(0, 1, 40)[:, None]
        frame = pd.DataFrame({"age": X[:, 0]})
        save(MKLRegressor([RBF(1.0)]).fit(frame, X[:, 0]), "r.kw")
    write_new(**table)
    one_class = table == {"ill": "no"}
    out, err = run(
        capsys, "evaluate", "t.kw", "new.csv", *words.split(), code=0 if one_class else 2
    )
    assert message in (out if one_class else err)
    if not one_class:
        assert out == ""
        assert err.count("\n") == 1


def test_models_of_python(patients, capsys):
    """Several labels, and columns without names; the names of targets must be given."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    labels = (X + 0.3 * random.normal(size=(120, 2)) > 0).astype(int)
    save(MKLClassifier([RBF(1.0)], loss="logistic").fit(X[:80], labels[:80]), "labels.kw")
    table = pd.DataFrame({"u": X[80:, 0], "v": X[80:, 1]})
    table.assign(a=labels[80:, 0], b=labels[80:, 1]).to_csv("new.csv", index=False)
    _, err = run(capsys, "evaluate", "labels.kw", "new.csv", code=2)
    assert "--target: this model does not know the name of its target" in err
    out, _ = run(capsys, "evaluate", "labels.kw", "new.csv", "--target", "a", "--target", "b")
    assert "AUC, mean of 2 labels" in out
    assert "Target by target" in out


def test_labels_that_look_like_numbers(patients, capsys):
    """Classes that are text stay text: "01" is not 1."""
    random = np.random.default_rng(0)
    x = random.normal(size=120)
    code = np.where(x > 0, "01", "02x")
    pd.DataFrame({"x": x, "code": code})[:80].to_csv("c.csv", index=False)
    options = ("--method", "mkl", "--C", 1, "--test-share", 0, "--quiet", "--no-report")
    run(capsys, "fit", "c.csv", "--target", "code", *options)
    pd.DataFrame({"x": x, "code": code})[80:].query("code == '01'").to_csv("new.csv", index=False)
    out, _ = run(capsys, "evaluate", "c.kw", "new.csv", "--json")
    assert {s["name"]: s["value"] for s in json.loads(out)["scores"]}["accuracy"] > 0.9
