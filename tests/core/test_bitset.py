"""Columns of bits: packing, sums, rows, and the search over conjunctions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hkl_oracles import brute_price, conjunctions
from kernelweave import _core


def table(n, p, share=0.5, seed=0):
    return np.random.default_rng(seed).random((n, p)) < share


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130, 1000])
def test_sums_products_and_rows_equal_those_of_numbers(n):
    rng = np.random.default_rng(n)
    P = table(n, 7, seed=n)
    bits = _core.pack_bits(P)
    V, W = rng.normal(size=(n, 3)), rng.normal(size=(7, 2))
    assert bits.shape == (7, -(-n // 64))
    assert _core.count_bits(bits).tolist() == P.sum(axis=0).tolist()
    np.testing.assert_allclose(_core.bit_sums(bits, V), P.T @ V, atol=1e-12)
    np.testing.assert_allclose(_core.bit_products(bits, W, n), P @ W, atol=1e-12)
    index = rng.integers(0, n, size=2 * n)
    np.testing.assert_array_equal(_core.bit_rows(bits, index), P[index])


def test_bits_after_the_last_row_are_zero():
    bits = _core.pack_bits(np.ones((65, 1), dtype=bool))
    assert bits.tolist() == [[2**64 - 1, 1]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: _core.bit_sums(b, np.zeros((200, 1))), "one row per row"),
        (lambda b: _core.bit_products(b, np.zeros((3, 1)), 100), "one row per column"),
        (lambda b: _core.bit_products(b, np.zeros((4, 1)), 200), "n_rows"),
        (lambda b: _core.bit_rows(b, np.array([128])), "range"),
        (lambda b: search(b, base=0.0), "base"),
        (lambda b: search(b, level=-1.0), "level"),
        (lambda b: search(b, most=0), "max_found"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call(_core.pack_bits(table(100, 4)))


def search(bits, V=None, base=2.0, level=0.0, longest=8, most=10**6, visits=10**9, known=()):
    V = np.zeros((100, 1)) if V is None else V
    return _core.search_conjunctions(bits, V, base, level, longest, most, visits, list(known))


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.integers(1, 150),
    st.integers(1, 3),
    st.sampled_from([0.6, 1.0, 1.5, 2.0, 3.0]),
    st.floats(0.1, 0.9),
)
def test_search_equals_enumeration(seed, p, n, n_outputs, base, share):
    rng = np.random.default_rng(seed)
    P = table(n, p, share, seed)
    V = rng.normal(size=(n, n_outputs)) * (rng.random((n, 1)) < 0.7)
    everything = brute_price(P, V, np.eye(n_outputs), 0.0, base)
    ratios = {rule: M / base ** (2 * len(rule)) for rule, M in everything.items() if rule}
    level = float(np.quantile(list(ratios.values()), 0.7)) if ratios else 0.0
    members, found, _, complete = search(_core.pack_bits(P), V, base, level)
    expected = {rule: ratio for rule, ratio in ratios.items() if ratio > level * (1 + 1e-9)}
    got = {tuple(rule): ratio for rule, ratio in zip(members, found, strict=True)}
    assert complete
    assert expected.keys() <= got.keys()
    assert all(ratios[rule] >= level * (1 - 1e-9) for rule in got)
    for rule, ratio in expected.items():
        assert got[rule] == pytest.approx(ratio, rel=1e-9)
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("spread", [0.0, 3.0, 12.0])
def test_search_bounds_values_of_any_spread(spread):
    """Values that differ by many orders, as of rows that stand for many, are told apart."""
    rng = np.random.default_rng(5)
    P = table(400, 7, 0.6, 5)
    V = rng.choice([-1.0, 1.0], size=(400, 2)) * np.exp(spread * rng.normal(size=(400, 1)))
    V[rng.random(400) < 0.3] = 0.0
    V[:, 1] = np.abs(V[:, 1])  # no row of the other sign
    everything = brute_price(P, V, np.eye(2), 0.0, 2.0)
    ratios = sorted(((M / 4.0 ** len(rule), rule) for rule, M in everything.items() if rule))[::-1]
    level = 0.5 * (ratios[30][0] + ratios[31][0])
    members, found, _, complete = search(_core.pack_bits(P), V, level=level)
    assert complete
    assert {tuple(m) for m in members} == {rule for _, rule in ratios[:31]}
    np.testing.assert_allclose(found, [ratio for ratio, _ in ratios[:31]], rtol=1e-9)


def test_search_keeps_the_largest_and_skips_known_ones():
    P, V = table(120, 8, seed=3), np.random.default_rng(4).normal(size=(120, 1))
    bits = _core.pack_bits(P)
    all_rules, all_ratios, visited, _ = search(bits, V)
    few_rules, few_ratios, fewer, complete = search(bits, V, most=5)
    assert complete
    assert few_rules == all_rules[:5]
    assert few_ratios == all_ratios[:5]
    assert fewer < visited
    without, *_ = search(bits, V, most=5, known=all_rules[:2])
    assert without == all_rules[2:7]


def test_search_says_when_it_gave_up_and_obeys_the_length():
    P, V = table(120, 8, seed=3), np.random.default_rng(4).normal(size=(120, 1))
    bits = _core.pack_bits(P)
    assert not search(bits, V, visits=20)[3]
    short, *_, complete = search(bits, V, longest=2)
    assert complete
    assert max(map(len, short)) == 2
    assert len(short) == len(conjunctions(P, 2).rules) - 1 - sum(
        not P[:, list(r)].all(axis=1).any() for r in conjunctions(P, 2).rules
    )


def test_search_can_be_interrupted():
    import signal

    rng = np.random.default_rng(0)
    bits, V = _core.pack_bits(table(4000, 40, 0.9)), rng.normal(size=(4000, 1))

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            search(bits, V, longest=40)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
