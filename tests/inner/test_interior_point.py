"""The interior point method: solved where pair updates crawl."""

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.inner import solve_inner
from kernelweave.inner.interior_point import solve_interior
from kernelweave.kernels import RBF, Precomputed
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber

MACHINES = [
    Hinge(True),
    Hinge(False),
    EpsilonInsensitive(0.05, True),
    EpsilonInsensitive(0.05, False),
    Huber(0.1, True),
    Huber(0.1, False),
]


def problem_for(loss, seed, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    signal = np.sin(2 * X[:, :1]) + 0.5 * rng.normal(size=(n, 1))
    return X, np.sign(signal) if isinstance(loss, Hinge) else signal


def gap_of(loss, gram, dual_coef, Y, cost):
    """Return the relative gap of feasible coefficients."""
    fitted = gram @ dual_coef
    quadratic = float(np.vdot(dual_coef, fitted))
    primal = 0.5 * quadratic + loss.value(fitted, Y, cost)[0]
    dual = loss.linear(dual_coef, Y, cost) - 0.5 * (quadratic + loss.ridge_term(dual_coef, Y, cost))
    return (primal - dual) / primal


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("loss", MACHINES, ids=repr)
def test_gap_of_every_loss(loss, C):
    X, Y = problem_for(loss, 0)
    gram = RBF(2.0).block(X, X) + X @ X.T
    cost = np.full_like(Y, C)
    shape = loss.box(Y, cost)
    columns = shape.columns(Y, 0)
    beta = solve_interior(gram, *columns, shape.dead_zone, intercept=loss.fit_intercept)
    assert (beta >= shape.lower[:, 0]).all()
    assert (beta <= shape.upper[:, 0]).all()
    dual_coef = loss.repair(beta[:, None], Y, cost)
    assert np.abs(dual_coef[:, 0] - beta).max() <= 1e-9 * C
    assert abs(gap_of(loss, gram, dual_coef, Y, cost)) <= 1e-7


@pytest.mark.parametrize("loss", MACHINES, ids=repr)
def test_huge_cost_on_a_smooth_kernel(loss):
    X, Y = problem_for(loss, 1)
    gram = RBF(3.0).block(X, X)
    bank = make_bank([Precomputed(gram)], np.arange(len(Y))[:, None], normalize=None)
    cost = np.full_like(Y, 2e6)
    solution = solve_inner(loss, bank.combine(np.ones(1)), Y, cost, tol=1e-4)
    assert gap_of(loss, gram, solution.dual_coef, Y, cost) <= 2e-4
    assert solution.work <= 60_000


def test_targets_of_which_nothing_is_left_are_no_error():
    """The bias divides by a sum that is zero where targets are 1e-44 of the boxes."""
    K = np.full((5, 5), 0.8881694482277492)
    K[3:, 3:] = 0.9005087507926696
    y = np.array(
        [
            -4.582430014354339e-44,
            7.596939312375499e-45,
            -2.3537045536828663e-44,
            5.721340039260598e-44,
            3.602392212813507e-44,
        ]
    )
    box = np.full(5, 0.2982652691007799)
    found = solve_interior(K, y, -box, box, np.zeros(5), 2.5723089397737624e-45, intercept=True)
    assert found.shape == (5,)
