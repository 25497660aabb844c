"""Bounds of a search and its history."""

from itertools import pairwise

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.kernels import RBF
from kernelweave.losses import Hinge
from kernelweave.solvers import (
    Problem,
)
from oracles import solve_mkl
from solver_cases import CASES, TOL, bank_of, solve, weight_set_for
from solver_contract import check_solver_result


class TestHistory:
    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    def test_bounds_only_improve(self, p):
        grams, Y, cost = CASES[2].draw()
        seen = []
        result = solve(bank_of(grams), Y, cost, Hinge(), p, callback=seen.append)
        assert seen == list(result.history)
        assert len(seen) >= 1
        for before, after in pairwise(seen):
            assert after.upper <= before.upper * (1 + 1e-10)
            assert after.lower >= before.lower
            assert after.solves >= before.solves
        assert seen[-1].relative_gap <= TOL
        assert seen[-1].upper == pytest.approx(result.objective)

    @pytest.mark.parametrize("p", [1, 1.5])
    @pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
    def test_stopping_early_leaves_valid_bounds(self, p, max_iter):
        case = CASES[2]
        grams, Y, cost = case.draw()
        expected = solve_mkl(grams, Y, cost, p=p, loss="hinge")
        bank = bank_of(grams)
        result = solve(bank, Y, cost, Hinge(), p, tol=1e-9, max_iter=max_iter)
        assert not result.converged
        assert result.gap > 0
        check_solver_result(
            result,
            Problem(bank, Y, cost, Hinge(), weight_set_for(p)),
            tol=1e-9,
            reference=(expected.lower, expected.upper),
        )
        # Two solves are the least: one to look around, one for the first weights.
        assert result.history[-1].solves <= max(max_iter, 2)

    @pytest.mark.parametrize("p", [1, 2.0])
    @pytest.mark.parametrize("max_iter", [2, 4])
    def test_stopping_early_on_factors(self, p, max_iter):
        rng = np.random.default_rng(5)
        X = rng.normal(size=(80, 3))
        Y = np.where(np.sin(2 * X[:, :1]) + 0.3 * rng.normal(size=(80, 1)) > 0, 1.0, -1.0)
        kernels = [RBF(width=w, columns=[c]) for w in (0.7, 1.5, 3.0) for c in range(3)]
        bank, cost = make_bank(kernels, X, tol=0.5), np.full_like(Y, 1e3)
        assert max(row["left_out"] for row in bank.summary()) > 1e-9
        result = solve(bank, Y, cost, Hinge(), p, tol=1e-9, max_iter=max_iter)
        assert not result.converged
        # The objective is that of the exact kernels, however roughly these were held meanwhile.
        products = bank.exact_products(result.dual_coef, np.arange(bank.n_kernels))
        quadratic_forms = np.einsum("jno,no->j", products, result.dual_coef)
        fitted = np.tensordot(result.weights, products, axes=1)
        value = weight_set_for(p).penalty(result.weights * np.sqrt(quadratic_forms))
        value += Hinge().value(fitted, Y, cost)[0]
        assert value <= result.objective * (1 + 1e-8)
        assert value == pytest.approx(result.objective, rel=1e-2)

    def test_looser_tolerances_cost_less(self):
        grams, Y, cost = CASES[6].draw()
        for p in (1, 2.0):
            solves = []
            for tol in (1e-1, 1e-3, 1e-6):
                result = solve(bank_of(grams), Y, cost, Hinge(), p, tol=tol)
                assert result.converged
                assert result.gap <= tol * result.objective
                solves.append(result.history[-1].solves)
            assert solves == sorted(solves)
