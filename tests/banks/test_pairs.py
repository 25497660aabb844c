"""Kernel values in blocks of pairs."""

import numpy as np
import pytest

from kernelweave.banks.pairs import PairBlocks
from kernelweave.pairs.solver import PairProblem, solve_pairs

RANDOM = np.random.default_rng(0)
F = RANDOM.random((1000, 7)) - 0.1
LABELS = np.where(RANDOM.random(1000) < 0.5 + 0.4 * (F[:, 0] - F[:, 3]), 1.0, -1.0)


@pytest.fixture(params=["8MB", "300KB"], ids=["memory", "file"])
def blocked(request, monkeypatch):
    """Return a function that holds values in several blocks."""
    monkeypatch.setattr("kernelweave.banks.row_source._BLOCK_BYTES", 10_000)

    def blocks(values):
        def fill(out, some):
            out[:] = values[some]

        found = PairBlocks.filled(*values.shape, fill, request.param)
        assert found.blocks.mapped == (request.param == "300KB")
        return found

    return blocks


def test_products_are_those_of_the_matrix(blocked):
    B = blocked(F)
    # Kernels compare 64 pairs at a time, and the values of a pair may depend on its companions.
    assert [rows.start % 64 for rows in B.blocks.slices()] == [0] * len(B.blocks.blocks)
    assert len(B.blocks.blocks) == 6
    w, v = RANDOM.random(7), RANDOM.random(1000)
    np.testing.assert_allclose(B @ w, F @ w, rtol=1e-13)
    np.testing.assert_allclose(B.T @ v, F.T @ v, rtol=1e-12)
    np.testing.assert_allclose(B.squared_transposed @ v, (F**2).T @ v, rtol=1e-13)
    assert B.min() == F.min()
    assert B.size == F.size
    few = B.select(np.array([5, 1]))
    assert few.shape == (1000, 2)
    np.testing.assert_array_equal(few.blocks.rows(np.arange(1000)), F[:, [5, 1]])


@pytest.mark.parametrize("values", [F, np.abs(F)], ids=["signed", "screened"])
def test_the_solution_is_that_of_the_matrix(blocked, values):
    c = np.full(1000, 1e-3)
    whole = PairProblem(values, c, values.T @ (c * LABELS), 1e-3)
    problem = PairProblem(blocked(values), c, whole.statistic, 1e-3)
    np.testing.assert_array_equal(problem.screened(), whole.screened())
    assert problem.screened().any() == (values is not F)
    found, expected = (solve_pairs(p, tol=1e-11) for p in (problem, whole))
    assert found.converged
    assert found.n_iter == expected.n_iter
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
