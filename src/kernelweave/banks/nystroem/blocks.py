"""Blocks of rows of Nystroem features, in memory or in a memory-mapped file."""

from __future__ import annotations

import mmap
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._dask import add_up_here, sum_levels
from kernelweave._types import Floats, Indices, Stored

_CHUNK = 4096  # rows of a symmetric product at a time, or fewer for many columns
_CHUNK_ENTRIES = 2**21


class RowBlocks(ABC):
    """A tall matrix ``F`` of features in blocks of rows.

    Vectors with an entry per row are whole. Sums are taken block by block in a fixed order, so that
    they do not depend on where or by how many threads they are computed.
    """

    starts: Indices  # first row of every block, and the number of rows
    n_columns: int

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    def slices(self) -> list[slice]:
        """Return the rows of every block."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.starts)]

    @abstractmethod
    def times(self, W: Floats) -> Floats:
        """Return ``F W``."""

    @abstractmethod
    def sums(self, V: Floats) -> Floats:
        """Return ``F' V``; rows of zeros cost nothing."""

    @abstractmethod
    def gram(self, q: Floats, columns: Indices) -> tuple[Floats, Floats]:
        """Return ``F' diag(q) F`` and ``F' q`` of some columns, for ``q >= 0``, mostly zero."""

    @abstractmethod
    def rows(self, index: Indices, columns: Indices | None = None) -> Floats:
        """Return some rows, and of these some columns, in double precision."""

    @abstractmethod
    def select(self, columns: Indices) -> RowBlocks:
        """Return some of the columns."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory or disk space taken."""

    def local(self) -> LocalBlocks | None:
        """Return the blocks if this process reads them without a copy."""
        return None


class LocalBlocks(RowBlocks):
    """Blocks in the memory of this process, or in a mapped file.

    They are in C order, float32 or float64. Where they are mapped, copies go to files, too.
    """

    def __init__(self, blocks: Sequence[Stored], *, mapped: bool = False) -> None:
        self.blocks, self.mapped = list(blocks), mapped
        self.starts = np.concatenate(([0], np.cumsum([len(block) for block in blocks])))
        self.n_columns = blocks[0].shape[1]

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)

    def local(self) -> LocalBlocks:
        return self

    def read(self) -> Iterator[tuple[Stored, slice]]:
        """Yield every block with its rows; of mapped ones only the present one takes memory."""
        for block, rows in zip(self.blocks, self.slices(), strict=True):
            yield block, rows
            release(block)

    def times(self, W: Floats) -> Floats:
        W = np.ascontiguousarray(W)
        return np.concatenate([_core.feature_times(block, W) for block, _ in self.read()])

    def sums(self, V: Floats) -> Floats:
        V = np.ascontiguousarray(V)
        out = np.zeros((self.n_columns, V.shape[1]))
        for block, rows in self.read():
            out += _core.feature_sums(block, V[rows])
        return out

    def gram(self, q: Floats, columns: Indices) -> tuple[Floats, Floats]:
        pairs = zip(self.blocks, self.slices(), strict=True)
        used = [(block, q[rows]) for block, rows in pairs if q[rows].any()]
        if not used:
            return np.zeros((len(columns), len(columns))), np.zeros(len(columns))

        def grams(some: Sequence[tuple[Stored, Floats]]) -> Iterator[tuple[Floats, Floats]]:
            for block, part in some:
                yield block_gram(block, part, columns)
                release(block)

        inner, edge = add_up_here(grams, used)
        return inner, edge

    def mean_squares(self) -> Floats:
        """Return the mean square of every column, of the leading rows."""
        block = self.blocks[0][:_CHUNK].astype(np.float64)
        return np.asarray(np.einsum("nr,nr->r", block, block) / len(block))

    def rows(self, index: Indices, columns: Indices | None = None) -> Floats:
        columns = np.arange(self.n_columns) if columns is None else columns
        out = np.empty((len(index), len(columns)))
        home = np.searchsorted(self.starts, index, side="right") - 1
        for b in np.unique(home):
            here = np.flatnonzero(home == b)
            out[here] = self.blocks[b][index[here] - self.starts[b]][:, columns]
            release(self.blocks[b])
        return out

    def select(self, columns: Indices) -> LocalBlocks:
        store = new_store(self.n_samples, len(columns), self.blocks[0].dtype, mapped=self.mapped)
        parts = [store[rows] for rows in self.slices()]
        for part, block in zip(parts, self.blocks, strict=True):
            for k in range(0, len(block), _CHUNK):
                few = slice(k, k + _CHUNK)
                part[few] = block[few][:, columns]
                release(block[few])
                release(part[few])
        return LocalBlocks(parts, mapped=self.mapped)


