"""Kernels on rows of numbers."""

import pickle

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import (
    ARD,
    RBF,
    Additive,
    FromCallable,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    take,
)


def minimum(A, B):
    return np.minimum(A[:, :1], B[:, 0])


KERNELS = [
    Linear(),
    RBF(0.7),
    Laplacian(1.3),
    Polynomial(3, 0.5),
    Overlap(),
    FromCallable(lambda A, B: (A @ B.T) ** 2),
]
numbers = st.floats(-5, 5).map(lambda value: round(value, 2))
tables = st.tuples(st.integers(1, 8), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=numbers)
)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@settings(max_examples=40, deadline=None)
@given(X=tables, data=st.data())
def test_a_kernel_is_a_gram_matrix(kernel, X, data):
    K = kernel(X)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    scale = max(1.0, np.abs(K).max())
    np.testing.assert_allclose(kernel.diag(X), K.diagonal(), atol=1e-12 * scale)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * scale * len(X)
    index = data.draw(st.lists(st.integers(0, len(X) - 1), max_size=6))
    rows = kernel.prepare(X)
    part = kernel.block(take(rows, np.array(index, dtype=int)), rows)
    np.testing.assert_allclose(part, K[index], atol=1e-12 * scale)
    if isinstance(kernel, RBF | Laplacian | Overlap):
        np.testing.assert_array_equal(K.diagonal(), 1.0)
        assert K.min() >= 0
        assert K.max() <= 1


@settings(max_examples=40, deadline=None)
@given(X=tables, width=st.floats(0.3, 5), degree=st.integers(1, 4), coef0=st.floats(0, 2))
def test_agreement_with_scikit_learn(X, width, degree, coef0):
    Z = X[::-1] + 0.25
    for left, right in ((X, None), (X, Z)):
        close = {"rtol": 1e-10, "atol": 1e-12}
        gauss = rbf_kernel(left, right, gamma=1 / (2 * width**2))
        np.testing.assert_allclose(RBF(width)(left, right), gauss, **close)
        laplace = laplacian_kernel(left, right, gamma=1 / width)
        np.testing.assert_allclose(Laplacian(width)(left, right), laplace, **close)
        poly = polynomial_kernel(left, right, degree=degree, gamma=1, coef0=coef0)
        np.testing.assert_allclose(
            Polynomial(degree, coef0)(left, right), poly, rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.7), Polynomial(3, 0.5)], ids=str)
@settings(max_examples=30, deadline=None)
@given(X=tables)
def test_sparse_rows_agree_with_dense_ones(kernel, X):
    X = np.where(np.abs(X) < 2, 0.0, X)
    S = sp.csr_matrix(X)
    K = kernel(S)
    np.testing.assert_array_equal(K, K.T)
    scale = max(1.0, np.abs(K).max())
    np.testing.assert_allclose(K, kernel(X), rtol=1e-10, atol=1e-12 * scale)
    np.testing.assert_allclose(kernel(S, X), kernel(X), rtol=1e-10, atol=1e-12 * scale)
    np.testing.assert_allclose(kernel(X, S), kernel(X), rtol=1e-10, atol=1e-12 * scale)
    np.testing.assert_allclose(kernel.diag(S), kernel.diag(X), rtol=1e-10, atol=1e-12 * scale)


def test_sparse_columns_in_any_order_stay_symmetric():
    rng = np.random.default_rng(0)
    S = sp.random_array((40, 30), density=0.3, rng=rng, format="csr")
    order = rng.permutation(30)
    for kernel in (Linear(columns=order), RBF(columns=order), Linear(columns=[1, 1])):
        K = kernel(S)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, kernel(S.toarray()), atol=1e-12)


def test_sparse_rows_with_unsorted_indices_stay_symmetric():
    rng = np.random.default_rng(0)
    order = np.concatenate([rng.permutation(50) for _ in range(20)])
    S = sp.csr_array((rng.normal(size=1000), order, np.arange(0, 1001, 50)), shape=(20, 50))
    for kernel in (Linear(), RBF(5.0), Polynomial()):
        K = kernel(S)
        np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(S.indices, order)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.7), Laplacian(), Polynomial()], ids=str)
@pytest.mark.parametrize("shape", [(700, 3), (300, 200), (5, 900)])
def test_large_blocks_are_exactly_symmetric(kernel, shape):
    X = np.random.default_rng(1).normal(size=shape)
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    for A in (X[::2], X[::-1], X[:, ::-1]):  # not contiguous
        K = kernel.block(A, A)
        np.testing.assert_array_equal(K, K.T)


def test_frames_and_arrays_agree():
    X = np.random.default_rng(2).normal(size=(6, 3)).round(1)
    names = ["a", "b", "c"]
    for kernel in KERNELS:
        K = kernel(X)
        np.testing.assert_array_equal(kernel(pd.DataFrame(X, columns=names)), K)
        np.testing.assert_array_equal(kernel(pl.DataFrame(X, schema=names)), K)
        np.testing.assert_array_equal(kernel(X.tolist()), K)


