"""Criteria of radius and margin: values, derivatives and bounds against an independent solver."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from gram_banks import bank_of
from kernelweave._threads import threads
from kernelweave.banks import build, make_bank
from kernelweave.inner import solve_inner
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial
from kernelweave.losses import SquaredHinge
from kernelweave.solvers.radius.criteria import Chapelle, Do, RadiusMargin
from kernelweave.testing import check_loss
from kernelweave.weights import LpBall, Simplex
from oracles import random_problem
from radius_oracles import (
    ball_oracle,
    chapelle_value,
    do_value,
    radius_margin_value,
    random_radius_problem,
    solve_do,
    solve_radius,
)

NAMES = ["radius", "chapelle", "chapelle_literal", "do"]
M = 3


@pytest.fixture(autouse=True)
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


def combined(theta, grams):
    return np.tensordot(theta, grams, axes=1)


@dataclass(frozen=True)
class Case:
    """A problem with three kernels of different sizes, and weights to look at."""

    seed: int
    n_classes: int
    C: float
    intercept: bool = True
    weighted: bool = False

    def __str__(self):
        marks = [f"{self.n_classes} classes", f"C={self.C:g}"]
        marks += ["weighted"] * self.weighted + ["no intercept"] * (not self.intercept)
        return ", ".join(marks)

    @property
    def rng(self):
        return np.random.default_rng([self.seed, 7])

    @property
    def problem(self):
        return random_radius_problem(self.seed, n=14, m=M, n_classes=self.n_classes, C=self.C)

    @property
    def row_costs(self):
        weights = self.rng.choice([0.5, 1.0, 3.0], 14) if self.weighted else np.ones(14)
        return self.C * weights

    @property
    def cost(self):
        return np.repeat(self.row_costs[:, None], self.problem.Y.shape[1], axis=1)

    @property
    def theta(self):
        return self.rng.uniform(0.2, 1.0, M)

    def criterion(self, name, bound=None):
        if name == "radius":
            return RadiusMargin(self.intercept)
        if name == "do":
            return Do(
                grams_of(self)[1],
                bound or (lambda linear, quadratic_forms: -np.inf),
                self.intercept,
            )
        return Chapelle(self.intercept, literal=name == "chapelle_literal")

    def exact(self, name, theta):
        """The criterion at some weights, by the reference."""
        grams, _ = grams_of(self)
        K, Y = combined(theta, grams), self.problem.Y
        if name == "radius":
            return radius_margin_value(K, Y, self.cost, self.intercept)
        if name == "do":
            return do_value(grams, theta, Y, self.row_costs, self.intercept)
        literal = name == "chapelle_literal"
        return chapelle_value(K, Y, self.row_costs, literal=literal, intercept=self.intercept)

    def evaluate(self, name, theta, tol, bank=None, bound=None, **options):
        bank = bank_of(grams_of(self)[0]) if bank is None else bank
        criterion = self.criterion(name, bound)
        return criterion.evaluate(
            bank.combine(theta), self.problem.Y, self.cost, tol=tol, **options
        )


@cache
def grams_of(case):
    """Return the Gram matrices, of squared radius 1, 0.3 and 5, and those numbers."""
    radii = np.array([1.0, 0.3, 5.0])
    grams = [r * K / ball_oracle(K)[0] for r, K in zip(radii, case.problem.grams, strict=True)]
    return np.stack(grams), radii


CASES = [
    Case(0, 2, 0.05),
    Case(1, 2, 1.0, weighted=True),
    Case(2, 2, 30.0, intercept=False),
    Case(3, 2, 1e3),
    Case(4, 3, 0.3, intercept=False, weighted=True),
    Case(5, 3, 10.0),
]


# Values


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case, name):
    exact = case.exact(name, case.theta)
    point = case.evaluate(name, case.theta, 1e-10)
    assert point.value == pytest.approx(exact, rel=1e-7)
    # However early they stop, SVM and ball bound their optima from above.
    for tol in (0.5, 1e-1, 1e-3):
        loose = case.evaluate(name, case.theta, tol)
        assert exact * (1 - 1e-9) <= loose.value <= exact * (1 + 3 * tol)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", [CASES[1], CASES[4]], ids=str)
def test_the_function_has_the_value(case, name):
    point = case.evaluate(name, case.theta, 1e-8)
    point = case.criterion(name).finished(point, case.cost, tol=1e-8)
    K, Y = combined(case.theta, grams_of(case)[0]), case.problem.Y
    solution, r2 = point.solution, point.ball.squared_radius
    dual_coef = solution.dual_coef
    np.testing.assert_allclose(
        solution.fitted, K @ dual_coef, atol=1e-9 * np.abs(K @ dual_coef).max()
    )
    slack = np.maximum(0, 1 - Y * (K @ dual_coef + solution.intercept))
    norm = np.vdot(dual_coef, K @ dual_coef)
    value = {
        "radius": 0.5 * r2 * norm + np.vdot(case.cost, slack),
        "chapelle": 0.5 * r2 * (norm + np.vdot(case.cost, slack**2)),
        "chapelle_literal": r2 * (0.5 * norm + np.vdot(case.cost, slack**2)),
        "do": 0.5 * norm + np.vdot(case.cost, slack**2) / (case.theta @ grams_of(case)[1]),
    }[name]
    assert point.value == pytest.approx(value, rel=1e-8)
    assert (dual_coef * Y >= 0).all()
    if case.intercept:
        np.testing.assert_allclose(dual_coef.sum(axis=0), 0, atol=1e-12 * np.abs(dual_coef).sum())
    else:
        assert (solution.intercept == 0).all()
    ridged = K + np.diag(1 / case.row_costs) if name == "chapelle" else K
    assert r2 == pytest.approx(ball_oracle(ridged)[0], rel=1e-7)
    quadratic_forms = [np.vdot(dual_coef, gram @ dual_coef) for gram in grams_of(case)[0]]
    np.testing.assert_allclose(point.quadratic_forms, quadratic_forms, rtol=1e-9)


@pytest.mark.parametrize("C", [0.01, 0.3, 0.7, 100.0])
def test_two_rows_have_one_value(C):
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(2, 3))
        bank = make_bank([RBF(1.0), Linear()], X, normalize=None)
        Y, cost = np.array([[1.0], [-1.0]]), np.full((2, 1), C)
        point = RadiusMargin().evaluate(bank.combine(np.array([0.3, 2.0])), Y, cost, tol=1e-11)
        expected = 0.5 if C >= 0.5 else 2 * C - 2 * C**2
        assert point.value == pytest.approx(expected, rel=1e-9)
        assert point.lower == pytest.approx(expected, rel=1e-9)  # of any weights
        np.testing.assert_allclose(point.gradient, 0, atol=1e-9)


@pytest.mark.parametrize("C", [0.2, 0.8, 3.0])
def test_value_of_the_identity(C):
    n = 10
    Y = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    r2 = 1 - 1 / n
    point = RadiusMargin().evaluate(
        bank_of([np.eye(n)]).combine(np.ones(1)), Y, np.full((n, 1), C), tol=1e-11
    )
    expected = n * r2 / 2 if r2 <= C else n * C - n * C**2 / (2 * r2)
    assert point.value == pytest.approx(expected, rel=1e-9)


# Derivatives


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients(case, name):
    theta = case.theta
    bank = bank_of(grams_of(case)[0])
    point = case.evaluate(name, theta, 1e-12, bank)

    def value(weights):
        return case.evaluate(name, weights, 1e-13, bank, start=point).value

    slopes = np.empty(M)
    for j in range(M):
        step = 1e-4 * theta[j] * np.eye(M)[j]
        near = value(theta + step) - value(theta - step)
        far = value(theta + 2 * step) - value(theta - 2 * step)
        slopes[j] = (8 * near - far) / (12 * step[j])
    # In relative changes of the weights, so that all are of one size.
    found, expected = theta * point.gradient, theta * slopes
    allowed = 1e-6 * np.abs(expected).max() + 1e-7 * point.value
    np.testing.assert_allclose(found, expected, atol=allowed)
    assert np.abs(expected).max() > 100 * allowed  # something to see


@pytest.mark.parametrize("case", CASES, ids=str)
def test_euler(case):
    """Of degree nought for radius and margin, minus one for Do's criterion."""
    theta = case.theta
    for tol in (1e-1, 1e-10):
        point = case.evaluate("radius", theta, tol)
        # The quadratic forms of SVM and ball are consistent at any tolerance.
        assert abs(theta @ point.gradient) <= (2 * tol + 1e-9) * point.value
    # Coefficients are known to the root of the gap.
    point = case.evaluate("do", theta, 1e-12)
    assert -theta @ point.gradient == pytest.approx(point.value, rel=1e-5)


