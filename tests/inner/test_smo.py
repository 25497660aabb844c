"""Machines for one kernel: hinge, epsilon-insensitive, Huber and square loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

from gram_banks import bank_of, kernel_of
from kernelweave._linalg import solve_positive
from kernelweave.banks import make_bank
from kernelweave.inner import Solution, solve_inner, weight_curvature
from kernelweave.kernels import RBF, Linear, Precomputed
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.testing import check_loss
from oracles import random_problem, solve_fixed

EPSILON = 0.1


def loss_for(loss, *, fit_intercept=True):
    return {
        "hinge": Hinge(fit_intercept),
        "epsilon_insensitive": EpsilonInsensitive(EPSILON, fit_intercept),
        "huber": Huber(EPSILON, fit_intercept),
        "square": Square(fit_intercept),
    }[loss]


LOSSES = ["hinge", "epsilon_insensitive", "huber", "square"]


def problem_for(loss, seed, **options):
    kind = "binary" if loss == "hinge" else "regression"
    return random_problem(seed, kind=kind, **options)


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


def test_square_is_kernel_ridge():
    problem = random_problem(7, kind="regression")
    gram = problem.grams[0]
    found = solve_inner(Square(False), kernel_of(gram), problem.Y, 4.0 * problem.cost, tol=1e-3)
    reference = KernelRidge(alpha=0.25, kernel="precomputed").fit(gram, problem.y)
    assert_allclose(found.dual_coef[:, 0], reference.dual_coef_, rtol=1e-6, atol=1e-8)
    assert found.gap == pytest.approx(0, abs=1e-10 * found.primal)


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


@pytest.mark.parametrize("loss", LOSSES)
def test_inputs_are_not_changed(loss):
    problem = problem_for(loss, 17)
    gram, Y, cost = problem.grams[0].copy(), problem.Y.copy(), problem.cost.copy()
    loss_function = loss_for(loss)
    solve_inner(loss_function, kernel_of(gram), Y, cost, tol=1e-6)
    assert np.array_equal(gram, problem.grams[0])
    assert np.array_equal(Y, problem.Y)
    assert np.array_equal(cost, problem.cost)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_curvature_where_no_kernel_in_use_reaches_the_free_rows(fit_intercept):
    """Rules as kernels: the block of the free rows is zero, and what follows must stay finite."""
    covered = np.array([1.0, 1.0, 0.0, 0.0])
    grams = [Precomputed(np.outer(covered, covered)), Precomputed(np.eye(4))]
    bank = make_bank(grams, np.arange(4)[:, None], normalize=None)
    Y = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    dual_coef = np.array([[1.0], [-1.0], [0.5], [-0.5]])  # the last two lie inside their box
    both = np.arange(2)
    found = weight_curvature(
        Hinge(fit_intercept),
        bank.combine(np.array([1.0, 0.0])),
        lambda rows: bank.products(dual_coef, both, rows),
        dual_coef,
        Y,
        np.ones((4, 1)),
    )
    assert np.isfinite(found.hessian).all()
    assert found.hessian[1, 1] > 0 == found.hessian[0, 0]


@pytest.mark.parametrize("least", [1e-3, -1e-9, -1e-5, -1e-3, -10.0])
def test_systems_that_rounding_made_indefinite_are_solved_nearby(least):
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.normal(size=(30, 30)))[0]
    values = np.append(np.linspace(0.5, 2.0, 29), least)
    M, b = Q @ np.diag(values) @ Q.T, random.normal(size=(30, 2))
    found = solve_positive(M.copy(), b)
    assert np.isfinite(found).all()
    if least > 0:
        np.testing.assert_allclose(M @ found, b, atol=1e-9)
    elif least > -1e-2:  # the good directions are solved all the same
        good = Q[:, :29]
        np.testing.assert_allclose(good.T @ M @ found, good.T @ b, atol=0.1)
