"""Moments of Nystroem features, summed over passes."""

import numpy as np

from kernelweave.banks import make_bank
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.kernels import RBF, Additive, Linear, Polynomial
from kernelweave.ridge import average_ridges
from kernelweave.ridge.moments import _groups
from kernelweave.ridge.nystroem import average_ridges_nystroem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = np.column_stack([np.sign(X[:, 0] + 0.5 * RNG.normal(size=150)), X[:, 1] ** 2])
RIDGES = np.geomspace(1e-2, 1e3, 7)


# Two of them are no kernels to learn from: a copy of the first, and a constant.
KERNELS = [RBF(1.0), RBF(1.0), Linear(), Polynomial(2), 3.0 * RBF(1.0), Additive((1.0, 0.5, 2.0))]


def pair(kernels=KERNELS, rows=X, targets=Y, **options):
    bank = make_bank(kernels, rows, tol=1e-9)
    exact = average_ridges(bank, targets, ridges=RIDGES, **options)
    return exact, average_ridges_nystroem(kernels, rows, targets, ridges=RIDGES, **options)


def test_a_common_offset_costs_few_digits():
    exact, found = pair([Linear()], X + 1e6)
    np.testing.assert_allclose(found.average.scores, exact.scores, rtol=0, atol=2e-4)


def test_kernels_that_differ_in_few_rows_are_no_copies():
    """Rows that tell copies may all be alike, where others are not."""
    rng = np.random.default_rng(0)
    a, flag = rng.normal(size=6000), np.zeros(6000)
    rare = np.setdiff1d(np.arange(6000), even_rows(6000, 500))[::400]
    flag[rare] = 1.0
    Y = np.where((a > 0) ^ (flag > 0), 1.0, -1.0)[:, None]
    rows = np.column_stack([a, flag])
    kernels = [RBF(1.0, columns=[0]), RBF(1.0, columns=[0, 1]), 2.0 * RBF(1.0, columns=[0])]
    average = average_ridges_nystroem(kernels, rows, Y).average
    assert (average.kernel_weights[:2] > 0).all()
    assert average.kernel_weights[2] == 0.0


def test_little_memory_means_more_readings_of_the_same(monkeypatch):
    monkeypatch.setattr("kernelweave.ridge.moments.check_memory", lambda *args: None)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    Y = np.sign(rows[:, [0]] + 0.5 * rng.normal(size=(300, 1)))
    kernels = [RBF(1.0), RBF(2.0), Linear()]
    plenty = average_ridges_nystroem(kernels, rows, Y).average
    little = average_ridges_nystroem(kernels, rows, Y, memory=1.0).average
    np.testing.assert_array_equal(little.scores, plenty.scores)
    assert _groups([0, 1], [FakeLandmarks(10), FakeLandmarks(10)], 9000.0) == [[0], [1]]
    assert _groups([0, 1], [FakeLandmarks(10), FakeLandmarks(10)], 17_000.0) == [[0, 1]]


class FakeLandmarks:
    def __init__(self, size):
        self.size = size
