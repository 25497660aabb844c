"""The lattice of conjunctions: what is active, what it is worth, and what stands out beyond."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hkl_oracles import brute_price, closure, conjunctions, sufficient_kernel
from kernelweave.banks.rules import PackedRows
from kernelweave.candidates.lattice import ConjunctionLattice
from lattice_cases import problem


def price_all(P, V, base):
    """Return ``M_w / cost^2`` of all conjunctions but the empty one."""
    values = brute_price(P, V, np.eye(V.shape[1]), -1.0, 1.0)
    return {rule: M / base ** (2 * len(rule)) for rule, M in values.items() if rule}


def test_it_begins_with_single_propositions():
    P, _ = problem()
    lattice = ConjunctionLattice(PackedRows.of(P), base=3.0)
    assert lattice.nodes == [(), *((c,) for c in range(6))]
    assert lattice.costs.tolist() == [1.0] + 6 * [3.0]
    assert lattice.max_length == 6
    assert ConjunctionLattice(PackedRows.of(P), max_length=2).max_length == 2


def test_the_whole_lattice_is_the_enumerated_one():
    P, _ = problem(p=4)
    lattice = ConjunctionLattice(PackedRows.of(P))
    lattice.add([(0, 1, 2, 3)])
    whole = conjunctions(P)
    order = [whole.rules.index(node) for node in lattice.nodes]
    np.testing.assert_array_equal(
        lattice.ancestors.toarray().T.astype(bool), closure(whole.parents)[np.ix_(order, order)]
    )


def test_combined_kernels():
    P, V = problem(n_outputs=2)
    lattice = ConjunctionLattice(PackedRows.of(P))
    lattice.add([(0, 1), (2, 3, 4)])
    weights = np.random.default_rng(1).random(len(lattice.nodes))
    weights[3] = 0.0
    support = np.stack([P[:, list(node)].all(axis=1) for node in lattice.nodes]).astype(float)
    gram = (support.T * weights) @ support
    np.testing.assert_allclose(lattice.combine(weights) @ V, gram @ V)
    np.testing.assert_allclose(lattice.combine(weights, 2) @ V, gram @ V)


def test_sources():
    P, _ = problem()
    lattice = ConjunctionLattice(PackedRows.of(P))
    assert lattice.is_source((0, 1))
    assert not lattice.is_source((0, 1, 2))
    lattice.add([(0, 1), (0, 2), (1, 2)])
    assert lattice.is_source((0, 1, 2))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 7),
    n_outputs=st.integers(1, 3),
    base=st.sampled_from([0.6, 1.0, 1.5, 2.0, 4.0]),
    share=st.floats(0.0, 1.2),
    longest=st.sampled_from([None, 1, 2, 3]),
    absent=st.booleans(),
)
def test_search_is_enumeration(seed, p, n_outputs, base, share, longest, absent):
    P, V = problem(25, p, n_outputs, seed)
    if absent:
        V[np.arange(25) % 3 == 0] = 0.0  # rows that say nothing are left out of the search
    lattice = ConjunctionLattice(PackedRows.of(P), base=base, max_length=longest)
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in combinations(range(p), 2) if rng.random() < 0.3]
    if longest is None or longest >= 2:
        lattice.add(pairs)
    ratios = price_all(P, V, base)
    outside = {
        rule: ratio
        for rule, ratio in ratios.items()
        if rule not in lattice.nodes and (longest is None or len(rule) <= longest)
    }
    level = share * max(ratios.values(), default=0.0)
    expected = {rule: ratio for rule, ratio in outside.items() if ratio > level * (1 + 1e-9)}
    found = lattice.price(V, level, 10**6)
    assert found.complete
    assert list(found.prices) == sorted(found.prices, reverse=True)
    got = dict(zip(found.ids, found.prices, strict=True))
    missed = set(expected) - set(got)
    # A conjunction with the support of a shorter one has the smaller ratio unless base < 1.
    assert not missed or all(ratios[rule] <= max(got.values(), default=level) for rule in missed)
    for rule, ratio in got.items():
        assert ratio == pytest.approx(ratios[rule], rel=1e-9, abs=1e-12)
        assert rule not in lattice.nodes
        assert longest is None or len(rule) <= longest
    if expected:
        assert max(got.values()) == pytest.approx(max(expected.values()), rel=1e-9)
    else:
        assert all(ratio <= level * (1 + 1e-9) for ratio in got.values())


def table_of_repetitions(n, seed):
    """Return truth values of nested cuts, their negations, single values left out, and copies."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, size=n)
    cuts = x[:, None] <= np.arange(1, 4)
    others = rng.permutation(n)[:, None] != np.arange(3)
    P = np.hstack([cuts, ~cuts[:, :1], others, rng.random((n, 2)) < 0.5])
    return P[:, [*range(P.shape[1]), 0, 8]]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([12, 40, 90]),
    n_outputs=st.integers(1, 3),
    base=st.sampled_from([0.8, 1.0, 1.2, 2.0]),
    share=st.floats(0.02, 0.9),
    longest=st.sampled_from([None, 3]),
)
def test_conjunctions_of_the_same_rows_are_all_found(seed, n, n_outputs, base, share, longest):
    P = table_of_repetitions(n, seed)
    rng = np.random.default_rng(seed)
    V = np.round(rng.normal(size=(n, n_outputs)), 1) * (rng.random(n) < 0.8)[:, None]
    lattice = ConjunctionLattice(PackedRows.of(P), base=base, max_length=longest)
    lattice.add([pair for pair in combinations(range(P.shape[1]), 2) if rng.random() < 0.3])
    prices = {}
    for k in range(1, 1 + (longest or P.shape[1])):
        for rule in combinations(range(P.shape[1]), k):
            sums = P[:, list(rule)].all(axis=1) @ V
            prices[rule] = sums @ sums / base ** (2 * k)
    level = share * max(prices.values()) + 1e-6
    near = 1e-9 * level  # where the order of a sum decides
    found = lattice.price(V, level, 10**6)
    assert found.complete
    outside = {r: v for r, v in prices.items() if r not in lattice.nodes}
    assert {r for r, v in outside.items() if v > level + near} <= set(found.ids)
    assert set(found.ids) <= {r for r, v in outside.items() if v > level - near}
    assert len(found.ids) == len(set(found.ids))


