"""Rows and kernel values required by pairwise learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave._dask import PartedTable
from kernelweave._types import Indices, Stored
from kernelweave._validation import take_rows
from kernelweave.banks import Views
from kernelweave.banks.pairs import PairBlocks, fits_whole
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import is_sparse

from .features import kernel_features, pair_features

_WHOLE = 2.5e8  # bytes that are one array on every machine; more are worked on in blocks


def paired_rows(
    X: Any, pairs: Indices, memory_limit: float | str | None = None
) -> tuple[Any, Indices, Indices | None]:
    """Return the rows of a Dask table that occur in pairs, and the pairs by their new numbers.

    Every part sends its own rows and nothing else. A table of this process stays as it is. The
    third is where the rows stand in the table, None where all of them are there.

    Parameters
    ----------
    X : array, sparse matrix, data frame or PartedTable
        Rows.
    pairs : ndarray of shape (n_pairs, 2)
        Row numbers that exist.
    memory_limit : number of bytes, str such as "8GB", or None
        What the rows may take; None: half of what is free.
    """
    if not isinstance(X, PartedTable):
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
    """Return the values of kernels at pairs; many of them as blocks, in a file if need be.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        Rows; numbers where there are no kernels.
    pairs : ndarray of shape (n_pairs, 2)
        Row numbers.
    kernels : sequence of Kernel or None
        None: one linear kernel for each column.
    memory_limit : number of bytes, str such as "8GB", or None
        None: half of what is free.

    Returns
    -------
    F : ndarray, csr_array or PairBlocks of shape (n_pairs, n_kernels)
        Sparse where ``X`` is and there are no kernels.
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
