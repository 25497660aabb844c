"""Ridge regression without some rows equals fits that never had them."""

import numpy as np
import pytest

from kernelweave.inner.ridge_folds import RidgeInverse

RANDOM = np.random.default_rng(3)
ROWS = RANDOM.normal(size=(30, 3))
K = np.exp(-0.5 * ((ROWS[:, None] - ROWS) ** 2).sum(axis=2))
Y = np.column_stack([np.sin(ROWS[:, 0]), ROWS[:, 1] ** 2]) + 0.1 * RANDOM.normal(size=(30, 2))
COST = RANDOM.uniform(0.2, 5.0, size=30)


def solved(gram, targets, cost, intercept):
    """Solve the bordered system by a general solver."""
    n = len(gram)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = gram + np.diag(1 / cost)
    if intercept:
        system[:n, n] = system[n, :n] = 1.0
    else:
        system[n, n] = 1.0
    both = np.linalg.solve(system, np.vstack([targets, np.zeros((1, targets.shape[1]))]))
    return both[:n], both[n]


@pytest.mark.parametrize("intercept", [True, False])
def test_without_folds_is_a_fit_of_the_other_rows(intercept):
    folds = [np.arange(0, 7), np.arange(7, 8), np.arange(8, 30)]
    found = RidgeInverse(K, Y, COST, intercept).without_folds(folds)
    for k, rows in enumerate(folds):
        kept = np.setdiff1d(np.arange(30), rows)
        coef, bias = solved(K[np.ix_(kept, kept)], Y[kept], COST[kept], intercept)
        np.testing.assert_allclose(found.dual_coef[kept, k], coef, atol=1e-10)
        np.testing.assert_allclose(found.intercept[k], bias, atol=1e-10)
        assert not found.dual_coef[rows, k].any()
        missed = Y[rows] - (K[np.ix_(rows, kept)] @ coef + bias)
        np.testing.assert_allclose(found.residual[rows], missed, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_without_rows_is_a_fit_in_which_a_row_has_less_cost(intercept):
    left = np.where(np.arange(30) % 3 == 0, 0.4 * COST, 0.0)  # every third row keeps some copies
    found = RidgeInverse(K, Y, COST, intercept).without_rows(left)
    for i in range(30):
        cost = COST.copy()
        cost[i] = left[i]
        kept = np.flatnonzero(cost)
        coef, bias = solved(K[np.ix_(kept, kept)], Y[kept], cost[kept], intercept)
        np.testing.assert_allclose(found.dual_coef[kept, i], coef, atol=1e-10)
        np.testing.assert_allclose(found.intercept[i], bias, atol=1e-10)
        missed = Y[i] - (K[i, kept] @ coef + bias)
        np.testing.assert_allclose(found.residual[i], missed, atol=1e-10)


def test_a_huge_cost_on_a_singular_kernel_stays_finite():
    gram = np.ones((6, 6))
    found = RidgeInverse(gram, Y[:6], np.full(6, 1e18), True).without_rows(np.zeros(6))
    assert np.isfinite(found.residual).all()


def test_no_row_left_is_the_smallest_change():
    """With the only row left out there is nothing to learn from, and P is zero."""
    problem = RidgeInverse(np.ones((1, 1)), np.array([[2.0]]), np.ones(1), True)
    found = problem.without_folds([np.array([0])])
    assert not found.dual_coef.any()
    assert np.isfinite(found.residual).all()
