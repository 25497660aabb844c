"""Sequential minimal optimisation, against conic programming and its own optimality conditions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from kernelweave import _core
from oracles import random_problem, solve_fixed

CONVERGED, PAUSED, NEEDS_ROWS, STALLED = range(4)
MANY = 10**8
EPSILON = 0.1


class Shape:
    """Target, boxes, ridge and dead zone of a loss."""

    def __init__(self, loss, y, cost):
        zero = np.zeros_like(y)
        self.y = y
        self.dead_zone = EPSILON if loss == "epsilon_insensitive" else 0.0
        if loss == "hinge":
            self.lower, self.upper, self.ridge = (
                np.minimum(0, y * cost),
                np.maximum(0, y * cost),
                zero,
            )
        elif loss == "epsilon_insensitive":
            self.lower, self.upper, self.ridge = -cost, cost, zero
        else:
            self.lower, self.upper = -EPSILON * cost, EPSILON * cost
            self.ridge = np.divide(1.0, cost, out=zero.copy(), where=cost > 0)

    def solver(self, K, *, intercept=True, lend=True):
        kind = _core.SmoDouble if K.dtype == np.float64 else _core.SmoFloat
        diagonal = K.diagonal().astype(np.float64)
        solver = kind(
            self.y, self.lower, self.upper, self.ridge, diagonal, self.dead_zone, intercept
        )
        if lend:
            solver.lend(np.arange(len(K)), K)
        return solver

    def values(self, K, beta, bias):
        """Primal and dual value, written out without the solver."""
        f = K.astype(np.float64) @ beta
        r = self.y - f - bias
        slack = np.maximum(np.abs(r) - self.dead_zone, 0)
        t = np.where(r > 0, self.upper, -self.lower)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(self.ridge > 0, np.minimum(slack / self.ridge, t), t)
        loss = np.sum(t * slack - 0.5 * self.ridge * t**2)
        linear = self.y @ beta - self.dead_zone * np.abs(beta).sum()
        return 0.5 * beta @ f + loss, linear - 0.5 * beta @ f - 0.5 * self.ridge @ beta**2

    def check(self, K, solver, tol, *, intercept=True, drift=1e-9):
        beta = solver.beta
        assert (beta >= self.lower).all()
        assert (beta <= self.upper).all()
        if intercept:
            assert abs(beta.sum()) <= 1e-11 * np.abs(beta).sum()
        else:
            assert solver.bias == 0
        primal, dual = self.values(K, beta, solver.bias)
        size = abs(primal) + 1e-300
        assert_allclose(solver.fitted, K.astype(np.float64) @ beta, atol=drift * np.abs(beta).sum())
        assert solver.primal == pytest.approx(primal, rel=drift)
        assert solver.dual == pytest.approx(dual, rel=drift, abs=drift * size)
        assert -1e-12 * size <= solver.primal - solver.dual <= tol * size + 1e-300


def run(solver, tol=1e-9, floor=0.0, limit=MANY):
    (state,) = _core.run_smo([solver], tol, floor, limit)
    return state


def problem_for(loss, seed, C=1.0, weighted=False, n=40):
    kind = "binary" if loss == "hinge" else "regression"
    problem = random_problem(seed, kind=kind, n=n, weighted=weighted)
    return problem.grams.sum(axis=0), problem.Y[:, 0].copy(), C * problem.cost[:, 0]


LOSSES = ["hinge", "epsilon_insensitive", "huber"]


@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_agrees_with_conic_programming(loss, intercept, C):
    for seed, weighted in ((0, False), (1, True)):
        K, y, cost = problem_for(loss, seed, C, weighted)
        shape = Shape(loss, y, cost)
        solver = shape.solver(K, intercept=intercept)
        assert run(solver) == CONVERGED
        shape.check(K, solver, 1e-9, intercept=intercept)
        expected = solve_fixed(
            K, y[:, None], cost[:, None], loss=loss, epsilon=EPSILON, fit_intercept=intercept
        )
        assert solver.primal == pytest.approx(expected.objective, rel=1e-7)
        assert solver.dual <= expected.upper * (1 + 1e-9)
        assert solver.primal >= expected.lower * (1 - 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_with_zero_boxes_stay_at_zero(loss):
    K, y, cost = problem_for(loss, 2)
    cost = np.where(np.arange(40) % 3 == 0, 0.0, cost)
    shape = Shape(loss, y, cost)
    solver = shape.solver(K)
    assert run(solver) == CONVERGED
    assert not solver.beta[::3].any()
    keep = cost > 0
    part = Shape(loss, y[keep], cost[keep])
    alone = part.solver(np.ascontiguousarray(K[np.ix_(keep, keep)]))
    run(alone)
    assert solver.primal == pytest.approx(alone.primal, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_box_at_all(loss):
    K, y, cost = problem_for(loss, 3)
    solver = Shape(loss, y, 0 * cost).solver(K)
    assert run(solver) == CONVERGED
    assert not solver.beta.any()
    assert solver.primal == solver.dual == 0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_tolerances_and_bounds(loss, intercept):
    K, y, cost = problem_for(loss, 4, C=5.0)
    shape = Shape(loss, y, cost)
    best = shape.solver(K, intercept=intercept)
    run(best, 1e-10)
    updates = []
    for tol in (0.3, 1e-1, 1e-2, 1e-4, 1e-8):
        solver = shape.solver(K, intercept=intercept)
        assert run(solver, tol) == CONVERGED
        shape.check(K, solver, tol, intercept=intercept)
        assert solver.dual <= best.primal * (1 + 1e-9)
        assert solver.primal >= best.dual * (1 - 1e-9)
        updates.append(solver.updates)
    assert updates == sorted(updates)
    floor = 0.05 * best.primal
    solver = shape.solver(K, intercept=intercept)
    assert run(solver, 0.0, floor) == CONVERGED
    assert solver.primal - solver.dual <= floor


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start(loss):
    K, y, cost = problem_for(loss, 5, C=5.0)
    shape = Shape(loss, y, cost)
    cold = shape.solver(K)
    run(cold, 1e-8)
    again = shape.solver(K)
    again.start(cold.beta, K @ cold.beta)
    assert run(again, 1e-7) == CONVERGED
    assert again.updates <= 2
    # A neighbouring problem: the same coefficients, a slightly different kernel.
    other = K + 1e-4 * np.eye(len(K))
    warm, fresh = shape.solver(other), shape.solver(other)
    warm.start(cold.beta, other @ cold.beta)
    run(warm, 1e-4)
    run(fresh, 1e-4)
    shape.check(other, warm, 1e-4)
    assert warm.primal == pytest.approx(fresh.primal, rel=2e-4)
    assert warm.updates < 0.5 * fresh.updates


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_on_demand_give_the_same_answer(loss, intercept, batch):
    K, y, cost = problem_for(loss, 6, C=2.0)
    shape = Shape(loss, y, cost)
    whole = shape.solver(K, intercept=intercept)
    run(whole, 1e-8)
    solver = shape.solver(K, intercept=intercept, lend=False)
    lent = []
    for _ in range(1000):
        state = run(solver, 1e-8)
        if state != NEEDS_ROWS:
            break
        rows = solver.wanted(batch)
        assert 1 <= len(rows) <= batch
        assert not set(rows) & set(lent)
        lent += rows.tolist()
        solver.lend(rows, np.ascontiguousarray(K[rows]))
    assert state == CONVERGED
    assert np.array_equal(solver.beta, whole.beta)
    assert solver.updates == whole.updates
    if batch == 1 and loss == "hinge":
        assert len(lent) < len(K)  # some rows were never needed


def test_wanted_lists_rows_that_are_missing():
    K, y, cost = problem_for("hinge", 7)
    solver = Shape("hinge", y, cost).solver(K, lend=False)
    assert run(solver) == NEEDS_ROWS
    rows = solver.wanted(1000)
    assert len(np.unique(rows)) == len(rows) <= len(K)
    solver.lend(rows[:3], np.ascontiguousarray(K[rows[:3]]))
    assert not set(solver.wanted(1000)) & set(rows[:3])
    assert len(solver.wanted(0)) == 0


def test_a_lent_block_is_kept_alive():
    K, y, cost = problem_for("hinge", 7)
    solver = Shape("hinge", y, cost).solver(K, lend=False)
    for i in range(len(K)):
        solver.lend(np.array([i]), K[i : i + 1].copy())  # nothing else holds the copies
    expected = Shape("hinge", y, cost).solver(K)
    run(solver)
    run(expected)
    assert np.array_equal(solver.beta, expected.beta)


@pytest.mark.parametrize("loss", LOSSES)
def test_pausing_resumes(loss):
    K, y, cost = problem_for(loss, 8, C=5.0)
    shape = Shape(loss, y, cost)
    solver, states, duals = shape.solver(K), [], []
    for _ in range(10_000):
        states.append(run(solver, 1e-8, limit=10))
        duals.append(solver.dual)
        shape.check(K, solver, np.inf)
        if states[-1] != PAUSED:
            break
    assert states[-1] == CONVERGED
    assert len(states) > 2
    assert solver.updates <= 10 * len(states)
    assert (np.diff(duals) >= -1e-12 * abs(duals[-1])).all()
    straight = shape.solver(K)
    run(straight, 1e-8)
    assert solver.primal == pytest.approx(straight.primal, rel=2e-8)


def test_no_updates_allowed():
    K, y, cost = problem_for("hinge", 8)
    solver = Shape("hinge", y, cost).solver(K)
    assert run(solver, limit=0) == PAUSED
    assert solver.updates == 0
    assert run(solver) == CONVERGED


def test_a_second_run_may_be_tighter():
    K, y, cost = problem_for("hinge", 9, C=3.0)
    shape = Shape("hinge", y, cost)
    solver = shape.solver(K)
    assert run(solver, 1e-2) == CONVERGED
    loose = solver.updates
    assert run(solver, 1e-9) == CONVERGED
    assert solver.updates > loose
    shape.check(K, solver, 1e-9)
    assert run(solver, 1e-2) == CONVERGED  # and a third one has nothing to do


def overlapping(n, seed=0):
    """Two clouds that overlap a little: most rows are not support vectors."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.5 * y
    sq = (X**2).sum(axis=1)
    return np.exp(-0.2 * np.maximum(sq[:, None] + sq - 2 * X @ X.T, 0)), y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("intercept", [True, False])
