"""Nystroem features in the memory of Dask workers, in blocks of rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave import _core
from kernelweave._dask import PartedTable, add_up, call, keep, run
from kernelweave._memory import check_memory
from kernelweave._types import Floats, Indices, Stored
from kernelweave.banks import row_source as source
from kernelweave.banks.row_source import (
    BlockWork,
    PartAnswer,
    Pass,
    RowSource,
    feature_sums,
    fill_block,
    rows_at_a_time,
    total_rank,
)
from kernelweave.banks.views import Views
from kernelweave.errors import MemoryBudgetError, numbering
from kernelweave.kernels import Kernel

from .blocks import RowBlocks, block_gram
from .landmarks import Landmarks

if TYPE_CHECKING:
    from dask.delayed import Delayed

_SHARE = 0.8  # share of the memory of all workers that features may take
_SUMS = 12  # products of features, square matrices, that are held while they are summed
Block = tuple[Stored, list[PartAnswer]]  # features of a part, and its measurements


class DaskRows(RowSource):
    """Rows that stay in the parts of a Dask table."""

    def __init__(self, kernels: Sequence[Kernel], table: PartedTable) -> None:
        self.kernels, self.table = list(kernels), table
        self.n_samples, self.n_columns = table.shape

    def take(self, index: Indices) -> Views:
        with numbering(index):
            return Views.of(self.kernels, self.table.take(index))

    def prepared_for(self, kernels: Sequence[Kernel]) -> DaskRows:
        return DaskRows(kernels, self.table)

    def features(
        self,
        landmarks: Sequence[Landmarks],
        share: Floats,
        dtype: Any,
        memory_limit: float | str | None,
        passes: bool,
    ) -> tuple[RowBlocks, Pass]:
        rank = total_rank(landmarks)
        itemsize = np.dtype(dtype).itemsize
        _refuse_too_much(float(self.n_samples) * rank * itemsize, rank, memory_limit)
        import dask

        # Cut as in this process, so that sums are the same to the last bit.
        table = self.table.aligned(rows_at_a_time(rank, dtype, self.n_columns))
        slices = table.slices()
        # In the graph, not scattered: scattered data is lost with its worker.
        known = dask.delayed(list(landmarks), traverse=False)
        blocks = keep(
            table.calls(
                _build,
                [known] * len(slices),
                [share[rows] for rows in slices],
                [rows.start for rows in slices],
                [np.dtype(dtype)] * len(slices),
            )
        )
        measured = Pass.of(run(call(_measured, block) for block in blocks))
        return DaskBlocks(blocks, table.starts, rank, itemsize), measured

    def add_up(self, work: BlockWork, by_row: Floats, known: Any) -> tuple[Any, ...]:
        return tuple(run([add_up(self._tasks(work, by_row, known))])[0])

    def collect(self, work: BlockWork, by_row: Floats, known: Any) -> Floats:
        return np.concatenate(run(self._tasks(work, by_row, known)))

    def _tasks(self, work: BlockWork, by_row: Floats, known: Any) -> list[Delayed]:
        import dask

        table = self.table.aligned(source.WORK_ROWS)
        slices = table.slices()
        together = dask.delayed((self.kernels, work, known), traverse=False)
        return table.calls(
            _work,
            [together] * len(slices),
            [by_row[rows] for rows in slices],
            [rows.start for rows in slices],
        )

    def sums(self, j: int, item: Landmarks, V: Floats) -> Floats:
        table = self.table.aligned(source.WORK_ROWS)
        slices = table.slices()
        used = [b for b, rows in enumerate(slices) if V[rows].any()]
        tasks = table.calls(_exact_sums, [item] * len(slices), [V[rows] for rows in slices])
        return (
            np.asarray(sum(run(tasks[b] for b in used)))
            if used
            else np.zeros((item.size, V.shape[1]))
        )


class DaskBlocks(RowBlocks):
    """Blocks of features in the memory of Dask; vectors with an entry per row are sent.

    ``blocks`` are persisted pairs of features and measurements.
    """

    def __init__(
        self, blocks: list[Delayed], starts: Indices, n_columns: int, itemsize: int
    ) -> None:
        self.blocks, self.starts, self.n_columns = blocks, starts, n_columns
        self.itemsize = itemsize

    @property
    def nbytes(self) -> int:
        return self.n_samples * self.n_columns * self.itemsize

    def times(self, W: Floats) -> Floats:
        W = np.ascontiguousarray(W)
        return np.concatenate(run(call(_times, block, W) for block in self.blocks))

    def sums(self, V: Floats) -> Floats:
        parts = ((block, V[rows]) for block, rows in zip(self.blocks, self.slices(), strict=True))
        found = run(call(_sums, block, part) for block, part in parts if part.any())
        out = np.zeros((self.n_columns, V.shape[1]))
        for part in found:
            out += part
        return out

    def gram(self, q: Floats, columns: Indices) -> tuple[Floats, Floats]:
        parts = ((block, q[rows]) for block, rows in zip(self.blocks, self.slices(), strict=True))
        tasks = [call(_gram, block, part, columns) for block, part in parts if part.any()]
        if not tasks:
            return np.zeros((len(columns), len(columns))), np.zeros(len(columns))
        inner, edge = run([add_up(tasks)])[0]
        return inner, edge

    def rows(self, index: Indices, columns: Indices | None = None) -> Floats:
        columns = np.arange(self.n_columns) if columns is None else columns
        home = np.searchsorted(self.starts, index, side="right") - 1
        places = {int(b): np.flatnonzero(home == b) for b in np.unique(home)}
        found = run(
            call(_rows, self.blocks[b], index[here] - self.starts[b], columns)
            for b, here in places.items()
        )
        out = np.empty((len(index), len(columns)))
        for here, part in zip(places.values(), found, strict=True):
            out[here] = part
        return out

    def select(self, columns: Indices) -> RowBlocks:
        blocks = keep(call(_select, block, columns) for block in self.blocks)
        return DaskBlocks(blocks, self.starts, len(columns), self.itemsize)


def _work(part: Any, together: tuple[Any, ...], own: Floats, first_row: int) -> Any:
    kernels, work, known = together
    return work(Views.of(kernels, part), own, first_row, known)


def _build(
    part: Any,
    landmarks: list[Landmarks],
    share: Floats,
    first_row: int,
    dtype: Any,
) -> Block:
    views = Views.of([item.kernel for item in landmarks], part)
    out = np.empty((views.n_samples, total_rank(landmarks)), dtype=dtype)
    parts = (views[j] for j in range(len(landmarks)))
    return out, fill_block(out, landmarks, parts, share, first_row)


def _measured(block: Block) -> list[PartAnswer]:
    return block[1]


def _exact_sums(part: Any, item: Landmarks, V: Floats) -> Floats:
    return feature_sums(item, item.kernel.prepare(part), V)


def _times(block: Block, W: Floats) -> Floats:
    return _core.feature_times(block[0], W)


def _sums(block: Block, V: Floats) -> Floats:
    return _core.feature_sums(block[0], np.ascontiguousarray(V))


def _gram(block: Block, q: Floats, columns: Indices) -> tuple[Floats, Floats]:
    return block_gram(block[0], q, columns)


def _rows(block: Block, index: Indices, columns: Indices) -> Floats:
    return np.asarray(block[0][index][:, columns], dtype=np.float64)


def _select(block: Block, columns: Indices) -> Block:
    return np.ascontiguousarray(block[0][:, columns]), []


def _refuse_too_much(needed: float, rank: int, memory_limit: float | str | None) -> None:
    """Refuse features that the workers, or this process, cannot hold, before any is computed."""
    limits = _worker_limits()
    if limits is None:
        check_memory(
            "X is a Dask table without a cluster: its features need",
            {"features": needed, "sums of products under way": _SUMS * 8.0 * rank**2},
            memory_limit,
            "start a cluster, or give X.compute(), whose features may be kept in a file",
        )
        return
    if limits and all(limits) and needed > _SHARE * sum(limits):
        raise MemoryBudgetError(
            f"The features of X need {needed / 1e9:.1f} GB, but the {len(limits)} Dask worker(s) "
            f"have {sum(limits) / 1e9:.1f} GB together. Hint: add workers, use fewer kernels, or "
            "a larger tol."
        )


def _worker_limits() -> list[float] | None:
    """Return the memory of every worker in bytes; None where Dask works in this process."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        workers = get_client().scheduler_info(n_workers=-1)["workers"].values()
    except ValueError:
        return None
    return [float(worker["memory_limit"]) for worker in workers]
