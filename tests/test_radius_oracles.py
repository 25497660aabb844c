"""The reference solvers of radius-margin problems against closed forms and direct minimisation."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import radius_oracles
from oracles import OracleError, solve_fixed, solve_mkl
from radius_oracles import (
    ball_oracle,
    chapelle_value,
    do_value,
    radius_margin_value,
    random_radius_problem,
    solve_do,
    solve_radius,
)

pytestmark = pytest.mark.slow


def random_gram(seed, n=10):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return (X @ X.T + 1) ** 2 / 10 + 0.1 * np.eye(n)


def balanced(n):
    return np.where(np.arange(n) % 2, 1.0, -1.0)


def centre(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def smooth_minimum(features, y, penalty, C, intercept):
    """Minimise ``1/2 penalty . w^2 + sum C slack^2`` over linear functions of the features."""

    def objective(v):
        w, b = v[:-1], v[-1] * intercept
        slack = np.maximum(0, 1 - y * (features @ w + b))
        pull = -2 * C * y * slack
        slope = np.append(penalty * w + features.T @ pull, intercept * np.sum(pull))
        return penalty @ w**2 / 2 + np.sum(C * slack**2), slope

    start = np.zeros(features.shape[1] + 1)
    return minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-9}).fun


def best_of_two(value):
    """Minimise over the weights of two kernels, whose sum is one."""

    def at(angle):
        return value(np.array([np.cos(angle) ** 2, np.sin(angle) ** 2]))

    return minimize_scalar(at, bounds=(0, np.pi / 2), method="bounded", options={"xatol": 1e-4}).fun


def unit_radius(grams):
    return np.stack([K / ball_oracle(K)[0] for K in grams])


@pytest.mark.parametrize(
    ("points", "squared_radius", "beta"),
    [
        ([[0, 0], [2, 0]], 1, [0.5, 0.5]),
        ([[0, 0], [6, 0], [2, 1]], 9, [0.5, 0.5, 0]),
        ([[0, 0], [4, 0], [2, 2 * np.sqrt(3)]], 16 / 3, [1 / 3, 1 / 3, 1 / 3]),
        ([[3, 0], [0, 4], [0, 0], [1, 1]], 6.25, [0.5, 0.5, 0, 0]),
    ],
)
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_ball_of_points_in_the_plane(points, squared_radius, beta, scale):
    X = np.array(points, dtype=float) + 10
    found, weights = ball_oracle(scale * X @ X.T)
    assert found == pytest.approx(scale * squared_radius, rel=1e-9)
    assert weights == pytest.approx(beta, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_ball_holds_every_point_and_no_smaller_one_does(seed):
    K = random_radius_problem(seed, n=25).grams[seed % 3]
    squared_radius, beta = ball_oracle(K)
    assert np.all(beta >= 0)
    assert beta.sum() == pytest.approx(1)
    distances = np.diag(K) - 2 * K @ beta + beta @ K @ beta
    assert distances.max() == pytest.approx(squared_radius, rel=1e-9)
    assert beta @ np.diag(K) - beta @ K @ beta == pytest.approx(squared_radius, rel=1e-9)


def test_ball_of_the_identity_and_of_a_constant():
    squared_radius, beta = ball_oracle(np.eye(7))
    assert squared_radius == pytest.approx(6 / 7, rel=1e-10)
    assert beta == pytest.approx(np.full(7, 1 / 7), abs=1e-6)
    assert ball_oracle(np.full((4, 4), 3.0))[0] == 0
    assert ball_oracle(np.zeros((4, 4)))[0] == 0


@pytest.mark.parametrize("C", [0.01, 0.49, 0.7, 100])
def test_value_of_two_rows_is_the_same_for_every_kernel(C):
    expected = 0.5 if C >= 0.5 else 2 * C - 2 * C**2
    for seed in range(3):
        K = random_gram(seed, n=2)
        assert ball_oracle(K)[0] == pytest.approx((K[0, 0] + K[1, 1] - 2 * K[0, 1]) / 4, rel=1e-9)
        assert radius_margin_value(K, [1, -1], C) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("C", [0.01, 0.7, 0.95, 100])
@pytest.mark.parametrize("n", [4, 10])
def test_value_of_the_identity(n, C):
    r2 = 1 - 1 / n
    expected = n * r2 / 2 if r2 <= C else n * C - n * C**2 / (2 * r2)
    assert radius_margin_value(np.eye(n), balanced(n), C) == pytest.approx(expected, rel=1e-8)
    assert radius_margin_value(np.eye(n), balanced(n), C, intercept=False) == pytest.approx(
        expected, rel=1e-8
    )


@pytest.mark.parametrize("seed", range(3))
def test_value_sees_neither_scale_nor_translation(seed):
    problem = random_radius_problem(seed, weighted=True)
    K, Y, cost = problem.grams[0], problem.Y, problem.cost
    value = radius_margin_value(K, Y, cost)
    for other in (1e-3 * K, 1e3 * K, centre(K), K + 2 * np.trace(K) / len(K)):
        assert radius_margin_value(other, Y, cost) == pytest.approx(value, rel=1e-7)
    alone = radius_margin_value(K, Y, cost, intercept=False)
    assert alone > value
    assert radius_margin_value(50 * K, Y, cost, intercept=False) == pytest.approx(alone, rel=1e-7)


def test_value_with_the_radius_in_the_cost():
    problem = random_radius_problem(3, n_classes=3, weighted=True)
    K, Y, cost = problem.grams[1], problem.Y, problem.cost
    r2, _ = ball_oracle(K)
    value = radius_margin_value(K, Y, cost)
    scaled = solve_fixed(K, Y, cost / r2, loss="hinge").objective
    assert r2 * scaled == pytest.approx(value, rel=1e-8)
    # The outputs share nothing but the ball.
    apart = sum(radius_margin_value(K, Y[:, o], cost[:, o]) for o in range(3))
    assert apart == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_value_is_quasi_convex_in_the_weights(seed):
    problem = random_radius_problem(seed, n=12)
    grams = unit_radius(problem.grams)

    def at(weights):
        return radius_margin_value(np.tensordot(weights, grams, 1), problem.Y, problem.cost)

    rng = np.random.default_rng(seed)
    for _ in range(3):
        a, b = rng.dirichlet(np.full(3, 0.5), size=2)
        assert max(at(t * a + (1 - t) * b) for t in (0.3, 0.7)) <= max(at(a), at(b)) * (1 + 1e-8)


@pytest.mark.parametrize(
    ("seed", "n_classes", "C", "intercept"),
    [(8, 2, 0.1, True), (11, 3, 0.3, False), (14, 2, 10.0, True)],
)
def test_radius_program_against_a_search_over_two_weights(seed, n_classes, C, intercept):
    problem = random_radius_problem(seed, n=10, m=2, n_classes=n_classes, C=C, weighted=True)
    grams, Y, cost = unit_radius(problem.grams), problem.Y, problem.cost
    value, theta = solve_radius(grams, Y, cost, intercept)
    assert theta.sum() == pytest.approx(1)
    assert theta.min() > 0.01

    def at(weights):
        return radius_margin_value(np.tensordot(weights, grams, 1), Y, cost, intercept)

    assert at(theta) == pytest.approx(value, rel=1e-8)
    searched = best_of_two(at)
    assert value <= searched * (1 + 1e-8)
    assert searched == pytest.approx(value, rel=1e-6)


def test_radius_program_against_a_search_over_three_weights():
    problem = random_radius_problem(16, n=10, n_classes=2, C=1.0)
    grams = unit_radius(problem.grams)
    value, theta = solve_radius(grams, problem.Y, problem.cost)
    assert theta.min() > 0.1

    def at(z):
        K = np.tensordot(np.append(1.0, z**2), grams, 1)
        return radius_margin_value(K, problem.Y, problem.cost)

    found = minimize(at, np.ones(2), method="L-BFGS-B", options={"ftol": 1e-8, "eps": 1e-5})
    assert value <= found.fun * (1 + 1e-8)
    assert found.fun == pytest.approx(value, rel=1e-6)
    weights = np.append(1.0, found.x**2)
    assert weights / weights.sum() == pytest.approx(theta, abs=1e-2)


@pytest.mark.parametrize("seed", range(6))
def test_radius_program_on_random_problems(seed):
    problem = random_radius_problem(seed, m=3 + seed % 3, weighted=seed % 2 == 0)
    Y, cost, intercept = problem.Y, problem.cost, seed % 3 > 0
    value, theta = solve_radius(problem.grams, Y, cost, intercept)
    assert np.all(theta >= 0)
    other = theta + 0.1 * theta.max() / len(theta)
    K = np.tensordot(other, problem.grams, 1)
    assert radius_margin_value(K, Y, cost, intercept) >= value * (1 - 1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_optimum_lies_between_the_convex_surrogates(seed):
    problem = random_radius_problem(seed, weighted=True)
    grams, Y, cost = problem.grams, problem.Y, problem.cost
    value, _ = solve_radius(grams, Y, cost)
    own = np.array([ball_oracle(K)[0] for K in grams])
    traces = np.array([np.trace(centre(K)) / len(K) for K in grams])
    low, high = (
        solve_mkl(grams / r[:, None, None], Y, cost, p=1, loss="hinge").objective
        for r in (traces, own)
    )
    assert low * (1 - 1e-8) <= value <= high * (1 + 1e-8)
    assert low < high * (1 - 1e-3)


def test_weights_follow_the_scales_of_the_kernels():
    problem = random_radius_problem(8, m=5)
    value, theta = solve_radius(problem.grams, problem.Y, problem.cost)
    a = np.array([1e-2, 10.0, 1.0, 50.0, 0.3])
    scaled = solve_radius(a[:, None, None] * problem.grams, problem.Y, problem.cost)
    assert scaled[0] == pytest.approx(value, rel=1e-8)
    assert np.sum(theta > 1e-3) > 1
    assert scaled[1] == pytest.approx(theta / a / np.sum(theta / a), abs=1e-4)


def test_radius_program_with_constant_kernels():
    problem = random_radius_problem(8)
    constant = np.full((1, 16, 16), 3.0)
    grams = np.concatenate([problem.grams, constant])
    value, theta = solve_radius(problem.grams, problem.Y, problem.cost)
    more = solve_radius(grams, problem.Y, problem.cost)
    assert more[0] == pytest.approx(value, rel=1e-8)
    assert more[1] == pytest.approx(np.append(theta, 0), abs=1e-5)
    with pytest.raises(ValueError, match="infinite"):
        solve_radius(grams, problem.Y, problem.cost, intercept=False)
    with pytest.raises(ValueError, match="All kernels are constant"):
        solve_radius(constant, problem.Y, problem.cost)
    with pytest.raises(ValueError, match="no radius"):
        radius_margin_value(constant[0], problem.Y, problem.cost)


def test_rows_that_contradict_each_other():
    grams = np.stack([np.repeat(np.repeat(random_gram(s, 5), 2, 0), 2, 1) for s in range(2)])
    value, theta = solve_radius(grams, balanced(10), 0.7)
    assert value == pytest.approx(7)
    assert theta.sum() == pytest.approx(1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 20.0])
def test_chapelle_value_against_a_smooth_solver(C, intercept):
    K, y = random_gram(1), np.where(np.arange(10) < 4, 1.0, -1.0)
    features = np.linalg.cholesky(K)
    costs = C * np.linspace(0.5, 2, 10)
    for c in (C, costs):
        expected = smooth_minimum(features, y, np.ones(10), c, intercept)
        literal = chapelle_value(K, y, c, literal=True, intercept=intercept)
        assert literal == pytest.approx(ball_oracle(K)[0] * expected, rel=1e-7)
        ridge = np.diag(1 / c * np.ones(10))
        expected = smooth_minimum(features, y, np.ones(10), c / 2, intercept)
        assert chapelle_value(K, y, c, intercept=intercept) == pytest.approx(
            ball_oracle(K + ridge)[0] * expected, rel=1e-7
        )


def test_chapelle_value_of_a_vanishing_kernel():
    K, y = random_gram(2), balanced(10)
    assert chapelle_value(1e-7 * K, y, 3.0) == pytest.approx(4.5, rel=1e-5)
    shrunk = [chapelle_value(a * K, y, 3.0, literal=True) for a in (1e-3, 1e-5)]
    assert shrunk[1] == pytest.approx(1e-2 * shrunk[0], rel=0.1)


def test_chapelle_value_sums_outputs_on_one_ball():
    problem = random_radius_problem(4, n_classes=3)
    K, Y, C = problem.grams[0], problem.Y, problem.C
    for literal in (False, True):
        apart = sum(chapelle_value(K, Y[:, o], C, literal) for o in range(3))
        assert chapelle_value(K, Y, C, literal) == pytest.approx(apart)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 20.0])
def test_do_value_against_a_smooth_solver(C, intercept):
    grams = np.stack([random_gram(3), 5 * random_gram(4)])
    y, theta = balanced(10), np.array([0.7, 0.3])
    radii = np.array([ball_oracle(K)[0] for K in grams])
    features = np.hstack([np.linalg.cholesky(K) for K in grams])
    expected = smooth_minimum(features, y, np.repeat(1 / theta, 10), C / (theta @ radii), intercept)
    value = do_value(grams, theta, y, C, intercept)
    assert value == pytest.approx(expected, rel=1e-7)
    assert do_value(grams, 4 * theta, y, C, intercept) == pytest.approx(value / 4, rel=1e-8)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize(("seed", "n_classes", "C"), [(8, 2, 0.1), (1, 3, 50.0)])
def test_solve_do_against_a_search_over_two_weights(seed, n_classes, C, norm):
    problem = random_radius_problem(seed, n=10, m=2, n_classes=n_classes, C=C)
    grams = unit_radius(problem.grams)
    value, theta = solve_do(grams, problem.Y, C, norm)
    assert np.linalg.norm(theta, norm) == pytest.approx(1)
    assert do_value(grams, theta, problem.Y, C) == pytest.approx(value, rel=1e-8)
    searched = best_of_two(lambda w: do_value(grams, w / np.linalg.norm(w, norm), problem.Y, C))
    assert value <= searched * (1 + 1e-8)
    assert searched == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("norm", [1, 2])
def test_solve_do_on_random_problems(seed, norm):
    problem = random_radius_problem(seed, m=4)
    value, theta = solve_do(problem.grams, problem.Y, problem.C, norm, intercept=seed > 0)
    other = theta + 0.1 / len(theta)
    other /= np.linalg.norm(other, norm)
    assert do_value(problem.grams, other, problem.Y, problem.C, seed > 0) >= value * (1 - 1e-8)


def test_no_answer_is_an_error(monkeypatch):
    problem = random_radius_problem(0)
    monkeypatch.setattr(radius_oracles, "_solve", lambda problem: cp.SOLVER_ERROR)
    with pytest.raises(OracleError, match="no answer"):
        ball_oracle(problem.grams[0])
    with pytest.raises(OracleError, match="no answer"):
        chapelle_value(np.eye(4), balanced(4), 1.0)


def test_bounds_that_do_not_meet_are_an_error(monkeypatch):
    def wrong(problem):
        for variable in problem.variables():
            variable.value = np.arange(1.0, variable.size + 1).reshape(variable.shape)

    monkeypatch.setattr(radius_oracles, "_solve", wrong)
    with pytest.raises(OracleError, match=r"ball: lower bound .*, upper bound"):
        ball_oracle(random_gram(0))
    monkeypatch.setattr(radius_oracles, "ball_oracle", lambda K: (1.0, None))
    with pytest.raises(OracleError, match="margin: lower"):
        chapelle_value(random_gram(0), balanced(10), 1.0)


def test_radius_program_tries_again(monkeypatch):
    problem = random_radius_problem(0)
    data = problem.grams, problem.Y, problem.cost
    expected, _ = solve_radius(*data)
    program, sizes = radius_oracles._radius_program, []

    def fail_once(grams, Y, cost, size, intercept):
        sizes.append(size)
        if len(sizes) == 1:
            raise OracleError("The solver gave no answer.")
        return program(grams, Y, cost, size, intercept)

    monkeypatch.setattr(radius_oracles, "_radius_program", fail_once)
    assert solve_radius(*data)[0] == pytest.approx(expected, rel=1e-8)
    assert sizes[1] < sizes[0]


def test_random_radius_problem():
    problems = [random_radius_problem(seed, weighted=True) for seed in range(40)]
    again = random_radius_problem(7, weighted=True)
    assert np.array_equal(problems[7].grams, again.grams)
    assert np.array_equal(problems[7].cost, again.cost)
    assert {p.Y.shape for p in problems} == {(16, 1), (16, 3)}
    C = np.array([p.C for p in problems])
    assert 0.01 <= C.min() < 0.1
    assert 100 < C.max() <= 1000
    scales = np.array([np.trace(p.grams, axis1=1, axis2=2) / 16 for p in problems])
    assert 1e-3 <= scales.min() < 1e-2
    assert 100 < scales.max() <= 1000
    assert all(len(np.unique(p.y)) == max(2, p.Y.shape[1]) for p in problems)
    fixed = random_radius_problem(7, n=20, m=4, n_classes=3, C=5.0)
    assert fixed.grams.shape == (4, 20, 20)
    assert np.array_equal(fixed.cost, np.full((20, 3), 5.0))
