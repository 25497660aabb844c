"""Equal rows are one row with a larger weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats, Indices
from kernelweave._validation import is_frame
from kernelweave.banks.rules import PackedRows
from kernelweave.kernels.base import is_sparse


@dataclass(frozen=True)
class Merged:
    """Distinct training rows.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The rows that are fitted to.
    Y, cost : ndarray of shape (n_rows, n_outputs)
        Their targets and summed costs.
    weight : ndarray of shape (n_rows,) or None
        Their summed weights; None when all are one.
    index : ndarray of shape (n_rows,)
        Where each stands in the given data.
    inverse : ndarray of shape (n_samples,)
        The distinct row of every given one; -1 where it has no weight.
    """

    X: Any
    Y: Floats
    cost: Floats
    weight: Floats | None
    index: Indices
    inverse: Indices


def merge_rows(X: Any, Y: Floats, cost: Floats, weight: Floats | None) -> Merged:
    """Join rows that agree in ``X`` and target, and drop those without weight.

    A weight of two then gives bitwise the same model as a row given twice, in any order, and the
    Gram matrix is spared its duplicates. Of data frames only rows without weight are dropped.
    """
    everything = np.arange(len(Y))
    kept = everything if weight is None else np.flatnonzero(weight > 0)
    if is_frame(X):
        if weight is not None and len(kept) < len(Y):
            X = nw.from_native(X, eager_only=True)[kept].to_native()
            inverse = np.full(len(Y), -1)
            inverse[kept] = np.arange(len(kept))
            return Merged(X, Y[kept], cost[kept], weight[kept], kept, inverse)
        return Merged(X, Y, cost, weight, everything, everything)
    keys = _keys(X, Y)
    groups: dict[bytes, list[int]] = {}
    for i in kept:
        groups.setdefault(keys[i], []).append(int(i))
    if weight is None and len(groups) == len(Y):
        return Merged(X, Y, cost, None, everything, everything)
    # Sorted by content, so that the order in which rows came does not matter.
    members = [groups[key] for key in sorted(groups)]
    index = np.array([rows[0] for rows in members])
    inverse = np.full(len(Y), -1)
    for place, rows in enumerate(members):
        inverse[rows] = place
    counts = np.ones(len(Y)) if weight is None else weight
    return Merged(
        X[index],
        Y[index],
        np.array([cost[rows].sum(axis=0) for rows in members]),
        np.array([counts[rows].sum() for rows in members]),
        index,
        inverse,
    )


def merge_propositions(P: PackedRows, Y: Floats, cost: Floats, weight: Floats | None) -> Merged:
    """Join rows that satisfy the same propositions and have the same targets, as `merge_rows`."""
    kept = np.arange(len(Y)) if weight is None else np.flatnonzero(weight > 0)
    places, first = _group(P.rows[kept], Y[kept] + 0.0)
    inverse = np.full(len(Y), -1)
    inverse[kept] = places
    sums = [np.bincount(places, c, len(first)) for c in cost[kept].T]
    counts = np.ones(len(kept)) if weight is None else weight[kept]
    index = kept[first]
    return Merged(
        P[index],
        Y[index],
        np.column_stack(sums),
        np.bincount(places, counts, len(first)).astype(np.float64),
        index,
        inverse,
    )


def _group(bits: NDArray[np.uint8], Y: Floats) -> tuple[Indices, Indices]:
    """Return numbers of rows in the order of their content, and who is the first of each.

    The content is bytes and targets. Numbers of groups so far and four more bytes make one
    integer, which sorts far quicker than rows of bytes do.
    """
    n, n_bytes = bits.shape
    words = np.zeros((n, -(-n_bytes // 4) * 4), dtype=np.uint8)
    words[:, :n_bytes] = bits
    # Targets go by their bytes too; swapped, these sort as a number.
    targets = np.ascontiguousarray(Y).view(np.uint64).byteswap()
    digits = [*words.view(">u4").T.astype(np.uint64)]
    for column in targets.T:
        digits += [column >> np.uint64(32), column & np.uint64(0xFFFFFFFF)]
    places = np.zeros(n, dtype=np.uint64)
    for digit in digits:
        places = np.unique(places << np.uint64(32) | digit, return_inverse=True)[1].astype(
            np.uint64
        )
    _, first, numbered = np.unique(places, return_index=True, return_inverse=True)
    return numbered, first


def _keys(X: Any, Y: Floats) -> list[bytes]:
    if not is_sparse(X):
        table = np.column_stack([X, Y]) + 0.0  # minus zero is zero
        return [row.tobytes() for row in table]
    X = X.tocsr().copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    cuts = X.indptr
    return [
        X.indices[a:b].tobytes() + X.data[a:b].tobytes() + y.tobytes()
        for a, b, y in zip(cuts[:-1], cuts[1:], Y + 0.0, strict=True)
    ]
