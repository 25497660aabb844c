"""The interior point method for one kernel, where pair updates crawl."""

import numpy as np
import pytest

from kernelweave.banks.gram import GramKernel
from kernelweave.machines import EpsilonInsensitive, Hinge
from kernelweave.machines.interior import solve_interior


def problem(n=80):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1))
    y = np.where(x[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return np.exp(-((x - x.T) ** 2) / 2), y  # of a numerical rank far below n


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", [Hinge, EpsilonInsensitive])
def test_small_gap_whatever_the_cost(kind, intercept, C):
    K, y = problem()
    Y, cost = y[:, None], np.full((len(y), 1), C)
    machine = kind(fit_intercept=intercept)
    shape = machine.shape(Y, cost)
    target, lower, upper, _ = shape.columns(Y, 0)
    start = np.zeros(len(y))
    beta = solve_interior(K, target, lower, upper, shape.dead_zone, intercept, start)
    coef = machine.repair(beta[:, None], Y, cost)
    np.testing.assert_allclose(coef[:, 0], beta, atol=1e-6 * C)
    fitted = K @ coef
    loss, _ = machine.loss(fitted, Y, cost)
    quadratic = float(np.vdot(coef, fitted))
    dual = machine.linear(coef, Y) - 0.5 * quadratic
    assert -1e-9 * dual <= 0.5 * quadratic + loss - dual <= 1e-5 * dual


def test_pair_updates_do_not_crawl():
    K, y = problem()
    Y, cost = y[:, None], np.full((len(y), 1), 3e4)
    solution = Hinge(fit_intercept=False).solve(GramKernel(K), Y, cost, tol=1e-7)
    assert solution.gap <= 1e-7 * solution.primal
    assert solution.work <= 100_000  # millions without the interior point method


def test_rows_without_cost_and_zero_rows_of_a_kernel():
    K, y = problem(40)
    K[:5] = K[:, :5] = 0.0
    upper = np.where(y > 0, 2.0, 0.0)
    lower = np.where(y > 0, 0.0, -2.0)
    lower[10:15] = upper[10:15] = 0.0
    beta = solve_interior(K, y, lower, upper, 0.0, False, np.zeros(40))
    assert (beta[10:15] == 0).all()
    np.testing.assert_array_equal(beta[:5], 2.0 * y[:5])  # nothing holds these back
    assert (beta >= lower).all()
    assert (beta <= upper).all()
