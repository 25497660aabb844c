"""Prepared rows, and blocks between new rows and kept ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from kernelweave.banks import Views, cross, cross_block, make_bank
from kernelweave.errors import InputError
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial
from shared_views import KERNELS


def test_block_is_the_weighted_sum(tables):
    X, new = tables
    weights = np.array([0.5, 1.0, 0.0, 2.0, 0.25, 0.1, 3.0])
    found = cross_block(KERNELS, weights, Views.of(KERNELS, new), Views.of(KERNELS, X))
    expected = sum(w * k(new, X) for w, k in zip(weights, KERNELS, strict=True))
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("most", [64, 2])
def test_product_is_that_of_the_block(tables, most, monkeypatch):
    monkeypatch.setattr(cross, "_FUSED_COLUMNS", most)
    X, new = tables
    kernels = [*KERNELS, Laplacian(width=2.0), Laplacian(width=5.0), RBF(width=0.7) * Linear()]
    weights = np.linspace(0.0, 2.0, len(kernels))
    V = np.random.default_rng(0).normal(size=(len(X), 3))
    A, B = Views.of(kernels, new), Views.of(kernels, X)
    found = cross_block(kernels, weights, A, B, V)
    assert_allclose(found, cross_block(kernels, weights, A, B) @ V, rtol=1e-11, atol=1e-11)
    alone = cross_block(kernels[-3:-1], weights[-3:-1], A.take([4]), B, V)
    assert_allclose(alone, cross_block(kernels[-3:-1], weights[-3:-1], A, B, V)[[4]], rtol=1e-13)
    assert not cross_block(kernels, np.zeros(len(kernels)), A, B, V).any()
    none = cross_block(kernels, weights, A, B.take([]), V[:0])
    assert_array_equal(none, np.zeros((len(new), 3)))


def test_products_form_no_block_of_gaussians_and_laplacians(tables, monkeypatch):
    X, new = tables
    kernels = [RBF(width=1.0), RBF(width=2.0), Laplacian(width=2.0)]
    A, B, V = Views.of(kernels, new), Views.of(kernels, X), np.ones((len(X), 1))
    expected = cross_block(kernels, np.ones(3), A, B) @ V
    monkeypatch.setattr(cross, "_split", None)
    assert_allclose(cross_block(kernels, np.ones(3), A, B, V), expected, rtol=1e-12)


def test_kernels_of_no_weight_are_not_evaluated(tables):
    X, new = tables

    class Loud(Linear):
        def _block(self, A, B):
            raise AssertionError("was asked")

    kernels = [Linear(), Loud()]
    found = cross_block(kernels, np.array([2.0, 0.0]), Views.of(kernels, new), Views.of(kernels, X))
    assert_allclose(found, 2 * new @ X.T, rtol=1e-12)
    assert not cross_block(kernels, np.zeros(2), Views.of(kernels, new), Views.of(kernels, X)).any()


@pytest.mark.parametrize("normalize", [None, "trace", "diagonal", "cosine"])
def test_training_constants_serve_new_rows(tables, normalize):
    X, new = tables
    bank = make_bank(KERNELS, X, normalize=normalize)
    weights = np.linspace(0.1, 1.0, len(KERNELS))
    both = np.concatenate([X, new])

    def block(A):
        return cross_block(
            bank.kernels, weights * bank.scales, Views.of(bank.kernels, A), bank.views
        )

    # Training rows give the training Gram, whatever else is asked for together with them.
    assert_allclose(block(X), bank.combine(weights).dense(), atol=1e-9)
    assert_allclose(block(both)[:30], block(X), rtol=1e-12, atol=1e-14)
    assert_allclose(block(both)[30:], block(new), rtol=1e-12, atol=1e-14)
    for i in (0, 5):
        assert_allclose(block(new[[i]]), block(new)[[i]], rtol=1e-12, atol=1e-14)


def test_sparse_rows(tables):
    X, new = tables
    kernels = [RBF(width=1.0), Linear()]
    weights = np.array([0.3, 0.7])
    sparse = cross_block(
        kernels, weights, Views.of(kernels, sp.csr_array(new)), Views.of(kernels, sp.csr_array(X))
    )
    mixed = cross_block(
        kernels, weights, Views.of(kernels, new), Views.of(kernels, sp.csr_array(X))
    )
    dense = cross_block(kernels, weights, Views.of(kernels, new), Views.of(kernels, X))
    assert_allclose(sparse, dense, atol=1e-12)
    assert_allclose(mixed, dense, atol=1e-12)
    V = np.ones((len(X), 1))
    product = cross_block(
        kernels, weights, Views.of(kernels, new), Views.of(kernels, sp.csr_array(X)), V
    )
    assert_allclose(product, dense @ V, atol=1e-12)


def test_overflow_on_new_rows_is_one_sentence(tables):
    X, new = tables
    kernels = [Polynomial(degree=2), RBF(width=1.0)]
    with pytest.raises(InputError, match="overflow"):
        cross_block(kernels, np.ones(2), Views.of(kernels, 1e200 * new), Views.of(kernels, X))


def test_far_rows_are_similar_to_nothing(tables):
    X, _ = tables
    kernels = [RBF(width=1.0), RBF(width=1.0, columns=[0]), RBF(width=2.0, columns=[0])]
    far = np.full((2, 3), 1e6)
    A, B = Views.of(kernels, far), Views.of(kernels, X)
    assert not cross_block(kernels, np.ones(3), A, B).any()
    assert not cross_block(kernels, np.ones(3), A, B, np.ones((len(X), 1))).any()


def test_no_rows(tables):
    X, new = tables
    views = Views.of(KERNELS, X)
    block = cross_block(KERNELS, np.ones(len(KERNELS)), Views.of(KERNELS, new), views.take([]))
    assert block.shape == (17, 0)
