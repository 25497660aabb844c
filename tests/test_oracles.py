"""The reference solver against bounds, scikit-learn, SciPy and the invariants of the problem."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR

import oracles
from oracles import OracleError, random_problem, solve_fixed, solve_mkl

pytestmark = pytest.mark.slow

CASES = [
    ("binary", "hinge"),
    ("multiclass", "hinge"),
    ("regression", "epsilon_insensitive"),
    ("regression", "square"),
    ("regression", "huber"),
]
EPSILON = 0.1


def total_cost(Y, F, cost, loss):
    gap = np.abs(Y - F)
    values = {
        "hinge": np.maximum(0, 1 - Y * F),
        "epsilon_insensitive": np.maximum(0, gap - EPSILON),
        "square": gap**2 / 2,
        "huber": np.where(gap <= EPSILON, gap**2 / 2, EPSILON * gap - EPSILON**2 / 2),
    }
    return np.sum(cost * values[loss])


def sklearn_objective(gram, Y, cost, loss):
    """Objective of scikit-learn's machine on one kernel, from what it has fitted."""
    total = 0.0
    for y, c in zip(Y.T, cost.T, strict=True):
        if loss == "hinge":
            machine = SVC(kernel="precomputed", tol=1e-10)
        else:
            machine = SVR(kernel="precomputed", epsilon=EPSILON, tol=1e-10)
        machine.fit(gram, y, sample_weight=c.copy())
        beta = np.zeros(len(y))
        beta[machine.support_] = machine.dual_coef_[0]
        f = gram @ beta + machine.intercept_
        total += beta @ gram @ beta / 2 + total_cost(y, f, c, loss)
    return total


def dual_value(problem, cost, solution, p, loss):
    """Lower bound on the Gram matrices as given, after a check that it is one."""
    B, Y = solution.dual_coef, problem.Y
    present = cost > 0
    assert not B[~present].any()
    if loss != "square":
        assert np.all(np.abs(B) <= cost * (EPSILON if loss == "huber" else 1.0))
    assert np.all(np.abs(B.sum(axis=0)) <= 1e-14 * np.abs(B).sum(axis=0))
    quadratic_forms = np.einsum("io,jik,ko->j", B, problem.grams, B)
    value = np.sum(Y * B) - np.linalg.norm(quadratic_forms, np.inf if p == 1 else p / (p - 1)) / 2
    if loss == "hinge":
        assert np.all(Y * B >= 0)
    elif loss == "epsilon_insensitive":
        value -= EPSILON * np.abs(B).sum()
    else:
        value -= np.sum(B[present] ** 2 / cost[present]) / 2
    return value


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("p", [1, 1.5, 2, 4])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_bounds_are_tight(kind, loss, p, C):
    problem = random_problem(0, kind=kind)
    cost = C * problem.cost
    solution = solve_mkl(problem.grams, problem.Y, cost, p=p, loss=loss, epsilon=EPSILON)
    assert 0 < solution.lower <= solution.objective <= solution.upper
    assert solution.gap < 1e-9
    assert np.sum(solution.weights**p) == pytest.approx(1)
    F = np.tensordot(solution.weights, problem.grams, 1) @ solution.dual_coef + solution.intercept
    assert F == pytest.approx(solution.decision, abs=2e-4)
    assert dual_value(problem, cost, solution, p, loss) == pytest.approx(solution.lower, rel=1e-9)
    quadratic_forms = np.einsum(
        "io,jik,ko->j", solution.dual_coef, problem.grams, solution.dual_coef
    )
    primal = solution.weights @ quadratic_forms / 2 + total_cost(
        problem.Y, solution.decision, cost, loss
    )
    assert primal == pytest.approx(solution.objective, rel=1e-6)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("p", [1, 4 / 3])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_bounds_are_tight_on_badly_scaled_kernels(kind, loss, p, C):
    problem = random_problem(15, kind=kind, badly_scaled=True, weighted=True)
    cost = C * problem.cost
    solution = solve_mkl(problem.grams, problem.Y, cost, p=p, loss=loss, epsilon=EPSILON)
    assert solution.gap < 1e-8
    assert dual_value(problem, cost, solution, p, loss) == pytest.approx(solution.lower, rel=1e-8)


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_bounds_are_tight_without_intercept(kind, loss, C):
    problem = random_problem(1, kind=kind)
    data = problem.grams, problem.Y, C * problem.cost
    solution = solve_mkl(*data, p=1, loss=loss, fit_intercept=False)
    assert solution.gap < 1e-9
    assert not solution.intercept.any()
    assert solution.lower > solve_mkl(*data, p=1, loss=loss).upper


