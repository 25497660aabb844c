"""Kernel values at pairs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, warn
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import is_sparse

_ROWS = 20_000  # pairs whose rows are gathered together


def check_pairs(pairs: Any, labels: Any, n_samples: int) -> tuple[Indices, Floats]:
    """Return pairs as row numbers of shape (n_pairs, 2) and their labels as +1 or -1.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        What a user gave.
    labels : array of shape (n_pairs,)
        What a user gave.
    n_samples : int
        Rows that there are.
    """
    array = check_rows(pairs, n_samples)
    signs = _check_labels(labels, len(array))
    _warn_contradictions(array, signs, n_samples)
    return array, signs


def check_rows(pairs: Any, n_samples: int) -> Indices:
    """Return pairs as row numbers of shape (n_pairs, 2).

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2)
        What a user gave.
    n_samples : int
        Rows that there are.
    """
    try:
        array = np.asarray(pairs)
        whole = array.dtype.kind in "iu" or bool(
            (np.isfinite(array) & (array == np.floor(array))).all()
        )
    except (TypeError, ValueError):
        whole = False
    if not whole or array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise InputError(
            "pairs: must be row numbers of shape (n_pairs, 2), one pair or more, got "
            f"{_shown(pairs)}."
        )
    array = array.astype(np.intp)
    out = np.flatnonzero((array < 0).any(axis=1) | (array >= n_samples).any(axis=1))
    if len(out):
        raise InputError(
            f"pairs: row numbers must lie between 0 and {n_samples - 1}, but pair {out[0]} is "
            f"{array[out[0]].tolist()}."
        )
    alone = np.flatnonzero(array[:, 0] == array[:, 1])
    if len(alone):
        raise InputError(
            f"pairs: a pair needs two rows, but pair {alone[0]} is {array[alone[0]].tolist()}."
        )
    return array


def _check_labels(labels: Any, n_pairs: int) -> Floats:
    try:
        signs = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        signs = np.empty(0)
    if signs.shape != (n_pairs,) or not np.isin(signs, (-1.0, 1.0)).all():
        raise InputError(
            f"labels: must be +1 (same) or -1 (different) for each of the {n_pairs} pairs, got "
            f"{_shown(labels)}."
        )
    for sign, word in ((1.0, "same, +1"), (-1.0, "different, -1")):
        if not (signs == sign).any():
            raise InputError(f"labels: no pair is labelled {word}; both kinds are needed.")
    return signs


def _warn_contradictions(pairs: Indices, signs: Floats, n_samples: int) -> None:
    keys = pairs.min(axis=1) * n_samples + pairs.max(axis=1)
    both = len(np.intersect1d(keys[signs > 0], keys[signs < 0]))
    if both:
        warn(f"labels: {both} pair(s) are labelled both +1 and -1; all of them are kept.")


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"an array of shape {shape}" if shape is not None else repr(value)[:80]


def pair_features(X: Any, pairs: Indices) -> Any:
    """Return the products of the columns of both rows: one linear kernel per column.

    Parameters
    ----------
    X : csr_array or ndarray of shape (n_samples, n_features)
        Rows.
    pairs : ndarray of shape (n_pairs, 2)
        Row numbers.

    Returns
    -------
    F : csr_array or ndarray of shape (n_pairs, n_features)
        Sparse where ``X`` is.
    """
    left, right = pairs.T
    if not is_sparse(X):
        return X[left] * X[right]
    rows = csr_array(X)
    parts = [  # few at a time: rows share far fewer columns than they have
        csr_array(rows[left[i : i + _ROWS]].multiply(rows[right[i : i + _ROWS]]))
        for i in range(0, len(pairs), _ROWS)
    ]
    return parts[0] if len(parts) == 1 else csr_array(vstack(parts, format="csr"))


def kernel_features(kernels: Sequence[Kernel], X: Any, pairs: Indices) -> Floats:
    """Return the values of kernels at pairs, one column per kernel; no Gram matrix is formed.

    Parameters
    ----------
    kernels : sequence of Kernel
        Bound to the columns they look at.
    X : array, sparse matrix or data frame
        Rows.
    pairs : ndarray of shape (n_pairs, 2)
        Row numbers.
    """
    left, right = pairs.T
    F = np.empty((len(pairs), len(kernels)))
    for j, kernel in enumerate(kernels):
        rows = kernel.prepare(X)
        F[:, j] = kernel.at_pairs(rows, left, right)
    return F
