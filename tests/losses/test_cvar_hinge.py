"""The hinge loss of the worst-fitted rows for one kernel, and the set of weights of losses."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from cvar_cases import CASES, Case, feasible
from gram_banks import bank_of
from kernelweave._threads import threads
from kernelweave.inner import solve_inner, weight_curvature
from kernelweave.losses import CVaRHinge
from kernelweave.losses.cvar_hinge import Ambiguity
from noisy_oracles import (
    project_exact_oracle,
    project_oracle,
    random_noisy_problem,
)
from quick import examples

CENTS = st.integers(-300, 300).map(lambda k: k / 100)
VALUES = st.one_of(CENTS, st.floats(-50, 50), st.sampled_from([0.0, 0.3, 1.0, 1.3, 5.0]))
ROOMS = st.one_of(st.sampled_from([0.0, 0.1, 1.0, 1.3]), st.floats(0, 4))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Spare these small arrays the threads of BLAS, which wait for each other."""
    with threads(1):
        yield


def largest(known, slack):
    """Largest ``alpha @ slack`` by linear programming, in alpha and what the cap counts."""
    n = len(slack)
    free = np.broadcast_to(known.free, n)
    over = np.hstack([np.eye(n), -np.eye(n)])  # alpha - counted <= free
    counted = np.concatenate([np.zeros(n), np.ones(n)])
    bounds = [(0, b) for b in free + known.room] + [(0, None)] * n
    found = linprog(
        -np.concatenate([slack, np.zeros(n)]),
        A_ub=np.vstack([over, counted]),
        b_ub=np.append(free, known.total),
        bounds=bounds,
    )
    return -found.fun


def assert_member(known, alpha):
    assert (alpha >= 0).all()
    assert (alpha <= (known.free + known.room) * (1 + 1e-15)).all()
    counted = np.maximum(0.0, alpha - known.free).sum()
    assert counted <= known.total * (1 + 1e-13) + 1e-15


@examples(150)
@given(
    values=st.lists(VALUES, min_size=1, max_size=12),
    room=st.sampled_from([0.1, 0.7, 1.0, 1.3, 2.5]),
    share=st.one_of(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), st.floats(0, 1.2)),
)
@example(values=[5, 5, 0.5], room=1.0, share=2 / 3)  # nothing moves between 0.5 and 4
@example(values=[2.0] * 7, room=1.0, share=0.3)
@example(values=[0.0] * 3, room=1.0, share=0.5)
@example(values=[-1.0, -2.0], room=1.0, share=0.0)
def test_projection(values, room, share):
    values, total = np.array(values, dtype=float), share * len(values) * room
    known = Ambiguity(np.full(len(values), room), total)
    found = known.project(values)
    assert_member(known, found)
    assert_allclose(found, project_oracle(values, room, total), rtol=0, atol=1e-9)


@examples(100)
@given(
    values=st.lists(VALUES, min_size=1, max_size=12),
    slack=st.sampled_from([0.0, 0.1, 0.3, 1.0]),
    share=st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1.2)),
)
@example(values=[0.9, 0.6, 0.2, -1], slack=0.3, share=0.125)
@example(values=[9, 9], slack=0.3, share=0.0)
@example(values=[1.3, 1.3, 1.3, 0.3], slack=0.3, share=0.5)
def test_projection_with_a_free_part(values, slack, share):
    values, total = np.array(values, dtype=float), share * len(values)
    found = Ambiguity(np.ones(len(values)), total, slack).project(values)
    assert_allclose(found, project_exact_oracle(values, slack, total), rtol=0, atol=1e-9)
    each = np.full(len(values), slack)
    assert np.array_equal(Ambiguity(np.ones(len(values)), total, each).project(values), found)


