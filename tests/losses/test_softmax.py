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


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6, 1e8])
def test_the_bias_of_values_far_apart_is_found(scale):
    """Biases that undo an offset of each class leave no loss, however saturated the start is."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        classes = rng.integers(4, size=15)
        classes[:4] = range(4)
        Y = np.where(classes[:, None] == np.arange(4), 1.0, -1.0)
        fitted = scale * (40.0 * (Y > 0) + rng.uniform(-10, 10, Y.shape) + 300 * rng.normal(size=4))
        cost = np.repeat(10.0 ** rng.uniform(-3, 3, (15, 1)), 4, axis=1)
        assert Softmax().value(fitted, Y, cost)[0] <= 1e-8 * cost[:, 0].sum()
