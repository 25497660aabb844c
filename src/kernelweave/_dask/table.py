"""Tables that Dask holds in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from kernelweave._memory import parse_bytes
from kernelweave._types import Indices
from kernelweave.errors import (
    InputError,
    InputTypeError,
    KernelweaveError,
    MemoryBudgetError,
    RowError,
    numbering,
)

from .tasks import call, run

if TYPE_CHECKING:
    from dask.delayed import Delayed

_ELSEWHERE = (
    "take some of the rows; MKLClassifier, MKLRegressor, the learned-metric estimators, "
    "NoiseTolerantKernelClassifier, the rule ensembles, PairwiseKernelLearner(method='lkcnpc') "
    "and, of two classes, NoisyLabelMKLClassifier learn from the parts of a Dask table where these "
    "are"
)


def is_dask(value: Any) -> bool:
    """Whether a value is a collection of Dask."""
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(
        value, "__dask_graph__"
    )


def is_parted(value: Any) -> TypeGuard[PartedTable]:
    """Whether a value is a `PartedTable`; anything else that is called X comes from the caller."""
    return isinstance(value, PartedTable)


def gather(value: Any) -> Any:
    """Return a collection of Dask as a value of this process, anything else as it is."""
    if is_parted(value):
        value.refuse_if_too_large()
        return value.take(np.arange(len(value)))
    return value.compute() if is_dask(value) else value


def fetch(X: Any) -> Any:
    """Return a Dask table as one of this process, anything else as it is."""
    return gather(PartedTable.of(X, finite=False)) if is_dask(X) else X


class PartedTable:
    """The rows of a Dask array or data frame, part by part.

    Parameters
    ----------
    parts : list of Delayed
        Arrays, sparse matrices or data frames; none of them empty.
    lengths : sequence of int
        Their numbers of rows.
    meta : array or data frame
        No rows, but the columns.
    """

    def __init__(self, parts: Sequence[Delayed], lengths: Sequence[int], meta: Any) -> None:
        self.parts, self.meta = list(parts), meta
        self.starts: Indices = np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)

    @classmethod
    def of(cls, X: Any, *, finite: bool = True) -> PartedTable:
        """Return the parts of a Dask table; with ``finite``, values of arrays are checked.

        Otherwise nothing is computed if Dask knows the lengths of the parts.
        """
        parts, meta = parts_of(X)
        lengths = known_lengths(X)
        if not finite and lengths is not None:
            found = [(length, None) for length in lengths]
        else:
            found = run(call(_look_at, part) for part in parts)
        starts = np.concatenate(([0], np.cumsum([length for length, _ in found]))).astype(int)
        for number, (first, (_, bad)) in enumerate(zip(starts, found, strict=False)):
            if finite and bad is not None:
                raise InputError(
                    f"X: contains NaN or infinity, first in row {first + bad[0]} (row {bad[0]} of "
                    f"part {number}), column {bad[1]}. Hint: fill missing values, for example "
                    "with scikit-learn's SimpleImputer."
                )
        filled = [i for i, (length, _) in enumerate(found) if length]
        return cls([parts[i] for i in filled], [found[i][0] for i in filled], meta)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self)

    @property
    def head(self) -> Any:
        """The first row, in this process."""
        return self.take(np.arange(min(1, len(self))))

    def map(
        self, function: Callable[..., Any], *args: Any, by_row: NDArray[Any] | None = None
    ) -> list[Any]:
        """Return ``function(part, first, own, *args)`` of every part.

        ``first`` is the number of rows before the part, and ``own`` its rows of ``by_row``.
        """
        slices = self.slices()
        own = [None if by_row is None else by_row[rows] for rows in slices]
        each = [[arg] * len(slices) for arg in args]
        return run(self.calls(function, [rows.start for rows in slices], own, *each))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), int(self.meta.shape[1])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def slices(self) -> list[slice]:
        """Return the rows of every part."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.starts)]

    def calls(self, function: Callable[..., Any], *each: Sequence[Any]) -> list[Delayed]:
        """Return a task for every part: the function of it and of its items of some lists.

        Errors name the rows of the part.
        """
        return [
            call(_named, part, function, rows, *args)
            for part, rows, *args in zip(self.parts, self.slices(), *each, strict=True)
        ]

    def refuse_if_too_large(
        self,
        index: Indices | None = None,
        memory_limit: float | str | None = None,
        hint: str = _ELSEWHERE,
    ) -> None:
        """Refuse to fetch a table, or some of its rows, that this process cannot hold."""
        allowed = parse_bytes(memory_limit)
        n, columns = len(self) if index is None else len(index), self.shape[1]
        if 8.0 * n * columns <= allowed:
            return
        # Sparse rows may be much smaller; only where it matters they are measured.
        wanted = self._homes(np.arange(n) if index is None else index)[0]
        needed = float(sum(run(_used(self.calls(_count_bytes, wanted), wanted))))
        if needed <= allowed:
            return
        raise MemoryBudgetError(
            f"X: {n} rows of {columns} columns need {1e-9 * needed:.3g} GB in this process, which "
            f"may use {1e-9 * allowed:.3g} GB. Hint: {hint}."
        )

    def aligned(self, n_rows: int) -> PartedTable:
        """Return the same rows in parts of ``n_rows``, but for the last."""
        parts, lengths, slices = [], [], self.slices()
        for first in range(0, len(self), n_rows):
            last = min(first + n_rows, len(self))
            homes = np.searchsorted(self.starts, [first, last - 1], side="right") - 1
            pieces = [
                self.parts[i]
                if first <= slices[i].start and slices[i].stop <= last
                else call(
                    _pick,
                    self.parts[i],
                    slice(max(first - slices[i].start, 0), last - slices[i].start),
                )
                for i in range(homes[0], homes[1] + 1)
            ]
            parts.append(pieces[0] if len(pieces) == 1 else call(_stack, *pieces))
            lengths.append(last - first)
        return PartedTable(parts, lengths, self.meta)

    def take(self, index: Indices) -> Any:
        """Return some rows as a table of this process, in the order asked for."""
        if not self.parts:
            return self.meta
        wanted, order = self._homes(index)
        found = run(_used(self.calls(_pick, wanted), wanted))
        if not found:  # no row is asked for
            return self.meta
        if (np.diff(order) > 0).all():  # as asked for already
            return _stack(*found)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return _pick(_stack(*found), places)

    def _homes(self, index: Indices) -> tuple[list[Indices], Indices]:
        """Return the rows wanted of every part by its own numbers, and their places in `index`."""
        home = np.searchsorted(self.starts, index, side="right") - 1
        order = np.argsort(home, kind="stable")
        ends = np.searchsorted(home[order], np.arange(1, len(self.parts)))
        own = index - self.starts[home]
        return np.split(own[order], ends), order


