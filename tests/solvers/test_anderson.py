"""Anderson acceleration with its safeguard, and stall detection."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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


def test_inner_solves_that_fail_exhaust_patience_sooner():
    patience = Patience(0.5, limit=1000)
    patience.renew(1.0, 0)
    assert not any(patience.is_exhausted(0.9, k, solved=False) for k in range(9))
    assert not patience.is_exhausted(0.9, 9)  # one that does not fail starts the count anew
    assert not any(patience.is_exhausted(0.9, k, solved=False) for k in range(10, 19))
    assert not patience.is_exhausted(0.4, 19, solved=False)  # so does progress
    exhausted = [patience.is_exhausted(0.4, k, solved=False) for k in range(20, 30)]
    assert exhausted == [False] * 8 + [True] * 2 or exhausted == [False] * 9 + [True]
    assert patience.is_at_rounding


def contraction(n=5, seed=0, rate=0.95):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    M = Q @ np.diag(np.linspace(-0.5, rate, n)) @ Q.T
    goal = 0.5 * rng.normal(size=n)
    return (lambda x: goal + M @ (x - goal)), goal


def test_mixing_solves_linear_maps():
    step, goal = contraction()
    mixer, x, plain = Mixer(), np.zeros(5), np.zeros(5)
    for _ in range(8):
        x = mixer.mix(x, step(x), np.ones(5))
        plain = step(plain)
    assert np.abs(x - goal).max() < 1e-4
    assert np.abs(plain - goal).max() > 1e-2


def test_mixtures_stay_near_the_plain_step():
    step, _ = contraction(rate=0.999)
    mixer, x = Mixer(), np.full(5, 500.0)
    moved = []
    for _ in range(4):
        image = step(x)
        mixed = mixer.mix(x, image, np.ones(5))
        moved.append(np.abs(mixed - image).max())
        x = mixed
    assert moved[0] == 0.0
    assert max(moved) == pytest.approx(2.0, abs=1e-9)


def test_steps_that_grow_are_followed():
    """Their fixed point lies behind: a weight that begins to grow must not be sent back there."""
    mixer, x = Mixer(), np.full(3, 0.1)
    for _ in range(3):
        image = 1.1 * x
        mixed = mixer.mix(x, image, np.ones(3))
        assert (mixed >= image).all()
        x = image


def test_a_point_that_does_not_move_is_kept():
    mixer, x = Mixer(), np.array([1.0, 2.0])
    for _ in range(3):
        assert_array_equal(mixer.mix(x, x, np.ones(2)), x)


def test_coordinates_of_no_importance_do_not_count():
    """What has no weight moves on without spoiling the fit of the others."""
    step, goal = contraction(3)
    mixer, x = Mixer(), np.zeros(4)
    rng = np.random.default_rng(0)
    for _ in range(8):
        image = np.append(step(x[:3]), rng.normal())
        x = mixer.mix(x, image, np.array([1.0, 1.0, 1.0, 1e-12]))
    assert_allclose(x[:3], goal, atol=1e-4)