def test_shrinking_on_a_larger_problem(intercept, dtype):
    K, y = overlapping(1500)
    K = K.astype(dtype)
    shape = Shape("hinge", y, np.full(1500, 10.0))
    solver = shape.solver(K, intercept=intercept)
    assert run(solver, 1e-6) == CONVERGED
    assert solver.updates > 1000  # more than two periods, so rows did leave
    # The gap, recomputed from the whole matrix, proves optimality without an oracle.
    shape.check(K, solver, 1e-6, intercept=intercept, drift=1e-8)
    assert (solver.beta == 0).mean() > 0.5


def test_shrinking_agrees_with_libsvm():
    K, y = overlapping(1500)
    solver = Shape("hinge", y, np.full(1500, 10.0)).solver(K)
    run(solver, 1e-7)
    machine = SVC(kernel="precomputed", C=10.0, tol=1e-6).fit(K, y)
    assert solver.beta @ y == pytest.approx(np.abs(machine.dual_coef_).sum(), rel=1e-3)
    assert solver.bias == pytest.approx(machine.intercept_[0], abs=1e-3)


def test_shrinking_with_pauses_and_rows_on_demand():
    K, y = overlapping(1500)
    shape = Shape("hinge", y, np.full(1500, 10.0))
    solver, lent = shape.solver(K, lend=False), 0
    for _ in range(2000):
        state = run(solver, 1e-6, limit=400)
        if state == CONVERGED:
            break
        if state == NEEDS_ROWS:
            rows = solver.wanted(64)
            lent += len(rows)
            solver.lend(rows, np.ascontiguousarray(K[rows]))
    assert state == CONVERGED
    assert lent < 1500
    shape.check(K, solver, 1e-6, drift=1e-8)


