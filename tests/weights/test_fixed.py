"""Equal weights that are not learned."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.weights import Uniform


def test_uniform_written_out():
    assert_allclose(Uniform().start(4), 0.25)
    theta = Uniform().start(2)
    assert Uniform().update(theta, np.array([1.0, 5.0])) is theta
    assert Uniform().penalty(np.array([1.0, 2.0])) == pytest.approx(5)
    assert Uniform().support_value(np.array([1.0, 2.0])) == pytest.approx(1.5)
