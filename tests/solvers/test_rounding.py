"""Bounds of rounding errors hold, and certificates include them."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import (
    RBF,
    HierarchicalMKLClassifier,
    Laplacian,
    Linear,
    MKLClassifier,
    MKLRegressor,
    NoisyLabelMKLClassifier,
    Polynomial,
    SumProductMKLClassifier,
)
from kernelweave.banks import make_bank
from kernelweave.losses import Hinge, Huber, Square
from kernelweave.pairs.solver import PairProblem, solve_pairs
from kernelweave.solvers.rounding import dual_error, form_error, form_errors, loss_error
from quick import first

LONG = np.longdouble


def draw(seed, n=40, n_outputs=2):
    """Return a kernel of very uneven diagonal, in long double, and coefficients."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 12)) * 10.0 ** rng.uniform(-4, 4, size=(n, 1))
    V = rng.normal(size=(n, n_outputs)) * 10.0 ** rng.uniform(-3, 3, size=(n, 1))
    return (Z @ Z.T).astype(float), V, rng


@pytest.mark.parametrize("seed", range(20))
def test_errors_of_quadratic_forms_are_bounded(seed):
    K, V, rng = draw(seed)
    true = np.einsum("io,ik,ko->", V.astype(LONG), K.astype(LONG), V.astype(LONG))
    error = abs(float(np.einsum("io,io->", V, K @ V) - true))
    bound = form_error(V, K.diagonal())
    assert error <= bound
    one = form_errors(V, lambda shares: np.array([K.diagonal() @ shares]), K.diagonal())
    assert one[0] == pytest.approx(bound, rel=1e-12)  # the best choice of s
    other = form_errors(V, lambda shares: np.array([K.diagonal() @ shares]), rng.uniform(size=40))
    assert other[0] >= bound * (1 - 1e-12)


@pytest.mark.parametrize("loss_function", [Hinge(), Huber(0.5), Square()], ids=str)
def test_losses_grow_no_more_than_bounded(loss_function):
    K, V, rng = draw(1)
    Y = np.where(rng.normal(size=V.shape) > 0, 1.0, -1.0)
    cost = rng.uniform(1, 1e6, size=V.shape)
    fitted, exact = K @ V, (K.astype(LONG) @ V.astype(LONG)).astype(float)
    values = loss_function.value(fitted, Y, cost)[0], loss_function.value(exact, Y, cost)[0]
    bias = loss_function.value(fitted, Y, cost)[1]
    bound = loss_error(loss_function, Y, cost, K.diagonal(), V, fitted, bias)
    assert 0 < values[1] - values[0] + bound
    assert bound > 1e-3 * abs(values[1] - values[0])  # of the size of what it bounds
    related = loss_error(
        loss_function, Y, cost, K.diagonal(), V, fitted, bias, np.full((2, 2), 0.5)
    )
    assert related > 0


def test_a_bias_gains_from_coefficients_that_do_not_sum_to_zero():
    dual_coef = np.array([[1.0], [-1.0 + 1e-9]])
    Y = np.array([[1.0], [-1.0]])
    with_bias = dual_error(Hinge(), Y, dual_coef, 2.0, 0.0, 100.0)
    assert with_bias == pytest.approx(100.0 * 1e-9, rel=1e-5)
    assert dual_error(Hinge(fit_intercept=False), Y, dual_coef, 2.0, 0.0, 100.0) < 1e-13
    assert dual_error(Hinge(), Y, np.array([[1.0], [-1.0]]), 2.0, 0.0, np.inf) < 1e-13


def true_objective(model, X, y, kernels):
    """Return the objective of a fitted hierarchy without edges, in long double."""
    dual_coef = np.zeros(len(X), dtype=LONG)
    dual_coef[model.support_] = model.dual_coef_[0]
    norm, fitted = LONG(0), np.zeros(len(X), dtype=LONG)
    for node, weight, scale in zip(model.active_nodes_, model.weights_, model.scales_, strict=True):
        K = scale * kernels[node](X.astype(LONG))
        norm += weight * np.sqrt(np.maximum(dual_coef @ K @ dual_coef, 0))
        fitted += weight * (K @ dual_coef)
    signs = np.where(y == 1, 1, -1)
    loss = np.maximum(0, 1 - signs * (fitted + model.intercept_[0])).sum()
    return float(norm**2 / 2 + model.C * loss)


def gaussian(column, width):
    def gram(X):
        differences = X[:, None, column] - X[None, :, column]
        return np.exp(-(differences**2) / (2 * LONG(width) ** 2))

    return gram


def test_the_objective_of_a_hierarchy_is_that_of_the_exact_kernels():
    """Factors leave out a billionth of a kernel, which large coefficients raise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (np.sin(3 * X[:, 0]) + X[:, 1] + rng.normal(size=60) > 0).astype(int)
    nodes = {"a": RBF(2.0, columns=[0]), "b": RBF(2.0, columns=[1])}
    model = HierarchicalMKLClassifier(nodes, C=1e5, tol=1e-2, normalize=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    true = true_objective(model, X, y, {"a": gaussian(0, 2.0), "b": gaussian(1, 2.0)})
    assert model.objective_ >= true * (1 - 1e-10)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", first(2, range(4)))
def test_hierarchies_of_huge_kernels_claim_no_more_than_they_have(seed):
    rng = np.random.default_rng(seed)
    X = 1e3 * rng.standard_cauchy((41, 3)) ** 3
    y = (rng.normal(size=41) > 0).astype(int)
    nodes = {"line": Linear(), "wide": Laplacian(9e4)}
    model = HierarchicalMKLClassifier(nodes, normalize=None, C=1.1).fit(X, y)
    signs = np.where(y == 1, 1, -1)
    loss = np.maximum(0, 1 - signs * model.decision_function(X)).sum()
    assert 1.1 * loss <= model.objective_ * (1 + 1e-9) + model.duality_gap_
    zero = 1.1 * 2 * min((y == 0).sum(), (y == 1).sum())
    assert model.objective_ <= zero * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_path_of_small_values_is_kept_beside_huge_ones():
    """One outlier makes a trace huge that is of no use to the other rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[0] = 1e3
    y = X[:, 0] * X[:, 1] > 0
    structure = (RBF(1.0) + RBF(0.5, columns=[0])) * (Polynomial(3, 1.0) + RBF(1.0, columns=[1]))
    model = SumProductMKLClassifier(structure, normalize=None, C=2.0, lam=1e-3, p=2.0).fit(X, y)
    signs = np.where(y, 1, -1)
    loss = np.maximum(0, 1 - signs * model.decision_function(X)).sum()
    assert 2.0 * loss <= model.objective_ + model.duality_gap_
    assert (model.weights_ > 0).all()


