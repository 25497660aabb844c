"""Weights of eigenvectors against an independent convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import SpectralKernelLearner
from pair_problems import kernel_problem


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delta", [1.0, 1.01, 2.0, 50.0])
@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
def test_spectral_weights_are_those_of_the_quadratic_problem(seed, delta):
    rng = np.random.default_rng(seed)
    X, pairs, labels = kernel_problem(40, 150, seed, 8)
    X = np.abs(X + rng.normal(size=X.shape))
    model = SpectralKernelLearner(delta=delta).fit(X, pairs=pairs, labels=labels)
    V = model.embedding_ / np.sqrt(np.where(model.weights_ > 0, model.weights_, 1.0))
    K = X @ X.T
    roots = np.sqrt(K.sum(axis=1))
    full = np.linalg.eigh(K / roots[:, None] / roots)[1][:, ::-1][:, :8]
    used = model.weights_ > 0
    np.testing.assert_allclose(np.abs(np.sum(V * full, axis=0))[used], 1.0, atol=1e-8)
    D = full[pairs[:, 0]] * full[pairs[:, 1]]
    mu = cp.Variable(8)
    rules = [mu[:-1] >= delta * mu[1:], mu >= 0, (D.T @ labels) @ mu == 1]
    best = cp.Problem(cp.Minimize(cp.sum_squares(D @ mu)), rules).solve(solver=cp.CLARABEL)
    ours = model.weights_ / ((D.T @ labels) @ model.weights_)
    assert np.sum((D @ ours) ** 2) == pytest.approx(best, rel=1e-6)
    assert (ours[:-1] >= delta * ours[1:] - 1e-12).all()
    np.testing.assert_allclose(ours, mu.value, atol=1e-4 * ours.max())
    assert model.objective_ == pytest.approx(1 / np.sqrt(best * len(labels)), rel=1e-6)


def test_signed_kernels_are_decomposed_as_they_are():
    X, pairs, labels = kernel_problem()
    X = X - X.mean(axis=0)
    model = SpectralKernelLearner().fit(X, pairs=pairs, labels=labels)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(X @ X.T)[:-5:-1])
