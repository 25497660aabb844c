"""``kernelweave predict``: intervals, sets and columns that are copied."""

import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from command_table import N, fit, run
from kernelweave import RBF, MKLClassifier, MKLRegressor
from kernelweave.io import load, save

METHODS = ["mkl", "radius", "rules", "structure"]


def table_of(text):
    """Return the CSV that a command wrote, as text."""
    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)


@pytest.fixture
def prices(tmp_path, monkeypatch):
    """Work in an empty folder with a table of prices."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    size = random.uniform(1, 5, 400)
    table = pd.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(400)],
            "size": size,
            "price": 10 * size + random.normal(size=400),
        }
    )
    table[:200].to_csv("p.csv", index=False)
    table[200:].to_csv("new.csv", index=False)
    return table[200:].reset_index(drop=True)


@pytest.mark.parametrize("method", ["auto", "linear", "svm", "metric", "mkl", "rules"])
def test_intervals_right_after_fit(prices, capsys, method):
    """Every method of fit that predicts numbers has intervals, which cover new rows."""
    alone = ["--C", 10, "--test-share", 0]
    cost = alone if method in ("mkl", "rules") else ["--time", 1]
    words = ("--target", "price", "--method", method, "--no-report")
    out, _ = run(capsys, "fit", "p.csv", *words, *cost)
    assert "predict also gives intervals (--interval 0.9)" in " ".join(out.split())
    out, _ = run(capsys, "predict", "p.kw", "new.csv", "--interval", 0.9)
    found = table_of(out)
    assert found.columns.tolist() == ["price", "lower", "upper"]
    low, value, high = (found[name].astype(float) for name in ("lower", "price", "upper"))
    assert ((low < value) & (value < high)).all()
    inside = (low <= prices["price"]) & (prices["price"] <= high)
    assert 0.84 <= inside.mean() <= 0.97
    wide, _ = run(capsys, "predict", "p.kw", "new.csv", "--interval", 0.99)
    assert (table_of(wide)["upper"].astype(float) > high).all()


def test_logarithmic_scale(prices, capsys):
    """Where a skewed target is learned on a logarithmic scale, widths grow with the prediction."""
    table = pd.concat([pd.read_csv("p.csv", dtype={"id": str}), prices])
    random = np.random.default_rng(1)
    table["price"] = np.exp(table["size"] + 0.2 * random.normal(size=400))
    table[:200].to_csv("p.csv", index=False)
    table[200:].to_csv("new.csv", index=False)
    out, _ = run(capsys, "fit", "p.csv", "--target", "price", "--no-report", "--time", 3)
    assert "logarithmic scale" in out
    found = table_of(run(capsys, "predict", "p.kw", "new.csv", "--interval", 0.9)[0]).astype(float)
    ratio = found["upper"] / found["lower"]
    assert ratio.max() == pytest.approx(ratio.min(), rel=1e-6)
    inside = (found["lower"] <= table["price"][200:].to_numpy()) & (
        table["price"][200:].to_numpy() <= found["upper"]
    )
    assert 0.84 <= inside.mean() <= 0.97


@pytest.mark.parametrize("method", METHODS)
def test_sets_right_after_fit(patients, capsys, method):
    """Methods with a margin loss have probabilities and sets, and the same decisions."""
    fit(capsys, method)
    model = load("t.kw")
    assert model[-1].calibration == "auto"
    out, _ = run(capsys, "predict", "t.kw", "t.csv", "--proba", "--set", 0.9)
    found = table_of(out)
    names = ["ill", "probability no", "probability yes", "set"]
    assert found.columns.tolist() == names
    assert set(found["set"]) <= {"", "no", "yes", "no|yes", "yes|no"}
    p = found[names[1:3]].astype(float)
    assert p.sum(axis=1).tolist() == pytest.approx([1.0] * len(p))
    first = found["set"].str.partition("|")[0]
    likely = np.where(p[names[2]] > p[names[1]], "yes", "no")
    several = found["set"].str.contains("|", regex=False)
    assert (first[several] == likely[several]).all()  # the most probable class comes first
    plain = model[-1].__class__(**{**model[-1].get_params(deep=False), "calibration": None})
    X = model[0].transform(pd.read_csv("t.csv", sep=";", encoding="latin-1"))
    y = pd.read_csv("t.csv", sep=";", encoding="latin-1")["ill"]
    assert np.array_equal(plain.fit(X, y).decision_function(X), model[-1].decision_function(X))


def test_sets_of_chosen_models(patients, capsys):
    """What fit chooses by itself has sets too; the cost is in the output as JSON."""
    out, _ = run(capsys, "fit", "t.csv", "--target", "ill", "--json", "--no-report", "--time", 1)
    found = json.loads(out)
    assert found["offers"] == ["probabilities", "sets"]
    assert found["offers_seconds"] >= 0
    out, _ = run(capsys, "predict", "t.kw", "t.csv", "--set", 0.9, "--json")
    assert set(json.loads(out)[0]) == {"ill", "set"}


def test_keep(prices, capsys):
    """Columns are copied as they are written, before the predictions, in the order given."""
    run(capsys, "fit", "p.csv", "--target", "price", "--method", "linear", "--quiet", "--no-report")
    found = table_of(run(capsys, "predict", "p.kw", "new.csv", "--keep", "price,id")[0])
    assert found.columns.tolist() == ["price", "id", "predicted price"]
    assert found["id"].tolist() == prices["id"].tolist()
    raw = pd.read_csv("new.csv", dtype=str)
    assert found["price"].tolist() == raw["price"].tolist()
    twice = run(capsys, "predict", "p.kw", "new.csv", "--keep", "id", "--keep", "size")[0]
    assert table_of(twice).columns.tolist() == ["id", "size", "price"]
    _, err = run(capsys, "predict", "p.kw", "new.csv", "--keep", "id,nme", code=2)
    assert "The table has no column 'nme'" in err
    gaps = raw.assign(**{"a,b": ["x", None] * 100})
    gaps.to_csv("new.csv", index=False)
    found = table_of(run(capsys, "predict", "p.kw", "new.csv", "--keep", "a,b")[0])
    assert found["a,b"].tolist()[:2] == ["x", ""]


def test_keep_beside_columns_without_names(prices, capsys):
    """A model of an array takes the columns that are not kept."""
    X = pd.read_csv("p.csv")[["size"]].to_numpy()
    y = pd.read_csv("p.csv")["price"].to_numpy()
    save(MKLRegressor([RBF(1.0)]).fit(X, y), "a.kw")
    prices[["id", "size"]].to_csv("new.csv", index=False)
    assert (
        "columns of numbers without names" in run(capsys, "predict", "a.kw", "new.csv", code=2)[1]
    )
    found = table_of(run(capsys, "predict", "a.kw", "new.csv", "--keep", "id")[0])
    assert found.columns.tolist() == ["id", "prediction"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("c.kw --set 0.9", "--set: this model has no sets of classes; fit again with kernelweave"),
        ("c.kw --proba", "--proba: this model has no probabilities; fit again with kernelweave"),
        (
            "c.kw --interval 0.9",
            "--interval: this model predicts classes, for which there are sets",
        ),
        ("r.kw --interval 0.9", "--interval: this model has no intervals; fit again with"),
        ("r.kw --set 0.9", "--set: this model predicts numbers, for which there are intervals"),
        ("r.kw --proba", "--proba: this model predicts numbers, for which there are intervals"),
        ("r.kw --interval 90", "must be a number between 0 and 1, got '90'"),
        ("c.kw --set 0", "must be a number between 0 and 1, got '0'"),
    ],
)
def test_models_without(prices, capsys, words, message):
    """One sentence that says how to get it."""
    frame = pd.read_csv("p.csv", dtype={"id": str})
    X, y = frame[["size"]], frame["price"]
    save(MKLRegressor([RBF(1.0)]).fit(X, y), "r.kw")
    save(MKLClassifier([RBF(1.0)]).fit(X, y > y.median()), "c.kw")
    model, *options = words.split()
    out, err = run(capsys, "predict", model, "new.csv", *options, code=2)
    assert message in err
    assert out == ""
    assert err.count("\n") == 1


def test_too_few_rows(prices, capsys):
    """An interval that the rows are too few for is infinite, and a warning says so."""
    pd.read_csv("p.csv").head(40).to_csv("few.csv", index=False)
    words = ("--target", "price", "--method", "mkl", "--C", 1, "--quiet", "--no-report")
    run(capsys, "fit", "few.csv", *words, "--test-share", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        out, err = run(capsys, "predict", "few.kw", "new.csv", "--interval", 0.99)
    assert "warning: coverage=0.99: 40 training rows are too few" in err
    assert set(table_of(out)["upper"]) == {"inf"}


def test_predictions_to_a_file_are_those_of_standard_output(patients, capsys):
    fit(capsys, "mkl", "--out", "m.kw")
    out, _ = run(capsys, "predict", "m.kw", "t.csv")
    found = pd.read_csv(io.StringIO(out))
    assert len(found) == N
    assert set(found["ill"]) <= {"yes", "no"}
    run(capsys, "predict", "m.kw", "t.csv", "--out", "p.csv")
    pd.testing.assert_frame_equal(pd.read_csv("p.csv"), found)