def test_small_eigenvalues_count():
    # One smooth kernel of a single column: all but about ten of its eigenvalues are under 1e-11
    # of the largest, and most of the dual variable lies in their directions.
    problem = random_problem(15, kind="regression", n=40)
    smooth = replace(problem, grams=3e3 * problem.grams[3:])
    cost = 1e3 * problem.cost
    solution = solve_mkl(smooth.grams, smooth.Y, cost, p=1, loss="epsilon_insensitive")
    value = dual_value(smooth, cost, solution, 1, "epsilon_insensitive")
    assert value == pytest.approx(solution.lower, rel=1e-8)


@pytest.mark.parametrize("p", [1.01, 1.1, 10, 100])
def test_bounds_are_tight_for_extreme_norms(p):
    problem = random_problem(2, kind="multiclass", m=6)
    solution = solve_mkl(problem.grams, problem.Y, problem.cost, p=p, loss="hinge")
    assert solution.gap < 1e-8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e-2, 1.0, 10.0])
@pytest.mark.parametrize(("kind", "loss"), CASES[:3])
def test_one_kernel_is_the_support_vector_machine(kind, loss, C, weighted):
    problem = random_problem(3, kind=kind, weighted=weighted)
    gram, cost = problem.grams[0], C * (problem.cost + 0.1)
    solution = solve_fixed(gram, problem.Y, cost, loss=loss, epsilon=EPSILON)
    expected = sklearn_objective(gram, problem.Y, cost, loss)
    # LIBSVM keeps kernel values in single precision, which costs it some digits of the optimum.
    assert solution.lower <= expected <= solution.upper * (1 + 2e-6)
    assert solution.weights == pytest.approx([1])


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_one_kernel_is_kernel_ridge(C):
    problem = random_problem(5, kind="regression", weighted=True)
    gram, y, cost = problem.grams[0], problem.y, problem.cost[:, 0] + 0.1
    solution = solve_fixed(gram, y[:, None], C * cost[:, None], loss="square", fit_intercept=False)
    machine = KernelRidge(alpha=1 / C, kernel="precomputed").fit(gram, y, sample_weight=cost)
    f = gram @ machine.dual_coef_
    expected = machine.dual_coef_ @ f / 2 + total_cost(y, f, C * cost, "square")
    assert solution.objective == pytest.approx(expected, rel=1e-9)
    assert solution.dual_coef[:, 0] == pytest.approx(machine.dual_coef_, rel=1e-3, abs=1e-4 * C)


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_huber_agrees_with_a_smooth_solver(C):
    problem = random_problem(6, kind="regression")
    X, y = problem.X, problem.y

    def objective(v):
        residual = y - X @ v[:-1] - v[-1]
        slope = C * np.clip(residual, -EPSILON, EPSILON)
        value = v[:-1] @ v[:-1] / 2 + total_cost(residual, 0, C, "huber")
        return value, np.append(v[:-1] - X.T @ slope, -slope.sum())

    found = minimize(objective, np.zeros(5), jac=True, options={"gtol": 1e-8 * C, "maxiter": 1000})
    solution = solve_fixed(X @ X.T, y[:, None], C * problem.cost, loss="huber", epsilon=EPSILON)
    assert solution.objective == pytest.approx(found.fun, rel=1e-8)
    assert solution.intercept == pytest.approx(found.x[-1:], abs=1e-4)


def test_huber_with_a_large_threshold_is_the_square_loss():
    problem = random_problem(7, kind="regression")
    data = problem.grams, problem.Y, problem.cost
    square = solve_mkl(*data, p=1, loss="square")
    assert solve_mkl(*data, p=1, loss="huber", epsilon=100).objective == pytest.approx(
        square.objective, rel=1e-9
    )
    assert solve_mkl(*data, p=1, loss="huber", epsilon=0.5).objective < 0.99 * square.objective


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(("kind", "loss"), CASES[:3])
def test_no_other_weights_do_better(kind, loss, p):
    problem = random_problem(8, kind=kind)
    solution = solve_mkl(problem.grams, problem.Y, problem.cost, p=p, loss=loss, epsilon=EPSILON)

    def value(weights):
        return sklearn_objective(
            np.tensordot(weights, problem.grams, 1), problem.Y, problem.cost, loss
        )

    assert value(solution.weights) == pytest.approx(solution.objective, rel=1e-7)
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = solution.weights * rng.uniform(0.8, 1.2, size=len(problem.grams))
        assert value(other / np.sum(other**p) ** (1 / p)) > solution.objective * (1 + 1e-6)


