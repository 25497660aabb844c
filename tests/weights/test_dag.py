"""The norm of a hierarchy: its values, its variational form, and bounds of its dual."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from hkl_oracles import closure, conjunctions, dual_norm, omega
from kernelweave.weights.dag import Hierarchy, fill_up

RHOS = (2.0, 1.5, 1.1)


def lattice(p=3, base=2.0):
    found = conjunctions(np.ones((1, p), dtype=bool))
    return closure(found.parents), base**found.lengths


def chain(n=5):
    parents = [[w - 1] if w else [] for w in range(n)]
    return closure(parents), np.linspace(0.5, 2.0, n)


def apart(n=4):
    return closure([[] for _ in range(n)]), np.arange(1.0, n + 1.0)


GRAPHS = {
    "lattice": lattice(),
    "cheap lattice": lattice(3, 0.7),
    "chain": chain(),
    "apart": apart(),
}


def hierarchy(graph, rho):
    ancestors, costs = graph
    return Hierarchy(csr_array(ancestors.T.astype(float)), costs, rho)


def norms(n, seed=0, zeros=0.0):
    rng = np.random.default_rng(seed)
    Q = rng.exponential(size=n)
    Q[rng.random(n) < zeros] = 0.0
    Q[0] = Q[0] or 1.0
    return Q


every = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
each_rho = pytest.mark.parametrize("rho", RHOS)


@every
@each_rho
def test_norm(graph, rho):
    weights, Q = hierarchy(graph, rho), norms(len(graph[1]), zeros=0.3)
    value = weights.norm(Q)
    assert value == pytest.approx(omega(Q, *graph, rho), rel=1e-12)
    assert weights.norm(3.0 * Q) == pytest.approx(3.0 * value, rel=1e-12)
    assert weights.norm(np.zeros_like(Q)) == 0.0
    one = np.eye(len(Q)) * Q
    assert value >= max(weights.norm(row) for row in one) - 1e-12
    assert value <= sum(weights.norm(row) for row in one) + 1e-12


@every
def test_the_norm_falls_with_rho(graph):
    Q = norms(len(graph[1]))
    values = [hierarchy(graph, rho).norm(Q) for rho in (1.05, 1.1, 1.5, 2.0)]
    assert values == sorted(values, reverse=True)


@every
@each_rho
def test_shares_minimise_the_variational_form(graph, rho):
    weights, Q = hierarchy(graph, rho), norms(len(graph[1]), 1)
    shares = weights.shares(Q, 0.0)
    assert shares.eta.sum() == pytest.approx(1.0)
    squared = weights.norm(Q) ** 2
    assert (Q**2 / shares.weights).sum() == pytest.approx(squared, rel=1e-12)
    # With gamma and lambda of the paper, (9), the weights are the same.
    ancestors, costs = graph
    radii = np.array([(Q[below] ** rho).sum() ** (1 / rho) for below in ancestors])
    gamma = costs * radii / (costs @ radii)
    split = (Q[None, :] / radii[:, None]) ** (2 - rho)
    inverse = (ancestors * costs[:, None] ** 2 / (gamma[:, None] * split)).sum(axis=0)
    np.testing.assert_allclose(shares.weights, 1 / inverse, rtol=1e-10)
    rng = np.random.default_rng(2)
    for _ in range(20):  # nothing else on the simplex does better
        eta = rng.dirichlet(np.ones(len(Q)))
        omega_ = weights.omega(eta)
        assert weights.fixed_norm(Q, omega_) ** 2 >= squared * (1 - 1e-12)
        best = weights.weights(Q, omega_, 0.0)
        reached = (Q**2 / best).sum()
        assert reached == pytest.approx(weights.fixed_norm(Q, omega_) ** 2, rel=1e-10)
        other = best * np.exp(0.3 * rng.normal(size=len(Q)))
        if rho < 2:  # back to the ball that the weights live in
            exponent = rho / (2 - rho)
            power = (other * omega_ ** (2 / rho)) ** exponent
            other = other / power.sum() ** (1 / exponent)
            assert (Q**2 / other).sum() >= reached * (1 - 1e-12)


@every
@each_rho
@pytest.mark.parametrize("floor", [1e-4, 0.1, 1.0])
def test_floors_cost_little(graph, rho, floor):
    weights, Q = hierarchy(graph, rho), norms(len(graph[1]), 3, zeros=0.4)
    shares = weights.shares(Q, floor)
    assert shares.eta.sum() == pytest.approx(1.0)
    assert (shares.eta >= floor / len(Q) * (1 - 1e-12)).all()
    assert (shares.weights > 0).all()
    value = (Q**2 / shares.weights).sum()
    squared = weights.norm(Q) ** 2
    assert squared * (1 - 1e-12) <= value
    if floor < 0.01:
        assert value <= squared * (1 + 2 * floor)


@every
@each_rho
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_the_dual_norm_is_bounded_and_reached(graph, rho, zeros):
    weights, n = hierarchy(graph, rho), len(graph[1])
    sigma = norms(n, 4, zeros)
    oracle = dual_norm(sigma, *graph, rho)
    rng = np.random.default_rng(5)
    for k in range(4):
        eta = np.full(n, 1 / n) if k == 0 else rng.dirichlet(np.full(n, 0.7)) + 1e-6
        eta /= eta.sum()
        for steps in (0, 1, 5):
            bound = weights.squared_dual_norm(sigma**2, eta, max_steps=steps)
            assert bound >= oracle.lower**2 * (1 - 1e-9)
            assert weights.fixed_dual(sigma**2, weights.omega(eta)) <= bound * (1 + 1e-9)
        assert weights.fixed_dual(sigma**2, weights.omega(eta)) <= oracle.upper**2 * (1 + 1e-9)
    tight = weights.squared_dual_norm(sigma**2, np.full(n, 1 / n), max_steps=1000)
    assert tight == pytest.approx(oracle.value**2, rel=1e-3)
    # It stops where it is told to, and is then as good as it says.
    rough = weights.squared_dual_norm(sigma**2, np.full(n, 1 / n), enough=0.05, max_steps=1000)
    assert oracle.lower**2 * (1 - 1e-9) <= rough <= oracle.upper**2 / 0.95


@every
@each_rho
def test_slopes_add_up_to_the_value(graph, rho):
    weights, n = hierarchy(graph, rho), len(graph[1])
    quadratic_forms = norms(n, 6) ** 2
    eta = np.random.default_rng(7).dirichlet(np.ones(n))
    value = weights.fixed_dual(quadratic_forms, weights.omega(eta))
    slopes = weights.slopes(quadratic_forms, eta)
    assert (eta @ slopes**weights.power) ** (1 / weights.power) == pytest.approx(value, rel=1e-10)
    # They are the derivatives of the value in the shares, up to a factor.
    step = 1e-6
    for v in range(n):
        moved = eta.copy()
        moved[v] += step
        change = weights.fixed_dual(quadratic_forms, weights.omega(moved)) ** weights.power
        difference = (change - value**weights.power) / step
        slope = slopes[v] ** weights.power
        assert difference == pytest.approx(
            slope, rel=1e-3, abs=1e-6 * slopes.max() ** weights.power
        )


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), rho=st.floats(1.01, 2.0), floor=st.floats(1e-6, 1.0))
def test_products_are_below_norm_times_dual_norm(seed, rho, floor):
    weights = hierarchy(GRAPHS["lattice"], rho)
    Q, sigma = norms(8, seed), norms(8, seed + 1)
    bound = weights.squared_dual_norm(sigma**2, weights.shares(Q, floor).eta)
    assert sigma @ Q <= weights.norm(Q) * np.sqrt(bound) * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1.0001, 1.001, 1.02, 1.5, 2.0])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("base", [1e-4, 1.0, 1e6])
def test_extremes_give_numbers(rho, scale, base):
    weights = hierarchy(lattice(4, base), rho)
    Q = scale * norms(16, 8, zeros=0.5)
    with np.errstate(all="raise", under="ignore"):
        value = weights.norm(Q)
        shares = weights.shares(Q, 1e-3)
        quadratic_forms = Q**2
        bound = weights.squared_dual_norm(quadratic_forms, shares.eta)
    assert 0 < value < np.inf
    assert np.isfinite(shares.eta).all()
    assert np.isfinite(shares.weights).all()
    assert (shares.weights > 0).all()
    assert 0 < bound < np.inf
    assert Q @ Q <= value * np.sqrt(bound) * (1 + 1e-6)


def test_nothing_pulls():
    weights = hierarchy(GRAPHS["chain"], 1.5)
    assert weights.squared_dual_norm(np.zeros(5), np.full(5, 0.2)) == 0.0


# Filling up to a floor


@settings(max_examples=100, deadline=None)
@given(
    x=st.lists(st.just(0.0) | st.floats(1e-100, 1e6), min_size=1, max_size=12),
    floor=st.floats(0.0, 1.0),
    k=st.floats(1.2, 5.0),
)
def test_filling_up_is_the_best_under_the_floor(x, floor, k):
    x = np.array(x)
    n, least = len(x), floor / len(x)
    y = fill_up(x, least)
    assert y.sum() == pytest.approx(1.0, rel=1e-9)
    assert (y >= least * (1 - 1e-12)).all()
    above = y > least * (1 + 1e-9)
    if x.max() <= 1e-250 or not above.any():
        return
    factors = y[above] / x[above]
    assert np.ptp(factors) <= 1e-9 * factors.max()  # one factor for all above the floor
    assert (x[~above] * factors[0] <= least * (1 + 1e-9)).all()
    if (x <= 1e-150 * x.max()).any() or floor < 1e-9:
        return

    def value(z):
        return (x**k / z ** (k - 1)).sum()

    rng = np.random.default_rng(0)
    for _ in range(5):
        z = (1 - floor) * rng.dirichlet(np.ones(n)) + least
        assert value(z) >= value(y) * (1 - 1e-9)


def test_filling_up_by_hand():
    np.testing.assert_allclose(fill_up(np.array([3.0, 1.0]), 0.0), [0.75, 0.25])
    np.testing.assert_allclose(fill_up(np.array([3.0, 0.0, 1.0]), 0.1), [0.675, 0.1, 0.225])
    np.testing.assert_allclose(fill_up(np.array([8.0, 1.0, 1.0]), 0.2), [0.6, 0.2, 0.2])
    np.testing.assert_allclose(fill_up(np.array([1.0, 2.0]), 0.5), [0.5, 0.5])
    np.testing.assert_allclose(fill_up(np.zeros(4), 0.1), np.full(4, 0.25))
    np.testing.assert_allclose(fill_up(np.array([5.0]), 0.3), [1.0])


@every
@each_rho
def test_a_bound_goes_on_where_the_last_one_ended(graph, rho):
    weights, n = hierarchy(graph, rho), len(graph[1])
    forms = norms(n, 4, 0.0) ** 2
    never = lambda low, high: False  # noqa: E731
    first = weights.bound_dual_norm(forms, np.full(n, 1 / n), never, max_steps=5)
    assert first.is_cut
    again = weights.bound_dual_norm(forms, first.eta, never, max_steps=5)
    whole = weights.bound_dual_norm(forms, np.full(n, 1 / n), never, max_steps=10)
    assert min(first.value, again.value) == pytest.approx(whole.value, rel=1e-12)
    pairs = []

    def third(low, high):
        pairs.append((low, high))
        return len(pairs) == 3

    ended = weights.bound_dual_norm(forms, np.full(n, 1 / n), third)
    assert len(pairs) == 3
    assert not ended.is_cut
    assert all(low <= high * (1 + 1e-12) for low, high in pairs)
