"""Anderson acceleration with its safeguard, and stall detection."""

import numpy as np
import pytest

from kernelweave.solvers.anderson import Alternation, Mixer, Patience

SLOPES = np.array([0.9, 0.7, 0.4])


def iterate(n_steps, mix):
    """Follow ``x -> SLOPES * x``, whose fixed point is zero, from ones; return the last size."""
    x, alternation = np.ones(3), Alternation()
    for _ in range(n_steps):
        assert alternation.fallback(float(x @ x)) is None
        x = alternation.advance(x, SLOPES * x, np.ones(3), mix=mix)
    return float(np.abs(x).max())


def test_mixed_steps_need_far_fewer_rounds():
    assert iterate(8, mix=False) == pytest.approx(0.9**8)
    assert iterate(8, mix=True) < 1e-4


def test_the_first_step_is_plain():
    step = np.array([1.0, -2.0])
    assert np.array_equal(Mixer().mix(np.zeros(2), step, np.ones(2)), step)


def test_a_mixture_stays_near_the_plain_step():
    mixer, x = Mixer(), np.zeros(1)
    for step in (np.array([1.0]), np.array([1.999999])):
        x = mixer.mix(x, step, np.ones(1))
    assert abs(x[0] - 1.999999) <= 2.0


def test_a_worse_mixture_is_replaced_by_the_plain_step_once():
    alternation, plain = Alternation(), np.array([0.5])
    assert alternation.fallback(1.0) is None
    alternation.advance(np.zeros(1), plain, np.ones(1))
    assert alternation.fallback(1.0 + 1e-9) is plain
    assert alternation.fallback(2.0) is None  # nothing is left to fall back to


def test_what_is_kept_is_what_comes_back():
    alternation, kept = Alternation(), np.array([7.0])
    alternation.fallback(1.0)
    alternation.advance(np.zeros(1), np.ones(1), np.ones(1), keep=kept)
    assert alternation.fallback(1.05, slack=0.1) is None
    alternation.advance(np.zeros(1), np.ones(1), np.ones(1), keep=kept)
    assert alternation.fallback(1.5, slack=0.1) is kept


def test_patience_counts_from_the_last_progress():
    patience = Patience(0.5, limit=3)
    assert not patience.is_exhausted(1.0, 1)  # from infinity
    assert patience.progressed
    assert not patience.is_exhausted(0.6, 3)
    assert not patience.progressed
    assert not patience.is_exhausted(0.5, 3)
    assert patience.progressed
    assert not patience.is_exhausted(0.4, 5)
    assert patience.is_exhausted(0.3, 6)
    patience.renew(0.3, 6)
    assert not patience.is_exhausted(0.3, 8)
