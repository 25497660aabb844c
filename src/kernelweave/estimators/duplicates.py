"""Merge equal rows into one row with the sum of their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._dask import gather, is_parted
from kernelweave._types import Floats, Indices
from kernelweave._validation import is_frame
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.banks.rules import PackedRows
from kernelweave.kernels.base import is_sparse

_FEW = 0.1  # share of repeated rows among many that are not worth joining
_HASHED = 50_000  # rows at a time
_WIDTH_ROWS = 20_000  # rows that default widths are taken from
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads bits over a word


@dataclass(frozen=True)
class MergedRows:
    """Distinct training rows."""

    X: Any  # the rows that are fitted to
    # Y, cost (n_rows, n_outputs): their targets and summed costs
    Y: Floats
    cost: Floats
    weight: Floats | None  # (n_rows,): their summed weights; None when all are one
    index: Indices  # (n_rows,): where each stands in the given data
    inverse: Indices  # (n_samples,): the distinct row of every given one; -1 where it has no weight


def spread_rows(n: int) -> Indices:
    """Return rows spread evenly over a table: enough for default widths, and all of few."""
    return even_rows(n, _WIDTH_ROWS)


def merge_rows(X: Any, Y: Floats, cost: Floats, weight: Floats | None) -> MergedRows:
    """Join rows that agree in ``X`` and target, and drop those without weight.

    A weight of two then gives bitwise the same model as a row given twice, in any order, and the
    Gram matrix is spared its duplicates. Of data frames only rows without weight are dropped. Many
    rows of which few are equal stay as they are, so that their model is that of the same rows in
    the parts of a Dask table, which are never joined; few rows in parts come here.
    """
    if is_parted(X) and len(X) < large.MANY_ROWS:
        X = gather(X)
    everything = np.arange(len(Y))
    kept = everything if weight is None else np.flatnonzero(weight > 0)
    if is_parted(X):  # rows stay where they are; those without weight cost nothing
        return MergedRows(X, Y, cost, weight, everything, everything)
    if is_frame(X):
        if weight is not None and len(kept) < len(Y):
            X = nw.from_native(X, eager_only=True)[kept].to_native()
            inverse = np.full(len(Y), -1)
            inverse[kept] = np.arange(len(kept))
            return MergedRows(X, Y[kept], cost[kept], weight[kept], kept, inverse)
        return MergedRows(X, Y, cost, weight, everything, everything)
    if weight is None and _all_differ(X, Y):
        return MergedRows(X, Y, cost, None, everything, everything)
    keys = content_keys(X, Y)
    # Sorted by content, so that the order in which rows came does not matter.
    _, first, places = np.unique(keys[kept], return_index=True, return_inverse=True)
    few = 0 if len(Y) < large.MANY_ROWS else _FEW * len(Y)
    if len(kept) == len(Y) and (weight is None or few) and len(Y) - len(first) <= few:
        return MergedRows(X, Y, cost, weight, everything, everything)
    inverse = np.full(len(Y), -1)
    inverse[kept] = places
    counts = np.ones(len(kept)) if weight is None else weight[kept]
    index = kept[first]
    return MergedRows(
        X[index],
        Y[index],
        np.column_stack([np.bincount(places, c, len(first)) for c in cost[kept].T]),
        np.bincount(places, counts, len(first)).astype(np.float64),
        index,
        inverse,
    )


def merge_propositions(P: PackedRows, Y: Floats, cost: Floats, weight: Floats | None) -> MergedRows:
    """Join rows that satisfy the same propositions and have the same targets, as `merge_rows`.

    Rows that differ in a column of numbers beside the propositions stay apart.
    """
    kept = np.arange(len(Y)) if weight is None else np.flatnonzero(weight > 0)
    numbers = Y if P.linear is None else np.column_stack([Y, P.linear])
    places, first = _group(P.rows[kept], numbers[kept] + 0.0)
    inverse = np.full(len(Y), -1)
    inverse[kept] = places
    sums = [np.bincount(places, c, len(first)) for c in cost[kept].T]
    counts = np.ones(len(kept)) if weight is None else weight[kept]
    index = kept[first]
    return MergedRows(
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


def _all_differ(X: Any, Y: Floats) -> bool:
    """Tell whether no two rows can be equal, at little cost; False where that is not sure."""
    if is_sparse(X):
        return False
    seen = []
    for start in range(0, len(Y), _HASHED):
        rows = slice(start, start + _HASHED)
        bits = (np.column_stack([X[rows], Y[rows]]) + 0.0).view(np.uint64)
        factors = np.arange(bits.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        mixed = (bits ^ (bits >> np.uint64(29))) * (factors * _ODD)
        seen.append((mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64))
    return len(np.unique(np.concatenate(seen))) == len(Y)  # equal rows have equal sums


def content_keys(X: Any, Y: Floats) -> NDArray[Any]:
    """Return an item for every row that is equal for equal rows."""
    if not is_sparse(X):
        table = np.ascontiguousarray(np.column_stack([X, Y]) + 0.0)  # minus zero is zero
        return table.view(f"V{8 * table.shape[1]}")[:, 0]
    X = X.tocsr().copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    keys = np.empty(len(Y), dtype=object)
    for i, (a, b, y) in enumerate(zip(X.indptr[:-1], X.indptr[1:], Y + 0.0, strict=True)):
        keys[i] = X.indices[a:b].tobytes() + X.data[a:b].tobytes() + y.tobytes()
    return keys