@pytest.mark.parametrize("factor", [1e-6, 30.0, 1e8])
@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_scale(case, factor):
    theta = case.theta
    plain, scaled = (case.evaluate("radius", t, 1e-10) for t in (theta, factor * theta))
    assert scaled.value == pytest.approx(plain.value, rel=1e-8)
    assert scaled.lower == pytest.approx(plain.lower, rel=1e-6)
    size = np.abs(plain.gradient).max()
    np.testing.assert_allclose(factor * scaled.gradient, plain.gradient, atol=1e-5 * size)
    assert scaled.ball.squared_radius == pytest.approx(factor * plain.ball.squared_radius, 1e-8)
    plain, scaled = (case.evaluate("do", t, 1e-10) for t in (theta, factor * theta))
    assert factor * scaled.value == pytest.approx(plain.value, rel=1e-8)


@pytest.mark.parametrize("case", [CASES[1], CASES[5]], ids=str)
def test_constant_kernels_have_no_slope(case):
    grams, _ = grams_of(case)
    more = bank_of([*grams, np.full((14, 14), 3.0)])
    theta = case.theta
    plain = case.evaluate("radius", theta, 1e-10)
    for extra in (0.0, 2.0):
        point = case.evaluate("radius", np.append(theta, extra), 1e-10, more)
        assert point.value == pytest.approx(plain.value, rel=1e-8)
        assert abs(point.gradient[-1]) <= 1e-8 * plain.value
    # Centred matrices are the same points, seen from elsewhere.
    H = np.eye(14) - 1 / 14
    centred = case.evaluate("radius", theta, 1e-10, bank_of([H @ K @ H for K in grams]))
    assert centred.value == pytest.approx(plain.value, rel=1e-8)
    size = np.abs(plain.gradient).max()
    np.testing.assert_allclose(centred.gradient, plain.gradient, atol=1e-5 * size)


