"""Spectral clustering on a kernel that is accessed by products only.

References
----------
Ng, Jordan and Weiss (2001), On spectral clustering: analysis and an algorithm, NIPS 14, section 2;
the diagonal of the kernel is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import KMeans

from kernelweave._threads import one_thread
from kernelweave._types import Floats, Indices

_DENSE = 400  # rows up to which a dense eigendecomposition replaces Lanczos; chosen by hand
_NULL = 1e-10  # eigenvalues below this share of the largest are rounding
_EMPTY = 1e-14  # row sums below this share of the largest are zero


@dataclass(frozen=True)
class Embedding:
    """Rows as points whose inner products approximate the kernel."""

    # Rows of length one, or of zeros. Where some row sum is negative: eigenvectors times the roots
    # of their eigenvalues.
    points: Floats
    values: Floats  # eigenvalues, largest first
    normalised: bool  # whether the kernel was divided by the roots of its row sums
    empty: int  # rows whose kernel values are all zero


def embed(kernel: LinearOperator, n_components: int) -> Embedding:
    """Return the leading eigenvectors of a kernel, divided by the roots of its row sums."""
    n = kernel.shape[0]
    sums = _row_sums(kernel)
    size = float(np.abs(sums).max(initial=0.0))
    if size <= 0.0:
        return Embedding(np.zeros((n, n_components)), np.zeros(n_components), True, n)
    values, vectors, normalised = leading_vectors(kernel, n_components)
    if not normalised:
        points = vectors * np.sqrt(np.maximum(values, 0.0))
        return Embedding(points, values, False, int((np.abs(sums) <= _EMPTY * size).sum()))
    positive = sums > _EMPTY * size
    vectors = np.where(values > _NULL * values[0], vectors, 0.0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    known = (lengths[:, 0] > 1e-12) & positive
    points = np.where(known[:, None], vectors / np.where(lengths > 0, lengths, 1.0), 0.0)
    return Embedding(points, values, True, int((~positive).sum()))


def leading_vectors(kernel: LinearOperator, n_components: int) -> tuple[Floats, Floats, bool]:
    """Return eigenvalues (largest first), eigenvectors as columns, and whether it was normalised.

    The symmetric, positive semi-definite kernel is divided by the roots of its row sums unless one
    of these is negative.
    """
    n = kernel.shape[0]
    sums = _row_sums(kernel)
    size = float(np.abs(sums).max(initial=0.0))
    normalised = bool(sums.min() >= -1e-12 * size)
    positive = sums > _EMPTY * size
    scale = np.where(positive, 1.0 / np.sqrt(np.where(positive, sums, 1.0)), 0.0)
    if not normalised:
        scale = np.ones(n)

    def times(v: Any) -> Floats:
        v = np.asarray(v).ravel()
        return np.asarray(scale * np.asarray(kernel @ (scale * v)).ravel())

    values, vectors = leading(times, n, n_components)
    return values, vectors, normalised


def _row_sums(kernel: LinearOperator) -> Floats:
    return np.asarray(kernel @ np.ones(kernel.shape[0])).ravel()


def leading(times: Any, n: int, k: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, and their vectors as columns."""
    if n <= max(_DENSE, 3 * k):
        K = np.column_stack([times(e) for e in np.eye(n)])
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    else:
        operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
        # A fixed start vector makes Lanczos deterministic.
        start = np.full(n, 1.0 / np.sqrt(n)) + np.linspace(0.0, 1e-3, n)
        values, vectors = eigsh(operator, k=min(k, n - 1), which="LA", v0=start)
    order = np.argsort(-values)[:k]
    return values[order], vectors[:, order]


def group_points(embedding: Embedding, n_clusters: int, n_init: int, random_state: Any) -> Indices:
    """Return the cluster of every row by k-means; fewer clusters where points coincide."""
    points = embedding.points
    size = float(np.abs(points).max(initial=0.0)) or 1.0
    rounded = np.round(points / size, 9) + 0.0  # equal rows may differ by rounding
    distinct, place = np.unique(rounded, axis=0, return_inverse=True)
    if len(distinct) < n_clusters:
        return np.asarray(place.ravel(), dtype=np.intp)
    means = KMeans(n_clusters, n_init=n_init, random_state=random_state)
    with one_thread():  # deterministic, and faster where other processes use the cores
        return np.asarray(means.fit_predict(points), dtype=np.intp)