def test_projection_where_nothing_moves_by_rounding():
    found = Ambiguity(np.full(4, 0.1), 0.3).project(np.array([5.0, 5.0, 5.0, 0.05]))
    assert_allclose(found, [0.1, 0.1, 0.1, 0.0], rtol=0, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(VALUES, ROOMS, st.sampled_from([0.0, 0.2])), min_size=1, max_size=9),
    share=st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1.1)),
)
@example(rows=[(3.0, 0.0, 0.0), (2.0, 1.0, 0.0), (2.0, 0.0, 0.2), (1.0, 1.0, 0.0)], share=0.5)
@example(rows=[(1.0, 0.0, 0.0), (2.0, 0.0, 0.0)], share=0.5)
def test_projection_and_largest_loss_with_unequal_rooms(rows, share):
    values, room, free = np.array(rows, dtype=float).T
    known = Ambiguity(room, share * float(room.sum()), free)
    nearest = known.project(values)
    assert_member(known, nearest)
    # No member lies further in the direction of the given point, so it is the nearest.
    towards = values - nearest
    scale = max(1.0, np.abs(values).max())
    assert known.worst(towards)[0] - towards @ nearest <= 1e-12 * scale**2 * len(values)
    value, multiplier = known.worst(values)
    assert value == pytest.approx(largest(known, values), abs=1e-6 * scale)
    # The multiplier attains the minimum of the dual of the linear program, at the same value.
    loss = np.maximum(values, 0.0)
    bound = known.total * multiplier + free @ loss + room @ np.maximum(0.0, loss - multiplier)
    assert multiplier >= 0
    assert bound == pytest.approx(value, abs=1e-12 * scale * max(1.0, room.sum()))


@pytest.mark.parametrize("k", range(7))
def test_largest_loss_is_the_sum_of_the_largest(k):
    slack = np.array([0.5, 2.0, 2.0, -1.0, 0.1, 0.0])
    value, multiplier = Ambiguity(np.ones(6), float(k)).worst(slack)
    loss = np.maximum(slack, 0)
    assert value == pytest.approx(max(sum(p[:k]) for p in permutations(loss)), abs=1e-15)
    ordered = np.sort(loss)[::-1]
    if k < 6:
        assert ordered[k] <= multiplier <= ordered[max(k - 1, 0)]
    else:
        assert multiplier == 0


