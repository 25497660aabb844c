"""Warm starts, and what a solver leaves as it was."""

import numpy as np
import pytest

from kernelweave.losses import Hinge
from kernelweave.solvers import (
    WarmStart,
)
from oracles import random_problem
from solver_cases import CASES, bank_of, loss_for, solve


class TestWarmStarts:
    @pytest.mark.parametrize("p", [1, 1.5, 2.0])
    @pytest.mark.parametrize("case", [CASES[2], CASES[7], CASES[11], CASES[16]], ids=str)
    def test_the_same_problem_again(self, case, p):
        grams, Y, cost = case.draw()
        bank = bank_of(grams)
        cold = solve(bank, Y, cost, case.loss_function, p, tol=1e-5)
        start = WarmStart(cold.weights, cold.dual_coef)
        warm = solve(bank, Y, cost, case.loss_function, p, tol=1e-5, start=start)
        assert warm.converged
        assert warm.objective == pytest.approx(cold.objective, rel=2e-5)
        assert warm.history[-1].solves < cold.history[-1].solves

    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    @pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "huber", "square"])
    def test_another_cost(self, loss, p):
        kind = "binary" if loss == "hinge" else "regression"
        problem = random_problem(21, kind=kind, m=6)
        bank, Y, loss_function = bank_of(problem.grams), problem.Y, loss_for(loss)
        first = solve(bank, Y, problem.cost, loss_function, p, tol=1e-5)
        for factor in (0.3, 3.0):
            cost = factor * problem.cost
            start = WarmStart(first.weights, factor * first.dual_coef)
            warm = solve(bank, Y, cost, loss_function, p, tol=1e-6, start=start)
            cold = solve(bank, Y, cost, loss_function, p, tol=1e-6)
            assert warm.converged
            assert warm.objective == pytest.approx(cold.objective, rel=3e-6)

    def test_coefficients_of_other_labels_are_repaired(self):
        problem = random_problem(22, m=4)
        bank = bank_of(problem.grams)
        first = solve(bank, problem.Y, problem.cost, Hinge(), 1, tol=1e-5)
        start = WarmStart(first.weights, first.dual_coef)
        for p in (1, 2.0):
            flipped = solve(bank, -problem.Y, problem.cost, Hinge(), p, start=start)
            fresh = solve(bank, -problem.Y, problem.cost, Hinge(), p)
            assert flipped.converged
            assert flipped.objective == pytest.approx(fresh.objective, rel=1e-6)

    def test_weights_on_kernels_that_are_not_wanted(self):
        problem = random_problem(23, m=6)
        bank = bank_of(problem.grams)
        best = solve(bank, problem.Y, problem.cost, Hinge(), 1)
        worst = np.zeros(6)
        worst[int(np.argmin(best.weights))] = 1.0
        start = WarmStart(worst, np.zeros_like(problem.Y))
        for p in (1, 1.5):
            found = solve(bank, problem.Y, problem.cost, Hinge(), p, start=start)
            fresh = solve(bank, problem.Y, problem.cost, Hinge(), p)
            assert found.objective == pytest.approx(fresh.objective, rel=1e-6)
