"""Balls of lp norms: minimisers, penalties and their order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from kernelweave.testing import check_weight_set
from kernelweave.weights import LpBall


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


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # of SLSQP
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
