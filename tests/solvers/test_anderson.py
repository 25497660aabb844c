"""Anderson mixing, the fallback of an alternation, and stall detection."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernelweave.solvers.anderson import Alternation, Mixer, Patience


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


def test_the_first_step_is_plain():
    point, step = np.zeros(3), np.array([1.0, -2.0, 0.5])
    assert_array_equal(Mixer().mix(point, step, np.ones(3)), step)


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


def test_a_step_that_raises_the_objective_is_replaced_by_the_plain_one():
    alternation, plain = Alternation(), np.array([1.0, 2.0])
    assert alternation.fallback(3.0) is None
    alternation.advance(np.zeros(2), plain, np.ones(2))
    assert_array_equal(alternation.fallback(4.0), plain)
    assert alternation.fallback(5.0) is None  # the plain step itself is never taken back
    assert_array_equal(alternation.advance(plain, 2 * plain, np.ones(2), mix=False), 2 * plain)


def test_patience_counts_solves_without_progress():
    patience = Patience(0.9, 3)
    assert not patience.is_exhausted(1.0, 1)
    assert patience.progressed
    assert not patience.is_exhausted(0.95, 3)
    assert not patience.progressed
    assert patience.is_exhausted(0.95, 4)
    assert not patience.is_exhausted(0.8, 5)
    patience.renew(patience.gap, 9)
    assert not patience.is_exhausted(0.8, 11)
    assert patience.is_exhausted(0.8, 12)
