"""Solvers against conic programming, and the invariants of the problem."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.banks import make_bank
from kernelweave.inner import solve_inner, unsolved
from kernelweave.kernels import RBF, Linear, Polynomial, Precomputed
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.solvers import (
    Limits,
    Problem,
    WarmStart,
    lp_alternation,
    newton_bundle,
    solve_fixed_weights,
)
from kernelweave.solvers.newton_bundle import BundleOptions, _Bundle
from kernelweave.testing import check_solver_result
from kernelweave.weights import LpBall, Simplex, Uniform
from oracles import random_problem, solve_fixed, solve_mkl

EPSILON = 0.1
TOL = 1e-7


def loss_for(loss, *, fit_intercept=True):
    return {
        "hinge": Hinge(fit_intercept),
        "epsilon_insensitive": EpsilonInsensitive(EPSILON, fit_intercept),
        "huber": Huber(EPSILON, fit_intercept),
        "square": Square(fit_intercept),
    }[loss]


def bank_of(grams):
    index = np.arange(len(grams[0]))[:, None]
    return make_bank([Precomputed(gram) for gram in grams], index, normalize=None)


def solve(bank, Y, cost, machine, p, *, tol=TOL, max_iter=300, start=None, callback=None):
    """Pick the solver for an exponent as `learn_weights` does, without smoothing."""
    problem = Problem(bank, Y, cost, machine, weight_set_for(p))
    solver = {"uniform": solve_fixed_weights, 1: newton_bundle}.get(p, lp_alternation)
    return solver(problem, Limits(tol, max_iter, callback), start)


def weight_set_for(p):
    return Uniform() if p == "uniform" else Simplex() if p == 1 else LpBall(p)


@dataclass(frozen=True)
class Case:
    """One problem, drawn when the test runs."""

    loss: str
    kind: str
    seed: int
    C: float
    badly_scaled: bool = False
    weighted: bool = False
    fit_intercept: bool = True
    m: int = 5

    def __str__(self):
        flags = [name for name in ("badly_scaled", "weighted") if getattr(self, name)]
        flags += [] if self.fit_intercept else ["no_intercept"]
        return "-".join([self.loss, self.kind, f"C{self.C:g}", *flags])

    def draw(self):
        problem = random_problem(
            self.seed,
            kind=self.kind,
            m=self.m,
            badly_scaled=self.badly_scaled,
            weighted=self.weighted,
        )
        return problem.grams, problem.Y, self.C * problem.cost

    @property
    def machine(self):
        return loss_for(self.loss, fit_intercept=self.fit_intercept)


CASES = [
    Case("hinge", "binary", 0, 1e-2),
    Case("hinge", "binary", 1, 1.0),
    Case("hinge", "binary", 2, 100.0),
    Case("hinge", "binary", 3, 1e3, weighted=True),
    Case("hinge", "binary", 4, 1.0, badly_scaled=True),
    Case("hinge", "binary", 5, 1.0, fit_intercept=False),
    Case("hinge", "binary", 6, 5.0, m=12),
    Case("hinge", "multiclass", 7, 1.0),
    Case("hinge", "multiclass", 8, 30.0, weighted=True),
    Case("hinge", "multiclass", 9, 0.1, badly_scaled=True),
    Case("epsilon_insensitive", "regression", 10, 1.0),
    Case("epsilon_insensitive", "regression", 11, 100.0, weighted=True),
    Case("epsilon_insensitive", "regression", 12, 0.1, fit_intercept=False),
    Case("epsilon_insensitive", "regression", 13, 1.0, badly_scaled=True),
    Case("huber", "regression", 14, 1.0),
    Case("huber", "regression", 15, 50.0, weighted=True, m=9),
    Case("square", "regression", 16, 1.0),
    Case("square", "regression", 17, 100.0, weighted=True),
    Case("square", "regression", 18, 0.1, badly_scaled=True, fit_intercept=False),
]


def compare(case, p):
    grams, Y, cost = case.draw()
    expected = solve_mkl(
        grams,
        Y,
        cost,
        p=p,
        loss=case.loss,
        epsilon=EPSILON,
        fit_intercept=case.fit_intercept,
    )
    bank = bank_of(grams)
    result = solve(bank, Y, cost, case.machine, p)
    assert result.converged
    check_solver_result(
        result,
        Problem(bank, Y, cost, case.machine, weight_set_for(p)),
        tol=TOL,
        reference=(expected.lower, expected.upper),
    )
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    return result, expected


@pytest.mark.parametrize("case", CASES, ids=str)
def test_newton_bundle(case):
    result, _ = compare(case, 1)
    assert result.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("case", CASES[::4], ids=str)
def test_closed_form(case, p):
    result, expected = compare(case, p)
    assert np.sum(result.weights**p) == pytest.approx(1)
    assert_allclose(result.weights, expected.weights, atol=2e-2)


@pytest.mark.parametrize("case", CASES[1::4], ids=str)
def test_closed_form_at_two(case):
    compare(case, 2.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_shot(case):
    grams, Y, cost = case.draw()
    bank = bank_of(grams)
    expected = solve_fixed(
        grams.mean(axis=0),
        Y,
        cost,
        loss=case.loss,
        epsilon=EPSILON,
        fit_intercept=case.fit_intercept,
    )
    result = solve(bank, Y, cost, case.machine, "uniform")
    assert result.converged
    reference = (expected.lower, expected.upper)
    check_solver_result(
        result, Problem(bank, Y, cost, case.machine, Uniform()), tol=TOL, reference=reference
    )
    assert_allclose(result.weights, 1 / len(grams))


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
    result = solve(bank_of(grams), Y, cost, case.machine, 1, tol=1e-8, max_iter=100)
    assert result.converged
    assert result.history[-1].solves < 60


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
    machine = loss_for(loss)
    for tol in (1e-1, 1e-4):
        bank = make_bank(kernels, X, tol=tol)
        exact = [scale * kernel(X) for scale, kernel in zip(bank.scales, kernels, strict=True)]
        stored = bank_of([0.5 * (K + K.T) for K in exact])
        result = solve(bank, Y, np.ones_like(Y), machine, p, tol=tol)
        best = solve(stored, Y, np.ones_like(Y), machine, p, tol=1e-8)
        assert result.converged
        check_solver_result(
            result,
            Problem(bank, Y, np.ones_like(Y), machine, weight_set_for(p)),
            tol=tol,
            reference=(best.lower_bound, best.objective),
        )


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


class TestWarmStarts:
    @pytest.mark.parametrize("p", [1, 1.5, 2.0])
    @pytest.mark.parametrize("case", [CASES[2], CASES[7], CASES[11], CASES[16]], ids=str)
    def test_the_same_problem_again(self, case, p):
        grams, Y, cost = case.draw()
        bank = bank_of(grams)
        cold = solve(bank, Y, cost, case.machine, p, tol=1e-5)
        start = WarmStart(cold.weights, cold.dual_coef)
        warm = solve(bank, Y, cost, case.machine, p, tol=1e-5, start=start)
        assert warm.converged
        assert warm.objective == pytest.approx(cold.objective, rel=2e-5)
        assert warm.history[-1].solves < cold.history[-1].solves

    @pytest.mark.parametrize("p", [1, 2.0, "uniform"])
    @pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "huber", "square"])
    def test_another_cost(self, loss, p):
        kind = "binary" if loss == "hinge" else "regression"
        problem = random_problem(21, kind=kind, m=6)
        bank, Y, machine = bank_of(problem.grams), problem.Y, loss_for(loss)
        first = solve(bank, Y, problem.cost, machine, p, tol=1e-5)
        for factor in (0.3, 3.0):
            cost = factor * problem.cost
            start = WarmStart(first.weights, factor * first.dual_coef)
            warm = solve(bank, Y, cost, machine, p, tol=1e-6, start=start)
            cold = solve(bank, Y, cost, machine, p, tol=1e-6)
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
        problem, machine = setting
        grams, Y, cost = problem.grams, problem.Y, problem.cost
        plain = solve(bank_of(grams), Y, cost, machine, p)
        scaled = solve(bank_of(a * grams), Y, cost / a, machine, p)
        assert scaled.objective * a == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(scaled.weights, plain.weights, atol=2e-3)
        assert_allclose(decision(scaled, a * grams), decision(plain, grams), atol=2e-2)

    def test_constant_and_zero_kernels_change_nothing(self, setting, p):
        problem, machine = setting
        Y, cost = problem.Y, problem.cost
        plain = solve(bank_of(problem.grams), Y, cost, machine, p)
        shape = (1, *problem.grams.shape[1:])
        more = np.concatenate([problem.grams, np.full(shape, 100.0), np.zeros(shape)])
        result = solve(bank_of(more), Y, cost, machine, p)
        assert result.converged
        assert result.objective == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(result.weights[-2:], 0, atol=1e-6)
        assert_allclose(result.weights[:-2], plain.weights, atol=2e-3)

    def test_permuted_kernels_permute_weights(self, setting, p):
        problem, machine = setting
        order = np.array([3, 0, 4, 1, 2])
        plain = solve(bank_of(problem.grams), problem.Y, problem.cost, machine, p)
        mixed = solve(bank_of(problem.grams[order]), problem.Y, problem.cost, machine, p)
        assert mixed.objective == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(mixed.weights, plain.weights[order], atol=2e-3)

    def test_permuted_rows_permute_coefficients(self, setting, p):
        problem, machine = setting
        order = np.random.default_rng(0).permutation(30)
        plain = solve(bank_of(problem.grams), problem.Y, problem.cost, machine, p)
        mixed = solve(
            bank_of(problem.grams[:, order][:, :, order]),
            problem.Y[order],
            problem.cost[order],
            machine,
            p,
        )
        assert mixed.objective == pytest.approx(plain.objective, rel=1e-6)
        assert_allclose(mixed.weights, plain.weights, atol=2e-3)

    def test_duplicates(self, setting, p):
        problem, machine = setting
        Y, cost = problem.Y, problem.cost
        plain = solve(bank_of(problem.grams), Y, cost, machine, p)
        twice = np.concatenate([problem.grams, problem.grams[:2]])
        result = solve(bank_of(twice), Y, cost, machine, p)
        if p == 1:  # only the sum of the weights of equal kernels is determined
            assert result.objective == pytest.approx(plain.objective, rel=1e-6)
            merged = result.weights[:5].copy()
            merged[:2] += result.weights[5:]
            assert_allclose(merged, plain.weights, atol=2e-3)
        else:  # strictly convex, and the ball gives a group of two more room
            assert result.objective < plain.objective
            assert_allclose(result.weights[:2], result.weights[5:], atol=1e-3)

    def test_dropping_unused_kernels_changes_nothing(self, setting, p):
        problem, machine = setting
        plain = solve(bank_of(problem.grams), problem.Y, problem.cost, machine, p)
        kept = np.flatnonzero(plain.weights > 1e-6)
        again = solve(bank_of(problem.grams[kept]), problem.Y, problem.cost, machine, p)
        assert again.objective == pytest.approx(plain.objective, rel=1e-5)

    def test_slopes_of_the_kernels_in_use(self, setting, p):
        problem, machine = setting
        bank = bank_of(problem.grams)
        result = solve(bank, problem.Y, problem.cost, machine, p, tol=1e-8)
        quadratic_forms = bank.quadratic_forms(result.dual_coef)
        if p == 1:
            used = result.weights > 1e-4
            assert_allclose(quadratic_forms[used], quadratic_forms.max(), rtol=1e-3)
        else:
            ratio = quadratic_forms ** (1 / (p - 1))
            assert_allclose(result.weights, ratio / np.linalg.norm(ratio, p), atol=1e-2)


def test_the_objective_falls_as_the_exponent_grows():
    problem = random_problem(25, m=5)
    bank = bank_of(problem.grams)
    values = [
        solve(bank, problem.Y, problem.cost, Hinge(), p).objective for p in (1, 1.2, 2.0, 4.0, 50.0)
    ]
    assert (np.diff(values) < 0).all()


def test_one_kernel_is_the_machine_alone():
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


def test_readings_stay_few():
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
def test_stored_grams_are_set_aside_and_priced(n, tol):
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