def test_duplicate_rows_with_opposite_labels():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(15, 2)), 2, axis=0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    y = np.tile([1.0, -1.0], 15)
    cost = np.ones(30)
    shape = Shape("hinge", y, cost)
    for intercept in (True, False):
        solver = shape.solver(K, intercept=intercept)
        assert run(solver) == CONVERGED
        shape.check(K, solver, 1e-9, intercept=intercept)
        # Nothing can be learned: every pair costs two.
        assert solver.primal == pytest.approx(30, rel=1e-8)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_class_only(sign):
    K, _, cost = problem_for("hinge", 10)
    y = np.full(len(K), sign)
    solver = Shape("hinge", y, cost).solver(K)
    assert run(solver) == CONVERGED
    assert not solver.beta.any()
    assert solver.bias == sign
    assert solver.primal == solver.dual == 0
    # Without an intercept there is something to learn.
    shape = Shape("hinge", y, cost)
    solver = shape.solver(K, intercept=False)
    assert run(solver) == CONVERGED
    assert solver.beta.any()
    shape.check(K, solver, 1e-9, intercept=False)


def test_zero_and_constant_kernels():
    y = np.array([1.0, 1.0, -1.0, 1.0])
    shape = Shape("hinge", y, np.ones(4))
    for K in (np.zeros((4, 4)), np.full((4, 4), 3.0)):
        solver = shape.solver(K)
        assert run(solver) == CONVERGED
        assert solver.primal == pytest.approx(2)  # the bias alone: the one negative row is wrong
        shape.check(K, solver, 1e-9)
    target = np.array([0.0, 1.0, 2.0, 10.0])
    for K in (np.zeros((4, 4)), np.full((4, 4), 3.0)):
        solver = Shape("epsilon_insensitive", target, np.ones(4)).solver(K)
        assert run(solver) == CONVERGED
        # Any bias between 1.1 and 1.9 is best; each row saves the tube.
        assert solver.primal == pytest.approx(1.5 + 0.5 + 0.5 + 8.5 - 4 * EPSILON)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("intercept", [True, False])
