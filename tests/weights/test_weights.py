"""Sets of kernel weights: minimisers, penalties and dual bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from kernelweave.testing import check_weight_set
from kernelweave.weights import LpBall, Simplex, Uniform, WeightSet

SETS = [
    Simplex(),
    Uniform(),
    LpBall(1.0),
    LpBall(1.01),
    LpBall(1.5),
    LpBall(2.0),
    LpBall(4.0),
    LpBall(50.0),
]


@pytest.mark.parametrize("n_kernels", [1, 2, 7])
@pytest.mark.parametrize("weight_set", SETS, ids=str)
def test_contract(weight_set, n_kernels):
    check_weight_set(weight_set, n_kernels)


@given(st.floats(1.0, 20.0), st.integers(1, 12), st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_contract_of_random_balls(p, n_kernels, seed):
    # Very near one the ascent that finds the support value is slow; the simplex itself is above.
    check_weight_set(LpBall(1.0 if p < 1.02 else p), n_kernels, random_state=seed)


norms = arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 10).map(lambda x: round(x, 3)))


@given(norms, st.sampled_from([1.0, 1.2, 2.0, 5.0]))
@settings(max_examples=100, deadline=None)
def test_updates_are_minimisers(norms, p):
    """Compare with the stationarity condition: norms^2 / weights^(p + 1) is one number."""
    weight_set = LpBall(p)
    start = weight_set.start(len(norms))
    weights = weight_set.update(start, norms)
    if not norms.any():
        assert weights is start
        return
    assert np.sum(weights**p) == pytest.approx(1)
    used = norms > 0
    assert np.array_equal(weights > 0, used)
    multipliers = norms[used] ** 2 / weights[used] ** (p + 1)
    assert_allclose(multipliers, multipliers[0], rtol=1e-8)


def test_updates_agree_with_a_general_solver():
    norms = np.array([0.3, 1.0, 0.05, 2.0])
    for p in (1.5, 2.0, 4.0):
        found = minimize(
            lambda w: np.sum(norms**2 / w),
            np.full(4, 4 ** (-1 / p)),
            bounds=[(1e-6, 1)] * 4,
            constraints={"type": "ineq", "fun": lambda w, p=p: 1 - np.sum(w**p)},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        weights = LpBall(p).update(np.ones(4), norms)
        assert_allclose(weights, found.x, atol=1e-4)
        assert LpBall(p).penalty(norms) == pytest.approx(0.5 * found.fun, rel=1e-7)


def test_simplex_written_out():
    norms = np.array([3.0, 0.0, 1.0])
    assert_allclose(Simplex().update(np.ones(3) / 3, norms), [0.75, 0, 0.25])
    assert Simplex().penalty(norms) == pytest.approx(8)  # half of (3 + 1)^2
    assert Simplex().support_value(norms) == 3
    assert_allclose(Simplex().start(4), 0.25)


def test_uniform_written_out():
    assert_allclose(Uniform().start(4), 0.25)
    theta = Uniform().start(2)
    assert Uniform().update(theta, np.array([1.0, 5.0])) is theta
    assert Uniform().penalty(np.array([1.0, 2.0])) == pytest.approx(5)
    assert Uniform().support_value(np.array([1.0, 2.0])) == pytest.approx(1.5)


def test_large_exponents_approach_equal_weights():
    weights = LpBall(1e4).update(np.ones(3), np.array([1.0, 10.0, 100.0]))
    assert_allclose(weights, 1, atol=1e-2)
    assert LpBall(1e4).support_value(np.ones(3)) == pytest.approx(3, rel=1e-3)


def test_balls_are_nested():
    norms = np.array([0.5, 1.0, 2.0])
    penalties = [LpBall(p).penalty(norms) for p in (1.0, 1.5, 2.0, 4.0, 100.0)]
    assert penalties == sorted(penalties, reverse=True)
    tops = [LpBall(p).support_value(norms) for p in (1.0, 1.5, 2.0, 4.0, 100.0)]
    assert tops == sorted(tops)


def test_the_simplex_is_not_another_ball():
    with pytest.raises((AssertionError, ValueError, TypeError)):
        Simplex(2.0)


@pytest.mark.parametrize("weight_set", SETS, ids=str)
def test_lower_bound_written_out(weight_set):
    quadratic_forms = np.array([2.0, 4.0])
    top = weight_set.support_value(quadratic_forms)
    # Inside the box the whole step is allowed where it is best, and no more than that.
    assert weight_set.lower_bound(top, 0.0, quadratic_forms) == pytest.approx(0.5 * top)
    assert weight_set.lower_bound(3 * top, 0.0, quadratic_forms) == pytest.approx(2.5 * top)
    assert weight_set.lower_bound(3 * top, 0.0, quadratic_forms, bounded=False) == pytest.approx(
        4.5 * top
    )
    assert weight_set.lower_bound(top, top, quadratic_forms) == pytest.approx(0.25 * top)
    assert weight_set.lower_bound(-1.0, 0.0, quadratic_forms) == 0
    zero = np.zeros(2)
    assert weight_set.lower_bound(3.0, 0.0, zero) == 3
    assert weight_set.lower_bound(-3.0, 0.0, zero) == 0
    assert weight_set.lower_bound(3.0, 2.0, zero) == 2


class Greedy(LpBall):
    """Gives everything to the largest norm, which is not the minimiser."""

    def update(self, theta, norms):
        return np.eye(len(norms))[int(np.argmax(norms))] if norms.any() else theta


class Outside(LpBall):
    def update(self, theta, norms):
        return 1.5 * super().update(theta, norms) if norms.any() else theta


class Frozen(LpBall):
    def update(self, theta, norms):
        return theta


class Forgetful(LpBall):
    def update(self, theta, norms):
        return super().update(theta, norms) if norms.any() else self.start(len(norms))


class WrongPenalty(LpBall):
    def penalty(self, norms):
        return 1.01 * super().penalty(norms)


class ShortSupport(LpBall):
    def support_value(self, quadratic_forms):
        return 0.99 * super().support_value(quadratic_forms)


class LongSupport(LpBall):
    def support_value(self, quadratic_forms):
        return 1.01 * super().support_value(quadratic_forms)


class Optimist(LpBall):
    def lower_bound(self, linear, ridge, quadratic_forms, *, bounded=True):
        return 1.01 * super().lower_bound(linear, ridge, quadratic_forms, bounded=bounded)


class Unscaled(LpBall):
    def lower_bound(self, linear, ridge, quadratic_forms, *, bounded=True):
        return linear - 0.5 * (self.support_value(quadratic_forms) + ridge)


class FarStart(LpBall):
    def start(self, n_kernels):
        return np.ones(n_kernels)


@pytest.mark.parametrize(
    ("weight_set", "message"),
    [
        (Greedy(2.0), "other weights give"),
        (Outside(2.0), "outside the set"),
        (Frozen(2.0), "penalty"),
        (Forgetful(2.0), "all norms are zero"),
        (WrongPenalty(2.0), "penalty"),
        (ShortSupport(2.0), "support_value"),
        (LongSupport(2.0), "support_value"),
        (Optimist(2.0), "lower_bound"),
        (Unscaled(2.0), "lower_bound"),
        (FarStart(2.0), "start"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, WeightSet) else "",
)
def test_broken_sets_are_caught(weight_set, message):
    with pytest.raises(AssertionError, match=message):
        check_weight_set(weight_set)
