"""A smoothed loss is below the loss, near to it, and has a continuous derivative."""

import numpy as np
import pytest

from kernelweave.losses import EpsilonInsensitive, Hinge, Quantile, Smoothed

FITTED = np.linspace(-3.0, 3.0, 601)[:, None]
ONES = np.ones_like(FITTED)
LOSSES = [Hinge(False), EpsilonInsensitive(0.25, False), Quantile((0.3,), False)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("width", [0.01, 0.5])
def test_bounds_and_slopes(loss, width):
    exact = loss.row_losses(FITTED, ONES, 2.0 * ONES)
    smooth = Smoothed(loss, width).row_losses(FITTED, ONES, 2.0 * ONES)
    assert (smooth <= exact + 1e-14).all()
    steepest = np.abs(loss.slope_bounds(FITTED, ONES, 2.0 * ONES)).max()
    assert (exact - smooth).max() <= 0.5 * width / 2.0 * steepest**2 + 1e-14
    bends = np.diff(smooth, n=2, axis=0) / 0.01**2  # at most cost / width, or the slope jumps
    assert bends.max() <= 2.0 / width * (1 + 1e-6)
    assert (bends >= -1e-9).all()


def test_what_it_takes_from_the_loss():
    assert not Smoothed(Hinge(False), 0.1).fit_intercept
    assert Smoothed(Quantile((0.1, 0.9)), 0.1).of_output(1).loss.levels == (0.9,)
    coef = np.array([[0.5], [-0.5]])
    linear = Smoothed(EpsilonInsensitive(0.25), 0.1).linear(coef, coef, np.ones((2, 1)))
    assert linear == pytest.approx(0.5 - 0.25)
