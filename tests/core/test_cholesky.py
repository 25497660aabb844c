"""Pivoted Cholesky: residuals, pivots, tolerances and ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelweave import _core


def factor(K, tol=1e-10, max_rank=None):
    K = np.ascontiguousarray(K, dtype=np.float64)
    return _core.factor_by_columns(
        K.diagonal().copy(),
        lambda i: np.ascontiguousarray(K[:, i]),
        tol,
        len(K) if max_rank is None else max_rank,
    )


def gaussian(X, rate):
    return np.exp(-rate * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def low_rank(n, rank, seed=0):
    L = np.random.default_rng(seed).normal(size=(n, rank))
    return L @ L.T


def check(K, parts, tol):
    """What every factor must satisfy."""
    complete, columns, pivots, residual = parts
    scale = max(K.diagonal().max(initial=0.0), 1e-300)
    assert columns.shape == (len(pivots), len(K))
    assert residual.shape == (len(K),)
    assert len(np.unique(pivots)) == len(pivots)
    held = columns.T @ columns
    assert_allclose(
        residual, np.maximum(K.diagonal() - held.diagonal(), 0), rtol=0, atol=1e-12 * scale
    )
    assert (residual >= 0).all()
    assert_allclose(held[:, pivots], K[:, pivots], rtol=0, atol=1e-11 * scale)
    assert not residual[pivots].any()
    assert not np.tril(columns[:, pivots], -1).any()  # exact zeros at earlier pivots
    if len(K):
        assert np.linalg.eigvalsh(K - held).min() >= -1e-11 * scale * len(K)
    if complete:
        assert residual.sum() <= tol * np.trace(K) + 1e-13 * scale * len(K)
    return len(pivots)


@pytest.mark.parametrize("tol", [1e-1, 1e-4, 1e-10, 1e-14])
@pytest.mark.parametrize("rate", [0.05, 1.0, 30.0])
def test_gaussian_grams(rate, tol):
    K = gaussian(np.random.default_rng(0).normal(size=(60, 2)), rate)
    parts = factor(K, tol)
    rank = check(K, parts, tol)
    assert parts[0]
    assert rank <= check(K, factor(K, 0.1 * tol), 0.1 * tol)


@pytest.mark.parametrize("rank", [1, 2, 5, 20])
def test_exact_rank_is_found(rank):
    K = low_rank(50, rank)
    parts = factor(K, 1e-12)
    assert check(K, parts, 1e-12) == rank
    assert parts[0]
    assert_allclose(parts[1].T @ parts[1], K, rtol=0, atol=1e-10)


def test_pivots_are_the_largest_remaining_diagonals():
    d = np.array([1.0, 7.0, 3.0, 5.0])
    _, columns, pivots, _ = factor(np.diag(d), 1e-12)
    assert pivots.tolist() == [1, 3, 2, 0]
    assert_allclose(columns[0], [0, np.sqrt(7), 0, 0], rtol=1e-9, atol=0)


def test_ties_go_to_the_lower_row():
    assert factor(np.eye(6), 1e-12)[2].tolist() == list(range(6))
    K = np.kron(np.eye(3), np.ones((2, 2)))  # equal rows in pairs
    complete, _, pivots, residual = factor(K, 1e-12)
    assert complete
    assert pivots.tolist() == [0, 2, 4]
    assert not residual.any()


@pytest.mark.parametrize("max_rank", [0, 1, 3, 7])
def test_max_rank_is_respected(max_rank):
    K = gaussian(np.random.default_rng(1).normal(size=(40, 3)), 2.0)
    parts = factor(K, 1e-12, max_rank)
    assert not parts[0]
    assert check(K, parts, 1e-12) == max_rank


def test_a_rank_that_is_just_enough_is_complete():
    K = low_rank(30, 4)
    assert factor(K, 1e-10, 4)[0]
    assert not factor(K, 1e-10, 3)[0]


def test_columns_are_asked_for_once_and_only_the_pivots():
    K = gaussian(np.random.default_rng(2).normal(size=(50, 1)), 0.2)
    asked = []

    def column(i):
        asked.append(i)
        return np.ascontiguousarray(K[:, i])

    _, _, pivots, _ = _core.factor_by_columns(np.ones(50), column, 1e-8, 50)
    assert asked == pivots.tolist()
    assert len(asked) < 15


def test_zero_constant_and_small_kernels():
    complete, columns, pivots, residual = factor(np.zeros((5, 5)))
    assert complete
    assert columns.shape == (0, 5)
    assert len(pivots) == 0
    assert not residual.any()
    for size in (1e-200, 1.0, 1e200):
        K = np.full((7, 7), size)
        parts = factor(K)
        assert parts[0]
        assert check(K, parts, 1e-10) == 1
    complete, columns, _, _ = factor(np.array([[4.0]]))
    assert complete
    assert_allclose(columns, np.array([[2.0]]), rtol=1e-9, atol=0)
    assert factor(np.empty((0, 0)))[0]


def test_rows_of_zeros_stay_zero():
    K = np.zeros((8, 8))
    K[:3, :3] = low_rank(3, 2) + np.eye(3)
    _, columns, pivots, residual = factor(K)
    assert set(pivots) == {0, 1, 2}
    assert not columns[:, 3:].any()
    assert not residual[3:].any()


def test_duplicated_rows_cost_nothing():
    X = np.random.default_rng(3).normal(size=(20, 1))
    once = gaussian(X, 1.0)
    twice = gaussian(np.concatenate([X, X]), 1.0)
    assert len(factor(once, 1e-9)[2]) == len(factor(twice, 1e-9)[2])
    check(twice, factor(twice, 1e-9), 1e-9)


@pytest.mark.parametrize("scale", [1e-120, 1e-20, 1e20, 1e120])
def test_scale_does_not_matter(scale):
    K = gaussian(np.random.default_rng(4).normal(size=(30, 2)), 0.5)
    plain, scaled = factor(K, 1e-6), factor(scale * K, 1e-6)
    assert plain[2].tolist() == scaled[2].tolist()
    assert_allclose(scaled[1] / np.sqrt(scale), plain[1], rtol=0, atol=1e-12)


@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(0, 10**6),
    st.sampled_from([1e-2, 1e-6, 1e-12]),
)
@settings(max_examples=60, deadline=None)
def test_random_grams(n, rank, seed, tol):
    K = low_rank(n, rank, seed)
    K *= 10.0 ** np.random.default_rng(seed).integers(-8, 8)
    found = check(K, factor(K, tol), tol)
    assert found <= min(n, rank) + 1


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.floats(1e-3, 1e2))
@settings(max_examples=60, deadline=None)
def test_gaussians_of_repeated_integers(values, rate):
    X = np.array(values, dtype=float)[:, None]
    K = gaussian(X, rate)
    ((complete, *rest),) = _core.factor_gaussians(
        [np.ascontiguousarray(X.T)], np.array([rate]), 1e-12, np.array([len(X)])
    )
    assert complete
    assert check(K, (complete, *rest), 1e-12) <= len(set(values))


class TestGaussians:
    def test_agree_with_columns(self):
        rng = np.random.default_rng(5)
        views = [rng.normal(size=(d, 80)) for d in (1, 2, 1, 5)]
        rates = np.array([0.5, 2.0, 10.0, 0.05])
        limits = np.array([80, 80, 3, 40])
        many = _core.factor_gaussians(views, rates, 1e-8, limits)
        for view, rate, limit, parts in zip(views, rates, limits, many, strict=True):
            K = gaussian(view.T, rate)
            one = factor(K, 1e-8, limit)
            check(K, parts, 1e-8)
            assert parts[0] == one[0]
            assert parts[2].tolist() == one[2].tolist()
            assert_allclose(parts[1], one[1], rtol=0, atol=1e-9)

    def test_constant_rows_have_rank_one(self):
        ((complete, columns, pivots, residual),) = _core.factor_gaussians(
            [np.full((3, 20), 7.0)], np.array([1.0]), 1e-10, np.array([20])
        )
        assert complete
        assert pivots.tolist() == [0]
        assert_allclose(columns, np.ones((1, 20)), rtol=1e-9, atol=0)
        assert not residual.any()

    def test_far_rows_have_full_rank(self):
        view = np.arange(30.0)[None] * 1e3
        ((complete, columns, _, _),) = _core.factor_gaussians(
            [view], np.array([1.0]), 1e-10, np.array([30])
        )
        assert complete
        assert_allclose(columns, np.eye(30), rtol=1e-9, atol=0)

    def test_negative_limits_mean_zero(self):
        ((complete, columns, _, _),) = _core.factor_gaussians(
            [np.arange(5.0)[None]], np.array([1.0]), 1e-10, np.array([-3])
        )
        assert not complete
        assert columns.shape == (0, 5)

    def test_nothing_to_do(self):
        assert _core.factor_gaussians([], np.empty(0), 1e-10, np.empty(0, dtype=np.int64)) == []

    def test_many_rows_cross_the_tile_size(self):
        x = np.random.default_rng(6).normal(size=(1, 2500))
        ((complete, columns, pivots, residual),) = _core.factor_gaussians(
            [x], np.array([0.5]), 1e-9, np.array([200])
        )
        assert complete
        assert len(pivots) < 40
        some = np.arange(0, 2500, 97)
        K = np.exp(-0.5 * (x[0][:, None] - x[0][some]) ** 2)
        left_out = np.sqrt(np.outer(residual, residual[some]))
        assert (np.abs(columns.T @ columns[:, some] - K) <= left_out + 1e-12).all()
