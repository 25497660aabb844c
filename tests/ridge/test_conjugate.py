import numpy as np
import pytest

from kernelweave._threads import threads
from kernelweave.ridge import conjugate
from kernelweave.ridge.conjugate import UpperKernel, solve_full, stratified_folds
from kernelweave.ridge.landmarks import nystroem_features
from kernelweave.ridge.metric import solve_ridge

RANDOM = np.random.default_rng(5)
N = 150
X = RANDOM.normal(size=(N, 4))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] * X[:, 3]])
WEIGHT = RANDOM.uniform(0.5, 2.0, N)
FOLDS = np.arange(N) % 5


def block(a, b):
    return np.exp(-np.abs(X[a][:, None] - X[b]).sum(axis=2) / 3)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(conjugate, "_ROWS", 64)  # several blocks, the last one shorter
    monkeypatch.setattr(conjugate, "_TOLERANCE", 1e-6)


def test_blocks_of_the_upper_triangle_multiply_like_the_kernel():
    K = block(np.arange(N), np.arange(N))
    V = RANDOM.normal(size=(N, 3))
    np.testing.assert_allclose(UpperKernel.compute(block, N) @ V, K @ V, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_landmarks", [8, 60])
def test_the_solution_is_that_of_the_closed_form(n_landmarks):
    features = nystroem_features(block, N, np.arange(N), n_landmarks)[2]
    ridges = np.array([0.02, 0.2])
    found = solve_full(UpperKernel.compute(block, N), features, Y, WEIGHT, ridges, FOLDS)
    K = block(np.arange(N), np.arange(N))
    exact = solve_ridge(K.copy(), found.ridge, Y, WEIGHT)
    np.testing.assert_allclose(found.dual_coef, exact.dual_coef, atol=2e-4)
    np.testing.assert_allclose(
        K @ found.dual_coef + found.intercept, K @ exact.dual_coef + exact.intercept, atol=2e-5
    )


def test_residuals_of_folds_are_those_of_refits_and_choose_the_ridge():
    features = nystroem_features(block, N, np.arange(N), 40)[2]
    K = block(np.arange(N), np.arange(N))
    ridges = np.geomspace(1e-2, 10, 4)
    found = solve_full(UpperKernel.compute(block, N), features, Y, WEIGHT, ridges, FOLDS)
    losses = []
    for ridge in ridges:
        for fold in range(5 if ridge == found.ridge else 1):
            train, test = FOLDS != fold, FOLDS == fold
            refit = solve_ridge(K[np.ix_(train, train)], ridge, Y[train], WEIGHT[train])
            off = Y[test] - K[np.ix_(test, train)] @ refit.dual_coef - refit.intercept
            if fold == 0:
                losses.append(float((WEIGHT[test] @ off**2).sum()))
            if ridge == found.ridge:
                np.testing.assert_allclose(found.residuals[test], off, atol=5e-5)
    assert found.ridge == ridges[np.argmin(losses)]
    spread = (WEIGHT @ (Y - np.average(Y, axis=0, weights=WEIGHT)) ** 2).sum()
    assert abs(found.error - (WEIGHT @ found.residuals**2).sum() / spread) < 1e-12


def test_threads_do_not_change_a_bit():
    features = nystroem_features(block, N, np.arange(N), 40)[2]
    found = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            K = UpperKernel.compute(block, N)
            found.append(solve_full(K, features, Y, WEIGHT, np.array([0.1]), FOLDS).dual_coef)
    np.testing.assert_array_equal(*found)


def test_folds_share_the_classes():
    labels = np.where(np.arange(200) < 20, 1.0, -1.0)[:, None]
    folds = stratified_folds(labels, np.random.RandomState(0))
    assert [int((labels[folds == f] > 0).sum()) for f in range(5)] == [4] * 5
