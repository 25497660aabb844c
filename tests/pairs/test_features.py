"""Kernel values at pairs."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelweave import RBF, Laplacian, Linear, Overlap, Polynomial, Precomputed
from kernelweave.errors import InputError
from kernelweave.pairs import check_pairs, kernel_features, pair_features

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((30, 4))
PAIRS = np.column_stack([RANDOM.integers(15, size=150), RANDOM.integers(15, 30, size=150)])
S = np.where(np.arange(150) % 2, 1, -1)


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


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([[0, 30]], "pairs: row numbers must lie between 0 and 29, but pair 0 is .0, 30."),
        ([[0, 1], [-1, 2]], "pairs: row numbers must lie between 0 and 29, but pair 1 is .-1, 2."),
        ([[0, 1], [3, 3]], "pairs: a pair needs two rows, but pair 1 is .3, 3."),
        ([[0, np.nan]], "pairs: must be row numbers of shape"),
        ([[0, np.inf]], "pairs: must be row numbers of shape"),
        ([[0, 1.5]], "pairs: must be row numbers of shape"),
        ([["a", "b"]], "pairs: must be row numbers of shape"),
        ([[0, 1], [2]], "pairs: must be row numbers of shape"),
        ([0, 1], "pairs: must be row numbers of shape"),
        ([[0, 1, 2]], "pairs: must be row numbers of shape"),
        (np.empty((0, 2), int), "pairs: must be row numbers of shape"),
    ],
)
def test_bad_pairs(pairs, sentence):
    with pytest.raises(InputError, match=sentence):
        check_pairs(pairs, [1] * len(pairs), 30)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([1, 0], "labels: must be .1 .same. or -1 .different. for each of the 2 pairs"),
        ([1, np.nan], "labels: must be .1"),
        (["same", "different"], "labels: must be .1"),
        ([1], "labels: must be .1"),
        (None, "labels: must be .1"),
        ([1, 1], "labels: no pair is labelled different, -1; both kinds are needed"),
        ([-1, -1], "labels: no pair is labelled same, .1; both kinds are needed"),
    ],
)
def test_bad_labels(labels, sentence):
    with pytest.raises(InputError, match=sentence):
        check_pairs([[0, 1], [1, 2]], labels, 30)


def test_whole_floats_are_row_numbers():
    pairs, signs = check_pairs([[0.0, 1.0], [1.0, 2.0]], [True, -1], 30)
    assert pairs.dtype == np.intp
    assert signs.tolist() == [1.0, -1.0]


def test_repeats_are_kept_and_contradictions_reported():
    pairs, signs = check_pairs([[0, 1], [1, 0], [2, 3]], [1, 1, -1], 30)
    assert len(pairs) == len(signs) == 3
    with pytest.warns(UserWarning, match=r"labels: 1 pair\(s\) are labelled both \+1 and -1"):
        check_pairs([[0, 1], [1, 0], [2, 3]], [1, -1, -1], 30)
