"""Machines for one kernel: hinge, epsilon-insensitive, Huber and square loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gram_banks import bank_of, kernel_of
from inner_cases import EPSILON, LOSSES, loss_for, problem_for
from kernelweave.banks import make_bank
from kernelweave.inner import Solution, solve_inner
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.testing import check_loss
from oracles import random_problem, solve_fixed


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_contract(loss, fit_intercept):
    problem = problem_for(loss, 3, n=40, m=3)
    loss_function = loss_for(loss, fit_intercept=fit_intercept)
    check_loss(loss_function, bank_of(problem.grams), problem.Y, 2.0 * problem.cost)


@pytest.mark.parametrize("loss", LOSSES)
def test_contract_with_weighted_and_absent_rows(loss):
    problem = problem_for(loss, 1, n=40, m=3, weighted=True)
    check_loss(loss_for(loss), bank_of(problem.grams), problem.Y, 3.0 * problem.cost)


def test_contract_with_several_outputs():
    problem = random_problem(2, kind="multiclass", n=45, m=3)
    check_loss(Hinge(), bank_of(problem.grams), problem.Y, problem.cost)
    targets = np.column_stack([problem.X[:, 0], np.sin(problem.X[:, 1])])
    for loss_function in (EpsilonInsensitive(0.05), Huber(0.3), Square()):
        check_loss(loss_function, bank_of(problem.grams), targets, np.ones_like(targets))


def test_contract_on_factors_and_distances():
    X = np.random.default_rng(0).normal(size=(50, 3))
    Y = np.where(X[:, :1] * X[:, 1:2] > 0, 1.0, -1.0)
    bank = make_bank([RBF(width=0.7), RBF(width=1.0, columns=[0]), Linear()], X, tol=1e-9)
    check_loss(Hinge(), bank, Y, np.ones_like(Y))


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_conic_programming(loss, fit_intercept, C):
    problem = problem_for(loss, 4, weighted=True)
    gram, Y, cost = problem.grams.sum(axis=0), problem.Y, C * problem.cost
    loss_function = loss_for(loss, fit_intercept=fit_intercept)
    found = solve_inner(loss_function, kernel_of(gram), Y, cost, tol=1e-9)
    expected = solve_fixed(gram, Y, cost, loss=loss, epsilon=EPSILON, fit_intercept=fit_intercept)
    assert found.primal == pytest.approx(expected.objective, rel=1e-7)
    assert found.dual <= expected.upper * (1 + 1e-9)
    assert found.primal >= expected.lower * (1 - 1e-9)
    assert_allclose(found.fitted + found.intercept, expected.decision, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_zero_and_constant_kernels(loss):
    problem = problem_for(loss, 12)
    loss_function = loss_for(loss)
    for gram in (np.zeros((30, 30)), np.full((30, 30), 5.0)):
        found = solve_inner(loss_function, kernel_of(gram), problem.Y, problem.cost, tol=1e-9)
        best, bias = loss_function.value(np.zeros_like(problem.Y), problem.Y, problem.cost)
        assert found.primal == pytest.approx(best, rel=1e-9)
        assert loss_function.value(found.fitted, problem.Y, problem.cost)[0] == pytest.approx(best)
        assert np.isfinite(bias).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_kernel_times_a_and_cost_over_a(loss, scale):
    problem = problem_for(loss, 13)
    gram, loss_function = problem.grams.sum(axis=0), loss_for(loss)
    plain = solve_inner(loss_function, kernel_of(gram), problem.Y, problem.cost, tol=1e-9)
    scaled = solve_inner(
        loss_function, kernel_of(scale * gram), problem.Y, problem.cost / scale, tol=1e-9
    )
    assert scaled.primal * scale == pytest.approx(plain.primal, rel=1e-7)
    assert_allclose(scaled.fitted + scaled.intercept, plain.fitted + plain.intercept, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_costs_at_the_ends(loss, C):
    problem = problem_for(loss, 14)
    gram = problem.grams.sum(axis=0)
    found = solve_inner(loss_for(loss), kernel_of(gram), problem.Y, C * problem.cost, tol=1e-4)
    assert np.isfinite(found.dual_coef).all()
    assert found.gap <= 1e-4 * found.primal
    expected = solve_fixed(gram, problem.Y, C * problem.cost, loss=loss, epsilon=EPSILON)
    assert found.dual <= expected.upper * (1 + 1e-7)
    assert found.primal >= expected.lower * (1 - 1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_of_a_neighbouring_problem(loss):
    problem = problem_for(loss, 15, n=60)
    gram, loss_function = problem.grams.sum(axis=0), loss_for(loss)
    Y, cost = problem.Y, problem.cost
    before = solve_inner(loss_function, kernel_of(gram), Y, cost, tol=1e-6)
    dual_coef = loss_function.repair(1.5 * before.dual_coef, Y, 1.5 * cost)
    kernel = kernel_of(gram)
    start = Solution(dual_coef, before.intercept, kernel @ dual_coef, np.inf, -np.inf)
    warm = solve_inner(loss_function, kernel, Y, 1.5 * cost, tol=1e-8, start=start)
    cold = solve_inner(loss_function, kernel_of(gram), Y, 1.5 * cost, tol=1e-8)
    assert warm.primal == pytest.approx(cold.primal, rel=3e-8)
    assert warm.gap <= 1e-8 * warm.primal


def test_repeated_rows_with_opposite_labels():
    gram = np.kron(np.eye(6), np.ones((2, 2)))
    Y = np.tile([[1.0], [-1.0]], (6, 1))
    found = solve_inner(Hinge(), kernel_of(gram), Y, np.ones_like(Y), tol=1e-9)
    assert found.primal == pytest.approx(12)
    assert found.gap <= 1e-8


def test_one_class():
    problem = random_problem(16)
    Y = np.ones_like(problem.Y)
    found = solve_inner(Hinge(), kernel_of(problem.grams[0]), Y, problem.cost, tol=1e-9)
    assert found.primal == 0
    assert found.intercept == pytest.approx([1])
    constant = solve_inner(
        EpsilonInsensitive(0.1), kernel_of(problem.grams[0]), 7.0 * Y, problem.cost, tol=1e-9
    )
    assert constant.primal == 0
    assert constant.intercept == pytest.approx([7], abs=0.1)
