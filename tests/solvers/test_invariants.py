"""Invariants of the problem, whichever solver is used."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.banks import make_bank
from kernelweave.inner import solve_inner
from kernelweave.kernels import RBF, Linear, Polynomial
from kernelweave.losses import Hinge
from kernelweave.solvers import (
    Problem,
    WarmStart,
)
from oracles import random_problem, solve_mkl
from solver_cases import EPSILON, TOL, bank_of, loss_for, solve, weight_set_for
from solver_contract import check_solver_result


@pytest.mark.parametrize("p", [1, 2.0, "uniform"])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "huber", "square"])
def test_factors_and_distances(loss, p):
    """Forms that leave something out must still certify the exact kernels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    signal = np.sin(2 * X[:, :1]) + 0.3 * rng.normal(size=(80, 1))
    Y = np.where(signal > 0, 1.0, -1.0) if loss == "hinge" else signal
    kernels = [RBF(width=w, columns=[c]) for w in (1.0, 3.0) for c in range(3)]
    kernels += [RBF(width=0.8), Linear(), Polynomial(degree=2)]
    loss_function = loss_for(loss)
    for tol in (1e-1, 1e-4):
        bank = make_bank(kernels, X, tol=tol)
        exact = [scale * kernel(X) for scale, kernel in zip(bank.scales, kernels, strict=True)]
        stored = bank_of([0.5 * (K + K.T) for K in exact])
        result = solve(bank, Y, np.ones_like(Y), loss_function, p, tol=tol)
        best = solve(stored, Y, np.ones_like(Y), loss_function, p, tol=1e-8)
        assert result.converged
        check_solver_result(
            result,
            Problem(bank, Y, np.ones_like(Y), loss_function, weight_set_for(p)),
            tol=tol,
            reference=(best.lower_bound, best.objective),
        )


@pytest.fixture(scope="module", params=["hinge", "epsilon_insensitive", "square"])
def setting(request):
    kind = "multiclass" if request.param == "hinge" else "regression"
    problem = random_problem(24, kind=kind, m=5, weighted=True)
    return problem, loss_for(request.param)


def decision(result, grams):
    return np.tensordot(result.weights, grams, axes=1) @ result.dual_coef + result.intercept


@pytest.mark.parametrize("p", [1, 2.0])
class TestInvariants:
    @pytest.mark.parametrize("a", [1e-4, 50.0, 1e6])
    def test_kernels_times_a_and_cost_over_a(self, setting, p, a):
        problem, loss_function = setting
        grams, Y, cost = problem.grams, problem.Y, problem.cost
        plain = solve(bank_of(grams), Y, cost, loss_function, p)
        scaled = solve(bank_of(a * grams), Y, cost / a, loss_function, p)
        assert scaled.objective * a == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(scaled.weights, plain.weights, atol=2e-3)
        assert_allclose(decision(scaled, a * grams), decision(plain, grams), atol=2e-2)

    def test_constant_and_zero_kernels_change_nothing(self, setting, p):
        problem, loss_function = setting
        Y, cost = problem.Y, problem.cost
        plain = solve(bank_of(problem.grams), Y, cost, loss_function, p)
        shape = (1, *problem.grams.shape[1:])
        more = np.concatenate([problem.grams, np.full(shape, 100.0), np.zeros(shape)])
        result = solve(bank_of(more), Y, cost, loss_function, p)
        assert result.converged
        assert result.objective == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(result.weights[-2:], 0, atol=1e-6)
        assert_allclose(result.weights[:-2], plain.weights, atol=2e-3)

    def test_permuted_kernels_permute_weights(self, setting, p):
        problem, loss_function = setting
        order = np.array([3, 0, 4, 1, 2])
        plain = solve(bank_of(problem.grams), problem.Y, problem.cost, loss_function, p)
        mixed = solve(bank_of(problem.grams[order]), problem.Y, problem.cost, loss_function, p)
        assert mixed.objective == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(mixed.weights, plain.weights[order], atol=2e-3)

    def test_permuted_rows_permute_coefficients(self, setting, p):
        problem, loss_function = setting
        order = np.random.default_rng(0).permutation(30)
        plain = solve(bank_of(problem.grams), problem.Y, problem.cost, loss_function, p)
        mixed = solve(
            bank_of(problem.grams[:, order][:, :, order]),
            problem.Y[order],
            problem.cost[order],
            loss_function,
            p,
        )
        assert mixed.objective == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(mixed.weights, plain.weights, atol=2e-3)

    def test_duplicates(self, setting, p):
        problem, loss_function = setting
        Y, cost = problem.Y, problem.cost
        plain = solve(bank_of(problem.grams), Y, cost, loss_function, p)
        twice = np.concatenate([problem.grams, problem.grams[:2]])
        result = solve(bank_of(twice), Y, cost, loss_function, p)
        if p == 1:  # only the sum of the weights of equal kernels is determined
            assert result.objective == pytest.approx(plain.objective, rel=1e-6)
            merged = result.weights[:5].copy()
            merged[:2] += result.weights[5:]
            assert_allclose(merged, plain.weights, atol=2e-3)
        else:  # strictly convex, and the ball gives a group of two more room
            assert result.objective < plain.objective
            assert_allclose(result.weights[:2], result.weights[5:], atol=1e-3)

    def test_dropping_unused_kernels_changes_nothing(self, setting, p):
        problem, loss_function = setting
        plain = solve(bank_of(problem.grams), problem.Y, problem.cost, loss_function, p)
        kept = np.flatnonzero(plain.weights > 1e-6)
        again = solve(bank_of(problem.grams[kept]), problem.Y, problem.cost, loss_function, p)
        assert again.objective == pytest.approx(plain.objective, rel=1e-5)

    def test_slopes_of_the_kernels_in_use(self, setting, p):
        problem, loss_function = setting
        bank = bank_of(problem.grams)
        result = solve(bank, problem.Y, problem.cost, loss_function, p, tol=1e-8)
        quadratic_forms = bank.quadratic_forms(result.dual_coef)
        if p == 1:
            used = result.weights > 1e-4
            assert_allclose(quadratic_forms[used], quadratic_forms.max(), rtol=1e-3)
        else:
            ratio = quadratic_forms ** (1 / (p - 1))
            assert_allclose(result.weights, ratio / np.linalg.norm(ratio, p), atol=1e-2)


