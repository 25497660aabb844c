"""The reference solver for sum-product networks against definitions and closed forms."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import spn_oracles
from oracles import OracleError, solve_fixed, solve_mkl
from spn_oracles import (
    Paths,
    beta_step_oracle,
    brute_paths,
    deep,
    fig1,
    flat,
    flat_constants,
    group,
    joint_oracle,
    lambda_max_oracle,
    leaf,
    lower_bound,
    lp_cost,
    named,
    nested,
    objective,
    path_weights,
    phi_oracle,
    product,
    spn_instance,
    spn_instances,
    square,
    tree,
    two_level_penalty,
)

pytestmark = pytest.mark.slow

INSTANCES = spn_instances()
STRUCTURES = {
    "fig1": fig1(),
    "flat": flat(5),
    "tree": tree(),
    "square": square(5),
    "deep": deep(),
    "nested": nested(),
}
SOLVED = {}


def solved(name):
    if name not in SOLVED:
        SOLVED[name] = joint_oracle(*INSTANCES[name].arguments)
    return SOLVED[name]


def evaluate(entry, leaves, weight):
    """Value of a network by the definition; ``weight`` of a product node by its tuple."""
    if entry[0] == "leaf":
        return leaves[entry[1]]
    parts = [evaluate(child, leaves, weight) for child in entry[1]]
    if entry[0] == "sum":
        return sum(parts)
    total = weight(entry)
    for part in parts:
        total = total * part
    return total


def by_name(weights):
    return lambda entry: weights[entry[2]["name"]]


def random_beta(paths, seed=0):
    return np.exp(np.random.default_rng(seed).normal(size=len(paths.names)))


# Structures


def test_fig1_has_the_eight_paths_of_the_draft():
    paths = brute_paths(fig1())
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    wanted = [{"8": half, "1": half}, {"8": half, "2": half}]
    wanted += [{"9": half, i: quarter, j: quarter} for i in "34" for j in "567"]
    assert [m.exponents for m in paths.every] == wanted
    assert [m.multiplicity for m in paths.merged] == [1] * 8
    assert paths.every[6].layers == (("9",), ("4", "6"))
    assert paths.every[6].leaves == (3, 5)
    assert paths.homogeneous()


def test_equal_paths_of_a_square_merge():
    paths = brute_paths(square(3))
    assert len(paths.every) == 12
    assert len(paths.merged) == 9
    assert sorted(m.multiplicity for m in paths.merged) == [1] * 6 + [2] * 3
    cross = next(m for m in paths.merged if m.multiplicity == 2)
    # The first layer has the outer product and T twice.
    assert cross.exponents["TT"] == Fraction(1, 6)
    assert cross.exponents["T"] == Fraction(1, 3)
    assert cross.layers == (("T", "T", "TT"), ("1", "2"))


def test_deep_is_not_homogeneous():
    paths = brute_paths(deep())
    assert not paths.homogeneous()
    for name in ("11", "12"):
        met = {m.exponents[name] for m in paths.every if name in m.exponents}
        assert met == {Fraction(1, 6), Fraction(1, 9)}


@pytest.mark.parametrize("name", STRUCTURES)
def test_paths_are_the_terms_of_the_network(name):
    structure, paths = STRUCTURES[name], brute_paths(STRUCTURES[name])
    assert all(sum(m.exponents.values()) == 1 for m in paths.every)
    assert evaluate(structure, [1] * 7, lambda entry: 1) == len(paths.every)
    assert sum(m.multiplicity for m in paths.merged) == len(paths.every)
    primes = [2, 3, 5, 7, 11, 13, 17]
    products = [int(np.prod([primes[k] for k in m.leaves])) for m in paths.every]
    assert sum(products) == evaluate(structure, primes, lambda entry: 1)
    merged = zip(paths.merged, paths.mu, strict=True)
    per_path = sum(mu * np.prod([primes[k] for k in m.leaves]) for m, mu in merged)
    assert per_path == sum(products)


def test_rewriting():
    alone = brute_paths(leaf(3))
    assert alone.names == ["k3"]
    assert alone.every[0].exponents == {"k3": 1}
    below = brute_paths(product([leaf(0), leaf(1)], "P"))
    assert below.every[0].layers == (("P",),)
    assert below.every[0].leaves == (0, 1)
    # A sum under a sum is no layer of its own.
    a = brute_paths(("sum", [("sum", [leaf(0), ("sum", [leaf(1)])]), leaf(2)]))
    assert [m.exponents for m in a.every] == [{"k0": 1}, {"k1": 1}, {"k2": 1}]
    # A product under a product is in the same layer, and a shared one is met twice.
    inner = product([leaf(0)], "inner")
    twice = brute_paths(product([inner, inner], "outer"))
    assert twice.every[0].exponents == {"outer": Fraction(1, 3), "inner": Fraction(2, 3)}
    assert twice.every[0].leaves == (0, 0)


def test_shared_product_nodes_share_their_weight_and_leaves_do_not():
    k, shared = leaf(0), leaf(1, "shared")
    paths = brute_paths(("sum", [group([k, shared], "G"), k, shared]))
    assert paths.names == ["G", "k0", "shared", "k0_2"]
    half = Fraction(1, 2)
    assert [m.exponents for m in paths.every] == [
        {"G": half, "k0": half},
        {"G": half, "shared": half},
        {"k0_2": 1},
        {"shared": 1},
    ]


def test_the_order_of_the_rules_matters_for_a_sum_with_two_parents():
    S = ("sum", [leaf(0), leaf(1)])
    structure = ("sum", [S, product([S, S], "P")])
    by_order, other = brute_paths(structure), brute_paths(structure, insert_first=True)
    assert by_order.names == ["k0", "k1", "P", "k0_2", "k1_2"]
    assert other.names == ["k0", "k1", "P"]
    assert [m.leaves for m in by_order.every] == [m.leaves for m in other.every]
    i = INSTANCES["fig1_p1"]
    values = [joint_oracle(i.grams, p, i.Y, i.C, i.lam).value for p in (by_order, other)]
    assert values[0] < values[1] * (1 - 1e-3)


def test_a_node_at_two_depths_counts_in_both_layers():
    shared = leaf(0, "shared")
    top = product([shared, ("sum", [shared, leaf(1, "other")])], "top")
    first = brute_paths(top).every[0]
    # Half of one layer of two and the whole of the other.
    assert first.exponents == {"top": Fraction(1, 4), "shared": Fraction(3, 4)}


@pytest.mark.parametrize(
    "structure", [("sum", []), ("product", []), ("sum", [leaf(0, "a"), leaf(1, "a")])]
)
def test_bad_structures_are_refused(structure):
    with pytest.raises(ValueError, match=r"without children|Two nodes"):
        brute_paths(structure)


def test_own_exponents_come_before_those_given():
    paths = brute_paths(square(2, p=3.0))
    assert dict(zip(paths.names, paths.exponents(1.5), strict=True)) == {
        "T": 1.5,
        "1": 3.0,
        "2": 3.0,
        "TT": 1.5,
    }


# Statements of the specification about paths


def test_a_homogeneous_network_can_be_evaluated_at_powers_of_the_weights():
    i, paths = INSTANCES["fig1_p1"], brute_paths(fig1())
    old, new = random_beta(paths, 1), random_beta(paths, 2)
    kernels = paths.kernels(i.grams)
    power = {v: float(m.exponents[v]) for m in paths.every for v in m.exponents}

    def net(weights):
        gamma = {v: b ** power[v] for v, b in zip(paths.names, weights, strict=True)}
        return evaluate(fig1(), i.grams, by_name(gamma))

    g = path_weights(paths.A, old)
    np.testing.assert_allclose(net(old), np.tensordot(g, kernels, axes=1), rtol=1e-12)
    s = np.random.default_rng(3).normal(size=len(i.y))
    wanted = np.sum(g**2 * (kernels @ s @ s) / path_weights(paths.A, new))
    assert s @ net(old**2 / new) @ s == pytest.approx(wanted, rel=1e-12)


def test_a_node_used_twice_needs_its_exponent_shared_between_its_uses():
    # Homogeneous as section 1.4 has it, yet the network at beta^a_v has T's weight squared.
    T = leaf(0, "T")
    structure = ("sum", [product([T, T], "P")])
    paths = brute_paths(structure)
    assert paths.homogeneous()
    beta = {"P": 2.0, "T": 3.0}
    wanted = 2 ** (1 / 3) * 3 ** (2 / 3)
    assert path_weights(paths.A, [beta[v] for v in paths.names])[0] == pytest.approx(wanted)
    as_written = {"P": 2 ** (1 / 3), "T": 3 ** (2 / 3)}
    assert evaluate(structure, [1.0], by_name(as_written)) != pytest.approx(wanted, rel=0.1)
    by_use = {"P": 2 ** (1 / 3), "T": 3 ** (1 / 3)}
    assert evaluate(structure, [1.0], by_name(by_use)) == pytest.approx(wanted)


def test_the_penalty_of_eq_7_is_that_of_eq_4_only_as_corrected():
    paths, p = brute_paths(fig1()), brute_paths(fig1()).exponents(INSTANCES["fig1_mix"].p)
    power = dict(zip(paths.names, random_beta(paths) ** p, strict=True))
    direct = sum(
        sum(sum(power[v] for v in layer) / len(layer) for layer in m.layers) / len(m.layers)
        for m in paths.every
    )
    corrected = sum(c * power[v] for c, v in zip(paths.c, paths.names, strict=True))
    printed = sum(power[v] for m in paths.every for v in set().union(*m.layers))
    assert corrected == pytest.approx(direct, rel=1e-12)
    assert printed > 2 * direct


def test_midpoint_convexity_holds_where_it_should():
    rng = np.random.default_rng(0)
    exponents = np.array([0.5, 0.25, 0.25])

    def violated(p):
        x, y = np.exp(rng.normal(size=(2, 2000, 3)))
        v, w = rng.normal(size=(2, 2000))

        def f(theta, w):
            return w**2 / np.prod(theta ** (exponents / p), axis=1)

        middle = f((x + y) / 2, (v + w) / 2)
        return np.any(middle > (f(x, v) + f(y, w)) / 2 * (1 + 1e-12))

    assert not violated(np.array([1.0, 1.0, 1.0]))
    assert not violated(np.array([0.75, 3.0, 3.0]))
    assert violated(np.array([0.8, 0.8, 0.8]))  # the sum of a_mv / p_v is 1.25


# The joint problem


@pytest.mark.parametrize("name", INSTANCES)
def test_the_value_is_that_of_the_definition(name):
    """Problem (2) over all induced trees, without merging, from beta and the dual variables."""
    i, found = INSTANCES[name], solved(name)
    assert abs(found.gap) < 1e-8
    paths, p = found.paths, found.paths.exponents(i.p)
    beta, s = found.weights, found.alpha * i.Y
    R1, R2, F = 0.0, 0.0, np.zeros_like(i.Y)
    for m in paths.every:
        K = np.prod(i.grams[list(m.leaves)], axis=0)
        g = np.prod([beta[v] ** float(a) for v, a in m.exponents.items()])
        F += g * K @ s
        R1 += 0.5 * g * np.sum(s * (K @ s))  # |w|^2 / (2 g) with w = g sum_i s_i phi(x_i)
        for v, a in m.exponents.items():
            R2 += i.lam * float(a) * beta[v] ** p[paths.names.index(v)]
    value = R1 + R2 + i.C * np.sum(np.maximum(0, 1 - i.Y * (F + found.intercept)))
    assert value == pytest.approx(found.value, rel=1e-5)
    np.testing.assert_allclose(F + found.intercept, found.decision, atol=1e-5)
    np.testing.assert_allclose(found.K @ s, F, atol=1e-9)
    # The dual value at fixed weights, which the error of alpha enters squared.
    assert found.alpha.sum() - R1 + R2 == pytest.approx(found.value, rel=1e-8)
    # Complementary slackness says which rows are support vectors.
    margins = i.Y * found.decision
    assert np.all(found.alpha[margins > 1 + 1e-4] < 1e-4 * i.C)
    assert np.all(found.alpha[margins < 1 - 1e-4] > (1 - 1e-4) * i.C) or name == "zero_p1"


@pytest.mark.parametrize("name", INSTANCES)
def test_nodes_are_balanced_at_the_optimum(name):
    i, found = INSTANCES[name], solved(name)
    paths, p = found.paths, found.paths.exponents(i.p)
    pull = 0.5 * paths.A.T @ (paths.mu * found.g * found.q)
    push = i.lam * p * paths.c * found.beta**p
    np.testing.assert_allclose(pull, push, rtol=1e-5, atol=1e-9)
    R1 = 0.5 * np.sum(paths.mu * found.g * found.q)
    if np.ptp(p) == 0:
        assert R1 == pytest.approx(p[0] * i.lam * paths.c @ found.beta**p, rel=1e-6)


@pytest.mark.parametrize("name", ["fig1_p1", "fig1_half", "square_own", "fig1_mc3", "nested_p1"])
def test_other_weights_are_no_better(name):
    i, found = INSTANCES[name], solved(name)
    paths, p = found.paths, found.paths.exponents(i.p)
    rng = np.random.default_rng(0)
    cost = np.full(i.Y.shape, i.C)
    for size in (0.0, 0.01, 0.3):
        beta = (found.beta + 1e-4 * (size > 0)) * np.exp(size * rng.normal(size=len(p)))
        K = np.tensordot(paths.mu * path_weights(paths.A, beta), paths.kernels(i.grams), axes=1)
        machine = solve_fixed(K, i.Y, cost, loss="hinge", fit_intercept=i.intercept)
        value = machine.upper + i.lam * paths.c @ beta**p
        if size == 0:
            assert value == pytest.approx(found.value, rel=1e-8)
        assert value >= found.lower * (1 - 1e-10)
        # and the bound of that machine is below the optimum
        alpha = i.Y * machine.dual_coef
        q = np.array([np.sum(alpha * i.Y * (k @ (alpha * i.Y))) for k in paths.kernels(i.grams)])
        start = np.maximum(beta, 1e-12)
        bound = lower_bound(paths.A, paths.mu, paths.c, i.lam, p, start, alpha.sum(), q)
        assert bound <= found.upper * (1 + 1e-10)


@pytest.mark.parametrize("name", ["fig1_mix", "fig1_half", "deep_p3", "square_p1"])
def test_the_bound_never_exceeds_the_optimum(name):
    i, found = INSTANCES[name], solved(name)
    paths, p = found.paths, found.paths.exponents(i.p)
    rng = np.random.default_rng(1)
    kernels = paths.kernels(i.grams)
    bounds = []
    for t in range(100):
        alpha = np.clip(found.alpha + 10 ** -rng.uniform(0, 4) * rng.normal(size=i.Y.shape), 0, i.C)
        ratio = alpha[i.Y > 0].sum() / alpha[i.Y < 0].sum()
        alpha[i.Y > 0] /= max(1.0, ratio)
        alpha[i.Y < 0] *= min(1.0, ratio)
        beta = found.beta * np.exp(rng.uniform(0, 1) * (t > 50) * rng.normal(size=len(p)))
        q = np.array([np.sum(alpha * i.Y * (k @ (alpha * i.Y))) for k in kernels])
        bounds.append(lower_bound(paths.A, paths.mu, paths.c, i.lam, p, beta, alpha.sum(), q))
    assert max(bounds) <= found.upper * (1 + 1e-10)
    assert max(bounds) >= 0.98 * found.value


def test_merging_changes_nothing():
    i = replace(INSTANCES["square_own"], grams=INSTANCES["square_own"].grams[:3])
    structure = square(3, 3.0, 1.0)
    paths = brute_paths(structure)
    one = joint_oracle(i.grams, structure, i.Y, i.C, i.lam, i.p)
    apart = Paths(paths.names, paths.p, paths.every, paths.every)
    other = joint_oracle(i.grams, apart, i.Y, i.C, i.lam, i.p)
    assert one.value == pytest.approx(other.value, rel=1e-8)
    np.testing.assert_allclose(one.beta, other.beta, rtol=1e-4)


def test_an_output_and_its_opposite_are_one_output_at_half_the_penalty():
    i = INSTANCES["fig1_p1"]
    both = joint_oracle(i.grams, i.structure, np.hstack([i.Y, -i.Y]), i.C, i.lam)
    one = joint_oracle(i.grams, i.structure, i.Y, i.C, i.lam / 2)
    assert both.value == pytest.approx(2 * one.value, rel=1e-8)
    np.testing.assert_allclose(both.beta, one.beta, rtol=1e-4)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_lam_and_C_are_one_parameter(p):
    i, t = INSTANCES["fig1_p2"], 3.0
    one = joint_oracle(i.grams, i.structure, i.Y, i.C, i.lam, p)
    other = joint_oracle(i.grams, i.structure, i.Y, i.C * t, i.lam * t ** (p + 1), p)
    assert other.value == pytest.approx(t * one.value, rel=1e-8)
    np.testing.assert_allclose(other.beta, one.beta / t, rtol=1e-4)
    np.testing.assert_allclose(other.decision, one.decision, atol=1e-5)


def test_zeros_are_those_of_whole_components():
    assert {v for v, b in solved("tree_p1").weights.items() if b == 0} == {"10", "1", "2", "3"}
    assert {v for v, b in solved("weak_p1").weights.items() if b == 0} == {"8", "1", "2"}
    assert not solved("zero_p1").beta.any()
    for name, found in ((name, solved(name)) for name in INSTANCES):
        positive = found.beta[found.beta > 0]
        assert np.all(positive > 1e-6), name
        if np.all(found.paths.exponents(INSTANCES[name].p) > 1):
            assert len(positive) == len(found.beta)


def test_what_is_not_convex_is_refused():
    i = INSTANCES["fig1_p1"]
    with pytest.raises(ValueError, match="not convex"):
        joint_oracle(i.grams, i.structure, i.Y, i.C, i.lam, 0.9)


def test_bounds_that_do_not_meet_are_an_error(monkeypatch):
    monkeypatch.setattr(spn_oracles, "lower_bound", lambda *args: 1.0)
    with pytest.raises(OracleError, match="Lower bound 1"):
        joint_oracle(*INSTANCES["flat_p1"].arguments)


# The beta-step


def random_step(structure, p, seed):
    paths, rng = brute_paths(structure), np.random.default_rng(seed)
    r = np.exp(3 * rng.normal(size=len(paths.merged)))
    return paths.A, paths.c, r, float(np.exp(rng.normal())), paths.exponents(p)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("structure", ["fig1", "square", "deep"])
def test_beta_step_is_a_minimum(structure, p):
    A, c, r, lam, p = random_step(STRUCTURES[structure], p, 5)
    beta = beta_step_oracle(A, c, r, lam, p)

    def F(u):
        return objective(A, np.ones(len(r)), np.exp(u), np.sqrt(r), c, lam, p)

    def slope(u):
        return -A.T @ (r / (2 * np.exp(A @ u))) + lam * p * c * np.exp(p * u)

    found = minimize(F, np.zeros(len(c)), jac=slope, method="BFGS", options={"gtol": 1e-9})
    assert F(np.log(beta)) <= found.fun * (1 + 1e-14)
    assert found.fun == pytest.approx(F(np.log(beta)), rel=1e-9)
    np.testing.assert_allclose(beta, np.exp(found.x), rtol=1e-3)
    # The derivative of section 3.2, by central differences.
    u = np.log(beta) + 0.1
    steps = 1e-6 * np.eye(len(u))
    numeric = [(F(u + d) - F(u - d)) / 2e-6 for d in steps]
    np.testing.assert_allclose(numeric, slope(u), rtol=1e-6, atol=1e-6 * F(u))
    np.testing.assert_allclose(
        A.T @ (r / (2 * path_weights(A, beta))), lam * p * c * beta**p, rtol=1e-9
    )


@pytest.mark.parametrize("p", [0.5, 1.0, 3.0])
def test_beta_step_of_a_flat_network_has_a_closed_form(p):
    r = np.array([0.0, 1e-12, 0.3, 5.0, 1e6])
    paths = brute_paths(flat(5))
    beta = beta_step_oracle(paths.A, paths.c, r, 0.7, p)
    np.testing.assert_allclose(beta, (r / (1.4 * p)) ** (1 / (p + 1)), rtol=1e-11)
    kap, q = flat_constants(0.7, p)
    value = objective(paths.A, np.ones(5), beta, np.sqrt(r), paths.c, 0.7, p)
    assert value == pytest.approx(kap * np.sum(r ** (q / 2)), rel=1e-12)


def test_beta_step_leaves_out_nodes_without_a_path():
    paths = brute_paths(fig1())
    r = np.array([1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    weights = dict(zip(paths.names, beta_step_oracle(paths.A, paths.c, r, 1.0, 1.0), strict=True))
    assert {v for v, b in weights.items() if b == 0} == {"2", "4", "5", "7"}
    assert not beta_step_oracle(paths.A, paths.c, 0 * r, 1.0, 1.0).any()


# Special cases


@pytest.mark.parametrize("name", ["flat_p1", "flat_p15"])
def test_flat_networks_are_lp_norm_learning(name):
    i, found = INSTANCES[name], solved(name)
    cost = np.full(i.Y.shape, lp_cost(i.C, i.lam, i.p, found.norms))
    other = solve_mkl(i.grams, i.Y, cost, p=i.p, loss="hinge")
    np.testing.assert_allclose(other.decision, found.decision, atol=5e-5)
    weights = other.weights / other.weights.sum()
    np.testing.assert_allclose(found.beta / found.beta.sum(), weights, atol=1e-5)
    kap, q = flat_constants(i.lam, i.p)
    loss = i.C * np.sum(np.maximum(0, 1 - i.Y * found.decision))
    assert kap * np.sum(found.norms**q) + loss == pytest.approx(found.upper, rel=1e-10)


def test_two_levels_are_a_mixed_norm():
    paths = brute_paths(tree())
    groups, rng = [[0, 1, 2], [3, 4]], np.random.default_rng(0)
    for lam in (0.1, 1.0, 4.0):
        norms = np.exp(rng.normal(size=5))
        beta = beta_step_oracle(paths.A, paths.c, norms**2, lam, 1.0)
        value = objective(paths.A, np.ones(5), beta, norms, paths.c, lam, 1.0)
        assert two_level_penalty(norms, groups, lam) == pytest.approx(value, rel=1e-12)
    i, found = INSTANCES["tree_p1"], solved("tree_p1")
    loss = i.C * np.sum(np.maximum(0, 1 - i.Y * found.decision))
    total = two_level_penalty(found.norms, groups, i.lam) + loss
    assert total == pytest.approx(found.upper, rel=1e-10)


# The largest lam


@pytest.mark.parametrize("name", ["fig1_p1", "weak_p1", "nested_p1", "flat_p15", "fig1_mc3"])
def test_weights_vanish_at_lambda_max(name):
    i = INSTANCES[name]
    top = lambda_max_oracle(i.grams, i.structure, i.Y, i.C, i.intercept)
    above = joint_oracle(i.grams, i.structure, i.Y, i.C, 1.02 * top.upper, 1.0, i.intercept)
    below = joint_oracle(i.grams, i.structure, i.Y, i.C, 0.98 * top.lower, 1.0, i.intercept)
    at_zero = top.alpha.sum()
    assert not above.beta.any()
    assert above.value == pytest.approx(at_zero, rel=1e-10)
    assert below.beta.max() > 1e-3
    assert below.upper < at_zero * (1 - 1e-6)


def test_phi_of_a_flat_network_is_the_largest_form():
    q = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    paths = brute_paths(flat(5))
    assert phi_oracle(paths.A, paths.mu, paths.c, q)[:2] == pytest.approx((5.0, 5.0))
    paths = brute_paths(square(5))
    rng = np.random.default_rng(0)
    q = np.exp(rng.normal(size=len(paths.merged)))
    low, high, d = phi_oracle(paths.A, paths.mu, paths.c, q)
    assert low == pytest.approx(high, rel=1e-12)
    assert paths.c @ d == pytest.approx(1.0)
    for _ in range(200):
        other = d * np.exp(rng.uniform() * rng.normal(size=len(d)))
        assert np.sum(paths.mu * q * path_weights(paths.A, other)) <= high * (paths.c @ other)


def test_all_dual_variables_at_C_may_underestimate_lambda_max():
    # Unequal classes: the first row is the sum of the two others, but not of their hull.
    angle = np.pi / 3
    X = np.array([[1, 0], [np.cos(angle), np.sin(angle)], [np.cos(angle), -np.sin(angle)]])
    y, K = np.array([1.0, -1.0, -1.0]), X @ X.T
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert y @ K @ y / 2 == pytest.approx(0.0, abs=1e-15)
    structure = ("sum", named((0,)))
    top = lambda_max_oracle(K[None], structure, y, 1.0)
    assert top.value == pytest.approx(0.125, rel=1e-6)
    assert joint_oracle(K[None], structure, y, 1.0, 0.12).beta[0] > 0.01
    assert joint_oracle(K[None], structure, y, 1.0, 0.13).beta[0] == 0


def test_instances_are_those_of_their_seed():
    one, other = spn_instance(1, fig1(), 7), INSTANCES["fig1_p1"]
    np.testing.assert_array_equal(one.grams, other.grams)
    np.testing.assert_array_equal(one.Y, other.Y)
    for i in INSTANCES.values():
        assert 30 <= len(i.y) <= 40
        assert 5 <= len(i.grams) <= 7
        np.testing.assert_allclose(np.diagonal(i.grams, axis1=1, axis2=2), 1.0)
