"""Kernel values at pairs."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelweave import RBF, Laplacian, Linear, Overlap, Polynomial, Precomputed
from kernelweave.pairs.values import kernel_features, pair_features

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((30, 4))
PAIRS = np.column_stack([RANDOM.integers(15, size=150), RANDOM.integers(15, 30, size=150)])


def test_products_of_columns_sparse_or_dense():
    rows = np.where(np.abs(X) > 0.7, X, 0.0)
    F = pair_features(rows, PAIRS)
    np.testing.assert_array_equal(F, rows[PAIRS[:, 0]] * rows[PAIRS[:, 1]])
    thin = pair_features(csr_array(rows), PAIRS)
    assert isinstance(thin, csr_array)
    assert thin.nnz == np.count_nonzero(F)
    np.testing.assert_array_equal(thin.toarray(), F)


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        RBF(2.0),
        Laplacian(1.0),
        Polynomial(3),
        Overlap(),
        Linear() + 2 * RBF(1.0, columns=[0, 2]),
        Linear(columns=[0]) * RBF(1.0, columns=[1]),
    ],
    ids=str,
)
def test_values_at_pairs_are_entries_of_the_gram_matrix(kernel):
    K = kernel(X)
    found = kernel_features([kernel], X, PAIRS)
    np.testing.assert_allclose(found[:, 0], K[PAIRS[:, 0], PAIRS[:, 1]], rtol=1e-12, atol=1e-14)


def test_ready_matrices_are_read_entry_by_entry():
    K = X @ X.T
    rows = np.arange(30.0)[:, None]
    found = kernel_features([Precomputed(K)], rows, PAIRS)[:, 0]
    np.testing.assert_allclose(found, K[PAIRS[:, 0], PAIRS[:, 1]])
