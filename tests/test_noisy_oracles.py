"""The reference solvers of capped problems against each other, closed forms and linear programs."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

import noisy_oracles
from noisy_oracles import (
    capped_oracle,
    group_prox_oracle,
    least_mean_hinge,
    plain_mkl_oracle,
    project_exact_oracle,
    project_oracle,
    random_noisy_problem,
    structure_oracle,
)
from oracles import OracleError, _solve

pytestmark = pytest.mark.slow

KINDS = [(0.0, False), (0.3, False), (0.3, True)]


def binary(seed, **changes):
    return random_noisy_problem(seed, n_classes=2, **changes)


def solve(problem, slack=0.0, exact=False, **changes):
    p = replace(problem, **changes)
    return capped_oracle(p.grams, p.Y, p.lam, p.cap, slack, exact)


def largest(d, cap, slack, exact):
    """Largest ``alpha @ d`` by linear programming; the variables are alpha and what is capped."""
    n = len(d)
    if not exact:
        found = linprog(-d, A_ub=np.ones((1, n)), b_ub=[n * (cap + slack)], bounds=[(0, 1 + slack)])
        return -found.fun
    over = np.hstack([np.eye(n), -np.eye(n)])  # alpha - capped <= slack
    capped = np.concatenate([np.zeros(n), np.ones(n)])
    bounds = [(0, 1 + slack)] * n + [(0, None)] * n
    limits = np.append(np.full(n, slack), n * cap)
    cost = np.concatenate([-d, np.zeros(n)])
    return -linprog(cost, A_ub=np.vstack([over, capped]), b_ub=limits, bounds=bounds).fun


def unequal(got, wanted):
    """Largest difference relative to the size of what is wanted."""
    return np.max(np.abs(got - wanted)) / max(np.max(np.abs(wanted)), np.finfo(float).tiny)


@pytest.mark.parametrize(("slack", "exact"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_value_and_solution_are_those_of_the_definition(seed, slack, exact):
    p = random_noisy_problem(seed)
    found = solve(p, slack, exact)
    n, n_outputs = p.Y.shape
    # primal
    losses = [
        largest(1 - y * f, p.cap, slack, exact) for y, f in zip(p.Y.T, found.f.T, strict=True)
    ]
    assert p.lam / 2 * found.omega**2 + sum(losses) / n == pytest.approx(found.upper, rel=1e-8)
    # dual
    assert found.alpha.shape == (n, n_outputs)
    assert found.alpha.min() >= 0
    assert found.alpha.max() <= 1 + slack
    capped = np.maximum(0, found.alpha - slack) if exact else found.alpha
    limit = n * (p.cap if exact else p.cap + slack)
    assert np.all(capped.sum(axis=0) <= limit * (1 + 1e-14))
    Z = p.Y * found.alpha
    quadratic_forms = np.einsum("io,jik,ko->j", Z, p.grams, Z)
    value = found.alpha.sum() / n - quadratic_forms.max() / (2 * p.lam * n**2)
    assert value == pytest.approx(found.lower, rel=1e-10)
    assert found.upper - found.lower <= 1e-9 * found.value
    # recovery
    assert found.weights.sum() == pytest.approx(1)
    assert np.all(found.weights[quadratic_forms < (1 - 1e-3) * quadratic_forms.max()] < 1e-5)
    combined = np.tensordot(found.weights, p.grams, 1) @ Z / (n * p.lam)
    assert unequal(combined, found.f) < 1e-4
    # complementarity
    assert np.all(capped.sum(axis=0)[found.th > 1e-6] > limit * (1 - 1e-6))


@pytest.mark.parametrize(("slack", "exact"), KINDS)
@pytest.mark.parametrize("seed", [0, 3, 10])
def test_each_formulation_alone_gives_the_same(seed, slack, exact, monkeypatch):
    p = random_noisy_problem(seed, spread=0)
    both = solve(p, slack, exact)
    group, dual = noisy_oracles._GroupForm, noisy_oracles._DualForm
    for form in (group, dual):
        monkeypatch.setattr(noisy_oracles, "_GroupForm", form)
        monkeypatch.setattr(noisy_oracles, "_DualForm", form)
        alone = solve(p, slack, exact)
        assert alone.value == pytest.approx(both.value, rel=1e-9)
        assert unequal(alone.f, both.f) < 1e-4
        assert alone.th == pytest.approx(both.th, abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_cap_one_is_plain_learning(seed):
    p = random_noisy_problem(seed)
    plain = plain_mkl_oracle(p.grams, p.Y, p.lam)
    found = solve(p, cap=1.0)
    assert found.value == pytest.approx(plain.value, rel=1e-9)
    assert unequal(found.f, plain.f) < 1e-5
    assert found.weights == pytest.approx(plain.weights, abs=1e-5)
    assert found.omega == pytest.approx(plain.omega, rel=1e-5)
    assert not found.th.any()
    # With slack it is plain learning with a box of 1 + slack, and both sets are the box.
    wide = plain_mkl_oracle(p.grams, p.Y, p.lam / 1.3)
    for exact in (False, True):
        assert solve(p, 0.3, exact, cap=1.0).value == pytest.approx(1.3 * wide.value, rel=1e-9)


@pytest.mark.parametrize(
    ("seed", "changes"),
    [
        (0, {}),
        (1, {"spread": 6}),
        (2, {"spread": 6}),
        (3, {"spread": 0}),
        (4, {"n": 20, "cap": 0.5}),  # a whole number of rows
        (5, {"spread": 0}),  # a cap that is not reached
        (6, {"spread": 6}),
        (7, {"spread": 0, "lam": 50.0}),
    ],
)
def test_structure_theorem(seed, changes):
    p = binary(seed, **changes)
    found = solve(p)
    path = structure_oracle(p.grams, p.Y, p.lam, p.cap)
    assert 0 < path.gamma <= 1
    assert path.mu == pytest.approx(path.gamma * p.lam)
    assert 1 - found.th[0] == pytest.approx(path.gamma, rel=1e-4)
    assert unequal(found.f[:, 0], path.f) < 2e-4
    reached = path.gamma < 1
    assert (found.alpha.mean() > p.cap - 1e-8) == reached


@pytest.mark.parametrize("seed", [1, 3])
def test_structure_theorem_with_slack(seed):
    p = binary(seed, cap=0.4)
    found = solve(p, 0.25)
    path = structure_oracle(p.grams, p.Y, p.lam / 1.25, 0.65 / 1.25)
    assert path.gamma < 1
    assert 1 - found.th[0] == pytest.approx(path.gamma, rel=1e-5)
    assert unequal(found.f[:, 0], path.f) < 1e-4


def test_structure_theorem_fails_for_the_exact_set():
    p = binary(3, spread=0)
    found = solve(p, 0.3, exact=True).f[:, 0]
    found /= np.linalg.norm(found)

    def angle(mu):
        plain = plain_mkl_oracle(p.grams, p.Y, mu).f[:, 0]
        return np.linalg.norm(plain / np.linalg.norm(plain) - found)

    assert min(angle(p.lam * 10**t) for t in np.linspace(-3, 1, 21)) > 0.02


def test_classifiers_of_two_lam_are_proportional_where_the_cap_is_reached():
    p = binary(3, spread=0)
    one, ten = solve(p), solve(p, lam=10 * p.lam)
    assert one.th[0] > 0
    assert unequal(10 * ten.f, one.f) < 1e-4
    assert 1 - one.th == pytest.approx(10 * (1 - ten.th), rel=1e-5)


def test_zero_is_best_under_a_cap_below_the_least_loss():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.choice([-1.0, 1.0], size=30)
    grams = np.stack([np.outer(x, x) for x in X.T])
    least = least_mean_hinge(grams, y)
    w = cp.Variable(2)
    direct = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, X @ w))) / 30))
    assert least == pytest.approx(direct.solve(solver=cp.CLARABEL), rel=1e-7)
    below = capped_oracle(grams, y, 0.1, 0.99 * least)
    assert below.value == pytest.approx(0.99 * least, rel=1e-12)
    assert np.abs(below.f).max() < 1e-8
    assert below.th == pytest.approx([1.0])
    assert structure_oracle(grams, y, 0.1, 0.99 * least).gamma == 0
    above = capped_oracle(grams, y, 0.1, 1.01 * least)
    path = structure_oracle(grams, y, 0.1, 1.01 * least)
    assert path.gamma > 0.01
    assert unequal(above.f[:, 0], path.f) < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxed_set_costs_more_than_the_exact_one(seed):
    p = random_noisy_problem(seed, cap=0.4)
    for slack in (0.1, 0.5):
        relaxed, exact = solve(p, slack), solve(p, slack, exact=True)
        assert relaxed.upper >= exact.lower
        assert (exact.th.max() < 1e-6) or relaxed.value > exact.value * (1 + 1e-6)
    without = solve(p)
    assert solve(p, exact=True).value == pytest.approx(without.value, rel=1e-9)
    for exact in (False, True):
        little = solve(p, 1e-6, exact)
        assert 0 <= little.value - without.value <= 1.01e-6 * p.Y.shape[1]


@pytest.mark.parametrize("seed", range(4))
def test_the_box_can_be_absorbed(seed):
    p = random_noisy_problem(seed)
    slack = 0.4
    wide = solve(p, slack)
    narrow = solve(p, lam=p.lam / (1 + slack), cap=(p.cap + slack) / (1 + slack))
    assert wide.value == pytest.approx((1 + slack) * narrow.value, rel=1e-9)
    assert unequal(wide.f, narrow.f) < 1e-4
    assert wide.th == pytest.approx(narrow.th, abs=1e-5)


@pytest.mark.parametrize(("slack", "exact"), KINDS)
def test_symmetries(slack, exact):
    p = random_noisy_problem(2, cap=0.5)
    found = solve(p, slack, exact)
    same = {
        "scaled": solve(p, slack, exact, grams=7 * p.grams, lam=7 * p.lam),
        "doubled": solve(p, slack, exact, grams=np.concatenate([p.grams, p.grams[:2]])),
        "with nothing": solve(p, slack, exact, grams=np.concatenate([p.grams, 0 * p.grams[:1]])),
    }
    for other in same.values():
        assert other.value == pytest.approx(found.value, rel=1e-9)
        assert unequal(other.f, found.f) < 1e-4
    assert same["with nothing"].weights[-1] == 0
    flipped = solve(p, slack, exact, Y=-p.Y)
    assert unequal(-flipped.f, found.f) < 1e-4
    order = np.random.default_rng(0).permutation(len(p.Y))
    grams = p.grams[::-1][:, order][:, :, order]
    moved = solve(p, slack, exact, grams=grams, Y=p.Y[order])
    assert moved.value == pytest.approx(found.value, rel=1e-9)
    assert unequal(moved.f, found.f[order]) < 1e-4
    assert moved.weights[::-1] == pytest.approx(found.weights, abs=1e-5)


@pytest.mark.parametrize(("slack", "exact"), KINDS)
def test_value_grows_with_cap_and_lam_and_is_concave_in_lam(slack, exact):
    p = binary(1)
    by_cap = [solve(p, slack, exact, cap=c).value for c in (0.1, 0.3, 0.5, 0.8, 1.0)]
    assert np.all(np.diff(by_cap) > -1e-10)
    by_lam = [solve(p, slack, exact, lam=t * p.lam).value for t in (0.5, 1.0, 1.5, 2.0)]
    assert np.all(np.diff(by_lam) > -1e-10)
    assert np.all(np.diff(by_lam, 2) < 1e-9)
    assert max(by_lam) <= p.cap + slack


def test_equal_outputs_count_twice():
    p = binary(3, spread=0)
    one, two = solve(p), solve(p, Y=np.hstack([p.Y, p.Y]))
    assert two.value == pytest.approx(2 * one.value, rel=1e-9)
    assert unequal(two.f, one.f) < 1e-4
    assert two.weights == pytest.approx(one.weights, abs=1e-5)
    assert two.th == pytest.approx(np.repeat(one.th, 2), abs=1e-6)


def test_one_kernel_separates_the_outputs_and_their_caps():
    p = random_noisy_problem(5, n_classes=3, m=1, lam=0.05)
    caps = [0.3, 0.5, 0.8]
    alone = [capped_oracle(p.grams, y, p.lam, c) for y, c in zip(p.Y.T, caps, strict=True)]
    found = solve(p, cap=caps)
    assert found.value == pytest.approx(sum(a.value for a in alone), rel=1e-9)
    assert unequal(found.f, np.hstack([a.f for a in alone])) < 1e-4
    assert found.th == pytest.approx(np.hstack([a.th for a in alone]), abs=1e-5)


def test_outputs_that_share_weights_have_the_structure_one_by_one():
    p = random_noisy_problem(5, n_classes=3, spread=0, lam=0.05)
    found = solve(p)
    combined = np.tensordot(found.weights, p.grams, 1)[None]
    for y, f, th in zip(p.Y.T, found.f.T, found.th, strict=True):
        path = structure_oracle(combined, y, p.lam, p.cap)
        assert 1 - th == pytest.approx(path.gamma, rel=1e-4)
        assert unequal(f, path.f) < 1e-4
    assert np.ptp(found.th) > 0.01  # so that no plain problem has all of them


def test_constant_is_one_more_kernel():
    p = binary(8, spread=0, m=3)
    grams = np.concatenate([p.grams, np.full_like(p.grams[:1], 2.0)])
    for solver, rest in ((capped_oracle, (p.lam, 0.5)), (plain_mkl_oracle, (p.lam,))):
        found = solver(p.grams, p.Y, *rest, constant=2.0)
        wanted = solver(grams, p.Y, *rest)
        assert found.value == pytest.approx(wanted.value, rel=1e-12)
        assert found.weights.shape == (4,)
        assert found.weights == pytest.approx(wanted.weights, abs=1e-9)


def test_kernels_that_are_all_zero():
    p = binary(0)
    found = solve(p, grams=0 * p.grams)
    assert found.value == pytest.approx(p.cap)
    assert not found.f.any()
    assert found.th == pytest.approx([1.0])


def test_a_silent_solver_is_an_error(monkeypatch):
    monkeypatch.setattr(noisy_oracles, "_solve", lambda problem: cp.SOLVER_ERROR)
    p = binary(0)
    with pytest.raises(OracleError, match="Lower bound"):
        solve(p)


@pytest.mark.parametrize("changes", [{"lam": 0.0}, {"cap": 0.0}, {"cap": 1.1}, {"slack": -0.1}])
def test_parameters_out_of_range(changes):
    with pytest.raises(ValueError, match="lam = "):
        solve(binary(0), **changes)


def drawn(rng):
    """A point to project, some with ties, some far from the set."""
    v = rng.normal(0.5, 1.0, size=rng.integers(1, 30)) * 10 ** rng.uniform(-1, 2)
    if rng.random() < 0.3:
        v = np.round(v)
    return v


def nearest(v, slack, box, total, exact):
    a = cp.Variable(len(v))
    capped = cp.sum(cp.pos(a - slack)) if exact else cp.sum(a)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(a - v)), [a >= 0, a <= box, capped <= total])
    _solve(problem)
    return a.value


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_projection(seed, exact):
    rng = np.random.default_rng(seed)
    v, slack = drawn(rng), rng.choice([0.0, 0.3, 1.0])
    total = len(v) * rng.uniform(0.05, 1.2)
    found = project_exact_oracle(v, slack, total) if exact else project_oracle(v, 1 + slack, total)
    assert found.min() >= 0
    assert found.max() <= 1 + slack
    capped = np.maximum(0, found - slack) if exact else found
    assert capped.sum() <= total * (1 + 1e-14)
    scale = max(1.0, np.abs(v).max())
    other = nearest(v, slack, 1 + slack, total, exact)
    assert np.sum((found - v) ** 2) == pytest.approx(np.sum((other - v) ** 2), abs=1e-6 * scale**2)
    # No member lies further in the direction of v, so it is the nearest.
    cap = total / len(v) - (0 if exact else slack)
    furthest = largest(v - found, cap, slack, exact)
    assert furthest - (v - found) @ found <= 1e-9 * scale


def test_projection_of_known_points():
    # Between eta = 0.5 and eta = 4 nothing moves.
    assert project_oracle([5, 5, 0.5], 1, 2) == pytest.approx([1, 1, 0], abs=1e-15)
    assert project_oracle([0.5, 0.25, -1], 1, 2) == pytest.approx([0.5, 0.25, 0], abs=1e-15)
    assert project_oracle([0.9, 0.6], 1, 1) == pytest.approx([0.65, 0.35], abs=1e-15)
    assert project_exact_oracle([0.9, 0.6, 0.2, -1], 0.3, 0.5) == pytest.approx(
        [0.7, 0.4, 0.2, 0], abs=1e-15
    )
    assert project_exact_oracle([9, 9], 0.3, 0) == pytest.approx([0.3, 0.3], abs=1e-15)


@pytest.mark.parametrize("seed", range(12))
def test_group_prox(seed):
    rng = np.random.default_rng(seed)
    norms = np.abs(drawn(rng))
    c = 10 ** rng.uniform(-2, 2)
    found = group_prox_oracle(norms, c)
    pull = c * found.sum()
    scale = max(1.0, norms.max())
    assert found == pytest.approx(np.maximum(0, norms - pull), abs=1e-12 * scale)
    r = cp.Variable(len(norms))
    objective = cp.sum_squares(r - norms / scale) + c * cp.square(cp.sum(r))
    _solve(cp.Problem(cp.Minimize(objective), [r >= 0]))
    assert found / scale == pytest.approx(r.value, abs=1e-5)


def test_group_prox_of_known_norms():
    assert group_prox_oracle([3.0], 2.0) == pytest.approx([1.0])
    assert group_prox_oracle([3.0, 1.0], 1.0) == pytest.approx([1.5, 0.0])
    assert group_prox_oracle([3.0, 0.0], 0.0) == pytest.approx([3.0, 0.0])
    assert not group_prox_oracle([0.0, 0.0], 1.0).any()


def test_random_problems_are_reproducible_and_noisy():
    one, two = random_noisy_problem(4, n=40), random_noisy_problem(4, n=40)
    assert np.array_equal(one.grams, two.grams)
    assert np.array_equal(one.y, two.y)
    shares = [np.mean(p.y != p.clean) for p in map(random_noisy_problem, range(30))]
    assert 0.1 < np.mean(shares) < 0.3
    three = random_noisy_problem(4, n_classes=3, n=30, m=5, spread=6, cap=0.3, lam=0.1)
    assert three.Y.shape == (30, 3)
    assert np.all(three.Y.sum(axis=1) == -1)
    assert three.grams.shape == (5, 30, 30)
    assert (three.cap, three.lam) == (0.3, 0.1)
    scales = np.trace(three.grams, axis1=1, axis2=2)
    assert 10 < scales.max() / scales.min() <= 1e6
    assert np.array_equal(binary(4, flip=0.0).y, binary(4, flip=0.0).clean)
