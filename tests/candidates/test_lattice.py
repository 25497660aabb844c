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