@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_weights_satisfy_the_optimality_conditions(kind, loss):
    problem = random_problem(12, kind=kind, m=6)
    data = problem.grams, problem.Y, problem.cost
    sparse = solve_mkl(*data, p=1, loss=loss)
    quadratic_forms = np.einsum("io,jik,ko->j", sparse.dual_coef, problem.grams, sparse.dual_coef)
    used = sparse.weights > 1e-3
    assert 1 < used.sum() < 6
    assert quadratic_forms[used] == pytest.approx(quadratic_forms.max(), rel=1e-4)
    dense = solve_mkl(*data, p=3, loss=loss)
    quadratic_forms = np.einsum("io,jik,ko->j", dense.dual_coef, problem.grams, dense.dual_coef)
    assert dense.weights == pytest.approx(
        quadratic_forms**0.5 / np.sum(quadratic_forms**1.5) ** (1 / 3), abs=1e-4
    )


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_constant_kernel_changes_nothing_with_an_intercept(kind, loss, p):
    problem = random_problem(10, kind=kind)
    more = np.concatenate([problem.grams, np.full((1, 30, 30), 100.0)])
    # The intercept should matter.
    Y = problem.Y + 2 if kind == "regression" else problem.Y
    cost = problem.cost * np.where(problem.Y > 0, 3.0, 1.0)

    def solve(grams, fit_intercept):
        return solve_mkl(grams, Y, cost, p=p, loss=loss, fit_intercept=fit_intercept)

    with_it, without_it = solve(more, True), solve(problem.grams, True)
    assert with_it.objective == pytest.approx(without_it.objective, rel=1e-9)
    assert with_it.weights[:-1] == pytest.approx(without_it.weights, abs=1e-4)
    assert with_it.decision == pytest.approx(without_it.decision, abs=1e-4)
    # Without an intercept the constant kernel is a penalised one.
    no_bias = solve(problem.grams, False).objective
    assert without_it.objective < solve(more, False).objective < no_bias * (1 - 1e-4)


@pytest.mark.parametrize("a", [1e-3, 50.0])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_scaling_of_kernels_and_cost(kind, loss, a):
    problem = random_problem(11, kind=kind)
    grams, Y, cost = problem.grams, problem.Y, problem.cost
    plain = solve_mkl(grams, Y, cost, p=1.5, loss=loss)
    scaled = solve_mkl(a * grams, Y, cost / a, p=1.5, loss=loss)
    assert scaled.objective == pytest.approx(plain.objective / a, rel=1e-9)
    assert scaled.weights == pytest.approx(plain.weights, abs=1e-4)
    assert scaled.decision == pytest.approx(plain.decision, abs=1e-4)


@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_objective_falls_as_p_grows(kind, loss):
    problem = random_problem(12, kind=kind)
    objectives = [
        solve_mkl(problem.grams, problem.Y, problem.cost, p=p, loss=loss).objective
        for p in (1, 1.5, 2, 4, 50, np.inf)
    ]
    assert np.all(np.diff(objectives) < -1e-4 * objectives[0])


def test_infinite_p_is_the_sum_of_kernels():
    problem = random_problem(13)
    grams, Y, cost = problem.grams, problem.Y, problem.cost
    limit = solve_mkl(grams, Y, cost, p=np.inf, loss="hinge")
    nearly = solve_mkl(grams, Y, cost, p=1000, loss="hinge")
    assert limit.objective == pytest.approx(nearly.objective, rel=5e-3)
    assert limit.objective == pytest.approx(
        sklearn_objective(grams.sum(axis=0), Y, cost, "hinge"), rel=1e-7
    )
    assert limit.weights == pytest.approx(np.ones(len(grams)))


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_zero_cost_removes_rows(kind, loss, p):
    problem = random_problem(14, kind=kind)
    keep = np.arange(30) % 4 > 0
    cost = problem.cost * keep[:, None]
    whole = solve_mkl(problem.grams, problem.Y, cost, p=p, loss=loss)
    part = solve_mkl(
        problem.grams[:, keep][:, :, keep], problem.Y[keep], problem.cost[keep], p=p, loss=loss
    )
    assert whole.objective == pytest.approx(part.objective, rel=1e-9)
    assert not whole.dual_coef[~keep].any()