def parts_of(X: Any) -> tuple[list[Delayed], Any]:
    """Return the parts of a Dask table, and an empty table with its columns."""
    if hasattr(X, "to_delayed") and hasattr(X, "_meta"):
        if hasattr(X, "map_partitions") and getattr(X._meta, "ndim", 0) == 2:
            return list(X.to_delayed()), X._meta
        if getattr(X, "ndim", 0) == 2:
            if not np.isfinite(X.shape[1]):
                raise InputError(
                    "X: Dask does not know how many columns the array has. Hint: call "
                    "X.compute_chunk_sizes() first."
                )
            if len(X.chunks[1]) > 1:
                X = X.rechunk({1: -1})
            if X.dtype.kind not in "biuf":
                raise InputTypeError(
                    f"X: a Dask array must hold numbers, got dtype {X.dtype}; "
                    "a Dask data frame may hold categories."
                )
            return list(X.to_delayed().ravel()), np.empty((0, X.shape[1]))
        if hasattr(X, "ndim"):
            raise InputError(
                f"X: expected a Dask array or data frame of two dimensions, got one of {X.ndim}."
            )
    raise InputTypeError(
        "X: of Dask's collections an array or a data frame is needed, "
        f"got {type(X).__module__}.{type(X).__name__}."
    )


def known_lengths(X: Any) -> list[int] | None:
    """Return the number of rows of every part, if Dask knows them."""
    chunks = getattr(X, "chunks", None)  # of a data frame, perhaps a column of that name
    if not isinstance(chunks, tuple) or not np.isfinite(chunks[0]).all():
        return None
    return [int(length) for length in chunks[0]]


def _look_at(part: Any) -> tuple[int, tuple[int, int] | None]:
    """Return the number of rows, and the place of the first value that is not finite."""
    length = int(part.shape[0])
    if hasattr(part, "columns") or not length:
        return length, None
    if hasattr(part, "tocoo"):
        entries = part.tocoo()
        wrong = np.flatnonzero(~np.isfinite(entries.data))
        places = [(int(entries.row[i]), int(entries.col[i])) for i in wrong[:1]]
    else:
        places = [(int(i), int(j)) for i, j in np.argwhere(~np.isfinite(part))[:1]]
    return length, places[0] if places else None


def _named(part: Any, function: Callable[..., Any], rows: slice, *args: Any) -> Any:
    try:
        with numbering(range(rows.start, rows.stop)):
            return function(_as_table(part), *args)
    except RowError:
        raise
    except KernelweaveError as error:
        where = f"In rows {rows.start} to {rows.stop - 1} of X"
        raise type(error)(f"{where}: {error}") from None


def _as_table(part: Any) -> Any:
    if hasattr(part, "columns") or hasattr(part, "tocsr") or part.dtype.kind == "b":
        return part
    return np.asarray(part, float)


def _used(tasks: Sequence[Delayed], wanted: Sequence[Indices]) -> list[Delayed]:
    """Return the tasks of parts of which some row is wanted."""
    return [task for task, rows in zip(tasks, wanted, strict=True) if len(rows)]


def _count_bytes(part: Any, rows: Indices) -> int:
    """Return the bytes of some rows of a part."""
    picked = _pick(part, rows)
    if hasattr(picked, "columns"):
        return int(picked.memory_usage(index=False).sum())
    if hasattr(picked, "indptr"):
        return int(picked.data.nbytes + picked.indices.nbytes + picked.indptr.nbytes)
    return int(picked.nbytes)


def _pick(part: Any, rows: Indices | slice) -> Any:
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def _stack(*parts: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(list(parts), ignore_index=True)
    if hasattr(parts[0], "tocsr"):
        import scipy.sparse as sp

        return sp.vstack(list(parts), format="csr")
    return np.concatenate(list(parts))
