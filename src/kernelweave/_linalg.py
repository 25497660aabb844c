"""Factorisations of large matrices in pieces, so that Ctrl-C stops them in between.

Python handles a signal when a call of LAPACK has ended. Running a long call in a thread that may be
abandoned is no way out: a process that exits while a thread is inside OpenBLAS can hang.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import blas, lapack

from ._threads import run_blocks, stop_if_interrupted
from ._types import Floats

# Sizes up to which one call takes about half a second at most, on one core.
_CHOLESKY_ROWS = 4000
_EIGEN_ROWS = 1000
_SVD_PRODUCTS = 1e9  # squared number of rows times number of columns
_PANEL = 384  # rows of a Cholesky factor that are computed together,
_PRODUCTS = 5e9  # and multiplications of a piece of them, about 0.2 s; large pieces are quicker
_COLUMNS = 512  # of a piece at least
_COPIED = 256  # rows copied at a time where a factorisation is undone


def all_finite(values: np.ndarray[Any, Any]) -> bool:
    """Whether no entry is NaN or infinite."""
    with np.errstate(all="ignore"):
        # One sum decides nearly always; it may itself overflow, hence the second look.
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def factor_upper(M: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a symmetric matrix, in the place of its upper triangle.

    The other triangle keeps the entries: no copy is needed, even where the factorisation fails.
    """
    n = len(M)
    if n <= _CHOLESKY_ROWS:
        # In the order of LAPACK, column by column, this is the lower triangle.
        return scipy.linalg.cho_factor(M.T, lower=True, overwrite_a=True, check_finite=False)
    for a in range(0, n, _PANEL):
        stop_if_interrupted()
        _factor_panel(M, a, min(a + _PANEL, n))
    return M.T, True


def _factor_panel(M: Floats, a: int, b: int) -> None:
    """Compute the rows from a to b of an upper factor from the rows above them."""
    above, corner = M[:a, a:b], M[a:b, a:b]
    root = scipy.linalg.cholesky(corner - above.T @ above, check_finite=False)
    corner[:] = np.tril(corner, -1) + root

    def fill(some: slice) -> None:
        columns = slice(b + some.start, b + some.stop)
        sides = M[a:b, columns] - above.T @ M[:a, columns]
        M[a:b, columns] = blas.dtrsm(1.0, root, sides.T, side=1, overwrite_b=1).T

    # The pieces do not depend on the number of threads, and so neither do the sums.
    run_blocks(fill, len(M) - b, max(_COLUMNS, int(_PRODUCTS / (_PANEL * b))))


def eigh(K: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues, smallest first, and eigenvectors of a symmetric matrix.

    The matrix is overwritten; in LAPACK's order, column by column, it is not copied.
    """
    n = len(K)
    if n <= _EIGEN_ROWS:
        return scipy.linalg.eigh(K, driver="evd", overwrite_a=True, check_finite=False)
    # The three steps of that driver: K = Q T Q', T = V diag(values) V', and Q V.
    lwork = 64 * n
    K, diagonal, off_diagonal, scales, _ = lapack.dsytrd(K, lower=1, lwork=lwork, overwrite_a=1)
    stop_if_interrupted()
    values, vectors, failed = lapack.dstevd(diagonal, off_diagonal)
    if failed:
        raise np.linalg.LinAlgError("The eigenvalues did not converge.")
    stop_if_interrupted()
    reflectors = np.asfortranarray(K[1:, :-1])  # Q leaves the first row as it is
    vectors[1:] = lapack.dormqr("L", "N", reflectors, scales, vectors[1:], lwork)[0]
    return values, vectors


def right_svd(Z: Floats) -> tuple[Floats, Floats]:
    """Return the singular values of a wide matrix, largest first, and its right vectors."""
    if float(len(Z)) * Z.size <= _SVD_PRODUCTS:
        _, roots, right = scipy.linalg.svd(Z, full_matrices=False, check_finite=False)
        return roots, right.T
    Q, R = scipy.linalg.qr(Z.T, mode="economic", overwrite_a=True, check_finite=False)
    stop_if_interrupted()
    left, roots, _ = scipy.linalg.svd(R, overwrite_a=True, check_finite=False)
    return roots, Q @ left


def restore_upper(M: Floats, diagonal: Floats) -> None:
    """Undo `factor_upper`."""
    for a in range(0, len(M), _COPIED):
        b = a + _COPIED
        corner = np.tril(M[a:b, a:b])
        M[a:b, a:b] = corner + np.tril(corner, -1).T
        M[a:b, b:] = M[b:, a:b].T
    np.fill_diagonal(M, diagonal)


def solve_positive(M: Floats, sides: Floats) -> Floats:
    """Solve with a matrix that is positive definite up to rounding; it is overwritten.

    Where the factorisation fails, the diagonal is raised by the least sufficient share of its mean:
    rounding of entries in single precision grows with their number.
    """
    size = float(np.trace(M)) / max(1, len(M))
    diagonal = M.diagonal().copy()
    for raised in (0.0, 1e-6, 1e-4, 1e-2):
        if raised:
            restore_upper(M, diagonal + raised * size)
        try:
            factor = factor_upper(M)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(scipy.linalg.cho_solve(factor, sides, check_finite=False))
    return np.asarray(sides / size)  # a step along the slopes, at worst
