"""Metrics of least LogDet divergence against an independent convex solver."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave.baselines import InformationTheoreticMetric
from pair_problems import metric_problem


def nearest_metric(V, labels, bounds, gamma):
    m = V.shape[1]
    A, xi = cp.Variable((m, m), PSD=True), cp.Variable(len(V))
    start = np.where(labels > 0, *bounds)
    value = cp.trace(A) - cp.log_det(A) - m
    value += gamma * cp.sum(cp.multiply(1 / start, xi) - cp.log(cp.multiply(1 / start, xi)) - 1)
    square = cp.hstack([cp.trace(np.outer(v, v) @ A) for v in V])
    rules = [cp.multiply(labels, square - xi) <= 0]
    best = cp.Problem(cp.Minimize(value), rules).solve(solver=cp.CLARABEL)
    return best, A.value


@pytest.mark.parametrize("solver", ["descent", "projections"])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_metric_is_the_nearest_within_bounds(gamma, solver, seed):
    X, pairs, labels, V = metric_problem(m=3, n_pairs=16, seed=seed)
    model = InformationTheoreticMetric(
        gamma=gamma, bounds=(1.0, 8.0), solver=solver, tol=1e-8, max_iter=100_000
    ).fit(X, pairs=pairs, labels=labels)
    best, A = nearest_metric(V, labels, (1.0, 8.0), gamma)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.metric_, A, atol=1e-3 * np.abs(A).max())
    inverse = np.eye(3) + V.T @ (V * (labels * model.multipliers_)[:, None])
    np.testing.assert_allclose(np.linalg.inv(inverse), model.metric_, atol=1e-3)
