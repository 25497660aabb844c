"""Combinations are the weighted means that they promise, and survive their files."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

from kernelweave import (
    RBF,
    CombinedClassifier,
    CombinedRegressor,
    Linear,
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
)
from kernelweave.errors import InputError, ModelFileError
from kernelweave.io import TablePreparer, load, save

RANDOM = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RANDOM.normal(size=N),
        "town": RANDOM.choice(["Ulm", "Bonn"], N),
        "seen": pd.date_range("2024-01-01", periods=N, freq="D"),
    }
)
QUANTITY = np.exp(FRAME["age"].to_numpy() + (FRAME["town"] == "Ulm"))
TWO = np.where(QUANTITY > 1.5, "high", "low")
THREE = np.array(["a", "b", "c"])[np.digitize(QUANTITY, [0.8, 2.0])]
SLOPES = (np.array([[2.0]]), np.array([-0.3]))


def prepared(model):
    """A model of numbers behind a step that gives them."""
    return Pipeline([("table", TablePreparer()), ("model", model)])


def test_numbers_are_averaged_on_their_own_scales():
    linear, metric = prepared(MKLRegressor([Linear(columns="age")])), MetricKernelRegressor()
    model = CombinedRegressor(
        [("linear", linear), ("metric", metric)], weights=[1, 3], logarithms=[None, (0.5, 1.1)]
    ).fit(FRAME, QUANTITY)
    raw = linear.fit(FRAME, QUANTITY).predict(FRAME)
    logs = metric.fit(FRAME, np.log(QUANTITY + 0.5)).predict(FRAME)
    expected = 0.25 * raw + 0.75 * (1.1 * np.exp(logs) - 0.5)
    np.testing.assert_allclose(model.predict(FRAME), expected, rtol=1e-12)
    assert model.to_frame()["member"].tolist() == ["metric", "linear"]


@pytest.mark.parametrize("y", [TWO, THREE])
def test_probabilities_are_averaged(y):
    n_outputs = 1 if y is TWO else 3
    calibration = (2.0 * np.eye(n_outputs), np.full(n_outputs, 0.2))
    svm, metric = prepared(MKLClassifier([RBF(1.0, columns="age")])), MetricKernelClassifier()
    model = CombinedClassifier(
        [("svm", svm), ("metric", metric)], calibrations=[calibration, None]
    ).fit(FRAME, y)
    decision = svm.fit(FRAME, y).decision_function(FRAME)
    if y is TWO:
        own = 1 / (1 + np.exp(-(2.0 * decision + 0.2)))
        own = np.column_stack([1 - own, own])
    else:
        own = np.exp(2.0 * decision + 0.2)
        own /= own.sum(axis=1, keepdims=True)
    expected = (own + metric.fit(FRAME, y).predict_proba(FRAME)) / 2
    found = model.predict_proba(FRAME)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (model.predict(FRAME) == model.classes_[found.argmax(axis=1)]).all()


@pytest.mark.parametrize("y", [QUANTITY, TWO])
def test_files(tmp_path, y):
    if y is QUANTITY:
        model = CombinedRegressor(
            [
                ("m", MetricKernelRegressor()),
                ("l", prepared(MKLRegressor([Linear(columns="age")]))),
            ],
            logarithms=[(0.0, 1.05), None],
            weights=[0.6, 0.4],
        )
    else:
        model = CombinedClassifier(
            [
                ("m", MetricKernelClassifier()),
                ("l", prepared(MKLClassifier([Linear(columns="age")]))),
            ],
            calibrations=[None, SLOPES],
        )
    table = TablePreparer(standardize=False, missing="keep", keep_dates=True)
    pipeline = Pipeline([("table", table), ("model", model)]).fit(FRAME, y)
    again = load(save(pipeline, tmp_path / "model.kw"))
    np.testing.assert_array_equal(again.predict(FRAME[::-1]), pipeline.predict(FRAME[::-1]))
    if y is TWO:
        new = pipeline.predict_proba(FRAME[:7])
        np.testing.assert_array_equal(again.predict_proba(FRAME[:7]), new)
    save(again, tmp_path / "again.kw")
    assert (tmp_path / "again.kw").read_bytes() == (tmp_path / "model.kw").read_bytes()


def test_what_cannot_be_saved(tmp_path):
    from sklearn.linear_model import Ridge

    model = CombinedRegressor([("ridge", Ridge())]).fit(FRAME[["age"]], QUANTITY)
    with pytest.raises(ModelFileError, match="A model of type Ridge cannot be saved"):
        save(model, tmp_path / "model.kw")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": []}, "estimators: must have one item or more"),
        ({"estimators": [MKLRegressor()]}, "estimators: must be pairs of a name and an estimator"),
        ({"weights": [1.0]}, "weights: must have an item for each of the 2 members, got 1"),
        ({"weights": [0.0, 0.0]}, "weights: must be finite, not negative, not all 0"),
        ({"logarithms": [(0.0, -1.0), None]}, r"logarithms: must be None or \(offset, scale\)"),
        ({"logarithms": [(-5.0, 1.0), None]}, "logarithms: y \\+ -5 must be > 0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        CombinedRegressor(**options).fit(FRAME[["age"]], QUANTITY)
