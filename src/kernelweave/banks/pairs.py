"""Kernel values of many pairs, in memory or in a memory-mapped file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from kernelweave._memory import check_memory, parse_bytes
from kernelweave._types import Floats, Indices, Stored

from .nystroem.blocks import LocalBlocks, new_store, release
from .row_source import rows_at_a_time


@dataclass(frozen=True)
class PairOptions:
    """Pairs and vectors held at a time; chosen by hand."""

    at_a_time: int = 4096  # pairs that are computed or squared at a time
    vectors: int = 20  # vectors with an entry per pair while weights are learned
    together: int = 64  # pairs that kernels compare at a time; blocks are multiples of these


OPTIONS = PairOptions()


class PairBlocks(LinearOperator):
    """A tall matrix of kernel values that is multiplied with, a block of pairs at a time.

    Sums are taken block by block whether the values are in memory or in a file, so that both give
    the same result to the last bit. Values are in double precision.
    """

    def __init__(self, blocks: LocalBlocks) -> None:
        super().__init__(  # type: ignore[call-arg]  # missing in scipy's stubs
            np.float64, (blocks.n_samples, blocks.n_columns)
        )
        self.blocks = blocks
        self.size = blocks.n_samples * blocks.n_columns
        self._least: float | None = None

    @classmethod
    def filled(
        cls,
        n_pairs: int,
        n_columns: int,
        fill: Callable[[Stored, slice], None],
        memory_limit: float | str | None = None,
    ) -> PairBlocks:
        """Compute the values, into memory if that holds them twice, else into a mapped file.

        ``fill`` writes the values of a slice of pairs into an array.
        """
        step = -(-rows_at_a_time(n_columns, np.float64) // OPTIONS.together) * OPTIONS.together
        values = 8.0 * n_pairs * n_columns
        pieces = {
            f"vectors of {n_pairs} pairs": 8.0 * OPTIONS.vectors * n_pairs,
            "a block of values": min(values, 8.0 * step * n_columns),
            "values as they are computed": 2.0 * min(values, 8.0 * OPTIONS.at_a_time * n_columns),
        }
        # Twice, because columns that surely get no weight are cut off in a copy.
        mapped = 2.0 * values + sum(pieces.values()) > parse_bytes(memory_limit)
        if mapped:
            check_memory(
                f"{n_columns} kernels at {n_pairs} pairs, in a file, need",
                pieces,
                memory_limit,
                "use fewer pairs",
            )
        store = new_store(n_pairs, n_columns, np.float64, mapped=mapped)
        slices = _slices(0, n_pairs, step)
        for some in slices:
            for few in _slices(some.start, some.stop, OPTIONS.at_a_time):
                fill(store[few], few)
            release(store[some])
        return cls(LocalBlocks([store[some] for some in slices], mapped=mapped))

    @property
    def squared_transposed(self) -> LinearOperator:
        """The transposed matrix of squares, to be multiplied with."""
        n, m = self.shape
        return LinearOperator((m, n), matvec=self._square_sums, dtype=np.float64)

    def min(self) -> float:
        """Return the least value."""
        if self._least is None:
            self._least = min(float(block.min()) for block, _ in self.blocks.read())
        return self._least

    def select(self, columns: Indices) -> PairBlocks:
        """Return some of the columns."""
        return PairBlocks(self.blocks.select(columns))

    def _matvec(self, w: Any) -> Floats:
        return self.blocks.times(np.reshape(w, (-1, 1)))[:, 0]

    def _rmatvec(self, v: Any) -> Floats:
        return self.blocks.sums(np.reshape(v, (-1, 1)))[:, 0]

    def _square_sums(self, v: Any) -> Floats:
        out, v = np.zeros(self.shape[1]), np.ravel(v)
        for block, rows in self.blocks.read():
            for few in _slices(0, len(block), OPTIONS.at_a_time):
                out += np.square(block[few]).T @ v[rows][few]
        return out


def fits_whole(n_pairs: int, n_columns: int, memory_limit: float | str | None) -> bool:
    """Whether values fit in memory as one array, with a copy of some columns and their squares."""
    need = 8.0 * n_pairs * (3 * n_columns + OPTIONS.vectors)
    return need <= parse_bytes(memory_limit)


def _slices(start: int, stop: int, step: int) -> list[slice]:
    return [slice(a, min(a + step, stop)) for a in range(start, stop, step)]
