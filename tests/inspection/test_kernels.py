"""Attributions of kernel models by kernel, and which columns kernels connect."""

import numpy as np
import pytest

from kernelweave import RBF, Linear, MKLRegressor, SumProductMKLClassifier, views
from kernelweave.errors import InputError
from kernelweave.inspection import explain
from kernelweave.inspection.game import Game, Players, linked

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
WEIGHTS = np.full(40, 1 / 40)
PLAYERS = Players(("ab", "c"), ((0, 1), (2,)))


def test_values_of_kernels_are_centred_parts_of_the_prediction():
    kernels = [RBF(1.0, columns=[0, 1]), Linear()]
    model = MKLRegressor(kernels).fit(X, Y)
    found = explain(model, X[:5], X, by="kernel")
    for k, term in enumerate(model._terms().terms):
        kernel, rows = term.factors[0]
        part = kernel.block(kernel.prepare(X), rows) @ term.coef
        np.testing.assert_allclose(found.values[:, k], (part[:5] - part.mean())[:, 0], atol=1e-9)
        np.testing.assert_allclose(found.errors[:, k], part.std(ddof=1) / np.sqrt(40))
    np.testing.assert_allclose(found.predictions, model.predict(X[:5]))


def test_players_of_kernels():
    game = Game(X, X, WEIGHTS, 40, 1.0, PLAYERS)
    plain = MKLRegressor([RBF(1.0, columns=[0, 2]), Linear(columns=[3])]).fit(X, Y)
    assert linked(plain._terms(), game) == [(None, frozenset({0, 1})), (None, frozenset())]
    named = MKLRegressor(views({"left": [0, 1], "right": [2]})).fit(X, Y)
    assert set(linked(named._terms(), game)) == {
        ("left", frozenset({0})),
        ("right", frozenset({1})),
    }


def test_kernels_have_no_rules():
    model = MKLRegressor([Linear()]).fit(X, Y)
    with pytest.raises(InputError, match="by: 'rule' needs a model that consists of rules"):
        explain(model, X, by="rule")


@pytest.mark.parametrize("value", ["joint", "independent"])
def test_a_constant_function_has_shares_of_zero(value):
    """No kernel has weight: there is nothing to sum."""
    y = X[:, 0] > 0
    model = SumProductMKLClassifier(RBF(1.0) * RBF(2.0) + Linear(), C=1e-6, lam=10.0)
    with pytest.warns(UserWarning, match="weights are zero"):
        model.fit(X, y)
    assert not model.weights_.any()
    found = explain(model, X[:3], X, value=value)
    np.testing.assert_array_equal(found.values, 0.0)
    np.testing.assert_allclose(found.base_values, model.intercept_[0])
