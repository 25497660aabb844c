"""Sources of a model, and its score with one of them exchanged between rows."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import RBF, Linear, MKLClassifier, views
from kernelweave.errors import InputError
from kernelweave.tables import evaluate_table
from kernelweave.tables.new_rows import predict_rows, take_rows
from kernelweave.tables.sources import find_sources, score_sources

RANDOM = np.random.default_rng(0)
X = pd.DataFrame(RANDOM.normal(size=(80, 3)), columns=["a", "b", "c"])
Y = (X["a"] > 0).astype(int)
COLUMNS = list(X)


def fitted(kernels):
    return MKLClassifier(kernels).fit(X, Y)


def test_views_are_sources():
    model = fitted([views({"left": ["a", "b"], "right": ["c"]}, [Linear(), RBF(1.0)])])
    assert find_sources(model, COLUMNS) == {"left": ("a", "b"), "right": ("c",)}


@pytest.mark.parametrize(
    "kernels", [[Linear()], [views({"all": ["a", "b", "c"]}, [Linear()])]], ids=["none", "one"]
)
def test_columns_are_sources_where_views_are_not(kernels):
    assert find_sources(fitted(kernels), COLUMNS) == {name: (name,) for name in COLUMNS}


@pytest.mark.parametrize("rule", ["refuse", "off", "complete"])
def test_sources_with_gaps_beside_other_columns(rule):
    holed = X.assign(a=X["a"].where(np.arange(80) % 3 > 0))
    model = MKLClassifier([views({"left": ["a"], "right": ["b"]}, missing=rule), RBF(columns="c")])
    model.fit(holed, Y)
    assert find_sources(model, COLUMNS) == {"left": ("a",), "right": ("b",), "c": ("c",)}


def test_positions_and_slices():
    model = fitted(
        [Linear(columns=slice(0, 2), name="left: one"), Linear(columns=[2], name="right: two")]
    )
    assert find_sources(model, COLUMNS) == {"left": ("a", "b"), "right": ("c",)}


def test_only_what_the_model_uses_is_lost():
    model = MKLClassifier([Linear(columns=["a"])]).fit(X, Y)
    frame = X.assign(y=Y)
    rows = take_rows(model, frame, "y")
    found, notes = score_sources(
        model, rows, predict_rows(model, rows).predicted, "accuracy", None, 0
    )
    assert notes == []
    losses = {part.name: part.loss for part in found}
    assert found[0].name == "a"
    assert losses["a"] > 0.2
    assert losses["b"] == losses["c"] == 0.0
    whole = evaluate_table(model, frame, "y").score("accuracy").value
    assert found[0].value == pytest.approx(whole - losses["a"])


def test_one_source_is_refused():
    model = MKLClassifier([Linear()]).fit(X[["a"]], Y)
    with pytest.raises(InputError, match="--sources: the model has one source only"):
        evaluate_table(model, X.assign(y=Y)[["a", "y"]], "y", sources=True)
