"""Clustering on a kernel that is accessed by products only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import KMeans

from kernelweave._threads import one_thread
from kernelweave._types import Floats, Indices

_DENSE = 400  # rows up to which all eigenvalues are found at once
_NULL = 1e-10  # eigenvalues below this share of the largest are zero


@dataclass(frozen=True)
class Embedding:
    """Rows as points whose neighbours are similar.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_components)
        Rows of length one, or of zeros; for a kernel with rows that do not sum to a positive
        number, eigenvectors times the roots of their eigenvalues.
    values : ndarray of shape (n_components,)
        Eigenvalues, largest first.
    normalised : bool
        Whether the kernel was divided by the roots of its row sums.
    empty : int
        Rows that are similar to none, themselves included.
    """

    points: Floats
    values: Floats
    normalised: bool
    empty: int


def embed(kernel: LinearOperator, n_components: int) -> Embedding:
    """Find the leading eigenvectors of a kernel, divided by the roots of its row sums.

    Parameters
    ----------
    kernel : LinearOperator of shape (n_samples, n_samples)
        Symmetric, positive semi-definite.
    n_components : int
        Eigenvectors wanted.
    """
    n = kernel.shape[0]
    sums = np.asarray(kernel @ np.ones(n)).ravel()
    size = float(np.abs(sums).max(initial=0.0))
    if size <= 0.0:
        return Embedding(np.zeros((n, n_components)), np.zeros(n_components), True, n)
    values, vectors, normalised = leading_vectors(kernel, n_components)
    there = sums > 1e-14 * size
    if not normalised:
        points = vectors * np.sqrt(np.maximum(values, 0.0))
        return Embedding(points, values, False, int((np.abs(sums) <= 1e-14 * size).sum()))
    vectors = np.where(values > _NULL * values[0], vectors, 0.0)  # others tell nothing of the rows
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    known = (lengths[:, 0] > 1e-12) & there
    points = np.where(known[:, None], vectors / np.where(lengths > 0, lengths, 1.0), 0.0)
    return Embedding(points, values, True, int((~there).sum()))


def leading_vectors(kernel: LinearOperator, n_components: int) -> tuple[Floats, Floats, bool]:
    """Decompose a kernel, divided by the roots of its row sums where these allow it.

    Parameters
    ----------
    kernel : LinearOperator of shape (n_samples, n_samples)
        Symmetric, positive semi-definite, not zero.
    n_components : int
        Eigenvectors wanted.

    Returns
    -------
    values : ndarray of shape (n_components,)
        Eigenvalues, largest first.
    vectors : ndarray of shape (n_samples, n_components)
        Eigenvectors as columns.
    normalised : bool
        Whether row sums were divided by; they are not where one is negative.
    """
    n = kernel.shape[0]
    sums = np.asarray(kernel @ np.ones(n)).ravel()
    size = float(np.abs(sums).max(initial=0.0))
    normalised = bool(sums.min() >= -1e-12 * size)
    there = sums > 1e-14 * size
    scale = np.where(there, 1.0 / np.sqrt(np.where(there, sums, 1.0)), 0.0)
    if not normalised:
        scale = np.ones(n)

    def times(v: Any) -> Floats:
        v = np.asarray(v).ravel()
        return np.asarray(scale * np.asarray(kernel @ (scale * v)).ravel())

    values, vectors = leading(times, n, n_components)
    return values, vectors, normalised


def leading(times: Any, n: int, k: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, and their vectors as columns."""
    if n <= max(_DENSE, 3 * k):
        K = np.column_stack([times(e) for e in np.eye(n)])
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    else:
        operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
        start = np.full(n, 1.0 / np.sqrt(n)) + np.linspace(0.0, 1e-3, n)  # the same every time
        values, vectors = eigsh(operator, k=min(k, n - 1), which="LA", v0=start)
    order = np.argsort(-values)[:k]
    return values[order], vectors[:, order]


def group_points(embedding: Embedding, n_clusters: int, n_init: int, random_state: Any) -> Indices:
    """Return the cluster of every row by k-means; one cluster where there is nothing to tell."""
    points = embedding.points
    size = float(np.abs(points).max(initial=0.0)) or 1.0
    rounded = np.round(points / size, 9) + 0.0  # equal rows may differ in the last digits
    distinct, place = np.unique(rounded, axis=0, return_inverse=True)
    if len(distinct) < n_clusters:
        return np.asarray(place.ravel(), dtype=np.intp)
    means = KMeans(n_clusters, n_init=n_init, random_state=random_state)
    with one_thread():  # also much quicker where other processes want the cores
        return np.asarray(means.fit_predict(points), dtype=np.intp)