@pytest.mark.parametrize("size", [1e-20, 1e-40, 1e-97])
def test_the_bias_of_huber_is_the_best_for_tiny_targets(size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), size * rng.normal(size=30)
    model = MKLRegressor([Polynomial(2, 0.0)], loss="huber", normalize=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    constant = 0.5 * ((y - y.mean()) ** 2).sum()
    assert model.objective_ <= constant * (1 + 1e-9)


def test_a_rounded_intercept_makes_no_fit_converge():
    """The objective is far below what the rounding of the intercept adds to it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1))
    y = 15388.8 + 1e-12 * rng.normal(size=20)
    model = MKLRegressor([RBF(1.0)], epsilon=0.0, C=1e-3, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert not model.converged_ or model.duality_gap_ <= 1e-2 * model.objective_


def test_forms_of_tiny_coefficients_are_not_called_negative():
    rng = np.random.default_rng(0)
    X = 1e95 * (1e6 + rng.normal(size=(20, 3)))
    bank = make_bank([Linear()], X, normalize=None, centred=True)
    for seed in range(50):
        V = 1e-190 * np.random.default_rng(seed).normal(size=(20, 1))
        assert (bank.quadratic_forms(V - V.mean()) >= 0).all()


def test_pairs_without_doubt_leave_steps_that_are_numbers():
    """With all losses straight the bias has no curvature."""
    rng = np.random.default_rng(0)
    F = rng.lognormal(3, 3, size=(50, 4))
    statistic = np.abs(rng.normal(size=4)) * 100
    problem = PairProblem(F, np.full(50, 0.02), statistic, lam=1e-5, balance=0.3)
    found = solve_pairs(problem, start=(np.full(4, 1e7), -1e7), tol=1e-8, max_iter=50)
    assert np.isfinite(found.weights).all()
    assert np.isfinite(found.bias)


@pytest.mark.parametrize("loss", ["square", "huber"])
def test_forms_of_kernels_near_the_largest_number(loss):
    """Kernels are divided by their size after quadratic forms, which may not be numbers before."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    X[0, 0] = 3.0
    y = 10.0 * (X[:, 0] + rng.normal(size=40))
    options = {"loss": loss, "epsilon": 1.0, "norm": 1.1, "normalize": "radius", "C": 300.0}
    model = MKLRegressor([Linear()], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(3e152 * X, y)
    zero = 300.0 * 0.5 * ((y - y.mean()) ** 2).sum()
    assert model.objective_ <= zero * (1 + 1e-12)  # sums differ by their order
    assert np.isfinite(model.predict(3e152 * X)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_curvature_beyond_the_largest_number():
    rng = np.random.default_rng(0)
    X = 1e130 * rng.normal(size=(30, 2))
    y = rng.integers(0, 4, size=30)
    model = MKLClassifier([Linear(), RBF(1e130), RBF(3e130)], normalize=None, C=10.0).fit(X, y)
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("seed", [3, 6])
def test_structures_of_kernels_with_an_offset_end_without_overflow(seed):
    rng = np.random.default_rng(seed)
    X = 2e7 + rng.normal(size=(90, 3))
    y, weight = rng.random(90) > 0.5, rng.lognormal(0, 2, size=90)
    wide, narrow = Laplacian(0.9) + Polynomial(2, 1.8), Polynomial(3, columns=[0, 1]) + RBF(4.8)
    model = SumProductMKLClassifier(
        wide * narrow, normalize="radius", C=0.01, lam=24.0, fit_intercept=False, tol=1e-5
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y, sample_weight=weight)
    assert np.isfinite(model.objective_)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", [3, 7])
def test_no_capped_model_is_worse_than_zero_whatever_the_solver(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy((38, 6)) ** 3
    y = (rng.random(38) > 0.5).astype(int)
    kernels = [RBF(1e13), Polynomial(3, 0.0), Polynomial(1, 0.0), RBF(2.0)]
    model = NoisyLabelMKLClassifier(
        kernels, normalize=None, solver="fast", cap=0.9, lam=0.07, noise_level=0.1, tol=1e-6
    ).fit(X, y)
    assert model.objective_ <= 0.9 * (1 + 1e-9)  # the mean of the largest losses of zero


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_structure_without_any_finite_objective_is_the_zero_function(monkeypatch):
    sums = "kernelweave.banks.paths.ExplicitForms.sums"
    monkeypatch.setattr(sums, lambda self, u: (np.inf, np.zeros(len(u))))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    model = SumProductMKLClassifier(RBF(1.0) * RBF(2.0) + Linear(), max_iter=5).fit(X, y)
    assert model.objective_ == pytest.approx(20.0)
    assert not model.converged_
