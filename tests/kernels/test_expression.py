"""Sums, products, multiples and cosines."""

import pickle

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import (
    RBF,
    Cosine,
    Laplacian,
    Linear,
    Overlap,
    Polynomial,
    Product,
    Scaled,
    Sum,
    n_rows,
    take,
)
from kernelweave.testing import check_kernel

a, b, c = RBF(columns=0), Linear(columns=1), Laplacian()
leaves = st.sampled_from([a, b, c, RBF(2.0), Overlap(), Polynomial(2, columns=[1, 0])])
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] + two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] * two[1]),
        st.tuples(inner, st.floats(0.1, 3)).map(lambda two: two[1] * two[0]),
    ),
    max_leaves=5,
)
numbers = st.floats(-2, 2).map(lambda value: round(value, 1))
tables = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2)), elements=numbers)


@settings(max_examples=60, deadline=None)
@given(kernel=expressions, X=tables, data=st.data())
def test_an_expression_is_a_kernel(kernel, X, data):
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    scale = max(1.0, np.abs(K).max())
    np.testing.assert_allclose(kernel.diag(X), K.diagonal(), atol=1e-12 * scale)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * scale * len(X)
    index = np.array(data.draw(st.lists(st.integers(0, len(X) - 1), max_size=4)), dtype=int)
    rows = kernel.prepare(X)
    assert n_rows(rows) == len(X)
    np.testing.assert_allclose(kernel.block(take(rows, index), rows), K[index], atol=1e-12 * scale)
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(pickle.loads(pickle.dumps(kernel))) == hash(kernel)
    assert clone(kernel) is kernel


def test_values():
    X = np.array([[1.0, 2.0], [0.0, 3.0], [-1.0, 1.0]])
    A, B, C = a(X), b(X), c(X)
    np.testing.assert_allclose((a + b)(X), A + B)
    np.testing.assert_allclose((a * b)(X), A * B)
    np.testing.assert_allclose((0.5 * a * (b + 2 * c))(X), 0.5 * A * (B + 2 * C))
    np.testing.assert_allclose((a + b)(X, X[:1]), (A + B)[:, :1])
    np.testing.assert_allclose((a * b).diag(X), (A * B).diagonal())


def test_nested_ones_are_flattened_unless_named():
    assert a + b + c == a + (b + c) == Sum((a, b, c)) == Sum([a, Sum([b, c])])
    assert a * b * c == a * (b * c) == Product((a, b, c))
    named = (a + b).renamed("x")
    assert (named + c).parts == (named, c)
    assert (a * b + c).parts == (a * b, c)
    assert 2 * (3 * a) == a * 6 == Scaled(a, 6.0)
    assert (2 * (3 * a).renamed("x")).kernel == (3 * a).renamed("x")
    assert a + b != b + a


@pytest.mark.parametrize("two", [2, 2.0, np.float64(2), np.float32(2), np.int64(2)])
def test_numbers_of_any_type_on_both_sides(two):
    assert two * a == a * two == Scaled(a, 2.0)
    assert type((two * a).factor) is float


@pytest.mark.parametrize("factor", [0, -1, -0.5, np.nan, np.inf])
def test_factors_are_positive(factor):
    with pytest.raises(
        InputError, match=r"Scaled\(factor=.*\): factor must be a finite number > 0"
    ):
        factor * a
    with pytest.raises(
        InputError, match=r"Scaled\(factor=.*\): factor must be a finite number > 0"
    ):
        a * factor


def test_factors_multiply_within_range():
    with pytest.raises(InputError, match=r"Scaled\(factor=inf\).*both factors is out of range"):
        1e200 * (1e200 * a)


@pytest.mark.parametrize("other", ["x", None, True, [1.0], np.ones(2), 1j])
def test_other_operands_are_type_errors(other):
    assert a.__add__(other) is NotImplemented
    assert a.__mul__(other) is NotImplemented
    for operation in (lambda: a + other, lambda: other + a, lambda: a * other, lambda: other * a):
        with pytest.raises(TypeError, match=r"operand|can't multiply|concatenate"):
            operation()


def test_a_number_cannot_be_added():
    assert a.__add__(1.0) is NotImplemented


def test_wrong_parts():
    with pytest.raises(InputTypeError, match=r"Sum: parts\[1\] must be a kernel, got str"):
        Sum([a, "b"])
    with pytest.raises(InputTypeError, match=r"Product: parts must be a list of kernels, got RBF"):
        Product(a)
    with pytest.raises(InputError, match=r"Product: parts must not be empty"):
        Product([])
    with pytest.raises(InputTypeError, match=r"Scaled: kernel must be a kernel, got int"):
        Scaled(3, 2.0)
    with pytest.raises(InputTypeError, match=r"Scaled\(factor='2'\): factor must be"):
        Scaled(a, "2")


