"""Models as sums of products of functions of columns predict what they predicted before."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelweave import (
    RBF,
    Additive,
    CombinedRegressor,
    Linear,
    MKLRegressor,
    Polynomial,
    RuleEnsembleRegressor,
)
from kernelweave.inspection.separable import separable_form, thresholds
from kernelweave.kernels import Cosine

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
NEW = RANDOM.normal(size=(7, 3))
MEMBERS = [
    ("one", MKLRegressor([RBF(1.0)])),
    ("two", make_pipeline(StandardScaler(), MKLRegressor([Linear()]))),
]
SUMS = {
    "products": MKLRegressor([RBF(1.0)]),
    "sums": MKLRegressor([Linear(), Additive((1.0, 1.0, 1.0))]),
    "a product times a sum": MKLRegressor([RBF(1.0, columns=[0, 1]) * Polynomial(1, 2.0)]),
    "one column": MKLRegressor([Polynomial(3, columns=[1])]),
    "rules": RuleEnsembleRegressor(C=100, max_length=2),
    "linear terms": RuleEnsembleRegressor(1.0, C=99.0, max_length=2, linear_terms=True),
    "lines": RuleEnsembleRegressor(1.0, C=9.0, max_length=1, linear_terms=True),
    "a pipeline": make_pipeline(StandardScaler(), MKLRegressor([RBF(1.0), Linear()])),
    "a combination": CombinedRegressor(MEMBERS, weights=[0.6, 0.4]),
}


def evaluated(form, table):
    """Return constant, functions of single columns and products, added up."""
    n = len(table)
    total = np.tile(form.constant, (n, 1))
    for player in form.additive:
        total += form.own(player, table, n)
    for part in form.products:
        total += np.prod([factor(table) for factor in part.factors.values()], axis=0).T @ part.coef
    return total[:, 0]


@pytest.mark.parametrize("name", SUMS)
def test_predictions_stay_the_same(name):
    model = SUMS[name].fit(X, Y)
    form = separable_form(model, X)
    np.testing.assert_allclose(evaluated(form, NEW), model.predict(NEW), atol=1e-9)
    assert form.is_additive == (name in ("sums", "one column", "lines"))


@pytest.mark.parametrize(
    "model",
    [
        MKLRegressor([Polynomial(2)]),
        MKLRegressor([Cosine(Linear())]),
        make_pipeline(PCA(2), MKLRegressor([RBF(1.0)])),
    ],
    ids=["power", "opaque", "mixed columns"],
)
def test_what_is_no_such_sum(model):
    assert separable_form(model.fit(X, Y), X) is None


def test_derived_columns_belong_to_their_column():
    frame = pd.DataFrame({"town": RANDOM.choice(["Ulm", "Bonn", "Hof"], 40)})
    model = make_pipeline(OneHotEncoder(sparse_output=False), MKLRegressor([RBF(1.0)]))
    form = separable_form(model.fit(frame, Y), frame)
    assert form.is_additive
    assert list(form.additive) == [0]


def test_thresholds_are_those_of_the_rules():
    model = RuleEnsembleRegressor(C=100).fit(X, Y)
    cuts = {(c.position, c.value) for rule in model.rules_ for c in rule.conditions}
    found = thresholds(model)
    assert {(q, v) for q, values in found.items() for v in values} == cuts
    assert cuts
    ends = RuleEnsembleRegressor(1.0, C=0.1, max_rules=1, refit=True, linear_terms=True)
    (term,) = ends.fit(X, X[:, 1]).linear_terms_
    assert thresholds(ends) == {1: [term.low, term.high]}
    assert thresholds(make_pipeline(StandardScaler(), model)) == {}
    assert thresholds(MKLRegressor([Linear()]).fit(X, Y)) == {}
