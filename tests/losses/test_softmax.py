"""The multinomial loss: two classes are the logistic loss, and absent classes are bounded."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.losses import Logistic, Softmax


def test_two_classes_are_the_logistic_loss():
    margins = np.concatenate([np.linspace(-700, 700, 57), [1e-9, -1e-9, 37.5, -37.5]])[:, None]
    one = np.ones_like(margins)
    losses = Logistic(False).row_losses(margins, one, one)[:, 0]
    pair, target = np.hstack([margins, 0 * margins]), np.hstack([one, -one])
    found = Softmax(False).row_losses(pair, target, np.ones_like(pair))
    assert_allclose(found[:, 0], losses, rtol=1e-13)


def test_a_class_without_rows_is_bounded():
    two = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]])
    value, bias = Softmax().value(np.zeros((2, 3)), two, np.ones((2, 3)))
    assert value == pytest.approx(2 * np.log(2))
    assert np.isfinite(bias).all()
    assert not Softmax().tangent(np.zeros((2, 3)), two, np.ones((2, 3))).dual_coef[:, 2].any()