def test_what_few_propositions_cannot_gain_is_not_searched():
    """Each proposition excludes one row: six of them, which cost 1.5^6, change a sum by six."""
    n = 40
    V = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    lattice = ConjunctionLattice(PackedRows.of(~np.eye(n, dtype=bool)), base=1.5, max_visited=2000)
    found = lattice.price(V, 1.0, 100)
    assert found.complete
    assert not found.ids


def test_repetitions_are_not_searched():
    rng = np.random.default_rng(0)
    P, V = rng.random((200, 6)) < 0.7, rng.normal(size=(200, 1))
    V -= V.mean()
    level = 0.8 * max(price_all(P, V, 1.2).values())
    once = ConjunctionLattice(PackedRows.of(P), base=1.2).price(V, level, 1000)
    copies = ConjunctionLattice(PackedRows.of(np.repeat(P, 6, axis=1)), base=1.2, max_visited=2000)
    found = copies.price(V, level, 1000)
    assert found.complete
    assert set(found.ids) >= {tuple(6 * c for c in rule) for rule in once.ids}
    assert found.prices[0] == once.prices[0]


def test_search_keeps_the_largest():
    P, V = problem(60, 7)
    lattice = ConjunctionLattice(PackedRows.of(P), base=1.0)
    ratios = sorted((r for rule, r in price_all(P, V, 1.0).items() if len(rule) > 1), reverse=True)
    few = lattice.price(V, 0.0, 5)
    assert len(few.ids) == 5
    assert few.prices[0] == pytest.approx(ratios[0])
    assert few.complete


def test_search_that_gives_up_says_so():
    P, V = problem(60, 7)
    lattice = ConjunctionLattice(PackedRows.of(P), base=1.0, max_visited=10)
    assert not lattice.price(V, 0.0, 100).complete
    assert lattice.price(V, 1e12, 100).complete  # nothing to look at


def test_the_published_condition_is_larger():
    """It sums over all that lies below a source, where the tight one takes the largest."""
    P, V = problem(20, 4, seed=3)
    lattice = ConjunctionLattice(PackedRows.of(P))
    lattice.add([(0, 1), (1, 2)])
    found = lattice.price_sources(V, 0.0, 100)
    assert all(lattice.is_source(node) for node in found.ids)
    ratios = price_all(P, V, 2.0)
    for node, value in zip(found.ids, found.prices, strict=True):
        assert value == pytest.approx((V.T @ sufficient_kernel(P, node, 2.0) @ V).item(), rel=1e-9)
        assert value >= ratios[node] * (1 - 1e-12)
