"""The simplex of kernel weights."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from kernelweave.weights import Simplex

norms = arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 10).map(lambda x: round(x, 3)))


def test_simplex_written_out():
    norms = np.array([3.0, 0.0, 1.0])
    assert_allclose(Simplex().update(np.ones(3) / 3, norms), [0.75, 0, 0.25])
    assert Simplex().penalty(norms) == pytest.approx(8)  # half of (3 + 1)^2
    assert Simplex().support_value(norms) == 3
    assert_allclose(Simplex().start(4), 0.25)


def test_the_simplex_is_not_another_ball():
    with pytest.raises((AssertionError, ValueError, TypeError)):
        Simplex(2.0)
