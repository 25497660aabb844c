"""Coordinate descent for a squared weighted l1 norm, against conic programming."""

import cvxpy as cp
import numpy as np
import pytest

from kernelweave import _core


def instance(n, n_outputs, seed):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n_outputs, n, n + 2))
    grams = np.ascontiguousarray(roots @ roots.transpose(0, 2, 1))
    return grams, rng.normal(size=(n, n_outputs)) * 5, rng.uniform(0.2, 2.0, n)


@pytest.mark.parametrize(("n", "n_outputs"), [(1, 1), (6, 1), (6, 3), (15, 2)])
@pytest.mark.parametrize("signed", [False, True])
def test_optimum(n, n_outputs, signed):
    grams, linear, costs = instance(n, n_outputs, n)
    signs = np.resize(np.array([1, 0, -1], dtype=np.int8), n if signed else 0)
    f, _ = _core.squared_lasso(
        grams, linear, costs, signs, np.zeros((n, n_outputs)), 1e-20, 100_000
    )

    def value(f):
        quadratic = sum(0.5 * f[:, t] @ G @ f[:, t] for t, G in enumerate(grams))
        return quadratic - (linear * f).sum() + 0.5 * (costs @ np.linalg.norm(f, axis=1)) ** 2

    z = cp.Variable((n, n_outputs))
    quadratic = sum(
        0.5 * cp.sum_squares(np.linalg.cholesky(G).T @ z[:, t]) for t, G in enumerate(grams)
    )
    penalty = 0.5 * cp.square(costs @ cp.norm(z, 2, axis=1))
    constraints = [int(s) * z[k] >= 0 for k, s in enumerate(signs) if s]
    problem = cp.Problem(
        cp.Minimize(quadratic - cp.sum(cp.multiply(linear, z)) + penalty), constraints
    )
    best = problem.solve(solver=cp.CLARABEL)
    assert value(f) == pytest.approx(best, rel=1e-6, abs=1e-8)
    if signed:
        assert (signs[:, None] * f >= 0).all()


def test_bad_shapes():
    grams, linear, costs = instance(3, 1, 0)
    none = np.zeros(0, dtype=np.int8)
    with pytest.raises(ValueError, match="one square matrix per output"):
        _core.squared_lasso(grams[:, :2], linear, costs, none, linear, 0.0, 1)
    with pytest.raises(ValueError, match="costs must be > 0"):
        _core.squared_lasso(grams, linear, 0.0 * costs, none, linear, 0.0, 1)
