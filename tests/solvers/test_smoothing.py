"""Continuation on a smoothed loss against conic programming."""

import numpy as np
import pytest

from kernelweave.solvers import Limits, Problem, newton_bundle
from kernelweave.solvers.smoothing import solve_by_smoothing
from kernelweave.weights import Simplex
from oracles import solve_mkl
from solver_cases import CASES, EPSILON, TOL, bank_of
from solver_contract import check_solver_result

PIECEWISE = [case for case in CASES if case.loss in ("hinge", "epsilon_insensitive")]


@pytest.mark.parametrize("case", PIECEWISE[::2], ids=str)
def test_the_loss_itself_is_certified(case):
    grams, Y, cost = case.draw()
    expected = solve_mkl(
        grams, Y, cost, p=1, loss=case.loss, epsilon=EPSILON, fit_intercept=case.fit_intercept
    )
    problem = Problem(bank_of(grams), Y, cost, case.loss_function, Simplex())
    result = solve_by_smoothing(problem, Limits(1e-4, 300))
    assert result.converged
    reference = (expected.lower, expected.upper)
    check_solver_result(result, problem, tol=1e-4, reference=reference)


def test_a_result_without_smoothing_counts():
    grams, Y, cost = PIECEWISE[0].draw()
    problem = Problem(bank_of(grams), Y, cost, PIECEWISE[0].loss_function, Simplex())
    seen = []
    before = newton_bundle(problem, Limits(TOL, 300))
    result = solve_by_smoothing(problem, Limits(1e-3, 300, seen.append), before=before)
    assert result.converged
    assert result.objective <= before.objective * (1 + 1e-9)
    assert result.history[: len(before.history)] == before.history
    solves = [step.solves for step in seen]
    assert solves == sorted(solves)
    assert np.isfinite(result.lower_bound)
