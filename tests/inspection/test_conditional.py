"""Columns are replaced exactly where a model is a sum of products, and by prediction elsewhere."""

import numpy as np
import pytest
from sklearn.utils import check_random_state

from kernelweave import RBF, Linear, MKLRegressor
from kernelweave.inspection.anova import Products, Separable
from kernelweave.inspection.conditional import PREDICTED, conditional, is_manageable, most_rows
from kernelweave.inspection.grids import make_grid
from kernelweave.inspection.separable import separable_form

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
GRIDS = [make_grid(X, j, f"x{j}", 5) for j in range(3)]


def both_of(model):
    """Return the exact and the predicted form."""

    def predict(table):
        return model.predict(table)[:, None]

    form = separable_form(model, X)
    return [conditional(predict, f, X, GRIDS, check_random_state(0)) for f in (form, None)]


@pytest.fixture(scope="module")
def both():
    return both_of(MKLRegressor([RBF(1.0), Linear()]).fit(X, Y))


def test_exact_curves_are_those_of_predicted_rows(both):
    exact, predicted = both
    assert type(exact) is not type(predicted)
    np.testing.assert_allclose(exact.ice.predictions, predicted.ice.predictions, atol=1e-9)
    for left, right in zip(exact.ice.curves, predicted.ice.curves, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-9)


def test_surfaces_are_centred(both):
    (points, values) = both[1].surface(0, 1)
    assert values.shape == (len(points[0]), len(points[1]), 1)
    for found in both:
        curves = [
            curve.mean(axis=0) - found.ice.predictions.mean(axis=0) for curve in found.ice.curves
        ]
        variances = found.variances(curves, pairs=True)
        assert variances.pairs.shape == (3, 3, 1)
        np.testing.assert_allclose(variances.pairs, variances.pairs.swapaxes(0, 1))
        assert variances.pairs[0, 1, 0] == variances.pairs.max()  # the product of the target


def test_additive_models_have_flat_surfaces():
    exact, predicted = both_of(MKLRegressor([Linear()]).fit(X, Y))
    assert exact.is_additive
    assert not predicted.is_additive
    np.testing.assert_allclose(predicted.surface(0, 1)[1], 0.0, atol=1e-9)


def test_a_form_that_disagrees_is_not_used():
    model = MKLRegressor([Linear()]).fit(X, Y)
    form = separable_form(model, X)
    wrong = Separable(form.constant + 1.0, form.products, form.additive)
    found = conditional(lambda t: model.predict(t)[:, None], wrong, X, GRIDS, check_random_state(0))
    np.testing.assert_allclose(found.ice.predictions[:, 0], model.predict(X))


def test_many_terms_leave_fewer_rows():
    def form(n_terms):
        return Separable(np.zeros(1), [Products(np.zeros((n_terms, 1)), {})])

    assert most_rows(None, 5) == PREDICTED
    assert [most_rows(form(n), 10) for n in (1, 10_000, 10**7)] == [500, 100, 50]
    assert is_manageable(form(1000), 10)
    assert not is_manageable(form(10**6), 10)
    assert not is_manageable(None, 10)
