"""Samples of the rows that large fits begin with."""

import numpy as np
import pytest

from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.sample import take_sample
from kernelweave.weights import Simplex


@pytest.mark.parametrize("n_positive", [2, 30, 400])
def test_rare_classes_are_in_the_sample(n_positive):
    Y = np.full((8000, 1), -1.0)
    Y[np.random.default_rng(0).choice(8000, n_positive, replace=False)] = 1.0
    rows = []
    bank = type("Bank", (), {"workspace": None, "take": lambda self, index: rows.append(index)})()
    part, _ = take_sample(Problem(bank, Y, np.full((8000, 1), 3.0), Hinge(), Simplex()))
    targets, cost = part.Y, part.cost
    assert (targets > 0).sum() >= min(n_positive, 250)
    for sign in (-1.0, 1.0):  # errors of a class weigh as they do on all rows
        assert cost[targets == sign].sum() == pytest.approx(3.0 * (Y == sign).sum())
    assert len(targets) <= 8000 / 4 + 400
    assert (np.diff(rows[0]) > 0).all()


def test_quantities_are_spread_evenly():
    Y = np.random.default_rng(0).normal(size=(8000, 1))
    bank = type("Bank", (), {"workspace": None, "take": lambda self, index: index})()
    part, _ = take_sample(Problem(bank, Y, np.ones_like(Y), Hinge(), Simplex()))
    assert len(part.Y) == 2000
    assert part.cost.sum() == pytest.approx(8000)
    quantiles = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(np.quantile(part.Y, quantiles), np.quantile(Y, quantiles), atol=0.02)