def test_common_offset_costs_no_digits():
    X = np.random.default_rng(3).normal(size=(20, 3)).round(3)
    np.testing.assert_allclose(RBF()(X + 1e6), RBF()(X), rtol=1e-8)
    np.testing.assert_allclose(RBF()(X + 1e6, X[:5] + 1e6), RBF()(X, X[:5]), rtol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [
        (Linear(), 1e160),
        (Polynomial(3), 1e150),
    ],
)
@pytest.mark.parametrize("read", [np.array, sp.csr_array])
def test_overflow_is_one_sentence(kernel, scale, read):
    X = np.array([[1.0, 2.0], [2.0, -1.0], [3.0, 1.0]]) * scale
    with np.errstate(all="raise"):
        with pytest.raises(InputError, match=r"overflow; rescale the columns first"):
            kernel(read(X))
        with pytest.raises(InputError, match=r"overflow; rescale the columns first"):
            kernel.diag(read(X))


@pytest.mark.parametrize(
    ("kernel", "scale"), [(RBF(1e-200), 1e150), (RBF(), 1e200), (Laplacian(1e-200), 1e150)]
)
def test_rows_far_apart_are_not_similar(kernel, scale):
    X = np.array([[1.0, 2.0], [2.0, -1.0], [3.0, 1.0]]) * scale
    with np.errstate(all="raise"):
        assert np.array_equal(kernel(X), np.eye(3))
        assert np.array_equal(kernel(X, X[:2].copy()), np.eye(3)[:, :2])


def test_large_but_finite_blocks_pass():
    X = np.full((400, 1), 1e153)  # the sum of the block overflows, no entry does
    assert Linear()(X)[0, 0] == pytest.approx(1e306)


def test_numpy_parameters_become_plain():
    assert type(RBF(np.float32(2)).width) is float
    assert type(Polynomial(np.int64(2)).degree) is int


def test_polynomial_parameters():
    with pytest.raises(InputError, match=r"Polynomial\(degree=0\): degree must be a whole number"):
        Polynomial(0)
    for degree in (1.5, "2", True, None):
        with pytest.raises(InputTypeError, match=r"degree must be a whole number >= 1"):
            Polynomial(degree)
    with pytest.raises(InputError, match=r"Polynomial\(coef0=-1.0\): coef0 must be .* >= 0"):
        Polynomial(2, -1)
    assert Polynomial(2, 0)([[3.0]])[0, 0] == 81.0
    assert Polynomial(1, 0)([[3.0]])[0, 0] == 9.0
    assert str(Polynomial()) == "polynomial(degree=2, coef0=1)"


def test_from_callable():
    kernel = FromCallable(minimum, columns=1)
    X = np.array([[9.0, 1.0], [9.0, 2.0]])
    np.testing.assert_array_equal(kernel(X), [[1, 1], [1, 2]])
    np.testing.assert_array_equal(kernel(X, X[1:]), [[1], [2]])
    assert str(kernel) == "minimum on column 1"
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    many = np.arange(200.0).reshape(100, 2)
    np.testing.assert_array_equal(kernel.diag(many), many[:, 1])


def test_from_callable_gives_sparse_rows_and_takes_sparse_blocks():
    S = sp.csr_array(np.eye(3) * 2)
    np.testing.assert_array_equal(FromCallable(lambda A, B: A @ B.T)(S), np.eye(3) * 4)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.ones((1, 2)), r"must return shape \(2, 2\) for these rows, got \(1, 2\)"),
        (lambda A, B: 1.0, r"must return shape \(2, 2\)"),
        (lambda A, B: np.full((2, 2), np.nan), r"returned values that are not finite"),
        (lambda A, B: [["a", "b"], ["c", "d"]], r"must return an array of numbers"),
        (lambda A, B: A[:, :1] - B[:, 0], r"is not symmetric, .* differ by 4"),
    ],
)
def test_from_callable_is_checked(function, message):
    with pytest.raises(InputError, match=r"<lambda>: the function " + message):
        FromCallable(function)([[1.0, 2.0], [3.0, 4.0]])


def test_from_callable_rounding_is_made_symmetric():
    noise = np.array([[0.0, 1e-15], [0.0, 0.0]])
    K = FromCallable(lambda A, B: A @ B.T + noise)([[1.0], [2.0]])
    np.testing.assert_array_equal(K, K.T)


def test_from_callable_cannot_change_its_input():
    def spoil(A, B):
        A *= 0
        return A @ B.T

    X = np.ones((2, 2))
    with pytest.raises(ValueError, match="read-only"):
        FromCallable(spoil)(X)
    S = sp.csr_array(X)
    FromCallable(lambda A, B: (A.data.fill(0.0), np.zeros((2, 2)))[1])(S)
    np.testing.assert_array_equal(X, 1.0)
    np.testing.assert_array_equal(S.toarray(), 1.0)


def test_from_callable_needs_a_function():
    with pytest.raises(
        InputTypeError, match=r"FromCallable\(function=3\): function must be callab"
    ):
        FromCallable(3)


def test_one_column_is_exact():
    # Without products, a block does not depend on which other rows are in it.
    x = np.random.default_rng(5).normal(size=(50, 1)) + 1e5
    K = RBF(0.3)(x)
    np.testing.assert_array_equal(RBF(0.3)(x[[3, 7]], x), K[[3, 7]])
    long = x.astype(np.longdouble)
    assert np.abs(K - np.exp(-0.5 * ((long - long.T) / np.longdouble(0.3)) ** 2)).max() < 1e-15


def test_blocks_of_no_rows():
    X = np.ones((4, 3))
    for kernel in (*KERNELS, ARD([1.0] * 3), Additive([1.0] * 3)):
        assert kernel.block(X, X[:0]).shape == (4, 0)
        assert kernel.block(X[:0], X).shape == (0, 4)
