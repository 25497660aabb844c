"""The contract of results catches what is broken, and says what it is."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.kernels import Precomputed
from kernelweave.losses import Hinge
from kernelweave.solvers import Limits, Problem, newton_bundle
from kernelweave.weights import Simplex
from oracles import random_problem, solve_mkl
from solver_contract import check_solver_result

TOL = 1e-3


@pytest.fixture(scope="module")
def solved():
    problem = random_problem(3, n=40, m=4)
    index = np.arange(40)[:, None]
    bank = make_bank([Precomputed(gram) for gram in problem.grams], index, normalize=None)
    task = Problem(bank, problem.Y, problem.cost, Hinge(), Simplex())
    result = newton_bundle(task, Limits(TOL, 100))
    oracle = solve_mkl(problem.grams, problem.Y, problem.cost, p=1, loss="hinge")
    return problem, bank, result, (oracle.lower, oracle.upper)


def check(result, solved, **options):
    problem, bank, _, reference = solved
    options = {"tol": TOL, "reference": reference} | options
    task = Problem(bank, problem.Y, problem.cost, Hinge(), Simplex())
    check_solver_result(result, task, **options)


def test_the_intact_result_passes(solved):
    check(solved[2], solved)
    check(solved[2], solved, reference=None)
    check(solved[2], solved, reference=np.mean(solved[3]))


BROKEN = {
    "bounds crossed": (lambda r: {"lower_bound": 1.1 * r.objective}, "above the objective"),
    "too good an objective": (
        lambda r: {"objective": 0.9 * r.objective, "lower_bound": 0.9 * r.objective},
        "below the optimum",
    ),
    "too good a bound": (
        lambda r: {"lower_bound": r.objective + 0.0},
        "above the optimum|converged",
    ),
    "no convergence": (lambda r: {"converged": not r.converged}, "converged"),
    "other weights": (lambda r: {"weights": r.weights[::-1].copy()}, "objective"),
    "heavy weights": (lambda r: {"weights": 1.5 * r.weights}, "outside the set"),
    "negative weights": (lambda r: {"weights": r.weights - 0.5}, "negative"),
    "missing weights": (lambda r: {"weights": r.weights[:-1]}, "one entry per kernel"),
    "unbalanced": (lambda r: {"dual_coef": np.maximum(r.dual_coef, 0)}, "leave their set"),
    "outside the box": (lambda r: {"dual_coef": 5.0 * r.dual_coef}, "leave their set"),
    "other coefficients": (lambda r: {"dual_coef": 0.5 * r.dual_coef}, "objective"),
    "other intercept": (lambda r: {"intercept": r.intercept + 0.3}, "intercept"),
    "no history": (lambda r: {"history": ()}, "history is empty"),
    "history of others": (
        lambda r: {"history": (replace(r.history[-1], upper=2 * r.objective),)},
        "last upper bound",
    ),
    "history reversed": (lambda r: {"history": r.history[::-1]}, "rises|falls|last"),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_results(change, message, solved):
    result = solved[2]
    with pytest.raises(AssertionError, match=message):
        check(replace(result, **change(result)), solved)


def test_a_wrong_lower_bound_needs_the_reference(solved):
    _, _, result, reference = solved
    wrong = replace(
        result,
        lower_bound=result.objective,
        history=(replace(result.history[-1], lower=result.objective),),
    )
    if result.objective > reference[1] * (1 + 1e-7):
        with pytest.raises(AssertionError, match="above the optimum"):
            check(wrong, solved)