# Bounds


BOUND_CASES = [
    Case(10, 2, 0.1, weighted=True),
    Case(11, 2, 20.0),
    Case(12, 3, 2.0, intercept=False),
    Case(13, 3, 300.0, weighted=True),
]


@pytest.mark.parametrize("case", BOUND_CASES, ids=str)
def test_no_lower_bound_is_above_the_optimum(case):
    grams, _ = grams_of(case)
    optimum, best = solve_radius(grams, case.problem.Y, case.cost, case.intercept)
    bank = bank_of(grams)
    draws = np.random.default_rng(case.seed).dirichlet(np.full(M, 0.5), size=12)
    bounds = []
    for theta in [*draws, *(0.97 * np.eye(M) + 0.01), best + 1e-9]:
        for tol in (0.9, 0.3, 1e-2, 1e-4, 1e-9):
            point = case.evaluate("radius", theta, tol, bank)
            assert point.lower <= optimum * (1 + 1e-8)
            assert point.value >= optimum * (1 - 1e-8)
            bounds.append(point.lower)
    assert bounds[-1] == pytest.approx(optimum, rel=1e-4)  # they meet at the optimum
    assert min(bounds[-10:-5]) < 0.9 * optimum  # and not everywhere


@pytest.mark.parametrize("case", CASES, ids=str)
def test_lower_bound_of_fixed_weights(case):
    bank, theta, Y = bank_of(grams_of(case)[0]), case.theta, case.problem.Y
    exact = case.exact("radius", theta)
    criterion = RadiusMargin(case.intercept, fixed=True)
    for tol in (0.9, 0.1, 1e-3, 1e-8):
        point = criterion.evaluate(bank.combine(theta), Y, case.cost, tol=tol)
        assert point.lower <= exact * (1 + 1e-9)
    assert point.lower == pytest.approx(exact, rel=1e-6)
    free = case.evaluate("radius", theta, 1e-8, bank)
    assert free.lower <= point.lower * (1 + 1e-6)


