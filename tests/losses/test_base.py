"""Conjugates of the losses: boxes, and the losses that follow from them."""

import numpy as np
import pytest

from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square


def test_the_dual_shapes_are_those_of_the_table():
    Y = np.array([[1.0], [-1.0], [1.0]])
    cost = np.array([[2.0], [3.0], [0.0]])
    hinge = Hinge().box(Y, cost)
    assert hinge.lower.ravel().tolist() == [0, -3, 0]
    assert hinge.upper.ravel().tolist() == [2, 0, 0]
    tube = EpsilonInsensitive(0.25).box(Y, cost)
    assert tube.dead_zone == 0.25
    assert np.array_equal(tube.upper, cost)
    huber = Huber(0.5).box(Y, cost)
    assert huber.upper.ravel().tolist() == [1, 1.5, 0]
    assert huber.ridge.ravel() == pytest.approx([1 / 2, 1 / 3, 0])
    square = Square().box(Y, cost)
    assert square.upper.ravel().tolist() == [np.inf, np.inf, 0]
    assert not Square().bounded


@pytest.mark.parametrize(
    ("loss_function", "residual", "expected"),
    [
        (Hinge(False), [0.0, 0.5, 1.5], [0.0, 0.5, 1.5]),  # y = 1 and f = 1 - residual
        (EpsilonInsensitive(0.1, False), [0.05, -0.3, 1.0], [0.0, 0.2, 0.9]),
        (Huber(0.5, False), [0.2, -0.5, 2.0], [0.02, 0.125, 0.875]),
        (Square(False), [1.0, -2.0, 0.0], [0.5, 2.0, 0.0]),
    ],
)
def test_losses_written_out(loss_function, residual, expected):
    Y = np.ones((3, 1))
    for C in (1.0, 3.0):
        total, bias = loss_function.value(Y - np.array(residual)[:, None], Y, np.full((3, 1), C))
        assert total == pytest.approx(C * sum(expected))
        assert not bias.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_values_that_overflowed_have_no_finite_loss(fit_intercept):
    Y = np.array([[1.0], [-1.0]])
    for fitted in ([[np.inf], [0.0]], [[np.nan], [0.0]]):
        total, bias = Hinge(fit_intercept).value(np.array(fitted), Y, np.ones((2, 1)))
        assert total == np.inf
        assert bias.tolist() == [0.0]
