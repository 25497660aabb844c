"""Minimisers of sums of distances against an independent convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import GlobalDistanceMetric
from pair_problems import metric_problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [2, 10, 30])
def test_column_weights_are_optimal(m, seed):
    X, pairs, labels, V = metric_problem(m=m, seed=seed)
    model = GlobalDistanceMetric(ridge=1e-3, tol=1e-9).fit(X, pairs=pairs, labels=labels)
    sigma, G = (V[labels > 0] ** 2).sum(axis=0), V[labels < 0] ** 2
    sigma = sigma + 1e-3 * sigma.mean()
    a = cp.Variable(m, nonneg=True)
    value = sigma @ a - cp.log(cp.sum(cp.sqrt(G @ a)))
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    ours = model.components_**2
    assert sigma @ ours - np.log(np.sqrt(G @ ours).sum()) == pytest.approx(best, abs=1e-6)
    assert model.objective_ == pytest.approx(best, abs=1e-6)
    assert sigma @ ours == pytest.approx(0.5, abs=1e-4)
    np.testing.assert_allclose(ours, a.value, atol=2e-3 * ours.max())


@pytest.mark.parametrize("seed", range(3))
def test_the_full_metric_is_optimal(seed):
    X, pairs, labels, V = metric_problem(m=4, seed=seed)
    model = GlobalDistanceMetric(diagonal=False, ridge=1e-3, tol=1e-8)  # rounding is near 1e-9
    model.fit(X, pairs=pairs, labels=labels)
    S = V[labels > 0].T @ V[labels > 0]
    S = S + 1e-3 * np.trace(S) / 4 * np.eye(4)
    A = cp.Variable((4, 4), PSD=True)
    roots = [cp.sqrt(cp.trace(np.outer(v, v) @ A)) for v in V[labels < 0]]
    value = cp.trace(S @ A) - cp.log(cp.sum(roots))
    best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
    assert model.objective_ == pytest.approx(best, abs=1e-6)
    ours = model.components_ @ model.components_.T
    np.testing.assert_allclose(ours, A.value, atol=2e-3 * np.abs(ours).max())
    diagonal = GlobalDistanceMetric(ridge=1e-3).fit(X, pairs=pairs, labels=labels)
    assert model.objective_ <= diagonal.objective_ + 1e-6