def test_tiny_problems(n, intercept):
    y = np.array([1.0, -1.0])[:n]
    K = 2.0 * np.eye(n)
    shape = Shape("hinge", y, np.ones(n))
    solver = shape.solver(K, intercept=intercept)
    assert run(solver) == CONVERGED
    if n == 2 or not intercept:
        assert_allclose(solver.beta, 0.5 * y, rtol=1e-8)
    shape.check(K, solver, 1e-9, intercept=intercept)


@pytest.mark.parametrize("scale", [1e-100, 1e-12, 1e12, 1e100])
def test_kernel_times_a_and_cost_over_a(scale):
    K, y, cost = problem_for("hinge", 11)
    plain = Shape("hinge", y, cost).solver(K)
    scaled = Shape("hinge", y, cost / scale).solver(scale * K)
    assert run(plain) == run(scaled) == CONVERGED
    assert scaled.primal * scale == pytest.approx(plain.primal, rel=1e-8)
    assert_allclose(scaled.fitted + scaled.bias, plain.fitted + plain.bias, atol=1e-4)


def test_single_precision_rows():
    K, y, cost = problem_for("epsilon_insensitive", 12, C=3.0)
    shape = Shape("epsilon_insensitive", y, cost)
    stored = K.astype(np.float32)
    single, double = shape.solver(stored), shape.solver(stored.astype(np.float64))
    assert run(single, 1e-8) == run(double, 1e-8) == CONVERGED
    # Rows are stored in single precision, sums are taken in double: the same problem.
    shape.check(stored, single, 1e-8)
    assert single.primal == pytest.approx(double.primal, rel=2e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("size", [1e-290, 1e-170, 1e-100, 1e100, 1e150])
def test_targets_of_any_size(size, intercept):
    """Squares of such numbers leave the range of doubles; the run must still end, and end well."""
    K, y, cost = problem_for("epsilon_insensitive", 15)
    plain, scaled = Shape("huber", y, cost), Shape("huber", y, cost)
    for shape, unit in ((plain, 1.0), (scaled, size)):
        shape.y, shape.upper, shape.lower = unit * y, 100 * unit * cost, -100 * unit * cost
    expected, found = plain.solver(K, intercept=intercept), scaled.solver(K, intercept=intercept)
    assert run(expected, 1e-6) == CONVERGED
    assert run(found, 1e-6) in (CONVERGED, STALLED)
    if 1e-120 < size < 1e120:
        assert found.primal / size / size == pytest.approx(expected.primal, rel=2e-6)
        assert_allclose(found.beta / size, expected.beta, atol=1e-2)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_dual_value_that_is_enough_ends_the_run(intercept):
    K, y, cost = problem_for("hinge", 16, C=5.0)
    shape = Shape("hinge", y, cost)
    whole = shape.solver(K, intercept=intercept)
    run(whole, 1e-9)
    for share in (0.5, 0.9):
        solver = shape.solver(K, intercept=intercept)
        enough = share * whole.dual
        (state,) = _core.run_smo([solver], 1e-9, 0.0, MANY, enough)
        assert state == CONVERGED
        assert solver.dual >= enough * (1 - 1e-9)
        assert solver.updates < whole.updates
        shape.check(K, solver, np.inf, intercept=intercept)
        assert run(solver, 1e-9) == CONVERGED  # and it can go on
        assert solver.primal == pytest.approx(whole.primal, rel=1e-8)
    out_of_reach = shape.solver(K, intercept=intercept)
    (state,) = _core.run_smo([out_of_reach], 1e-9, 0.0, MANY, 2 * whole.primal)
    assert state == CONVERGED
    shape.check(K, out_of_reach, 1e-9, intercept=intercept)


def test_a_new_start_in_the_middle_of_a_run():
    """Also while some rows have left the problem and others are still missing."""
    K, y = overlapping(1500)
    shape = Shape("hinge", y, np.full(1500, 10.0))
    solver = shape.solver(K, lend=False)
    for _ in range(3000):
        state = run(solver, 1e-5, limit=3000)
        if state == CONVERGED:
            break
        beta = solver.beta
        solver.start(beta, K @ beta)
        if state == NEEDS_ROWS:
            rows = solver.wanted(16)
            solver.lend(rows, np.ascontiguousarray(K[rows]))
    assert state == CONVERGED
    shape.check(K, solver, 1e-5, drift=1e-8)


def test_several_solvers_at_once():
    problem = random_problem(13, kind="multiclass", n=45)
    K = problem.grams.sum(axis=0)
    shapes = [Shape("hinge", problem.Y[:, o].copy(), np.ones(45)) for o in range(3)]
    together = [shape.solver(K) for shape in shapes]
    assert _core.run_smo(together, 1e-8, 0.0, MANY) == [CONVERGED] * 3
    for shape, solver in zip(shapes, together, strict=True):
        alone = shape.solver(K)
        run(alone, 1e-8)
        assert np.array_equal(alone.beta, solver.beta)
    assert _core.run_smo([], 1e-8, 0.0, MANY) == []


def test_tolerance_zero_ends_at_the_limit_of_the_arithmetic():
    K, y, cost = problem_for("hinge", 14, C=5.0)
    shape = Shape("hinge", y, cost)
    solver = shape.solver(K)
    state = run(solver, 0.0, 0.0, limit=200_000)
    assert state in (CONVERGED, STALLED)
    shape.check(K, solver, 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_are_not_numbers_end_the_run(bad, intercept):
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    for K in (np.full((5, 5), bad), np.eye(5) + np.diag([0, 0, 0, bad], 1)):
        solver = Shape("hinge", y, np.ones(5)).solver(np.eye(5), intercept=intercept, lend=False)
        solver.lend(np.arange(5), np.ascontiguousarray(K))
        for _ in range(3):
            assert run(solver, 1e-6, limit=1000) in (PAUSED, STALLED, CONVERGED)