def test_a_kernel_without_spread_gives_no_bound():
    case = CASES[1]
    bank = bank_of([*grams_of(case)[0], np.zeros((14, 14))])
    point = case.evaluate("radius", np.append(case.theta, 0.0), 1e-8, bank)
    assert point.lower <= case.exact("radius", case.theta)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("case", BOUND_CASES[:3], ids=str)
def test_lower_bound_of_do(case, norm):
    grams, _ = grams_of(case)
    optimum, best = solve_do(grams, case.problem.Y, case.row_costs, norm, case.intercept)
    weight_set = Simplex() if norm == 1 else LpBall(2.0)

    def bound(linear, quadratic_forms):
        return weight_set.lower_bound(linear, 0.0, quadratic_forms, bounded=False)

    bank = bank_of(grams)
    for theta in [*np.random.default_rng(0).dirichlet(np.full(M, 0.5), size=6), best]:
        weights = theta / np.linalg.norm(theta, norm)
        for tol in (0.5, 1e-2, 1e-9):
            point = case.evaluate("do", weights, tol, bank, bound)
            assert point.lower <= optimum * (1 + 1e-8)
            assert point.value >= optimum * (1 - 1e-8)
    assert point.lower == pytest.approx(optimum, rel=1e-4)


def test_chapelle_knows_no_bound():
    for name in ("chapelle", "chapelle_literal"):
        assert CASES[0].evaluate(name, CASES[0].theta, 1e-3).lower == -np.inf


# Kernels that are held by approximate factors or rounded numbers


KERNELS = [RBF(2.0, columns=0), RBF(4.0, columns=[1]), RBF(0.8), Polynomial(2), Laplacian(1.0)]
MIX, COST = np.array([0.7, 0.5, 0.5, 0.1, 0.6]), 5.0


@cache
def rows_of_numbers():
    problem = random_problem(5, n=40)
    return problem.X, problem.Y, np.stack([kernel(problem.X) for kernel in KERNELS])


@cache
def mixed(name):
    """Return a criterion, its exact value for one mix of the kernels, and that of the ball."""
    _, Y, grams = rows_of_numbers()
    K = combined(MIX, grams)
    r2 = ball_oracle(K + np.eye(40) / COST if name == "chapelle" else K)[0]
    if name == "radius":
        return RadiusMargin(fixed=True), radius_margin_value(K, Y, COST), r2
    if name == "do":
        radii = np.array([ball_oracle(gram)[0] for gram in grams])
        unknown = Do(radii, lambda linear, quadratic_forms: -np.inf)
        return unknown, do_value(grams, MIX, Y, COST), r2
    literal = name == "chapelle_literal"
    return Chapelle(literal=literal), chapelle_value(K, Y, COST, literal=literal), r2


@pytest.mark.parametrize("name", NAMES)
def test_verified_values_are_those_of_the_exact_kernels(name):
    X, Y, grams = rows_of_numbers()
    K, cost = combined(MIX, grams), np.full((40, 1), COST)
    criterion, exact, r2 = mixed(name)
    for left_out in (1e-9, 1e-3, 0.3):
        bank = make_bank(KERNELS, X, normalize=None, tol=1e5 * left_out)
        assert bank.residual_forms(np.ones((40, 1))).max() > 0
        for tol in (0.3, 1e-3, 1e-10):
            point = criterion.evaluate(bank.combine(MIX), Y, cost, tol=tol)
            checked = criterion.verified(point, Y, cost)
            assert checked.value >= exact * (1 - 1e-9)
            assert checked.lower <= exact * (1 + 1e-9)
            assert checked.ball.squared_radius >= r2 * (1 - 1e-9)
            fitted = checked.solution.fitted
            np.testing.assert_allclose(fitted, K @ point.solution.dual_coef, atol=1e-9)
            np.testing.assert_allclose(checked.ball.fitted, K @ point.ball.centre, atol=1e-9)
        if left_out == 1e-9:
            assert checked.value == pytest.approx(exact, rel=1e-6)
        elif left_out == 0.3:  # so much that the factors themselves are too optimistic
            assert checked.value > point.value * (1 + 1e-4)


