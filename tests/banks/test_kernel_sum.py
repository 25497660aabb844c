"""Weighted sums whose rows are computed on demand; their contract is in test_contract.py."""

import numpy as np
from numpy.testing import assert_allclose

from kernelweave.banks import GramKernel, make_bank
from kernelweave.kernels import Precomputed

X = np.random.default_rng(0).normal(size=(20, 4))
GRAMS = [X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(axis=2))]
WEIGHTS = np.array([0.3, 0.7])


def combined():
    bank = make_bank([Precomputed(K) for K in GRAMS], np.arange(20)[:, None], normalize=None)
    return bank.combine(WEIGHTS), np.tensordot(WEIGHTS, GRAMS, axes=1)


def test_a_product_completes_the_rows_that_were_fetched():
    kernel, K = combined()
    V = np.zeros((20, 1))
    V[:5] = 1.0
    kernel.fetch(np.arange(10, 15))
    assert sum(len(rows) for rows, _ in kernel.blocks) == 5
    assert_allclose(kernel @ V, K @ V)  # ten rows are more than a third, so all are computed
    assert max(len(rows) for rows, _ in kernel.blocks) == 20


def test_a_product_with_few_coefficients_reads_their_rows():
    kernel, K = combined()
    V = np.zeros((20, 2))
    V[[3, 8]] = [[1.0, -2.0], [0.5, 3.0]]
    assert_allclose(kernel @ V, K @ V)
    assert [rows.tolist() for rows, _ in kernel.blocks] == [[3, 8]]


def test_a_matrix_is_whole_from_the_start():
    matrix = GramKernel(GRAMS[0])
    matrix.fetch(np.array([1]))
    assert [len(rows) for rows, _ in matrix.blocks] == [20]
    assert matrix.rows(np.array([2, 0])).tolist() == GRAMS[0][[2, 0]].tolist()
    assert matrix.scaled(1.0) is matrix