class ColumnBlocks(RowBlocks):
    """Some columns of other blocks, which stay where they are."""

    def __init__(self, blocks: RowBlocks, columns: Indices) -> None:
        self.blocks, self.columns = blocks, columns
        self.starts, self.n_columns = blocks.starts, len(columns)

    def times(self, W: Floats) -> Floats:
        spread = np.zeros((self.blocks.n_columns, W.shape[1]))
        spread[self.columns] = W
        return self.blocks.times(spread)

    def sums(self, V: Floats) -> Floats:
        return self.blocks.sums(V)[self.columns]

    def gram(self, q: Floats, columns: Indices) -> tuple[Floats, Floats]:
        return self.blocks.gram(q, self.columns[columns])

    def rows(self, index: Indices, columns: Indices | None = None) -> Floats:
        return self.blocks.rows(index, self.columns if columns is None else self.columns[columns])

    def select(self, columns: Indices) -> RowBlocks:
        return self.blocks.select(self.columns[columns])

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes


def new_store(n_rows: int, n_columns: int, dtype: Any, *, mapped: bool) -> Stored:
    """Return an array in memory, or in a file without a name."""
    if not mapped:
        return np.empty((n_rows, n_columns), dtype=dtype)
    with tempfile.TemporaryFile() as file:  # the map keeps it open
        return np.memmap(file, dtype=dtype, mode="w+", shape=(n_rows, n_columns))


def release(block: Stored) -> None:
    """Free the memory of a block of a mapped file, whose values stay in the file.

    The system would do so only under pressure, and until then a limit of memory would be exceeded.
    """
    file = getattr(block, "_mmap", None)
    if file is None or not block.nbytes or not hasattr(mmap, "MADV_DONTNEED"):
        return
    address = np.frombuffer(file, dtype=np.uint8).__array_interface__["data"][0]
    first = block.__array_interface__["data"][0] - address
    # Whole pages only; those at the ends hold rows of other blocks, too, and are read again.
    start = first - first % mmap.PAGESIZE
    file.madvise(mmap.MADV_DONTNEED, start, first + block.nbytes - start)


def chunk_rows(n_columns: int) -> int:
    """Return the rows of a symmetric product at a time."""
    return int(np.clip(_CHUNK_ENTRIES // max(1, n_columns), 256, _CHUNK))


def gram_bytes(n_rows: int, n_columns: int, itemsize: int, n_blocks: int) -> float:
    """Return the bytes of a symmetric product and of a Newton step with the result."""
    rows = min(n_rows, chunk_rows(n_columns))
    # The sums so far, that of a block, one of its chunks, and a free one that the system's
    # allocator does not give back.
    held = sum_levels(n_blocks) + 4
    return 8.0 * held * n_columns**2 + rows * n_columns * (8.0 + 2 * itemsize)


def block_gram(block: Stored, q: Floats, columns: Indices) -> tuple[Floats, Floats]:
    """Return ``F' diag(q) F`` and ``F' q`` of some columns of one block.

    In double precision: a Newton direction needs less, but sums in the precision of storage would
    depend on where blocks end, and so would predictions, visibly.
    """
    out, edge = np.zeros((len(columns), len(columns))), np.zeros(len(columns))
    used, step = np.flatnonzero(q), chunk_rows(len(columns))
    for k in range(0, len(used), step):
        index = used[k : k + step]
        root = np.sqrt(q[index])
        Z = block[index][:, columns] * root[:, None]
        out += Z.T @ Z  # a symmetric product: half the work
        edge += root @ Z
    return out, edge
