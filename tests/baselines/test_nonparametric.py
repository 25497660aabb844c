"""Kernel matrices learned by semidefinite programming against an independent solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import NonParametricKernel
from kernelweave.baselines.pair_base import neighbour_laplacian
from kernelweave.errors import InputError
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


def test_large_semidefinite_problems_are_refused():
    with pytest.raises(InputError, match=r"500 rows at most, got 501. Hint: use SimpleNPKL"):
        NonParametricKernel().fit(np.zeros((501, 2)), pairs=[[0, 1], [1, 2]], labels=[1, -1])
