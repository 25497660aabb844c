"""Kernels of bounded rank against an independent convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import SimpleNPKL
from kernelweave.baselines.pair_base import neighbour_laplacian
from pair_problems import kernel_problem


def bounded(X, pairs, labels, C, size, loss):
    n = len(X)
    L = neighbour_laplacian(X, 5, 0.01).toarray()
    K = cp.Variable((n, n), PSD=True)
    fit = cp.multiply(labels, cp.hstack([K[i, j] for i, j in pairs]))
    losses = -fit if loss == "linear" else cp.pos(1 - fit)
    value = cp.trace(L @ K) + C * cp.sum(losses)
    task = cp.Problem(cp.Minimize(value), [cp.norm(K, "fro") <= size])
    return task.solve(solver=cp.CLARABEL), K.value


@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
@pytest.mark.parametrize("loss", ["linear", "hinge"])
@pytest.mark.parametrize(
    ("n", "C", "b", "seed"),
    [(15, 1.0, 9.0, 0), (20, 3.0, 100.0, 1), (30, 1.0, 900.0, 2), (30, 1.0, None, 3)],
)
def test_the_bounded_kernel_solves_its_problem(loss, n, C, b, seed):
    X, pairs, labels = kernel_problem(n, 2 * n, seed)
    model = SimpleNPKL(5, loss=loss, C=C, b=b, tol=1e-6, max_iter=5000)
    model.fit(X, pairs=pairs, labels=labels)
    best, K = bounded(X, pairs, labels, C, np.sqrt(n if b is None else b), loss)
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    ours = model.embedding_ @ model.embedding_.T
    np.testing.assert_allclose(ours, K, atol=5e-3 * np.abs(K).max())


def test_few_eigenvectors_are_the_leading_ones():
    X, pairs, labels = kernel_problem()
    few, all_of_them = (
        SimpleNPKL(5, n_components=k).fit(X, pairs=pairs, labels=labels) for k in (2, 25)
    )
    assert few.embedding_.shape == (25, 2)
    ratio = few.eigenvalues_ / all_of_them.eigenvalues_[:2]
    np.testing.assert_allclose(ratio, ratio[0])


def test_pairs_that_weigh_nothing_give_a_zero_kernel():
    X, pairs, labels = kernel_problem()
    with pytest.warns(UserWarning, match=r"kernel is zero.*Hint: raise C"):
        model = SimpleNPKL(5, C=1e-9).fit(X, pairs=pairs, labels=labels)
    assert model.embedding_.shape == (25, 0)
