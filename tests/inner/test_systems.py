"""Linear systems of curved rows."""

import sys

import numpy as np
import pytest

from kernelweave import RBF, MKLClassifier, rbf_ladder
from kernelweave._linalg import solve_positive
from kernelweave.banks import make_bank
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.inner import solve_inner, systems, weight_curvature
from kernelweave.kernels import Precomputed
from kernelweave.losses import Hinge, Logistic, Softmax


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_curvature_where_no_kernel_in_use_reaches_the_free_rows(fit_intercept):
    """Rules as kernels: the block of the free rows is zero, and what follows must stay finite."""
    covered = np.array([1.0, 1.0, 0.0, 0.0])
    grams = [Precomputed(np.outer(covered, covered)), Precomputed(np.eye(4))]
    bank = make_bank(grams, np.arange(4)[:, None], normalize=None)
    Y = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    dual_coef = np.array([[1.0], [-1.0], [0.5], [-0.5]])  # the last two lie inside their box
    both = np.arange(2)
    found = weight_curvature(
        Hinge(fit_intercept),
        bank.combine(np.array([1.0, 0.0])),
        lambda rows: bank.products(dual_coef, both, rows),
        dual_coef,
        Y,
        np.ones((4, 1)),
    )
    assert np.isfinite(found.hessian).all()
    assert found.hessian[1, 1] > 0 == found.hessian[0, 0]


@pytest.mark.parametrize("least", [1e-3, -1e-9, -1e-5, -1e-3, -10.0])
def test_systems_that_rounding_made_indefinite_are_solved_nearby(least):
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.normal(size=(30, 30)))[0]
    values = np.append(np.linspace(0.5, 2.0, 29), least)
    M, b = Q @ np.diag(values) @ Q.T, random.normal(size=(30, 2))
    found = solve_positive(M.copy(), b)
    assert np.isfinite(found).all()
    if least > 0:
        np.testing.assert_allclose(M @ found, b, atol=1e-9)
    elif least > -1e-2:  # the good directions are solved all the same
        good = Q[:, :29]
        np.testing.assert_allclose(good.T @ M @ found, good.T @ b, atol=0.1)


def _smooth_problem(n, n_classes, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.5 * random.normal(size=n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))