def test_integer_cost_repeats_rows():
    problem = random_problem(15, kind="regression")
    times = np.arange(30) % 3 + 1
    rows = np.repeat(np.arange(30), times)
    weighted = solve_mkl(
        problem.grams, problem.Y, times[:, None] * 1.0, p=1, loss="epsilon_insensitive"
    )
    repeated = solve_mkl(
        problem.grams[:, rows][:, :, rows],
        problem.Y[rows],
        problem.cost[rows],
        p=1,
        loss="epsilon_insensitive",
    )
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


def test_outputs_are_coupled_only_by_the_weights():
    problem = random_problem(16, kind="multiclass")
    grams, Y, cost = problem.grams, problem.Y, problem.cost

    def apart(solve):
        return sum(solve(Y[:, [o]], cost[:, [o]]).objective for o in range(3))

    one = solve_fixed(grams[0], Y, cost, loss="hinge").objective
    assert apart(lambda y, c: solve_fixed(grams[0], y, c, loss="hinge")) == pytest.approx(one)
    shared = solve_mkl(grams, Y, cost, p=1, loss="hinge").objective
    assert apart(lambda y, c: solve_mkl(grams, y, c, p=1, loss="hinge")) < shared * (1 - 1e-3)


@pytest.mark.parametrize(
    ("loss", "epsilon", "y", "cost", "middle", "objective"),
    [
        ("hinge", 0.0, [1, 1, -1], [1, 1, 2], 0, 4),
        ("hinge", 0.0, [1, 1, -1], [1, 1, 1], 1, 2),
        ("hinge", 0.0, [1, 1, 1], [1, 1, 1], 1, 0),
        ("hinge", 0.0, [-1, -1], [1, 1], -1, 0),
        ("epsilon_insensitive", 0.7, [0, 0, 1], [1, 1, 1], 0.5, 0),
        ("epsilon_insensitive", 0.1, [0, 0, 1], [1, 1, 1], 0.1, 0.8),
        ("square", 0.0, [0, 0, 3], [1, 0, 2], 2, 3),
        ("huber", 1.0, [0, 10], [1, 1], 5, 9),
        ("huber", 1.0, [0, 0, 10], [1, 1, 1], 0.5, 9.25),
    ],
)
@pytest.mark.parametrize("p", [1, 2])
def test_intercept_alone(loss, epsilon, y, cost, middle, objective, p):
    n = len(y)
    solution = solve_mkl(
        np.zeros((2, n, n)),
        np.array(y, float)[:, None],
        np.array(cost, float)[:, None],
        p=p,
        loss=loss,
        epsilon=epsilon,
    )
    assert solution.intercept == pytest.approx([middle])
    assert solution.objective == pytest.approx(objective)


def test_second_formulation_takes_over(monkeypatch):
    problem = random_problem(17)
    data = problem.grams, problem.Y, problem.cost
    expected = solve_mkl(*data, p=2, loss="hinge").objective
    solve, statuses = oracles._solve, [cp.SOLVER_ERROR, cp.INFEASIBLE]
    monkeypatch.setattr(
        oracles, "_solve", lambda problem: statuses.pop() if statuses else solve(problem)
    )
    assert solve_mkl(*data, p=2, loss="hinge").objective == pytest.approx(expected, rel=1e-9)
    assert not statuses


def test_failure_is_an_error_that_names_the_bounds(monkeypatch):
    problem = random_problem(17)
    monkeypatch.setattr(oracles, "_solve", lambda problem: cp.SOLVER_ERROR)
    with pytest.raises(OracleError, match=r"Lower bound 0, upper bound .*solver_error"):
        solve_mkl(problem.grams, problem.Y, problem.cost, p=2, loss="hinge")


