"""Factorisations in pieces: the same numbers, and signals are handled between the pieces."""

import signal

import numpy as np
import pytest
import scipy.linalg

from kernelweave import _linalg
from kernelweave._threads import threads

RANDOM = np.random.default_rng(0)


def positive(n):
    Z = RANDOM.normal(size=(n, 5))
    K = Z @ Z.T + np.eye(n)
    return 0.5 * (K + K.T)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(_linalg, "_CHOLESKY_ROWS", 0)
    monkeypatch.setattr(_linalg, "_EIGEN_ROWS", 0)
    monkeypatch.setattr(_linalg, "_SVD_PRODUCTS", 0)
    monkeypatch.setattr(_linalg, "_PANEL", 7)
    monkeypatch.setattr(_linalg, "_PRODUCTS", 100)
    monkeypatch.setattr(_linalg, "_COLUMNS", 5)


@pytest.mark.parametrize("n", [1, 6, 7, 8, 60])
def test_cholesky(small_pieces, n):
    K = positive(n)
    M = K.copy()
    factor, lower = _linalg.factor_upper(M)
    assert lower
    np.testing.assert_allclose(np.triu(M), scipy.linalg.cholesky(K), atol=1e-12)
    np.testing.assert_array_equal(np.tril(M, -1), np.tril(K, -1))
    solved = scipy.linalg.cho_solve((factor, lower), K)
    np.testing.assert_allclose(solved, np.eye(n), atol=1e-12)


def test_cholesky_is_the_same_whatever_the_threads(small_pieces):
    K = positive(60)
    results = []
    for count in (1, 2, 4):
        M = K.copy()
        with threads(count):
            _linalg.factor_upper(M)
        results.append(M)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_matrix_that_is_not_positive(small_pieces):
    K = positive(40)
    K[30, 30] = -1.0
    M = K.copy()
    with pytest.raises(np.linalg.LinAlgError):
        _linalg.factor_upper(M)
    np.testing.assert_array_equal(np.tril(M, -1), np.tril(K, -1))


@pytest.mark.parametrize("n", [3, 60])
def test_eigenvectors(small_pieces, n):
    K = positive(n) - 3.0 * np.eye(n)
    values, vectors = _linalg.eigh(np.asfortranarray(K))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(K), atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-13)
    np.testing.assert_allclose((vectors * values) @ vectors.T, K, atol=1e-12)


def test_right_singular_vectors(small_pieces):
    Z = RANDOM.normal(size=(20, 50)) * np.logspace(0, -9, 20)[:, None]
    roots, right = _linalg.right_svd(Z.copy())
    np.testing.assert_allclose(roots, np.linalg.svd(Z, compute_uv=False), rtol=1e-6, atol=1e-16)
    np.testing.assert_allclose(right.T @ right, np.eye(20), atol=1e-13)
    np.testing.assert_allclose(Z @ right @ right.T, Z, atol=1e-14)


# The least sizes that are taken apart, and names that are known from one piece on.
LARGE = {
    "cholesky": (lambda: _linalg.factor_upper(positive(4001)), {("a", k * 384) for k in range(11)}),
    "eigenvectors": (
        lambda: _linalg.eigh(np.asfortranarray(positive(1001))),
        {("diagonal", None), ("vectors", None)},
    ),
    "singular vectors": (lambda: _linalg.right_svd(RANDOM.normal(size=(500, 4001))), {("R", None)}),
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="has no timer of signals")
@pytest.mark.parametrize("name", LARGE)
def test_signals_are_handled_between_pieces(name):
    """Each piece takes longer than the interval of the timer, so that a signal waits at its end."""
    work, expected = LARGE[name]
    seen = set()

    def handle(number, frame):
        while frame is not None and frame.f_code.co_filename != _linalg.__file__:
            frame = frame.f_back
        if frame is not None:
            known = frame.f_locals
            seen.update((name, known[name] if name == "a" else None) for name in known)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        with threads(1):
            work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert expected <= seen
