"""The quantile loss is least at the quantile."""

import numpy as np
import pytest

from kernelweave.losses import Quantile

LEVELS = (0.1, 0.5, 0.8)


def test_written_out():
    residual = np.array([[-2.0], [0.0], [3.0]])
    losses = Quantile((0.8,), False).row_losses(-residual, np.zeros((3, 1)), np.full((3, 1), 2.0))
    assert losses[:, 0] == pytest.approx([2.0 * 0.2 * 2.0, 0.0, 2.0 * 0.8 * 3.0])


def test_the_best_bias_of_every_level_is_its_quantile():
    y = np.random.default_rng(0).normal(size=101)  # quantiles at these levels are single values
    Y = np.repeat(y[:, None], 3, axis=1)
    _, bias = Quantile(LEVELS).value(np.zeros_like(Y), Y, np.ones_like(Y))
    assert bias == pytest.approx(np.quantile(y, LEVELS))


def test_an_output_keeps_its_level():
    assert [Quantile(LEVELS).of_output(o).levels for o in range(3)] == [(0.1,), (0.5,), (0.8,)]
    assert Quantile((0.3,)).of_output(2).levels == (0.3,)