x, y = RBF(), Linear()


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (x + y, "rbf(width=1) + linear"),
        (x * y, "rbf(width=1) * linear"),
        (x * (x + y), "rbf(width=1) * (rbf(width=1) + linear)"),
        (x * y + y, "rbf(width=1) * linear + linear"),
        (2 * x, "2 * rbf(width=1)"),
        (2 * (x + y), "2 * (rbf(width=1) + linear)"),
        (2 * (x * y), "2 * rbf(width=1) * linear"),
        (2 * x * y, "2 * rbf(width=1) * linear"),
        (0.5 * a, "0.5 * (rbf(width=1) on column 0)"),
        (a * y, "(rbf(width=1) on column 0) * linear"),
        (a + y, "rbf(width=1) on column 0 + linear"),
        (2 * (a * y), "2 * (rbf(width=1) on column 0) * linear"),
        (Polynomial() * y, "polynomial(degree=2, coef0=1) * linear"),
        ((x + y).renamed("mix") * y, "mix * linear"),
        (x.renamed("my kernel") * y, "(my kernel) * linear"),
        (x.renamed("mine") * y, "mine * linear"),
        ((x * y).renamed("both"), "both"),
    ],
)
def test_str(kernel, text):
    assert str(kernel) == text


def test_repr():
    assert repr(2 * y) == "Scaled(kernel=Linear(), factor=2.0)"
    assert repr(x + y) == "Sum(parts=(RBF(width=1.0), Linear()))"


def test_columns_bind_every_part():
    kernel = 2 * (x + a * y)
    bound = 2 * (RBF(columns="n") + RBF(columns="n") * Linear(columns="n"))
    assert kernel.on("n") == bound
    assert Sum([x, y], columns=["n"]) == Sum([RBF(columns="n"), Linear(columns="n")])
    assert Scaled(x, 2.0, columns="n") == Scaled(RBF(columns="n"), 2.0)
    assert bound.on(None) == 2 * (x + x * y)
    by = Linear(columns=lambda X: [1])
    assert (2 * (by + x)).bound(np.eye(3)) == 2 * (b + x)


def test_parts_share_prepared_rows():
    X = pd.DataFrame({"n": [1.0, 2.0], "m": [3.0, 4.0], "city": ["x", "y"]})
    numbers = ["n", "m"]
    kernel = RBF(columns=numbers) + 2 * Linear(columns=numbers) + Overlap(columns="city")
    rows = kernel.prepare(X)
    assert len(rows) == 3
    assert rows[0] is rows[1]
    assert rows[2].tolist() == [["x"], ["y"]]
    assert (2 * x).view == x.view
    assert (x + y).view == (y + x).view != (x + a).view
    np.testing.assert_array_equal((2 * x).prepare([[1.0]]), x.prepare([[1.0]]))


def test_overflow_is_one_sentence():
    X = np.full((2, 2), 1e100)
    with np.errstate(all="raise"):
        for kernel in (y * y, 1e200 * y, 1e108 * y + 1e108 * y):
            with pytest.raises(InputError, match=r"overflow; rescale the columns first"):
                kernel(X)
            with pytest.raises(InputError, match=r"overflow; rescale the columns first"):
                kernel.diag(X)


def test_sparse_rows():
    S = sp.csr_array(np.eye(3))
    np.testing.assert_allclose((x * y + y)(S), (x * y + y)(np.eye(3)))


def test_blocks_of_parts_are_not_written_to():
    class Kept(Linear):
        kept = np.ones((2, 2))

        def block(self, A, B):
            return self.kept

    (Kept() + y)(np.eye(2))
    (Kept() * y)(np.eye(2))
    (2 * Kept())(np.eye(2))
    np.testing.assert_array_equal(Kept.kept, 1.0)


ROWS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("inner", [Linear(), Polynomial(3), RBF(2.0), Linear() + RBF(columns=[0])])
def test_cosine_is_a_kernel_with_unit_diagonal(inner):
    check_kernel(Cosine(inner), ROWS)
    np.testing.assert_array_equal(Cosine(inner).diag(ROWS), 1.0)
    np.testing.assert_array_equal(Cosine(inner)(ROWS).diagonal(), 1.0)


def test_cosine_of_linear_is_cosine_similarity():
    np.testing.assert_allclose(Cosine(Linear())(ROWS), cosine_similarity(ROWS), atol=1e-14)
    np.testing.assert_allclose(
        Cosine(Linear())(ROWS, ROWS[:5]), cosine_similarity(ROWS, ROWS[:5]), atol=1e-14
    )


def test_rows_without_length_are_similar_to_nothing():
    rows = ROWS.copy()
    rows[3] = 0.0
    K = Cosine(Linear())(rows)
    assert not K[3].any()
    assert np.isfinite(K).all()


def test_rows_whose_lengths_underflow_are_refused():
    # x^6 has lost its digits here, so cosines between these rows would be wrong.
    with pytest.raises(InputError, match="underflow"):
        Cosine(Polynomial(3, coef0=0.0, columns=[0]))(1e-52 * ROWS)


def test_columns_bind_the_inner_kernel():
    assert Cosine(Linear(), columns=[1]) == Cosine(Linear(columns=[1]))
    assert Cosine(Linear()).on("a").kernel == Linear(columns="a")
    assert str(Cosine(Linear(columns="a"))) == "cosine of linear on a"
    assert pickle.loads(pickle.dumps(Cosine(RBF(2.0)))) == Cosine(RBF(2.0))


def test_only_kernels_have_a_cosine():
    with pytest.raises(InputTypeError, match="Cosine: kernel must be a kernel, got int"):
        Cosine(3)
