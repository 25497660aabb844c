"""Kernels of one distance matrix, against NumPy and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import manhattan_distances, rbf_kernel

from kernelweave import _core

STORAGE = [np.float64, np.float32]


def distances(n, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    out = ((X[:, None] - X[None]) ** 2).sum(axis=2).astype(dtype)
    return X, out


def grams(D, rates):
    return np.exp(-np.asarray(rates)[:, None, None] * D.astype(np.float64))


def widths_to_rates(widths):
    return 0.5 / np.asarray(widths, dtype=float) ** 2


# Sizes below, at and above the blocks of 16 rows and 256 columns.
SIZES = [1, 2, 15, 16, 17, 64, 255, 257, 300]


class TestPlan:
    def test_widths_of_ratio_root_two_square(self):
        rates = widths_to_rates(np.sqrt(2.0) ** np.arange(5))
        plan = _core.ladder_plan(rates)
        assert plan[-1] == (-1, 0)  # the widest is computed
        assert plan[:-1] == [(4, 4), (4, 3), (4, 2), (4, 1)]

    def test_powers_of_two_square_twice(self):
        assert _core.ladder_plan(widths_to_rates([1, 2, 4])) == [(2, 4), (2, 2), (-1, 0)]

    def test_no_relation_means_exponentials(self):
        assert _core.ladder_plan(np.array([1.0, 3.0, 7.0, 11.0])) == [(-1, 0)] * 4

    def test_at_most_four_squarings(self):
        plan = _core.ladder_plan(2.0 ** np.arange(12))
        assert max(times for _, times in plan) <= 4
        assert sum(parent < 0 for parent, _ in plan) == 3  # rates 1, 32 and 1024

    def test_parents_are_computed_by_an_exponential(self):
        rates = np.random.default_rng(0).permutation(
            np.concatenate([2.0 ** np.arange(9), 3 * 2.0 ** np.arange(9)])
        )
        plan = _core.ladder_plan(rates)
        for j, (parent, times) in enumerate(plan):
            if parent >= 0:
                assert plan[parent] == (-1, 0)
                assert rates[j] == rates[parent] * 2**times
            else:
                assert times == 0

    def test_equal_rates(self):
        plan = _core.ladder_plan(np.array([1.0, 1.0, 2.0, 2.0]))
        assert plan[0] == plan[1] == (-1, 0)
        assert {plan[2], plan[3]} <= {(0, 1), (1, 1)}

    def test_zero_and_empty(self):
        assert _core.ladder_plan(np.array([0.0, 1.0, 2.0])) == [(-1, 0), (-1, 0), (1, 1)]
        assert _core.ladder_plan(np.empty(0)) == []

    @given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=12))
    @settings(max_examples=60, deadline=None)
    def test_every_plan_reaches_its_rate(self, rates):
        rates = np.array(rates + [2.0 * rate for rate in rates])
        for rate, (parent, times) in zip(rates, _core.ladder_plan(rates), strict=True):
            if parent >= 0:
                assert rates[parent] * 2**times == pytest.approx(rate, rel=1e-14)


LADDERS = {
    "one": [0.7],
    "unrelated": [0.1, 0.3, 2.7],
    "root two": list(widths_to_rates(0.5 * np.sqrt(2.0) ** np.arange(6))),
    "shuffled, long": list(
        np.random.default_rng(1).permutation(widths_to_rates(2.0 ** np.arange(-3, 5)))
    ),
    "zero": [0.0, 1.0],
    "huge": [1e-12, 1e4],
}


@pytest.mark.parametrize("rates", LADDERS.values(), ids=LADDERS)
@pytest.mark.parametrize("dtype", STORAGE)
def test_kernels_agree_with_the_exponential(dtype, rates):
    _, D = distances(40, dtype)
    rates = np.array(rates)
    K = grams(D, rates)
    everything = np.arange(40)
    found = _core.ladder_products(D, rates, everything, everything, np.eye(40))
    # Four squarings double the relative error four times.
    assert_allclose(found, K, rtol=2e-14, atol=1e-300)


def test_values_agree_with_scikit_learn():
    X, D = distances(30)
    for width in (0.3, 1.0, 5.0):
        everything = np.arange(30)
        (found,) = _core.ladder_products(
            D, widths_to_rates([width]), everything, everything, np.eye(30)
        )
        assert_allclose(found, rbf_kernel(X, gamma=0.5 / width**2), rtol=1e-12, atol=0)


def test_the_exponential_is_accurate_over_its_whole_range():
    x = np.concatenate([np.linspace(0, 745, 4001), 10.0 ** np.linspace(-300, 3, 500)])
    D = x[:, None].copy()
    (found,) = _core.ladder_products(
        D, np.ones(1), np.arange(len(x)), np.zeros(1, dtype=np.int64), np.ones((1, 1))
    )
    expected = np.exp(-x)
    normal = x < 708
    assert_allclose(found[normal, 0], expected[normal], rtol=5e-16, atol=0)
    assert np.abs(found[~normal, 0] - expected[~normal]).max() < 1e-306
    assert found[x == 0] == 1.0


def test_infinite_distances_are_zero_similarity():
    D = np.array([[0.0, np.inf], [np.inf, 0.0]])
    quadratic_forms = _core.ladder_forms(D, np.array([1.0, 2.0]), np.arange(2), np.ones((2, 1)))
    assert_allclose(quadratic_forms, [2, 2], rtol=1e-9, atol=0)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("n", SIZES)
def test_forms(n, dtype, n_outputs):
    _, D = distances(n, dtype)
    rates = np.array([0.2, 0.4, 1.7])
    V = np.random.default_rng(1).normal(size=(n, n_outputs))
    expected = np.einsum("no,jnk,ko->j", V, grams(D, rates), V)
    found = _core.ladder_forms(D, rates, np.arange(n), V)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * n)


@pytest.mark.parametrize("dtype", STORAGE)
def test_forms_of_some_rows(dtype):
    n = 300
    _, D = distances(n, dtype)
    rng = np.random.default_rng(2)
    index = rng.permutation(n)[:130]
    V = rng.normal(size=(len(index), 2))
    rates = np.array([0.5, 1.0])
    padded = np.zeros((n, 2))
    padded[index] = V
    some = _core.ladder_forms(D, rates, index, V)
    assert_allclose(some, _core.ladder_forms(D, rates, np.arange(n), padded), rtol=1e-12, atol=0)
    assert_allclose(_core.ladder_forms(D, rates, index[:0], V[:0]), [0, 0], rtol=1e-9, atol=0)
    assert_allclose(_core.ladder_forms(D, rates, index, V[:, :0].copy()), [0, 0], rtol=1e-9, atol=0)
    assert _core.ladder_forms(D, rates[:0], index, V).shape == (0,)


@pytest.mark.parametrize("n_outputs", [1, 4])
@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("n", SIZES)
def test_products(n, dtype, n_outputs):
    _, D = distances(n, dtype)
    rng = np.random.default_rng(3)
    rates = np.array([0.3, 0.6, 5.0])
    index = rng.permutation(n)[: n // 2 + 1]
    rows = rng.permutation(n)[: n // 3 + 1]
    V = rng.normal(size=(len(index), n_outputs))
    expected = grams(D, rates)[:, rows][:, :, index] @ V
    found = _core.ladder_products(D, rates, rows, index, V)
    assert found.shape == (3, len(rows), n_outputs)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_products_of_a_rectangle():
    rng = np.random.default_rng(4)
    D = rng.uniform(size=(5, 300))
    V = rng.normal(size=(300, 2))
    (found,) = _core.ladder_products(D, np.array([2.0]), np.arange(5), np.arange(300), V)
    assert_allclose(found, np.exp(-2 * D) @ V, rtol=1e-12, atol=1e-13)


PAIRS = [(np.float64, np.float64), (np.float32, np.float64), (np.float32, np.float32)]


@pytest.mark.parametrize(("stored", "out_type"), PAIRS)
@pytest.mark.parametrize("n", SIZES)
def test_combined_rows(n, stored, out_type):
    _, D = distances(n, stored)
    rates, weights = np.array([0.3, 0.6, 5.0]), np.array([0.5, 0.0, 2.0])
    index = np.random.default_rng(5).permutation(n)[: n // 2 + 1]
    out = np.ones((len(index), n), dtype=out_type)
    _core.ladder_combine_rows(D, rates, weights, index, out)
    expected = 1 + np.tensordot(weights, grams(D, rates), axes=1)[index]
    tolerance = 1e-13 if out_type is np.float64 else 1e-6
    assert_allclose(out, expected, rtol=tolerance, atol=0)


@pytest.mark.parametrize(("stored", "out_type"), PAIRS)
@pytest.mark.parametrize("n", SIZES)
def test_combined_upper_triangle(n, stored, out_type):
    _, D = distances(n, stored)
    rates, weights = np.array([0.3, 0.6, 5.0]), np.array([0.5, 0.25, 2.0])
    out = np.full((n, n), -1.0, dtype=out_type)
    _core.ladder_combine_upper(D, rates, weights, out)
    expected = np.tensordot(weights, grams(D, rates), axes=1) - 1
    tolerance = 1e-12 if out_type is np.float64 else 1e-5
    upper = np.triu_indices(n)
    assert_allclose(out[upper], expected[upper], rtol=tolerance, atol=tolerance)
    lower = np.tril_indices(n, -1)
    assert (out[lower] == -1).all()
    _core.mirror_upper(out)
    assert np.array_equal(out, out.T)
    assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("n", SIZES)
def test_combined_block(n, dtype):
    _, D = distances(n, dtype)
    rates, weights = np.array([0.3, 0.6, 5.0]), np.array([0.5, 0.25, 2.0])
    index = np.random.default_rng(5).permutation(n)[: max(1, 2 * n // 3)]
    out = np.full((len(index), len(index)), 3.0)
    _core.ladder_combine_block(D, rates, weights, index, out)
    expected = 3 + np.tensordot(weights, grams(D, rates), axes=1)[np.ix_(index, index)]
    upper = np.triu_indices(len(index))
    assert_allclose(out[upper], expected[upper], rtol=1e-13)
    assert (out[np.tril_indices(len(index), -1)] == 3).all()


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("n", "n_kept", "d"), [(1, 1, 1), (17, 5, 2), (300, 257, 3), (20, 0, 2)])
def test_gaussian_products(n, n_kept, d, n_outputs):
    rng = np.random.default_rng(10)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(n_kept, d))
    V = rng.normal(size=(n_kept, n_outputs))
    rates, weights = np.array([0.1, 0.2, 0.7]), np.array([0.5, 2.0, 1.0])
    found = _core.gaussian_products(X.T.copy(), Z.T.copy(), rates, weights, V)
    D = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    expected = np.tensordot(weights, grams(D, rates), axes=1) @ V
    assert found.shape == (n, n_outputs)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 130, 200])
def test_mirror(n, dtype):
    A = np.random.default_rng(6).normal(size=(n, n)).astype(dtype)
    expected = np.triu(A) + np.triu(A, 1).T
    _core.mirror_upper(A)
    assert np.array_equal(A, expected)


def finish(products, A, B, scales=None, *, upper=False):
    scales = np.ones(A.shape[1]) if scales is None else scales
    squares = ((A * scales) ** 2).sum(axis=1), ((B * scales) ** 2).sum(axis=1)
    _core.finish_squared_distances(products, A, B, scales, *squares, upper=upper)
    return products


def long_distances(A, B, scales=1.0):
    difference = (A.astype(np.longdouble)[:, None] - B.astype(np.longdouble)[None]) * scales
    return (difference**2).sum(axis=2)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 300), (130, 17)])
def test_squared_distances_are_right_to_their_last_digits(a, b, offset):
    rng = np.random.default_rng(7)
    A, B = rng.normal(size=(a, 4)) + offset, rng.normal(size=(b, 4)) + offset
    B[0] = A[-1]
    scales = np.array([1.0, 0.5, 3.0, 0.1])
    found = finish((A * scales) @ (B * scales).T, A, B, scales)
    assert found[-1, 0] == 0
    assert_allclose(found, long_distances(A, B, scales).astype(float), rtol=1e-12, atol=0)


def test_squared_distances_that_overflow_are_infinite():
    A = np.array([[1e200, 1.0], [-1e200, 1.0], [1e200, 1.0]])
    with np.errstate(all="ignore"):
        found = finish(A @ A.T, A, A)
    assert np.array_equal(found, [[0, np.inf, 0], [np.inf, 0, np.inf], [0, np.inf, 0]])


def test_the_upper_triangle_ignores_the_lower_one():
    X = np.random.default_rng(8).normal(size=(20, 2))
    clean = X @ X.T
    dirty = np.triu(clean) + np.tril(np.full((20, 20), 1e6), -1)
    finish(dirty, X, X, upper=True)
    assert np.array_equal(np.triu(finish(clean, X, X, upper=True)), np.triu(dirty))
    assert not dirty.diagonal().any()


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize(("a", "b"), [(1, 1), (3, 17), (33, 5), (0, 4), (4, 0)])
def test_absolute_distances(a, b, dtype):
    rng = np.random.default_rng(9)
    A, B = rng.normal(size=(a, 3)), rng.normal(size=(b, 3))
    out = np.empty((a, b), dtype=dtype)
    _core.absolute_distances(A, B, out)
    if a and b:
        assert_allclose(
            out, manhattan_distances(A, B), rtol=1e-14 if dtype is np.float64 else 1e-6, atol=0
        )


def test_inputs_are_not_written_to():
    _, D = distances(40)
    rates, V = np.array([0.5, 1.0]), np.random.default_rng(0).normal(size=(40, 2))
    index = np.arange(40)
    before = [a.copy() for a in (D, rates, index, V)]
    _core.ladder_forms(D, rates, index, V)
    _core.ladder_products(D, rates, index, index, V)
    _core.ladder_combine_rows(D, rates, rates, index, np.zeros((40, 40)))
    _core.ladder_combine_upper(D, rates, rates, np.zeros((40, 40)))
    for array, copy in zip((D, rates, index, V), before, strict=True):
        assert np.array_equal(array, copy)
