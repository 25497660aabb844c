"""Rows without cost, single rows and empty outputs, whatever the loss."""

import numpy as np
import pytest

from gram_banks import kernel_of
from inner_cases import EPSILON, LOSSES, loss_for, problem_for
from kernelweave.inner import solve_inner


@pytest.mark.parametrize("loss", LOSSES)
def test_integer_costs_repeat_rows(loss):
    problem = problem_for(loss, 9, n=24)
    times = np.arange(24) % 3 + 1
    rows = np.repeat(np.arange(24), times)
    gram = problem.grams.sum(axis=0)
    loss_function = loss_for(loss)
    weighted = solve_inner(
        loss_function, kernel_of(gram), problem.Y, times[:, None] * 1.0, tol=1e-9
    )
    repeated = solve_inner(
        loss_function,
        kernel_of(gram[np.ix_(rows, rows)]),
        problem.Y[rows],
        np.ones((len(rows), 1)),
        tol=1e-9,
    )
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_no_cost_are_absent(loss):
    problem = problem_for(loss, 10, n=36)
    keep = np.arange(36) % 3 > 0
    gram, loss_function = problem.grams.sum(axis=0), loss_for(loss)
    whole = solve_inner(
        loss_function, kernel_of(gram), problem.Y, problem.cost * keep[:, None], tol=1e-9
    )
    part = solve_inner(
        loss_function,
        kernel_of(gram[np.ix_(keep, keep)]),
        problem.Y[keep],
        problem.cost[keep],
        tol=1e-9,
    )
    assert not whole.dual_coef[~keep].any()
    assert whole.primal == pytest.approx(part.primal, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_output_without_rows(loss):
    problem = problem_for(loss, 11)
    Y = np.column_stack([problem.Y, problem.Y])
    cost = np.column_stack([problem.cost, 0 * problem.cost])
    loss_function = loss_for(loss)
    kernel = kernel_of(problem.grams[0])
    both = solve_inner(loss_function, kernel, Y, cost, tol=1e-8)
    alone = solve_inner(loss_function, kernel, problem.Y, problem.cost, tol=1e-8)
    assert not both.dual_coef[:, 1].any()
    assert both.intercept[1] == 0
    assert both.primal == pytest.approx(alone.primal, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_costs_anything(loss):
    problem = problem_for(loss, 11)
    loss_function = loss_for(loss)
    found = solve_inner(
        loss_function, kernel_of(problem.grams[0]), problem.Y, 0 * problem.cost, tol=1e-8
    )
    assert not found.dual_coef.any()
    assert found.primal == found.dual == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_one_row(loss):
    for fit_intercept in (True, False):
        loss_function = loss_for(loss, fit_intercept=fit_intercept)
        found = solve_inner(
            loss_function, kernel_of(np.ones((1, 1))), np.ones((1, 1)), np.ones((1, 1)), tol=1e-9
        )
        assert found.primal == pytest.approx(found.dual, abs=1e-8)
        if fit_intercept:
            assert found.fitted + found.intercept == pytest.approx(1, abs=EPSILON + 1e-9)
            assert found.primal == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_inputs_are_not_changed(loss):
    problem = problem_for(loss, 17)
    gram, Y, cost = problem.grams[0].copy(), problem.Y.copy(), problem.cost.copy()
    loss_function = loss_for(loss)
    solve_inner(loss_function, kernel_of(gram), Y, cost, tol=1e-6)
    assert np.array_equal(gram, problem.grams[0])
    assert np.array_equal(Y, problem.Y)
    assert np.array_equal(cost, problem.cost)
