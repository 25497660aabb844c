"""Kernel values at pairs of rows, and the rows they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from kernelweave._dask import is_parted
from kernelweave._types import Floats, Indices, Stored
from kernelweave._validation import take_rows
from kernelweave.banks import Views
from kernelweave.banks.pairs import PairBlocks, fits_whole
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import is_sparse

_ROWS = 20_000  # pairs whose sparse rows are gathered together; bounds the workspace
_WHOLE = 2.5e8  # bytes of an array; more are computed in blocks, whatever the free memory


def pair_features(X: Any, pairs: Indices) -> Any:
    """Return the products of the columns of both rows, shape (n_pairs, n_features).

    Column j is the linear kernel of column j at the pairs; sparse where ``X`` is.
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
    """Return the values of bound kernels at pairs, one column per kernel, without Gram matrices."""
    left, right = pairs.T
    F = np.empty((len(pairs), len(kernels)))
    for j, kernel in enumerate(kernels):
        F[:, j] = kernel.at_pairs(kernel.prepare(X), left, right)
    return F


def paired_rows(
    X: Any, pairs: Indices, memory_limit: float | str | None = None
) -> tuple[Any, Indices, Indices | None]:
    """Return the rows of a Dask table that occur in pairs, and the pairs by their new numbers.

    Every part sends only the rows that occur; other tables are returned unchanged. The third item
    holds the row numbers in the table, None where the rows are all of them.
    """
    if not is_parted(X):
        return X, pairs, None
    rows, places = np.unique(pairs.ravel(), return_inverse=True)
    hint = "give pairs that join fewer rows, or a larger memory_limit"
    X.refuse_if_too_large(rows, memory_limit, hint)
    return take_rows(X, rows), places.reshape(pairs.shape), rows


def pair_values(
    X: Any,
    pairs: Indices,
    kernels: Sequence[Kernel] | None = None,
    memory_limit: float | str | None = None,
) -> Any:
    """Return the values of kernels at pairs, shape (n_pairs, n_kernels).

    The result is an array, a csr_array (sparse ``X`` without kernels), or `PairBlocks` where the
    array would exceed the memory limit or 250 MB; the blocks may live in a file. Without kernels
    there is a linear one for each column.
    """
    n, m = len(pairs), X.shape[1] if kernels is None else len(kernels)
    whole = 8.0 * n * m <= _WHOLE and (memory_limit is None or fits_whole(n, m, memory_limit))
    if whole or (kernels is None and is_sparse(X)):
        return pair_features(X, pairs) if kernels is None else kernel_features(kernels, X, pairs)
    views = None if kernels is None else Views.of(kernels, X)

    def fill(out: Stored, some: slice) -> None:
        left, right = pairs[some].T
        if kernels is None or views is None:
            np.multiply(X[left], X[right], out=out)
            return
        for j, kernel in enumerate(kernels):
            out[:, j] = kernel.at_pairs(views[j], left, right)

    return PairBlocks.filled(n, m, fill, memory_limit)
