"""What a certificate is worth where numbers end: huge costs, common offsets, tiny objectives."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import (
    RBF,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Polynomial,
    Precomputed,
    SumProductMKLClassifier,
)

NORMS = [1.0, 2.0, "uniform"]


def long_double(kernel, X):
    """Return the Gram matrix of a kernel, in more digits than the library has."""
    X = X.astype(np.longdouble)
    if isinstance(kernel, RBF):
        squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        return np.exp(-squares / (2 * np.longdouble(kernel.width) ** 2))
    products = X @ X.T
    if isinstance(kernel, Polynomial):
        products = (products + np.longdouble(kernel.coef0)) ** kernel.degree
    return products


def objective_of(model, X, y):
    """Return the objective of a fitted model of norm one, in long double."""
    dual_coef = np.zeros(len(X), dtype=np.longdouble)
    dual_coef[model.support_] = model.dual_coef_[0]
    grams = [s * long_double(k, X) for k, s in zip(model.kernels_, model.scales_, strict=True)]
    quadratic_forms = np.array([dual_coef @ K @ dual_coef for K in grams])
    norm = float((model.weights_ * np.sqrt(np.maximum(quadratic_forms, 0))).sum())
    fitted = sum(w * (K @ dual_coef) for w, K in zip(model.weights_, grams, strict=True))
    bias = np.longdouble(model.intercept_[0])
    if isinstance(model, MKLClassifier):
        losses = np.maximum(0, 1 - np.where(y == 1, 1, -1) * (fitted + bias))
        C = model.C
    else:
        epsilon = model.epsilon * model.target_scale_
        C = model.C * (model.target_scale_ if model.loss == "epsilon_insensitive" else 1.0)
        residual = np.abs((y.astype(np.longdouble) - bias) - fitted)
        losses = {
            "square": residual**2 / 2,
            "huber": np.where(
                residual <= epsilon,
                residual**2 / 2,
                epsilon * (residual - np.longdouble(epsilon) / 2),
            ),
            "epsilon_insensitive": np.maximum(0, residual - epsilon),
        }[model.loss]
    return float(np.longdouble(norm) ** 2 / 2 + C * losses.sum())


def fit_quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def far_away(n=8, offset=1e7):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) + offset, np.arange(n) % 2


@pytest.mark.parametrize("norm", NORMS)
def test_zero_is_returned_where_rounding_hides_the_kernels(norm):
    X, y = far_away()
    model = MKLClassifier([Polynomial(2, coef0=0.0), Linear()], C=0.47, norm=norm)
    with pytest.warns(ConvergenceWarning, match="as near as rounding error lets it"):
        model.fit(X, y)
    assert model.objective_ == pytest.approx(0.47 * 8, rel=1e-12)
    assert model.duality_gap_ <= model.objective_
    assert model.n_iter_ <= 40
    values = model.decision_function(X)
    assert (values == values[0]).all()


@pytest.mark.parametrize("loss", ["square", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("norm", [1.0, "uniform"])  # with 2.0 there is a better function
def test_no_regression_is_worse_than_a_constant(norm, loss):
    X, _ = far_away(20)
    y = np.random.default_rng(1).normal(size=20)
    options = {"loss": loss, "norm": norm, "C": 1e4}
    model = fit_quietly(MKLRegressor([Polynomial(2, coef0=0.0), Linear()], **options), X, y)
    constant = MKLRegressor([Precomputed(np.zeros((20, 20)))], **options)
    constant.fit(np.arange(20)[:, None], y)
    assert model.objective_ <= constant.objective_ * (1 + 1e-9)


def test_structures_are_not_worse_than_zero_either():
    X, y = far_away(30)
    y = np.random.default_rng(2).permutation(y)
    model = SumProductMKLClassifier(RBF(1.0) * Linear() + RBF(2.0), C=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    assert model.objective_ <= model.C * 30 * (1 + 1e-12)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_the_gap_holds_the_rounding_of_kernels_with_an_offset(offset):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20, 2)) + offset
        y = (X[:, 0] + rng.normal(size=20) > offset).astype(int)
        kernels = [Polynomial(2, coef0=1.0), Linear()]
        model = fit_quietly(MKLClassifier(kernels, C=2.0, tol=1e-7, normalize=None), X, y)
        true = objective_of(model, X, y)
        assert abs(true - model.objective_) <= model.duality_gap_ + 1e-12 * model.objective_


@pytest.mark.parametrize("loss", ["square", "huber", "epsilon_insensitive"])
@pytest.mark.parametrize("noise", [1e-8, 1e-4, 1.0])
def test_targets_with_a_large_common_part(loss, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    y = 1e6 + noise * (np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=30))
    # The spread of the targets that are left when the common part, a float, is taken away.
    left = y - np.median(y)
    options = {"loss": loss, "epsilon": 0.1 * noise, "C": 100.0, "tol": 1e-6}
    model = fit_quietly(MKLRegressor([RBF(1.0), Linear()], **options), X, y)
    plain = fit_quietly(MKLRegressor([RBF(1.0), Linear()], **options), X, left)
    both = model.duality_gap_ + plain.duality_gap_
    assert abs(model.objective_ - plain.objective_) <= both
    assert abs(objective_of(model, X, y) - model.objective_) <= model.duality_gap_
    assert model.objective_ - model.duality_gap_ <= objective_of(plain, X, left)
    if noise > 1e-8:  # of which the last digits of an intercept of 1e6 are a part to see
        assert model.duality_gap_ <= 1e-4 * model.objective_


def test_huge_costs_end():
    """These once took 200 solves without an end."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
        kernels = [RBF(1.0, columns=[0]), Linear(), RBF(3.0)]
        model = MKLClassifier(kernels, C=2e6, fit_intercept=False).fit(X, y)
        assert model.converged_
        assert model.n_iter_ <= 60


def test_equal_kernels_of_rank_one_end():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        v = rng.normal(size=40)
        kernel = Precomputed(np.outer(v, v))
        y = (v + rng.normal(size=40) > 0).astype(int)
        model = MKLClassifier([kernel, kernel], C=1e6, fit_intercept=False)
        model.fit(np.arange(40)[:, None], y)
        assert model.converged_
        assert model.n_iter_ <= 4


@pytest.mark.parametrize("C", [1e4, 1e8, 1e12])
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_converged_says_no_more_than_the_gap(C, tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)  # so that the objective is far below the loss of zero
    model = fit_quietly(MKLClassifier([RBF(1.0), Linear()], C=C, tol=tol), X, y)
    assert model.converged_ == (model.duality_gap_ <= tol * model.objective_)
    assert abs(objective_of(model, X, y) - model.objective_) <= model.duality_gap_