def test_one_kernel_is_its_inner_problem():
    problem = random_problem(26, m=1)
    bank = bank_of(problem.grams)
    alone = solve_inner(Hinge(), bank.combine(np.ones(1)), problem.Y, problem.cost, tol=1e-9)
    for p in (1, 2.0, "uniform"):
        result = solve(bank, problem.Y, problem.cost, Hinge(), p)
        assert result.objective == pytest.approx(alone.primal, rel=1e-6)
        assert result.weights == pytest.approx([1])


class TestAwkwardProblems:
    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    def test_all_kernels_are_zero(self, p):
        Y = np.array([[1.0], [1.0], [-1.0], [1.0]])
        bank = bank_of(np.zeros((3, 4, 4)))
        result = solve(bank, Y, np.ones_like(Y), Hinge(), p)
        assert result.converged
        assert result.objective == pytest.approx(2)
        assert np.isfinite(result.weights).all()
        check_solver_result(
            result,
            Problem(bank, Y, np.ones_like(Y), Hinge(), weight_set_for(p)),
            tol=TOL,
            reference=2.0,
        )

    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    @pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "huber", "square"])
    def test_nothing_to_learn(self, loss, p):
        problem = random_problem(27, m=3)
        Y = np.ones_like(problem.Y)
        result = solve(bank_of(problem.grams), Y, problem.cost, loss_for(loss), p)
        assert result.converged
        assert result.objective == pytest.approx(0, abs=1e-12)
        assert result.intercept == pytest.approx([1], abs=EPSILON + 1e-9)

    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    def test_repeated_rows_with_opposite_labels(self, p):
        rows = np.repeat(np.arange(10), 2)
        problem = random_problem(28, n=10, m=3)
        grams = problem.grams[:, rows][:, :, rows]
        Y = np.tile([[1.0], [-1.0]], (10, 1))
        result = solve(bank_of(grams), Y, np.ones_like(Y), Hinge(), p)
        assert result.converged
        assert result.objective == pytest.approx(20, rel=1e-6)

    @pytest.mark.parametrize("p", [1, 1.5])
    @pytest.mark.parametrize("C", [1e-8, 1e-4, 1e4, 1e7])
    def test_costs_at_the_ends(self, p, C):
        problem = random_problem(29, m=5)
        bank, cost = bank_of(problem.grams), C * problem.cost
        result = solve(bank, problem.Y, cost, Hinge(), p, tol=1e-4)
        assert result.converged
        expected = solve_mkl(problem.grams, problem.Y, cost, p=p, loss="hinge")
        check_solver_result(
            result,
            Problem(bank, problem.Y, cost, Hinge(), weight_set_for(p)),
            tol=1e-4,
            reference=(expected.lower, expected.upper),
        )

    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    @pytest.mark.parametrize("scale", [1e-60, 1e60])
    def test_extreme_scales(self, p, scale):
        problem = random_problem(31, m=4)
        Y, cost = problem.Y, problem.cost
        plain = solve(bank_of(problem.grams), Y, cost, Hinge(), p, tol=1e-5)
        scaled = solve(bank_of(scale * problem.grams), Y, cost / scale, Hinge(), p, tol=1e-5)
        assert scaled.converged
        assert scaled.objective * scale == pytest.approx(plain.objective, rel=2e-5)

    def test_inputs_are_not_changed(self):
        problem = random_problem(32, m=4)
        grams, Y, cost = problem.grams.copy(), problem.Y.copy(), problem.cost.copy()
        start = WarmStart(np.full(4, 0.25), np.zeros_like(Y))
        for p in (1, 2.0, "uniform"):
            solve(bank_of(grams), Y, cost, Hinge(), p, start=start)
        assert np.array_equal(grams, problem.grams)
        assert np.array_equal(Y, problem.Y)
        assert np.array_equal(cost, problem.cost)
        assert not start.dual_coef.any()
        assert (start.weights == 0.25).all()
