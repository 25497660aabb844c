"""Every estimator that predicts is explained: values add up, effects are partial dependence."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import kernelweave
from estimators.test_contract import CONFIGURATIONS
from game_oracles import outputs
from kernelweave.inspection import effects, explain

# Kernels learned from pairs, clusters and propositions have no function to explain.
WITHOUT = {"PairwiseKernelLearner", "KernelSpectralClustering", "Propositions"}
CASES = [
    pytest.param(model, id=f"{type(model).__name__}-{k}", marks=[pytest.mark.slow] if k > 1 else [])
    for models in CONFIGURATIONS.values()
    for k, model in enumerate(models)
    if type(model).__name__ not in WITHOUT
]
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((60, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * RANDOM.standard_normal(60)


def fitted(model, target=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = np.digitize(target, [0.0]) if is_classifier(model) else target
        return clone(model).fit(X, y)


def size_of(model):
    terms = model._terms()
    if not hasattr(terms, "terms"):
        return 1.0
    return sum(np.abs(term.coef).sum() for term in terms.terms)


@pytest.mark.parametrize("model", CASES)
def test_values_add_up(model):
    model = fitted(model)
    rows, background = X[:4], X[20:32]
    e = explain(model, rows, background, n_jobs=1)
    tol = 1e-13 * (1 + size_of(model))
    if hasattr(model, "metric_"):
        tol *= 10  # a mixture of Gaussians stands for the Laplacian of a diagonal metric
    function = outputs(model)
    assert np.abs(e.predictions - function(rows)[:, 0]).max() <= tol
    assert np.abs(e.base_values - function(background).mean(axis=0)).max() <= tol
    assert e.values.shape == e.errors.shape == e.data.shape == (4, 4)
    again = explain(model, rows, background, n_jobs=3)
    for name in ("values", "errors", "base_values"):
        assert np.array_equal(getattr(e, name), getattr(again, name))


@pytest.mark.parametrize("model", CASES)
def test_effects_are_partial_dependence(model):
    model = fitted(model)
    background = X[20:32]
    found = effects(model, background, [0, 2], n_points=4, n_jobs=1)
    function = outputs(model)
    at_background = function(background)[:, 0]
    size = max(1.0, np.abs(at_background).max())
    assert abs(found.base - at_background.mean()) <= 1e-9 * size
    assert {curve.name for curve in found.curves} == {"column 0", "column 2"}
    for curve in found.curves:
        column = int(curve.name[-1])
        for point, value, error in zip(curve.points, curve.values, curve.errors, strict=True):
            filled = background.copy()
            filled[:, column] = point
            changes = function(filled)[:, 0] - at_background
            assert abs(value - changes.mean()) <= 1e-9 * size
            assert abs(error - changes.std(ddof=1) / np.sqrt(12)) <= 1e-9 * size
    again = effects(model, background, [0, 2], n_points=4, n_jobs=3)
    assert np.array_equal(found.first_order, again.first_order)
    for one, other in zip(found.curves, again.curves, strict=True):
        assert np.array_equal(one.values, other.values)


def test_every_public_estimator_is_here():
    names = {type(model).__name__ for models in CONFIGURATIONS.values() for model in models}
    public = {n for n in kernelweave.__all__ if hasattr(getattr(kernelweave, n), "fit")}
    assert public <= names
