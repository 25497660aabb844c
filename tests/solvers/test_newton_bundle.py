"""The Newton bundle method against conic programming."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.inner import unsolved
from kernelweave.kernels import RBF, Precomputed
from kernelweave.losses import Hinge
from kernelweave.solvers import (
    Limits,
    Problem,
)
from kernelweave.solvers.newton_bundle import BundleOptions, _Bundle
from kernelweave.weights import Simplex
from oracles import random_problem, solve_mkl
from solver_cases import CASES, bank_of, compare, solve
from solver_contract import check_solver_result


@pytest.mark.parametrize("case", CASES, ids=str)
def test_newton_bundle(case):
    result, _ = compare(case, 1)
    assert result.weights.sum() == pytest.approx(1)


def test_a_full_multiclass_problem_with_many_kernels():
    problem = random_problem(30, kind="multiclass", n=36, m=60)
    bank = bank_of(problem.grams)
    expected = solve_mkl(problem.grams, problem.Y, problem.cost, p=1, loss="hinge")
    result = solve(bank, problem.Y, problem.cost, Hinge(), 1, tol=1e-6)
    check_solver_result(
        result,
        Problem(bank, problem.Y, problem.cost, Hinge(), Simplex()),
        tol=1e-6,
        reference=(expected.lower, expected.upper),
    )
    assert result.converged


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_kernels_outside_the_first_working_set(tol):
    """Copies of one kernel fill the working set; copies of the other must still be found."""
    problem = random_problem(41, m=9)
    cost = 20 * problem.cost
    weights = solve(bank_of(problem.grams), problem.Y, cost, Hinge(), 1).weights
    pair = problem.grams[np.argsort(-weights)[:2]]
    best = solve(bank_of(pair), problem.Y, cost, Hinge(), 1)
    assert best.weights.min() > 0.1  # each alone would be worse
    bank = bank_of(np.repeat(pair, 60, axis=0))
    result = solve(bank, problem.Y, cost, Hinge(), 1, tol=tol)
    assert result.converged
    check_solver_result(
        result,
        Problem(bank, problem.Y, cost, Hinge(), Simplex()),
        tol=tol,
        reference=(best.lower_bound, best.objective),
    )


@pytest.mark.parametrize("case", [CASES[2], CASES[8], CASES[11], CASES[17]], ids=str)
def test_newton_bundle_to_a_tight_tolerance(case):
    grams, Y, cost = case.draw()
    result = solve(bank_of(grams), Y, cost, case.loss_function, 1, tol=1e-8, max_iter=100)
    assert result.converged
    assert result.history[-1].solves < 60


def test_passes_stay_few():
    """Most kernels are left alone once the step is small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 12))
    Y = np.where(np.sin(X[:, :1]) + X[:, 1:2] ** 2 - 0.7 > 0, 1.0, -1.0)
    kernels = [RBF(width=w, columns=[c]) for w in (0.3, 0.5, 1, 2, 4, 8) for c in range(12)]
    bank = make_bank(kernels, X)
    result = solve(bank, Y, np.ones_like(Y), Hinge(), 1, tol=1e-4)
    assert result.converged
    last = result.history[-1]
    assert last.n_passes < last.solves + 3
    assert np.count_nonzero(result.weights) < 20


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("n", [120, 304])  # the larger one begins on a sample of the rows
def test_stored_grams_are_dropped_and_priced(n, tol):
    """Kernels left out of the working set are in the certificate, and most are read seldom."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 12))
    Y = np.where(np.sin(2 * X[:, :1]) + X[:, 1:2] ** 2 - 0.7 > 0, 1.0, -1.0)
    kernels = [RBF(width=w, columns=[c]) for w in (0.3, 1, 3) for c in range(12)]
    grams = [Precomputed(kernel(X), check=False) for kernel in kernels]
    bank, cost = make_bank(grams, np.arange(n)[:, None], normalize=None), np.ones_like(Y)
    result = solve(bank, Y, cost, Hinge(), 1, tol=tol)
    check_solver_result(result, Problem(bank, Y, cost, Hinge(), Simplex()), tol=tol)
    assert result.converged
    last = result.history[-1]
    assert last.n_passes < 0.6 * last.solves


@pytest.mark.parametrize(("share", "growth", "most"), [(1e-6, 1.0, 60), (0.5, 1.05, 30)])
def test_solves_that_rounding_holds_up_end_the_search(share, growth, most, monkeypatch):
    """An inner solver that returns shares of the boxes comes no nearer to a solution."""
    problem, n_solves = random_problem(0), 0

    def careless(loss, K, Y, cost, **options):
        nonlocal n_solves
        n_solves += 1
        dual_coef = loss.repair(share * growth**n_solves * Y * cost, Y, cost)
        return unsolved(dual_coef, K @ dual_coef)

    monkeypatch.setattr("kernelweave.solvers.evaluator.solve_inner", careless)
    cost = np.full_like(problem.Y, 1e3)
    result = solve(bank_of(problem.grams), problem.Y, cost, Hinge(), 1, tol=1e-6, max_iter=1000)
    assert not result.converged
    assert n_solves <= most


def test_kernels_with_a_large_slope_stay_in_the_working_set():
    problem = random_problem(0, m=6)
    task = Problem(bank_of(problem.grams), problem.Y, problem.cost, Hinge(), Simplex())
    bundle = _Bundle(task, Limits(1e-3, 9), BundleOptions())
    bundle.which, weights = np.arange(6), np.eye(6)[0]
    point = bundle.evaluator.at(weights, np.zeros_like(problem.Y), bundle.which)
    point = replace(point, quadratic_forms=np.array([1.0, 0.7, 0.5, 0.1, 0.1, 0.1]))
    assert bundle._drop_idle(point).which.tolist() == [0, 1]
