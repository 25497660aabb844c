"""Labels of any type, and several classes."""

import numpy as np
import pandas as pd
import pytest

from flat_data import assert_same_bits
from kernelweave import (
    MKLClassifier,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 0, "ill", "well")
    return X, y


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b"]),
        np.array(["b", "a"], dtype=object),
        np.array([True, False]),
        np.array([-1, 1]),
        np.array([2.0, 1.0]),
    ],
    ids=["str", "object", "bool", "int", "float"],
)
def test_labels_of_any_type(data, labels):
    X, y = data
    given = labels[(y == "ill").astype(int)]
    model = MKLClassifier(C=10).fit(X, given)
    np.testing.assert_array_equal(model.classes_, np.unique(given))
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    assert model.score(X, given) > 0.9
    positive = model.decision_function(X) > 0
    np.testing.assert_array_equal(predicted[positive], model.classes_[1])


def test_series_of_categories(data):
    X, y = data
    model = MKLClassifier().fit(X, pd.Series(y, dtype="category"))
    assert list(model.classes_) == ["ill", "well"]
    assert_same_bits(model, MKLClassifier().fit(X, y))


def test_several_classes(data):
    X, _ = data
    y = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = MKLClassifier(C=10).fit(X, y)
    decision = model.decision_function(X)
    assert decision.shape == (90, 3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[decision.argmax(axis=1)])
    assert model.dual_coef_.shape[0] == model.intercept_.shape[0] == 3
    assert model.score(X, y) > 0.9
