"""The logistic and the multinomial loss: values, conjugates, biases, and coefficients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gram_banks import bank_of
from kernelweave.banks import make_bank
from kernelweave.inner import solve_inner, unsolved
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Logistic, Softmax
from kernelweave.solvers import Limits, Problem, learn_weights
from kernelweave.weights import LpBall
from likelihood_cases import LOSSES, problem_for


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.filterwarnings("error")
def test_coefficients_of_any_function_are_feasible(kind, C, size):
    rng = np.random.default_rng(0)
    problem = problem_for(kind, 2, n=50)
    Y, cost = problem.Y, C * problem.cost * rng.uniform(0.1, 2, size=(50, 1))
    loss = kind()
    fitted = size * rng.normal(size=Y.shape)
    wild = C * size * rng.normal(size=Y.shape)
    for dual_coef in (loss.tangent(fitted, Y, cost).dual_coef, loss.repair(wild, Y, cost)):
        assert ((Y * dual_coef >= 0) & (Y * dual_coef <= cost * (1 + 1e-12))).all()
        assert_allclose(dual_coef.sum(axis=0), 0, atol=1e-12 * cost.sum())
        if kind is Softmax:
            assert_allclose(dual_coef.sum(axis=1), 0, atol=1e-15 * cost.max())
        value, bias = loss.value(fitted, Y, cost)
        assert np.isfinite(value)
        assert np.isfinite(bias).all()
        # Weak duality: lin(B) <= loss(F) + <B, F>, because the columns of B sum to zero.
        linear = loss.linear(dual_coef, Y, cost)
        rounding = 1e-12 * (abs(value) + np.abs(dual_coef * fitted).sum())
        assert linear <= value + np.vdot(dual_coef, fitted) + rounding


@pytest.mark.parametrize("kind", LOSSES)
def test_scaling_a_feasible_point_down_keeps_the_bound(kind):
    """``linear`` is concave and zero at zero, which `WeightSet.lower_bound` relies on."""
    rng = np.random.default_rng(1)
    problem = problem_for(kind, 2, n=20)
    loss, Y, cost = kind(), problem.Y, problem.cost
    for _ in range(50):
        B = loss.repair(rng.normal(size=Y.shape), Y, cost)
        whole = loss.linear(B, Y, cost)
        for share in rng.random(3):
            assert loss.linear(share * B, Y, cost) >= share * whole - 1e-12


@pytest.mark.parametrize("kind", LOSSES)
def test_biases_are_where_expected_and_true_shares_agree(kind):
    rng = np.random.default_rng(3)
    problem = problem_for(kind, 6, n=60, weighted=True)
    fitted = 3.0 * rng.normal(size=problem.Y.shape)
    tangent = kind().tangent(fitted, problem.Y, problem.cost)
    free = kind(fit_intercept=False).tangent(fitted + tangent.bias, problem.Y, problem.cost)
    assert_allclose(free.dual_coef.sum(axis=0), 0, atol=1e-12 * problem.cost.sum())


@pytest.mark.parametrize("kind", LOSSES)
def test_a_start_that_rounding_made_useless_is_left(kind):
    """Values of 1e12: steps from there would begin far outside of where the loss is curved."""
    problem = problem_for(kind, 3, n=40, m=1)
    kernel = bank_of(problem.grams).combine(np.ones(1))
    cold = solve_inner(kind(), kernel, problem.Y, problem.cost, tol=1e-6)
    values = 1e12 * np.random.default_rng(0).normal(size=problem.Y.shape)
    start = unsolved(cold.dual_coef, values)
    found = solve_inner(kind(), kernel, problem.Y, problem.cost, tol=1e-6, start=start)
    assert found.work == cold.work
    assert found.primal == cold.primal


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_softmax_of_two_classes_is_logistic_at_twice_the_cost(fit_intercept, norm):
    """With f_2 = -f_1 and g = f_1 - f_2 the penalty is |g|^2 / 4: half the problem of 2 C."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    sign = np.where(X[:, :1] + rng.normal(size=(40, 1)) > 0, 1.0, -1.0)
    bank = make_bank([Linear(), RBF(1.0), RBF(3.0)], X)
    limits = Limits(tol=1e-10, max_iter=500)
    cost = rng.uniform(0.5, 2.0, size=(40, 1))  # weights of rows too
    both, costs, ball = np.hstack([-sign, sign]), np.hstack([cost, cost]), LpBall(norm)
    two = learn_weights(Problem(bank, both, costs, Softmax(fit_intercept), ball), limits)
    one = learn_weights(Problem(bank, sign, 2 * cost, Logistic(fit_intercept), ball), limits)
    assert two.objective == pytest.approx(0.5 * one.objective, rel=1e-8)
    assert two.weights == pytest.approx(one.weights, abs=2e-4)
    g = two.dual_coef[:, 1] - two.dual_coef[:, 0]
    assert g == pytest.approx(one.dual_coef[:, 0], abs=1e-3)