def test_no_multiplier_without_a_cap():
    slack = np.array([3.0, 2.0])
    assert Ambiguity(np.array([1.0, 0.5]), 1.5).worst(slack) == (4.0, 0.0)
    assert Ambiguity(np.array([1.0, 0.5]), 9.0).worst(slack) == (4.0, 0.0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_loss_and_its_constant_part(case):
    p, cost = case.problem, case.cost
    machine = case.machine
    for fitted in (np.zeros_like(p.Y), case.oracle.f, 3.0 * np.sin(7 * p.Y + p.grams[0][:, :1])):
        slack = 1 - p.Y * fitted
        wanted = [largest(k, slack[:, o]) for o, k in enumerate(machine.sets(cost))]
        assert machine.value(fitted, p.Y, cost)[0] == pytest.approx(sum(wanted), rel=1e-9)
        totals = case.share * cost.sum(axis=0)
        assert machine.constant(fitted, p.Y, cost) == pytest.approx(
            machine.thresholds(fitted, p.Y, cost) @ totals
        )
    assert machine.zero_loss(p.Y, cost) == pytest.approx(case.share * cost.sum())


def test_loss_with_unequal_costs_and_a_free_part():
    p = random_noisy_problem(3, n=25, n_classes=3, spread=0)
    rng = np.random.default_rng(0)
    cost = rng.uniform(0.2, 3.0, size=p.Y.shape)
    cost[4] = 0.0
    fitted = rng.normal(size=p.Y.shape)
    machine = CVaRHinge((0.3, 0.6, 1.0), free=0.25)
    slack = 1 - p.Y * fitted
    values = []
    for o, share in enumerate(machine.shares):
        total = share * 0.75 * cost[:, o].sum()
        values.append(largest(Ambiguity(0.75 * cost[:, o], total, 0.25 * cost[:, o]), slack[:, o]))
    assert machine.value(fitted, p.Y, cost)[0] == pytest.approx(sum(values), rel=1e-9)
    assert machine.thresholds(fitted, p.Y, cost)[2] == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_repair(case):
    p, cost, machine = case.problem, case.cost, case.machine
    rng = np.random.default_rng(1)
    best = solve_inner(
        machine, bank_of([case.gram]).combine(np.ones(1)), p.Y, cost, tol=1e-6
    ).dual_coef
    size = np.abs(best).max()
    wild = [3 * size * rng.normal(size=p.Y.shape), 10 * best, -best, np.zeros_like(best)]
    wild += [p.Y * cost, np.full(p.Y.shape, 2 * size)]
    for dual_coef in wild:
        before = dual_coef.copy()
        found = machine.repair(dual_coef, p.Y, cost)
        assert np.array_equal(dual_coef, before)
        assert feasible(machine, found, p.Y, cost) <= 1e-12 * max(
            cost.sum(), np.abs(dual_coef).sum()
        )
    assert_allclose(machine.repair(best, p.Y, cost), best, rtol=0, atol=1e-12 * cost.sum())


@pytest.mark.parametrize("case", [Case(0, 2, 0.5), Case(5, 3, 0.4), Case(1, 2, 0.95, 5)], ids=str)
def test_slopes_and_curvature_are_those_of_the_optimal_value(case):
    p, cost, machine = case.problem, case.cost, case.machine
    bank = bank_of(p.grams)
    weights = np.array([0.5, 0.2, 0.3])

    def solve(step=0.0):
        return solve_inner(machine, bank.combine(weights + step), p.Y, cost, tol=1e-13)

    best = solve()
    everything = np.arange(bank.n_kernels)
    found = weight_curvature(
        machine,
        bank.combine(weights),
        lambda rows: bank.products(best.dual_coef, everything, rows),
        best.dual_coef,
        p.Y,
        cost,
    )
    H, top = found.hessian, (bank.quadratic_forms(best.dual_coef) / weights).max()
    assert_allclose(H, H.T, rtol=0, atol=1e-12 * top)
    binds = machine.thresholds(best.fitted, p.Y, cost) > 0
    for o in range(p.Y.shape[1]):
        normal = machine.normal(best.dual_coef, p.Y, cost, o)
        if binds[o]:
            assert np.array_equal(normal, p.Y[:, o])
        else:
            assert normal is None
    inside = (p.Y * best.dual_coef > 1e-7 * cost) & (p.Y * best.dual_coef < (1 - 1e-7) * cost)
    compared = 0
    for j in everything:
        step = 1e-4 * weights[j] * np.eye(3)[j]
        ahead, behind = solve(step), solve(-step)
        slope = (ahead.dual - behind.dual) / (2 * step[j])
        assert slope == pytest.approx(
            -0.5 * bank.quadratic_forms(best.dual_coef)[j], rel=1e-4, abs=1e-5 * top
        )
        for other in (ahead, behind):
            alpha = p.Y * other.dual_coef
            if (((alpha > 1e-7 * cost) & (alpha < (1 - 1e-7) * cost)) != inside).any():
                break
        else:
            compared += 1
            change = (
                -0.5
                * (bank.quadratic_forms(ahead.dual_coef) - bank.quadratic_forms(behind.dual_coef))
                / (2 * step[j])
            )
            assert_allclose(H[:, j], change, rtol=0, atol=5e-3 * top)
            moved = found.predict(best.dual_coef, step) - best.dual_coef
            assert_allclose(
                moved,
                ahead.dual_coef - best.dual_coef,
                rtol=0,
                atol=0.1 * np.abs(moved).max() + 1e-6 * cost.max(),
            )
            if binds.all():  # the sum stays at the cap
                drift = np.abs((p.Y * moved).sum(axis=0)).max()
                assert drift <= 1e-5 * np.abs(moved).sum()
    assert compared
