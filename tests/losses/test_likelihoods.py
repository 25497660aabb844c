"""The logistic and the multinomial loss: values, conjugates, biases, and coefficients."""

from decimal import Decimal, getcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.banks import make_bank
from kernelweave.inner import solve_inner, weight_curvature
from kernelweave.kernels import RBF, Linear, Precomputed
from kernelweave.losses import Logistic, Softmax
from kernelweave.solvers import Limits, Problem, learn_weights
from kernelweave.testing import check_loss
from kernelweave.weights import LpBall
from oracles import random_problem

LOSSES = [Logistic, Softmax]


def bank_of(grams):
    index = np.arange(len(grams[0]))[:, None]
    return make_bank([Precomputed(gram) for gram in grams], index, normalize=None)


def problem_for(kind, seed, weighted=False, **options):
    """Return a problem; costs of a row are equal for all outputs, as classes have them."""
    name = "binary" if kind is Logistic else "multiclass"
    problem = random_problem(seed, kind=name, **options)
    if weighted:
        rng = np.random.default_rng(seed)
        problem.cost[:] *= rng.choice([0.0, 0.5, 1.0, 2.0], size=len(problem.Y))[:, None]
    return problem


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", LOSSES)
def test_contract(kind, C, fit_intercept):
    problem = problem_for(kind, 3, n=40, m=3)
    check_loss(kind(fit_intercept), bank_of(problem.grams), problem.Y, C * problem.cost)


@pytest.mark.parametrize("kind", LOSSES)
def test_contract_with_weighted_and_absent_rows(kind):
    problem = problem_for(kind, 1, n=40, m=3, weighted=True)
    check_loss(kind(), bank_of(problem.grams), problem.Y, 3.0 * problem.cost)


def test_contract_with_several_outputs():
    problem = random_problem(4, kind="multiclass", n=40, m=3)
    check_loss(Logistic(), bank_of(problem.grams), problem.Y, problem.cost)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", LOSSES)
def test_hessian_is_that_of_differences(kind, fit_intercept):
    problem = problem_for(kind, 5, n=30, m=3)
    bank, loss, cost = bank_of(problem.grams), kind(fit_intercept), 3.0 * problem.cost
    weights = np.array([0.5, 0.3, 0.2])

    def solve(weights):
        return solve_inner(loss, bank.combine(weights), problem.Y, cost, tol=1e-14).dual_coef

    best = solve(weights)
    every = np.arange(3)
    found = weight_curvature(
        loss,
        bank.combine(weights),
        lambda rows: bank.products(best, every, rows),
        best,
        problem.Y,
        cost,
    )
    forms = bank.quadratic_forms(best)
    for j in range(3):
        step = 1e-4 * np.eye(3)[j]
        ahead, behind = solve(weights + step), solve(weights - step)
        column = -0.5 * (bank.quadratic_forms(ahead) - bank.quadratic_forms(behind)) / 2e-4
        assert_allclose(found.hessian[:, j], column, atol=1e-5 * (forms / weights).max())
        moved = (ahead - behind) / 2.0
        assert_allclose(found.predict(best, step) - best, moved, atol=1e-4 * np.abs(moved).max())
    spare = np.diag(forms / weights) - found.hessian
    assert np.linalg.eigvalsh(spare)[0] >= -1e-9 * forms.max()
    assert np.linalg.eigvalsh(found.hessian)[0] >= -1e-9 * forms.max()


def test_small_and_large_margins_keep_their_digits():
    getcontext().prec = 380  # digits of 1 + exp(-700)
    margins = np.concatenate([np.linspace(-700, 700, 57), [1e-9, -1e-9, 37.5, -37.5]])[:, None]
    one = np.ones_like(margins)
    losses = Logistic(False).row_losses(margins, one, one)[:, 0]
    dual_coef = Logistic(False).tangent(margins, one, one).dual_coef
    for m, loss, u in zip(margins[:, 0], losses, dual_coef[:, 0], strict=True):
        exact = (1 + (-Decimal(float(m))).exp()).ln()
        assert abs(Decimal(float(loss)) / exact - 1) < Decimal("1e-15")
        exact_u = 1 / (1 + Decimal(float(m)).exp())
        assert abs(Decimal(float(u)) / exact_u - 1) < Decimal("1e-13")
        # The entropy of the coefficient as it is stored.
        v = Decimal(float(u))
        entropy = -sum(p * p.ln() for p in (v, 1 - v) if p > 0)
        found = Logistic(False).linear(np.array([[u]]), one[:1], one[:1])
        assert abs(Decimal(found) - entropy) <= Decimal("1e-15") * max(entropy, Decimal("1e-3"))
    pair = np.hstack([margins, 0 * margins])
    target = np.hstack([one, -one])
    assert_allclose(
        Softmax(False).row_losses(pair, target, np.ones_like(pair))[:, 0], losses, rtol=1e-13
    )


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


def test_an_output_of_one_class_is_bounded():
    """The best bias is infinite; a large one is as good."""
    Y = np.ones((5, 1))
    value, bias = Logistic().value(np.zeros((5, 1)), Y, Y)
    assert value < 1e-15
    assert np.isfinite(bias).all()
    assert not Logistic().tangent(np.zeros((5, 1)), Y, Y).dual_coef.any()
    two = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]])
    value, bias = Softmax().value(np.zeros((2, 3)), two, np.ones((2, 3)))
    assert value == pytest.approx(2 * np.log(2))
    assert np.isfinite(bias).all()
    assert not Softmax().tangent(np.zeros((2, 3)), two, np.ones((2, 3))).dual_coef[:, 2].any()


@pytest.mark.parametrize("kind", LOSSES)
def test_biases_are_where_expected_and_true_shares_agree(kind):
    rng = np.random.default_rng(3)
    problem = problem_for(kind, 6, n=60, weighted=True)
    fitted = 3.0 * rng.normal(size=problem.Y.shape)
    tangent = kind().tangent(fitted, problem.Y, problem.cost)
    free = kind(fit_intercept=False).tangent(fitted + tangent.bias, problem.Y, problem.cost)
    assert_allclose(free.dual_coef.sum(axis=0), 0, atol=1e-12 * problem.cost.sum())


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
