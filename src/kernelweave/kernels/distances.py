"""Inner products and squared distances of dense and sparse rows, with their digits kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Stored

from .base import Rows, is_sparse

_CHUNK = 256  # rows worked on at a time, so that temporaries stay in cache
_PAIRS = 4096  # pairs of sparse rows compared at a time


def inner_products(A: Rows, B: Rows) -> Floats:
    """Return ``A @ B.T`` for dense or CSR rows; exactly symmetric when ``A is B``."""
    if is_sparse(A) or is_sparse(B):
        product = A @ B.T
        dense: Floats = product.toarray() if is_sparse(product) else np.asarray(product)
        return dense
    if A is B:  # one contiguous buffer on both sides: BLAS fills a triangle and mirrors it
        A = B = np.ascontiguousarray(A)
    K: Floats = A @ B.T
    return K


def squared_norms(A: Rows) -> Floats:
    """Return the squared length of every dense or CSR row."""
    if is_sparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    norms: Floats = np.einsum("ij,ij->i", A, A)
    return norms


def squared_distances(
    A: Rows, B: Rows, *, scales: Floats | None = None, dtype: Any = np.float64
) -> Stored:
    """Return ``sum_l (scales_l (a_l - b_l))^2`` for all pairs of dense or CSR rows.

    Every distance is right to 1e-12 of itself for any finite rows, zero between equal ones, and
    infinite where it overflows. ``|a|^2 + |b|^2 - 2 a.b`` is fast but loses the digits of rows that
    are closer to each other than to the mean; these pairs are computed from their differences.
    With ``A is B`` the result is exactly symmetric. Scales are for dense rows, and ones by default;
    distances are rounded once, to ``dtype``.
    """
    if is_sparse(A) or is_sparse(B):
        return _sparse_squared_distances(A, B).astype(dtype, copy=False)
    same = A is B
    A = np.ascontiguousarray(A)
    B = A if same else np.ascontiguousarray(B)
    factors = np.ones(A.shape[1]) if scales is None else scales
    out = np.empty((len(A), len(B)), dtype=dtype)
    with np.errstate(all="ignore"):
        # A common offset would make all norms large and every product inexact.
        centre = B.mean(axis=0) if len(B) else 0.0
        a = A - centre
        b = a if same else B - centre
        if scales is not None:
            a *= scales
            b = a if same else b * scales
        a_norms = squared_norms(a)
        b_norms = a_norms if same else squared_norms(b)

    def panel(rows: slice) -> None:
        first = rows.start if same else 0
        with np.errstate(all="ignore"):
            if len(factors) == 1:  # cheaper than a product
                part = np.square(np.subtract.outer(A[rows, 0], B[first:, 0]) * factors)
            else:
                part = a[rows] @ b[first:].T
                _core.finish_squared_distances(
                    part, A[rows], B[first:], factors, a_norms[rows], b_norms[first:], same
                )
            out[rows, first:] = part

    run_blocks(panel, len(A), _CHUNK)
    if same:
        _core.mirror_upper(out)
    return out


def _sparse_squared_distances(A: Rows, B: Rows) -> Floats:
    same = A is B
    a = squared_norms(A)
    b = a if same else squared_norms(B)
    sums = np.add.outer(a, b)
    D = sums - 2.0 * inner_products(A, B)
    stored = [np.diff(part.indptr).max(initial=0) for part in (A, B) if is_sparse(part)]
    lost = ~(D > _core.cancellation_limit(int(max(stored))) * sums) & (sums != 0)
    np.maximum(D, 0.0, out=D)
    if same:
        np.fill_diagonal(D, 0.0)
        lost = np.triu(lost, 1)
    rows, columns = np.nonzero(lost)
    for start in range(0, len(rows), _PAIRS):
        i, k = rows[start : start + _PAIRS], columns[start : start + _PAIRS]
        difference = A[i] - B[k]
        exact = squared_norms(difference if is_sparse(difference) else np.asarray(difference))
        D[i, k] = exact
        if same:
            D[k, i] = exact
    return D