def test_bounds_of_factored_kernels_hold_for_the_exact_ones():
    X, Y, grams = rows_of_numbers()
    cost = np.full((40, 1), 2.0)
    optimum, best = solve_radius(grams, Y, cost)
    for left_out in (1e-6, 1e-2, 0.5):
        bank = make_bank(KERNELS, X, normalize=None, tol=1e5 * left_out)
        for theta in (best, MIX):
            point = RadiusMargin().evaluate(bank.combine(theta), Y, cost, tol=1e-8)
            assert point.lower <= optimum * (1 + 1e-8)
            assert RadiusMargin().verified(point, Y, cost).lower <= optimum * (1 + 1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_float32_storage(name, monkeypatch):
    monkeypatch.setattr(build, "_SMALL", 10)
    X, Y, _ = rows_of_numbers()
    bank = make_bank(KERNELS, X, normalize=None)
    assert bank.dtype == np.float32
    criterion, exact, r2 = mixed(name)
    cost = np.full((40, 1), COST)
    point = criterion.evaluate(bank.combine(MIX), Y, cost, tol=1e-6)
    point = criterion.finished(point, cost, tol=1e-6)
    for found in (point, criterion.verified(point, Y, cost)):
        assert found.value == pytest.approx(exact, rel=1e-5)
        assert found.ball.squared_radius == pytest.approx(r2, rel=1e-5)


# Starts, and the SVM below


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", [CASES[1], CASES[2], CASES[5]], ids=str)
def test_a_start_saves_work_and_changes_nothing(case, name):
    bank = bank_of(grams_of(case)[0])
    theta = case.theta
    cold = case.evaluate(name, theta, 1e-8, bank)
    same = case.evaluate(name, theta, 1e-7, bank, start=cold)
    assert same.value == pytest.approx(cold.value, rel=2e-7)
    assert same.solution.work < cold.solution.work
    # From far away, where neither radius nor boxes are the same.
    other = case.evaluate(name, 1e3 * theta[::-1], 1e-8, bank)
    moved = case.evaluate(name, theta, 1e-8, bank, start=other)
    assert moved.value == pytest.approx(cold.value, rel=3e-8)
    assert moved.ball.squared_radius == pytest.approx(cold.ball.squared_radius, rel=3e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.1, 2.0, 50.0])
def test_contract_of_the_squared_hinge(C, fit_intercept):
    problem = random_problem(3, n=40, m=3)
    check_loss(SquaredHinge(fit_intercept), bank_of(problem.grams), problem.Y, C * problem.cost)


def test_contract_of_the_squared_hinge_with_several_outputs_and_absent_rows():
    problem = random_problem(1, kind="multiclass", n=40, m=3, weighted=True)
    check_loss(SquaredHinge(), bank_of(problem.grams), problem.Y, 3.0 * problem.cost)


def test_no_coefficient_of_the_squared_hinge_is_at_its_box():
    for C in (1e-3, 1.0, 1e4):
        problem = random_problem(4, n=30, m=3, weighted=True)
        kernel = bank_of(problem.grams).combine(np.ones(3))
        machine, cost = SquaredHinge(), C * problem.cost
        solution = solve_inner(machine, kernel, problem.Y, cost, tol=1e-9)
        shape = machine.box(problem.Y, cost)
        box = np.maximum(shape.upper, -shape.lower)
        used = box > 0
        assert (np.abs(solution.dual_coef[used]) <= 0.95 * box[used]).all()
