"""Kernels of a list, priced without reading most of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelweave.banks import make_bank
from kernelweave.candidates import Candidates, Listed
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial

N = 50


@pytest.fixture(scope="module")
def bank():
    X = np.random.default_rng(0).normal(size=(N, 5))
    kernels = [RBF(width=w, columns=[c]) for w in (0.5, 1.0, 3.0) for c in range(5)]
    kernels += [RBF(width=0.3), Laplacian(width=1.0), Linear(), Polynomial(degree=2)]
    return make_bank(kernels, X)


def draw(seed, *, balanced=True, n_outputs=1):
    V = np.random.default_rng(seed).normal(size=(N, n_outputs))
    return V - V.mean(axis=0) if balanced else V


@pytest.mark.parametrize("centred", [True, False])
def test_bounds_are_upper_bounds(bank, centred):
    for seed in range(5):
        listed = Listed(bank, centred=centred)
        V = draw(seed, balanced=centred, n_outputs=2)
        listed.read(V)
        assert_allclose(listed.bounds(V), bank.quadratic_forms(V), rtol=1e-12)
        for step in (1e-6, 1e-2, 0.3, 10.0):
            moved = V + step * draw(seed + 100, balanced=centred, n_outputs=2)
            assert (listed.bounds(moved) >= bank.quadratic_forms(moved) * (1 - 1e-12)).all()


@given(st.integers(0, 10**6), st.floats(1e-9, 1e3))
@settings(max_examples=50, deadline=None)
def test_bounds_along_a_path(bank, seed, step):
    listed = Listed(bank, centred=True)
    rng = np.random.default_rng(seed)
    V = draw(seed)
    for _ in range(4):
        which = np.flatnonzero(rng.random(bank.n_kernels) < 0.5)
        if len(which):
            listed.read(V, which)
        V = V + step * draw(int(rng.integers(10**6)))
        quadratic_forms = bank.quadratic_forms(V)
        bounds = listed.bounds(V)
        assert (bounds >= quadratic_forms * (1 - 1e-9)).all()


def test_bounds_are_reached_by_kernels_of_rank_one():
    x = np.random.default_rng(0).normal(size=(N, 1))
    single = make_bank([Linear()], x)
    along = x - x.mean()
    listed = Listed(single, centred=True)
    listed.read(0.3 * along)
    assert_allclose(listed.bounds(2.0 * along), single.quadratic_forms(2.0 * along), rtol=1e-9)


def test_before_any_reading_nothing_is_known(bank):
    listed = Listed(bank, centred=True)
    assert np.isinf(listed.bounds(draw(0))).all()
    listed.read(draw(0), np.array([3]))
    assert np.isfinite(listed.bounds(draw(1))).tolist() == [j == 3 for j in range(bank.n_kernels)]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.999, 1.0, 1.5])
def test_price_finds_exactly_the_kernels_above_the_level(bank, share):
    for seed in range(3):
        listed = Listed(bank, centred=True)
        listed.read(draw(seed))
        V = draw(seed) + 0.01 * draw(seed + 50)
        quadratic_forms = bank.quadratic_forms(V)
        level = share * quadratic_forms.max()
        priced = listed.price(V, level)
        assert set(priced.ids) == set(np.flatnonzero(quadratic_forms > level))
        assert_allclose(priced.prices, quadratic_forms[priced.ids], rtol=1e-12)
        assert (np.diff(priced.prices) <= 0).all()
        assert priced.bound >= quadratic_forms.max() * (1 - 1e-12)
        assert priced.bound == pytest.approx(max(level, quadratic_forms.max()), rel=1e-9)
        assert priced.complete


def test_price_reads_everything_the_first_time(bank):
    listed = Listed(bank, centred=True)
    quadratic_forms = bank.quadratic_forms(draw(0))
    priced = listed.price(draw(0), 0.5 * quadratic_forms.max())
    assert listed.n_passes == 1
    assert set(priced.ids) == set(np.flatnonzero(quadratic_forms > 0.5 * quadratic_forms.max()))


def test_readings_fall_as_steps_shrink(bank):
    listed = Listed(bank, centred=True)
    V = draw(0)
    listed.read(V)
    counts = []
    for step in (1.0, 0.1, 0.01, 1e-3):
        V = V + step * draw(int(1 / step)) / np.sqrt(N)
        before = listed.n_passes
        listed.price(V, 0.999 * bank.quadratic_forms(V).max())
        counts.append(round((listed.n_passes - before) * bank.n_kernels))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
    assert counts[-1] <= 2


def test_nothing_is_read_below_the_level(bank):
    listed = Listed(bank, centred=True)
    V = draw(0)
    listed.read(V)
    priced = listed.price(V, 2 * bank.quadratic_forms(V).max())
    assert len(priced.ids) == 0
    assert listed.n_passes == 1
    assert priced.bound == 2 * bank.quadratic_forms(V).max()


def test_notes_count_no_reading(bank):
    listed = Listed(bank, centred=True)
    which = np.array([2, 5])
    listed.note(draw(0), which, bank.quadratic_forms(draw(0), which))
    assert listed.n_passes == 0
    assert_allclose(listed.bounds(draw(0))[which], bank.quadratic_forms(draw(0), which), rtol=1e-12)


def test_a_later_note_replaces_an_earlier_one(bank):
    listed = Listed(bank, centred=True)
    listed.read(draw(0))
    listed.read(draw(1), np.array([4]))
    assert listed.bounds(draw(1))[4] == pytest.approx(bank.quadratic_forms(draw(1))[4])
    assert listed.bounds(draw(1))[5] > bank.quadratic_forms(draw(1))[5]


def test_the_centred_trace_gives_the_smaller_bound(bank):
    V, moved = draw(0), draw(0) + 0.1 * draw(1)
    centred, plain = Listed(bank, centred=True), Listed(bank, centred=False)
    centred.read(V)
    plain.read(V)
    assert (centred.bounds(moved) <= plain.bounds(moved) * (1 + 1e-12)).all()
    assert (centred.bounds(moved) < 0.999 * plain.bounds(moved)).any()


def test_constant_and_zero_kernels(bank):
    X = np.column_stack([np.random.default_rng(0).normal(size=N), np.ones(N), np.zeros(N)])
    kernels = [Linear(columns=[0]), Linear(columns=[1]), Linear(columns=[2])]
    odd = make_bank(kernels, X)
    listed = Listed(odd, centred=True)
    listed.read(draw(0))
    assert_allclose(listed.bounds(draw(1))[1:], 0, atol=1e-10)


def test_it_is_a_source_of_candidates(bank):
    assert isinstance(Listed(bank, centred=True), Candidates)