# The dual with power cones is left out: the solver sometimes gives up on it early.
@pytest.mark.parametrize(
    ("form", "exact"),
    [
        ("_GroupForm", True),
        ("_GroupForm", False),
        ("_DualForm", False),
        ("_WeightForm", True),
        ("_WeightForm", False),
    ],
)
@pytest.mark.parametrize("p", [1.0, 1.5])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "square", "huber"])
def test_each_formulation_is_right_on_its_own(form, exact, p, loss):
    kind = "multiclass" if loss == "hinge" else "regression"
    problem = random_problem(18, kind=kind, weighted=True)
    instance = oracles._Instance(
        problem.grams, problem.Y, problem.cost, p, oracles.LOSSES[loss](EPSILON), True
    )
    stated = getattr(oracles, form)(instance, instance.factors, problem.cost, exact)
    assert oracles._solve(stated.problem) in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
    W, B = stated.answer()
    norms = np.array([np.linalg.norm(w) for w in W])
    F = sum(L @ w for L, w in zip(instance.factors, W, strict=True))
    best = oracles._Search(instance).run()
    assert instance.primal(norms, F) == pytest.approx(best.objective, rel=1e-6)
    feasible = instance.feasible(B)
    assert feasible == pytest.approx(B, abs=1e-7)
    assert instance.dual(feasible) == pytest.approx(best.objective, rel=1e-6)


def test_crossed_bounds_are_an_error(monkeypatch):
    problem = random_problem(17)
    dual = oracles._Instance.dual
    monkeypatch.setattr(oracles._Instance, "dual", lambda self, B: 1.1 * dual(self, B))
    with pytest.raises(OracleError, match="gap -"):
        solve_mkl(problem.grams, problem.Y, problem.cost, p=2, loss="hinge")


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive", "square", "huber"])
def test_dual_points_are_made_feasible(loss):
    problem = random_problem(19, weighted=True)
    instance = oracles._Instance(
        problem.grams, problem.Y, problem.cost, 1.0, oracles.LOSSES[loss](EPSILON), True
    )
    wild = 3 * np.random.default_rng(0).normal(size=problem.Y.shape)
    B = instance.feasible(wild)
    assert np.all((instance.low <= B) & (instance.high >= B))
    assert B.sum() == pytest.approx(0, abs=1e-14)
    assert np.abs(B).max() > 0.05
    assert (
        instance.dual(B)
        <= solve_mkl(problem.grams, problem.Y, problem.cost, p=1, loss=loss, epsilon=EPSILON).lower
    )


def test_indefinite_and_asymmetric_grams_are_refused():
    problem = random_problem(19)
    bad = problem.grams.copy()
    bad[1] -= 0.01 * np.eye(30)
    with pytest.raises(ValueError, match="positive semidefinite"):
        solve_mkl(bad, problem.Y, problem.cost, p=1, loss="hinge")
    bad = problem.grams.copy()
    bad[0, 0, 1] += 1e-3
    with pytest.raises(ValueError, match="symmetric"):
        solve_mkl(bad, problem.Y, problem.cost, p=1, loss="hinge")
    with pytest.raises(ValueError, match="at least 1"):
        solve_mkl(problem.grams, problem.Y, problem.cost, p=0.5, loss="hinge")


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_random_problem(kind):
    problem = random_problem(20, kind=kind, n=40, m=5)
    again = random_problem(20, kind=kind, n=40, m=5)
    other = random_problem(21, kind=kind, n=40, m=5)
    assert np.array_equal(problem.grams, again.grams)
    assert np.array_equal(problem.Y, again.Y)
    assert not np.array_equal(problem.Y, other.Y)
    assert problem.grams.shape == (5, 40, 40)
    assert problem.Y.shape == problem.cost.shape == (40, 3 if kind == "multiclass" else 1)
    assert np.trace(problem.grams, axis1=1, axis2=2) == pytest.approx(np.full(5, 40.0))
    ranks = np.linalg.matrix_rank(problem.grams, tol=1e-10, hermitian=True)
    assert ranks.min() < 5
    assert ranks.max() > 20
    scaled = random_problem(20, kind=kind, n=40, m=5, badly_scaled=True)
    traces = np.trace(scaled.grams, axis1=1, axis2=2)
    assert traces.max() / traces.min() == pytest.approx(1e7)


def test_hinge_is_active_in_random_problems():
    for seed in range(5):
        problem = random_problem(seed)
        solution = solve_mkl(problem.grams, problem.Y, problem.cost, p=1, loss="hinge")
        margins = (problem.Y * solution.decision)[:, 0]
        assert np.sum(margins < 1 - 1e-3) >= 3  # some rows inside the margin
        assert np.sum(margins > 1 + 1e-3) >= 3  # and some beyond it
