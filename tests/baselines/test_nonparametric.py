"""Kernel matrices learned by semidefinite programming against an independent solver."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave.baselines import NonParametricKernel
from kernelweave.baselines.pair_base import neighbour_laplacian
from pair_problems import kernel_problem


@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
@pytest.mark.parametrize(
    ("n", "C", "seed"), [(15, 1.0, 0), (25, 0.3, 1), (25, 5.0, 2), (40, 1.0, 3)]
)
def test_the_kernel_solves_the_semidefinite_problem(n, C, seed):
    X, pairs, labels = kernel_problem(n, 2 * n, seed)
    model = NonParametricKernel(5, C=C, tol=1e-6, max_iter=50_000)
    model.fit(X, pairs=pairs, labels=labels)
    L = neighbour_laplacian(X, 5, 0.01).toarray()
    K = cp.Variable((n, n), PSD=True)
    at = cp.hstack([K[i, j] for i, j in pairs])
    value = cp.trace(L @ K) + C * cp.sum(cp.pos(1 - cp.multiply(labels, at)))
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(best, rel=5e-6)
    assert model.objective_ * (1 - model.gap_) <= best * (1 + 1e-6)
    ours = model.embedding_ @ model.embedding_.T
    np.testing.assert_allclose(ours, K.value, atol=0.02 * np.abs(K.value).max())


def test_rows_of_no_pair_get_the_smoothest_kernel():
    X, pairs, labels = kernel_problem(700, 300, 4)
    model = NonParametricKernel(5, tol=1e-5).fit(X, pairs=pairs, labels=labels)
    assert model.converged_
    assert len(np.unique(pairs)) < 500
    points = model.embedding_
    at = np.einsum("ij,ij->i", points[pairs[:, 0]], points[pairs[:, 1]])
    L = neighbour_laplacian(X, 5, 0.01)
    value = np.vdot(points, L @ points) + np.maximum(0.0, 1.0 - labels * at).sum()
    assert value == pytest.approx(model.objective_, rel=1e-6)
    # A change of the points of rows of no pair only makes the kernel less smooth.
    lonely = np.setdiff1d(np.arange(700), pairs)
    np.testing.assert_allclose((L @ points)[lonely], 0.0, atol=1e-4 * np.abs(points).max())


@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
def test_few_steps_are_said():
    X, pairs, labels = kernel_problem(25, 50, 1)
    with pytest.warns(ConvergenceWarning, match="stopped after 3 steps at a relative duality gap"):
        model = NonParametricKernel(5, max_iter=3).fit(X, pairs=pairs, labels=labels)
    assert model.gap_ > model.tol
    assert not model.converged_
