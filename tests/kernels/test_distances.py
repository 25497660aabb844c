"""Squared distances keep their digits, for dense and sparse rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernelweave.kernels.distances import inner_products, squared_distances, squared_norms


def exact(A, B, scales=1.0):
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    return (((A[:, None] - B) * scales) ** 2).sum(axis=2)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("columns", [1, 4])
def test_distances_of_rows_near_each_other_and_far_from_zero(form, columns):
    rng = np.random.default_rng(0)
    A = 1e6 + rng.normal(size=(50, columns)) * rng.choice([1e-6, 1.0, 1e3], size=(50, 1))
    B = np.vstack([A[:5] + 1e-9, rng.normal(size=(20, columns))])
    np.testing.assert_allclose(squared_distances(form(A), form(B)), exact(A, B), rtol=1e-12)
    rows = form(A)
    own = squared_distances(rows, rows)
    np.testing.assert_allclose(own, exact(A, A), rtol=1e-12)
    assert np.array_equal(own, own.T)
    assert not own.diagonal().any()


def test_scales_precision_and_overflow():
    rng = np.random.default_rng(1)
    A, B, scales = rng.normal(size=(9, 3)), rng.normal(size=(4, 3)), np.array([2.0, 0.0, 0.5])
    found = squared_distances(A, B, scales=scales, dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact(A, B, scales), rtol=1e-6)
    huge = np.array([[1e200], [-1e200]])
    assert squared_distances(huge, huge).tolist() == [[0.0, np.inf], [np.inf, 0.0]]
    assert squared_distances(A, B[:0]).shape == (9, 0)


def test_products_and_norms_of_sparse_rows_are_those_of_dense_ones():
    A = np.random.default_rng(2).normal(size=(6, 5)) * (np.arange(5) % 2)
    np.testing.assert_allclose(inner_products(csr_array(A), A), A @ A.T, atol=1e-15)
    np.testing.assert_allclose(inner_products(csr_array(A), csr_array(A)), A @ A.T, atol=1e-15)
    np.testing.assert_allclose(squared_norms(csr_array(A)), squared_norms(A))
