"""The contract of weight sets catches what is broken, and says what it is."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelweave.testing import check_weight_set
from kernelweave.weights import LpBall, WeightSet

norms = arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 10).map(lambda x: round(x, 3)))


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
