"""Equal weights against conic programming."""

import pytest
from numpy.testing import assert_allclose

from kernelweave.solvers import (
    Problem,
)
from kernelweave.weights import Uniform
from oracles import solve_fixed
from solver_cases import CASES, EPSILON, TOL, bank_of, solve
from solver_contract import check_solver_result


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equal_weights(case):
    grams, Y, cost = case.draw()
    bank = bank_of(grams)
    expected = solve_fixed(
        grams.mean(axis=0),
        Y,
        cost,
        loss=case.loss,
        epsilon=EPSILON,
        fit_intercept=case.fit_intercept,
    )
    result = solve(bank, Y, cost, case.loss_function, "uniform")
    assert result.converged
    reference = (expected.lower, expected.upper)
    check_solver_result(
        result, Problem(bank, Y, cost, case.loss_function, Uniform()), tol=TOL, reference=reference
    )
    assert_allclose(result.weights, 1 / len(grams))
