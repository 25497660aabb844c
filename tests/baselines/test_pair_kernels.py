"""Kernels learned from pairs against an independent convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import NonParametricKernel, SimpleNPKL, SpectralKernelLearner
from kernelweave.baselines.pair_base import neighbour_laplacian
from kernelweave.errors import InputError
from kernelweave.pairs import draw_pairs


def problem(n=25, n_pairs=30, seed=0, m=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, m)) + 2 * y[:, None]
    pairs, labels = draw_pairs(y, n, n_pairs, seed)
    flip = rng.random(len(labels)) < 0.2
    return X, pairs, np.where(flip, -labels, labels)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delta", [1.0, 1.01, 2.0, 50.0])
@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
def test_spectral_weights_are_those_of_the_quadratic_problem(seed, delta):
    rng = np.random.default_rng(seed)
    X, pairs, labels = problem(40, 150, seed, 8)
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
    X, pairs, labels = problem()
    X = X - X.mean(axis=0)
    model = SpectralKernelLearner().fit(X, pairs=pairs, labels=labels)
    np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(X @ X.T)[:-5:-1])


@pytest.mark.filterwarnings("ignore:labels.*labelled both:UserWarning")
@pytest.mark.parametrize(
    ("n", "C", "seed"), [(15, 1.0, 0), (25, 0.3, 1), (25, 5.0, 2), (40, 1.0, 3)]
)
def test_the_kernel_solves_the_semidefinite_problem(n, C, seed):
    X, pairs, labels = problem(n, 2 * n, seed)
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
    X, pairs, labels = problem(n, 2 * n, seed)
    model = SimpleNPKL(5, loss=loss, C=C, b=b, tol=1e-6, max_iter=5000)
    model.fit(X, pairs=pairs, labels=labels)
    best, K = bounded(X, pairs, labels, C, np.sqrt(n if b is None else b), loss)
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    ours = model.embedding_ @ model.embedding_.T
    np.testing.assert_allclose(ours, K, atol=5e-3 * np.abs(K).max())


def test_few_eigenvectors_are_the_leading_ones():
    X, pairs, labels = problem()
    few, all_of_them = (
        SimpleNPKL(5, n_components=k).fit(X, pairs=pairs, labels=labels) for k in (2, 25)
    )
    assert few.embedding_.shape == (25, 2)
    ratio = few.eigenvalues_ / all_of_them.eigenvalues_[:2]
    np.testing.assert_allclose(ratio, ratio[0])


def test_pairs_that_weigh_nothing_give_a_zero_kernel():
    X, pairs, labels = problem()
    with pytest.warns(UserWarning, match=r"kernel is zero.*Hint: raise C"):
        model = SimpleNPKL(5, C=1e-9).fit(X, pairs=pairs, labels=labels)
    assert model.embedding_.shape == (25, 0)
