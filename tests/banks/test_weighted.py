"""Weighted sums of one storage form, added to what is there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.banks.weighted import WeightedFactors, WeightedGrams, WeightedLadder

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3))
DISTANCES = ((X[:, None] - X) ** 2).sum(axis=2)
GRAM = X @ X.T
PRESENT = np.ones(9, dtype=bool)
SUMS = {
    "factors": (WeightedFactors(np.ascontiguousarray(X.T)), GRAM),
    "no factor": (WeightedFactors(np.empty((0, 9))), 0.0 * GRAM),
    "ladder": (
        WeightedLadder(DISTANCES, np.array([0.5, 2.0]), np.array([0.3, 0.7]), PRESENT),
        0.3 * np.exp(-0.5 * DISTANCES) + 0.7 * np.exp(-2.0 * DISTANCES),
    ),
    "empty ladder": (WeightedLadder(DISTANCES, np.empty(0), np.empty(0), PRESENT), 0.0 * GRAM),
    "grams": (WeightedGrams([(np.array([2.0]), [GRAM])], 2.0 * GRAM.diagonal()), 2.0 * GRAM),
}


@pytest.mark.parametrize(("part", "expected"), SUMS.values(), ids=SUMS)
def test_parts_are_added(part, expected):
    upper, index = np.triu_indices(9), np.array([7, 2])
    for fresh in (True, False):
        out = np.full((9, 9), 5.0)
        part.add_upper(out, fresh=fresh)
        assert_allclose(out[upper], expected[upper] + (0.0 if fresh else 5.0), atol=1e-12)
    rows, block, diagonal = np.ones((2, 9)), np.ones((2, 2)), np.ones(9)
    part.add_rows(index, rows)
    part.add_block(index, block)
    part.add_diagonal(diagonal)
    assert_allclose(rows, 1.0 + expected[index], atol=1e-12)
    assert_allclose(np.triu(block), np.triu(1.0 + expected[np.ix_(index, index)]), atol=1e-12)
    assert_allclose(diagonal, 1.0 + expected.diagonal(), atol=1e-12)
    factor = part.factor()
    assert factor is None or np.allclose(factor.T @ factor, expected)
