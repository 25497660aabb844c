"""Best weights for fixed functions, and bounds from dual points, against the reference."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelweave.banks.paths import ExplicitForms, FactoredBank, PathBank
from kernelweave.banks.triangles import Triangles
from kernelweave.kernels import Precomputed, group
from kernelweave.kernels.network import Network
from kernelweave.solvers.published.projected_gradient import projected_gradient
from kernelweave.weights.sum_product import SumProduct, is_convex
from quick import every, first
from spn_oracles import (
    beta_step_oracle,
    brute_paths,
    deep,
    fig1,
    flat,
    joint_oracle,
    lower_bound,
    nested,
    objective,
    path_weights,
    spn_instances,
    square,
    tree,
)

STRUCTURES = {
    "fig1": fig1(),
    "flat": flat(5),
    "tree": tree(),
    "square": square(4),
    "deep": deep(),
    "nested": nested(),
}
EXPONENTS = {"1": 1.0, "1.5": 1.5, "4": 4.0, "0.5": 0.5, "0.3": 0.3, "mixed": None}


@cache
def solved(name):
    return joint_oracle(*spn_instances()[name].arguments)


def case(structure, p, seed):
    """Return paths, exponents, penalty, forms (with counts) and a point."""
    rng = np.random.default_rng(seed)
    paths = brute_paths(structure)
    n = len(paths.names)
    p = rng.choice([0.6, 1.0, 2.5], size=n) if p is None else np.full(n, p)
    q = paths.mu * np.exp(2 * rng.normal(size=len(paths.mu)))
    return paths, p, SumProduct(paths.c, p, np.exp(rng.normal())), q, rng.normal(size=n)


def value(paths, weights, q, u, new):
    """Objective at weights ``exp(new)`` of the functions found at ``exp(u)``."""
    norms = path_weights(paths.A, np.exp(u)) * np.sqrt(q)
    one = np.ones(len(q))
    return objective(paths.A, one, np.exp(new), norms, weights.counts, weights.lam, weights.p)


# The step


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_update_minimises(name, p):
    for seed in range(3):
        paths, p_v, weights, q, u = case(STRUCTURES[name], EXPONENTS[p], seed)
        r = path_weights(paths.A, np.exp(u)) ** 2 * q
        wanted = np.log(beta_step_oracle(paths.A, paths.c, r, weights.lam, p_v))
        found = weights.update(u, ExplicitForms(q, sp.csr_array(paths.A)))
        least = value(paths, weights, q, u, wanted)
        assert value(paths, weights, q, u, found) <= least * (1 + 1e-11)
        assert np.max(np.abs(found - wanted)) <= 1e-6


@pytest.mark.parametrize("p", [1.0, 1.5, 3.0, 0.5])
def test_flat_networks_have_a_closed_form(p):
    rng = np.random.default_rng(0)
    q, u, lam = np.exp(rng.normal(size=4)), rng.normal(size=4), 0.7
    weights = SumProduct(np.ones(4), np.full(4, p), lam)
    found = weights.update(u, ExplicitForms(q, sp.csr_array(np.eye(4))))
    r = np.exp(2 * u) * q
    assert_allclose(np.exp(found), (r / (2 * lam * p)) ** (1 / (p + 1)), rtol=1e-7)


@pytest.mark.parametrize("p", [1.0, 2.0, 0.5])
def test_nodes_without_functions_shrink_and_the_others_are_best(p):
    """With r_m = 0 on all paths of a node its best weight is zero."""
    paths, p_v, weights, q, u = case(fig1(), p, 3)
    q[:2] = 0.0  # the paths of 8, 1 and 2
    r = path_weights(paths.A, np.exp(u)) ** 2 * q
    wanted = beta_step_oracle(paths.A, paths.c, r, weights.lam, p_v)
    found = weights.update(u, ExplicitForms(q, sp.csr_array(paths.A)))
    dead = wanted == 0
    assert [paths.names[v] for v in np.flatnonzero(dead)] == ["8", "1", "2"]
    assert_allclose(found[~dead], np.log(wanted[~dead]), atol=1e-6)
    spent = weights.lam * paths.c * np.exp(p_v * found)
    assert spent[dead].max() <= 1e-6 * spent.sum()  # a step moves a logarithm by 30 at most
    assert found.min() >= -69.0


def test_weights_at_their_limit_cost_no_evaluations():
    class Counting(ExplicitForms):
        calls = 0

        def half_norm(self, old, u):
            self.calls += 1
            return super().half_norm(old, u)

    paths, _, weights, q, u = case(fig1(), 0.5, 3)
    q[:2] = 0.0
    read = Counting(q, sp.csr_array(paths.A))
    weights.update(u, read)
    assert read.calls <= 300


def test_no_functions_at_all():
    weights = SumProduct(np.ones(2), np.ones(2), 1.0)
    found = weights.update(np.zeros(2), ExplicitForms(np.zeros(2), sp.csr_array(np.eye(2))))
    assert_allclose(np.exp(found), 1e-30, rtol=0.1)
    assert np.isfinite(weights.penalty(found))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(STRUCTURES)),
    st.sampled_from(sorted(EXPONENTS)),
    st.integers(0, 2**31),
    st.floats(-12, 12),
)
def test_update_never_raises_the_objective(name, p, seed, shift):
    """From far away too: the point is moved by up to twelve in all logarithms."""
    paths, _, weights, q, u = case(STRUCTURES[name], EXPONENTS[p], seed)
    u = u + shift
    found = weights.update(u, ExplicitForms(q, sp.csr_array(paths.A)))
    assert np.isfinite(found).all()
    here = value(paths, weights, q, u, u)
    best = value(paths, weights, q, u, found)
    assert best <= here * (1 + 1e-12)
    r = path_weights(paths.A, np.exp(u)) ** 2 * q
    wanted = np.log(beta_step_oracle(paths.A, paths.c, r, weights.lam, weights.p))
    if np.all(wanted > u - 29):
        assert best <= value(paths, weights, q, u, wanted) * (1 + 1e-10)


def factored(n=8, seed=0):
    kernels = [Precomputed(np.eye(2), name=f"k{k}") for k in range(7)]
    network = Network.of(group(*kernels[:2]) + group(*kernels[2:4]) * group(*kernels[4:]))
    W = np.random.default_rng(seed).normal(size=(7, n, 3))
    K = W @ W.transpose(0, 2, 1)
    rows, columns = np.triu_indices(n)
    leaves = np.ascontiguousarray(K[:, rows, columns])
    paths = PathBank(Triangles(leaves, n), network, network.paths(100))
    return paths, FactoredBank(Triangles(leaves, n), network)


@pytest.mark.parametrize("p", [1.0, 2.0, 0.5])
def test_steps_without_paths_reach_the_same_weights(p):
    paths, same = factored()
    rng = np.random.default_rng(1)
    V, u = rng.normal(size=(8, 1)), rng.normal(size=paths.n_nodes)
    weights = SumProduct(paths.path_counts, np.full(paths.n_nodes, p), 0.8)
    wanted, found = weights.update(u, paths.path_forms(V)), weights.update(u, same.path_forms(V))
    assert_allclose(found, wanted, atol=1e-3)
    values = [paths.path_forms(V).half_norm(u, v)[0] + weights.penalty(v) for v in (wanted, found)]
    assert values[1] <= values[0] * (1 + 1e-8)


@pytest.mark.parametrize("shift", first(1, [12.0, 0.0, -12.0]))
@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_projected_gradients_reach_the_same_value(name, p, shift):
    """From far away too, and with nodes that no function needs."""
    for seed in range(3):
        paths, p_v, weights, q, u = case(STRUCTURES[name], EXPONENTS[p], seed)
        u = u + shift
        if seed == 2:
            q[:2] = 0.0
        r = path_weights(paths.A, np.exp(u)) ** 2 * q
        wanted = np.log(np.maximum(beta_step_oracle(paths.A, paths.c, r, weights.lam, p_v), 1e-30))
        found = projected_gradient(weights)(u, ExplicitForms(q, sp.csr_array(paths.A)))
        least = value(paths, weights, q, u, wanted)
        assert value(paths, weights, q, u, found) <= least * (1 + 1e-6)
        assert value(paths, weights, q, u, found) >= least * (1 - 1e-9)


def test_projected_gradients_take_few_evaluations():
    """Weights that differ by many orders are no reason for small steps."""

    class Counting(ExplicitForms):
        calls = 0

        def sums(self, u):
            self.calls += 1
            return super().sums(u)

    paths, _, weights, q, u = case(STRUCTURES["deep"], 1.0, 0)
    read = Counting(q * np.geomspace(1.0, 1e-8, len(q)), sp.csr_array(paths.A))
    projected_gradient(weights)(u, read)
    assert read.calls <= 100


def test_projected_gradients_without_functions():
    weights = SumProduct(np.ones(3), np.array([0.5, 1.0, 2.0]), 1.0)
    forms = ExplicitForms(np.zeros(3), sp.csr_array(np.eye(3)))
    found = projected_gradient(weights)(np.zeros(3), forms)
    assert weights.penalty(found) <= 1e-12


def test_penalty():
    weights = SumProduct(np.array([1.0, 2.0]), np.array([1.0, 3.0]), 0.5)
    assert weights.penalty(np.log([2.0, 3.0])) == pytest.approx(0.5 * (2 + 2 * 27))


# Lower bounds


def forms(sol, instance, alpha):
    q = np.array(
        [
            np.sum(alpha * instance.Y * (K @ (alpha * instance.Y)))
            for K in sol.paths.kernels(instance.grams)
        ]
    )
    return q, ExplicitForms(sol.paths.mu * np.maximum(q, 0.0), sp.csr_array(sol.paths.A))


def feasible(instance, rng):
    """Return a random dual point; with an intercept the classes are in balance."""
    alpha = instance.C * rng.random(instance.Y.shape) ** rng.choice([0.3, 1.0, 3.0])
    if instance.intercept:
        for a, y in zip(alpha.T, instance.Y.T, strict=True):
            sides = a[y > 0].sum(), a[y < 0].sum()
            a[y > 0] *= min(sides) / sides[0]
            a[y < 0] *= min(sides) / sides[1]
    return alpha


@pytest.mark.parametrize("name", every(2, spn_instances()))
def test_bounds_are_below_the_optimum(name):
    instance, sol = spn_instances()[name], solved(name)
    p = sol.paths.exponents(instance.p)
    weights = SumProduct(sol.paths.c, p, instance.lam)
    rng = np.random.default_rng(0)
    for k in range(30):
        alpha = feasible(instance, rng) if k % 3 else sol.alpha
        u = rng.normal(size=len(p)) * (2.0 if k % 2 else 0.3)
        if k % 5 == 0 and sol.beta.min() > 0:
            u = 0.1 * u + np.log(sol.beta)
        q, read = forms(sol, instance, alpha)
        bound = weights.lower_bound(alpha.sum(), read, u)
        assert bound <= sol.upper * (1 + 1e-9)
        same = lower_bound(
            sol.paths.A, sol.paths.mu, sol.paths.c, instance.lam, p, np.exp(u), alpha.sum(), q
        )
        assert bound == pytest.approx(same, rel=1e-9, abs=1e-9)
        best = weights.best_bound(alpha.sum(), read, u)
        assert bound <= best <= sol.upper * (1 + 1e-9)


@pytest.mark.parametrize("name", ["fig1_p2", "fig1_raw", "flat_p15", "deep_p3", "fig1_lam"])
def test_bounds_are_tight_at_the_optimum(name):
    instance, sol = spn_instances()[name], solved(name)
    weights = SumProduct(sol.paths.c, sol.paths.exponents(instance.p), instance.lam)
    _, read = forms(sol, instance, sol.alpha)
    bound = weights.lower_bound(sol.alpha.sum(), read, np.log(sol.beta))
    assert bound == pytest.approx(sol.value, rel=1e-6)


@pytest.mark.parametrize("name", ["fig1_p2", "fig1_raw", "flat_p15", "deep_p3", "fig1_lam"])
def test_bounds_far_from_the_best_weights_are_tight_at_the_best_dual_point(name):
    instance, sol = spn_instances()[name], solved(name)
    weights = SumProduct(sol.paths.c, sol.paths.exponents(instance.p), instance.lam)
    _, read = forms(sol, instance, sol.alpha)
    u = np.log(sol.beta) + 0.3 * np.random.default_rng(0).normal(size=len(sol.beta))
    bound = weights.lower_bound(sol.alpha.sum(), read, u)
    best = weights.best_bound(sol.alpha.sum(), read, u)
    assert sol.value - best <= 0.2 * (sol.value - bound) + 1e-9 * sol.value


def test_bound_of_nothing_is_zero():
    weights = SumProduct(np.ones(2), np.full(2, 2.0), 1.0)
    read = ExplicitForms(np.zeros(2), sp.csr_array(np.eye(2)))
    assert weights.lower_bound(0.0, read, np.zeros(2)) == 0.0
    assert weights.best_bound(0.0, read, np.zeros(2)) == 0.0


@pytest.mark.parametrize("p", [2.0, 20.0])
def test_bounds_hold_beside_weights_that_vanished(p):
    """A weight of 1e-30 has a power that is zero in floating point where p is large."""
    q = np.array([50.0, 0.0])
    weights = SumProduct(np.ones(2), np.array([1.0, p]), 1.0)
    read = ExplicitForms(q, sp.csr_array(np.eye(2)))
    bound = weights.lower_bound(9.0, read, np.array([0.0, -69.0]))
    alone = SumProduct(np.ones(1), np.ones(1), 1.0)
    assert bound == pytest.approx(
        alone.lower_bound(9.0, ExplicitForms(q[:1], sp.csr_array(np.eye(1))), np.zeros(1))
    )


# Convexity


def test_convexity_is_a_mean_along_paths():
    paths = brute_paths(fig1(0.75, 4.0))
    assert is_convex(paths.A @ (1 / paths.exponents(1.0)))
    assert is_convex(np.array([1.0 + 1e-12, 0.3]))
    assert not is_convex(np.array([0.3, 1.25]))
    assert not is_convex(brute_paths(fig1()).A @ np.full(9, 1 / 0.9))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.3, 4.0))
def test_midpoints_in_the_powers_of_the_weights(seed, p):
    """|w|^2 / g is convex in w and theta = beta^p exactly where the test says so."""
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.ones(3))
    p_v = p * np.exp(0.3 * rng.normal(size=3))

    def term(w, theta):
        return w**2 / np.prod(theta ** (a / p_v))

    if is_convex(np.array([np.sum(a / p_v)])):
        (w, x), (s, t) = rng.normal(size=2), np.exp(rng.normal(size=(2, 3)))
        middle = term((w + x) / 2, (s + t) / 2)
        assert middle <= (term(w, s) + term(x, t)) / 2 * (1 + 1e-12)
    elif np.sum(a / p_v) > 1.05:
        # Along the ray on which w^2 and g grow alike but for the excess it is concave.
        assert term(2.0, np.full(3, 2.0)) > 0
        f = [term(t, np.full(3, t)) for t in (1.0, 1.5, 2.0)]
        assert f[1] > (f[0] + f[2]) / 2 or np.sum(a / p_v) >= 2