@pytest.mark.parametrize("coupled", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_iterations_agree_with_factors(coupled, intercept):
    X, _ = _smooth_problem(150, 3)
    K = make_bank([RBF(1.0)], X).combine(np.ones(1))
    random = np.random.default_rng(1)
    weights = random.uniform(0.0, 0.5, size=(150, 3))
    weights[:5] = 0.0  # absent rows
    sides = [weights, coupled, intercept]
    options = systems.IterativeOptions(tol=1e-9, least_rank=20, least_each=20)
    found = systems.IterativeSystem(K, *sides, options=options)
    exact = systems.DenseSystem(K, *sides)
    V = random.normal(size=(150, 3, 4))
    V[:5] = 0.0  # a row without weight has no coefficient
    assert found.Z.shape[1] < 150
    np.testing.assert_allclose(found.projected(V), exact.projected(V), atol=1e-6)
    r, a = V[:, :, 0], V[:, :, 1]
    Kr = K @ r
    step, values = found.direction(r, Kr, a)
    np.testing.assert_allclose(step, exact.direction(r, Kr, a)[0], atol=1e-6)
    np.testing.assert_allclose(values, K @ step, atol=1e-9)


@pytest.mark.parametrize("coupled", [True, False])
def test_one_iteration_solves_few_columns_and_a_diagonal(coupled):
    random = np.random.default_rng(1)
    Z = random.normal(size=(60, 4)).astype(np.float32)
    K = GramKernel(np.asarray(Z @ Z.T + np.diag(random.uniform(0.0, 50.0, size=60)), dtype=float))
    weights = random.uniform(0.0, 5.0, size=(60, 3))
    options = systems.IterativeOptions(max_steps=1)
    found = systems.IterativeSystem(K, weights, coupled, True, Z, options)
    exact = systems.DenseSystem(K, weights, coupled, True)
    V = random.normal(size=(60, 3, 2))
    np.testing.assert_allclose(found.apply(V), exact.apply(V), atol=1e-4)


@pytest.mark.parametrize("together", [1, 10**6])
@pytest.mark.parametrize("coupled", [True, False])
def test_few_columns_agree_with_factors(monkeypatch, coupled, together):
    monkeypatch.setattr(systems, "_TOGETHER", together)
    random = np.random.default_rng(1)
    Z = random.normal(size=(60, 4))
    K = GramKernel(Z @ Z.T)
    weights = random.uniform(0.1, 0.5, size=(60, 5))
    found = systems.LowRankSystem(K, weights, coupled, True, Z)
    exact = systems.DenseSystem(K, weights, coupled, True)
    V = random.normal(size=(60, 5, 3))
    np.testing.assert_allclose(found.apply(V), exact.apply(V), atol=1e-9)


@pytest.mark.parametrize(("loss", "n_classes"), [(Logistic(), 2), (Softmax(), 3)])
def test_steps_that_iterations_spoil_are_repeated_with_factors(monkeypatch, loss, n_classes):
    X, y = _smooth_problem(60, n_classes)
    K = make_bank([RBF(1.0)], X).combine(np.ones(1))
    Y = 2.0 * np.eye(n_classes)[y][:, 0 if n_classes > 2 else 1 :] - 1.0
    cost = np.ones_like(Y)
    exact = solve_inner(loss, K, Y, cost, tol=1e-8)
    easy = systems.IterativeOptions(least_rows=1, least_coupled=1)
    monkeypatch.setattr(systems, "_ITERATIVE", easy)
    spoiled = []

    def apply(self, V):
        spoiled.append(1)
        out = 1e6 * self._times_weights(V)
        return out, self._times(out)

    monkeypatch.setattr(systems.IterativeSystem, "apply_and_multiply", apply)
    found = solve_inner(loss, K, Y, cost, tol=1e-8)
    assert spoiled
    assert found.gap <= 1e-8 * found.primal
    np.testing.assert_allclose(found.primal, exact.primal, rtol=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_need_no_more_solves_and_have_the_same_optimum(monkeypatch, n_classes):
    """Curvature of the weights is there beyond `MAX_FREE` rows, too."""
    X, y = _smooth_problem(240, n_classes)
    model = MKLClassifier([rbf_ladder((0.5, 1.0, 2.0, 4.0))], loss="logistic", tol=1e-5)
    exact = model.fit(X, y)
    objective, dual_coef = exact.objective_, exact.dual_coef_.copy()
    for module in (systems, sys.modules["kernelweave.solvers.newton_bundle"]):
        monkeypatch.setattr(module, "MAX_FREE", 100)
    many = model.fit(X, y)
    assert many.converged_
    assert many.n_iter_ <= 20
    np.testing.assert_allclose(many.objective_, objective, rtol=2e-5)
    assert not np.array_equal(many.dual_coef_, dual_coef)  # another way was taken


@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
def test_a_sketch_has_the_range_of_double_precision(size):
    X, _ = _smooth_problem(150, 2)
    gram = RBF(3.0)(X)
    Z = systems.sketch(GramKernel(size * gram), np.full((150, 1), 0.25 / size)).astype(np.float64)
    assert Z.shape[1] < 150
    np.testing.assert_allclose((Z / np.sqrt(size)) @ (Z / np.sqrt(size)).T, gram, atol=1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_iterations_do_not_depend_on_threads(n_classes):
    X, y = _smooth_problem(600, n_classes)
    fits = [
        MKLClassifier([rbf_ladder((0.5, 1.0, 2.0))], loss="logistic", n_jobs=jobs).fit(X, y)
        for jobs in (1, 2)
    ]
    assert np.array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert np.array_equal(fits[0].weights_, fits[1].weights_)
