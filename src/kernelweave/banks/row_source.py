"""Access to the training rows for Nystroem features: a table in memory, or its parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._dask import add_up_here
from kernelweave._memory import check_memory, parse_bytes
from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices, Stored
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import take

from .nystroem.blocks import LocalBlocks, RowBlocks, gram_bytes, new_store, release
from .nystroem.landmarks import Landmarks
from .views import Views

SAMPLE = 4096  # rows in which landmarks are looked for first
MOST_LANDMARKS = 500  # of a kernel whose rank is not low
WORK_ROWS = 16_384  # rows of a task: its work outweighs the milliseconds that Dask adds
_WORST = 32  # rows of every block and kernel that may become landmarks
_BLOCK_BYTES = 3.2e7  # of a block of features, about the size of a cache
# Measured peaks of memory, in vectors of n, in copies and in matrices:
_VECTORS = 40  # vectors of the inner solvers on Nystroem features
_FILLING = 4  # copies of the values of a kernel while features are computed
_PRODUCTS = 5  # matrices of a kernel in a pass: of landmarks, products, eigenvectors
_PASSING = 5  # copies of the features of a block of rows in such a pass


@dataclass(frozen=True)
class Pass:
    """Measurements of one pass over the rows, by kernel."""

    diagonals: Floats  # traces
    kept: Floats  # traces that the features kept leave out
    left: Floats  # traces that all landmarks together leave out
    weighted: Floats  # weighted means of the diagonals
    means: list[Floats]  # weighted means of the features kept
    worst: list[Indices]  # rows with the largest residuals

    @classmethod
    def of(cls, answers: Sequence[Sequence[PartAnswer]]) -> Pass:
        """Add the measurements of all blocks."""
        sums = np.array([[part[0] for part in answer] for answer in answers]).sum(axis=0)
        kernels = range(len(answers[0]))
        means = [np.asarray(sum(answer[j][1] for answer in answers)) for j in kernels]
        worst = [np.concatenate([answer[j][2] for answer in answers]) for j in kernels]
        return cls(sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3], means, worst)


PartAnswer = tuple[Floats, Floats, Indices]  # sums, weighted sums of features, worst rows
BlockWork = Callable[[Views, Floats, int, Any], Any]


class RowSource(ABC):
    """The training rows, as a Nystroem bank needs them."""

    n_samples: int
    n_columns: int

    @abstractmethod
    def take(self, index: Indices) -> Views:
        """Return some rows, prepared for every kernel."""

    @abstractmethod
    def prepared_for(self, kernels: Sequence[Kernel]) -> RowSource:
        """Return the rows for other kernels with the same views, or made of kernels with these."""

    @abstractmethod
    def features(
        self,
        landmarks: Sequence[Landmarks],
        share: Floats,
        dtype: Any,
        memory_limit: float | str | None,
        passes: bool,
    ) -> tuple[RowBlocks, Pass]:
        """Compute all features and their residuals in one pass over the rows.

        With ``passes``, there must be memory for passes by other landmarks (`pass_pieces`), too.
        """

    @abstractmethod
    def add_up(self, work: BlockWork, by_row: Floats, known: Any) -> tuple[Any, ...]:
        """Return the sum of ``work(views, own, first_row, known)`` over blocks of rows.

        ``own`` are the rows of ``by_row``. Blocks and the order of sums depend on nothing but the
        number of rows, so that the sum is the same wherever the rows are. Lists are joined.
        """

    @abstractmethod
    def collect(self, work: BlockWork, by_row: Floats, known: Any) -> Floats:
        """Return the results of ``work`` for all blocks, concatenated."""

    @abstractmethod
    def sums(self, j: int, item: Landmarks, V: Floats) -> Floats:
        """Return ``F' V`` of the features of kernel ``j`` by all of its landmarks."""


class LocalRows(RowSource):
    """Rows in the memory of this process, from a table of ``n_columns``."""

    def __init__(self, views: Views, n_columns: int) -> None:
        self.views, self.n_samples, self.n_columns = views, views.n_samples, n_columns

    def take(self, index: Indices) -> Views:
        return self.views.take(index)

    def prepared_for(self, kernels: Sequence[Kernel]) -> LocalRows:
        return LocalRows(Views.of(kernels, None, self.views), self.n_columns)

    def features(
        self,
        landmarks: Sequence[Landmarks],
        share: Floats,
        dtype: Any,
        memory_limit: float | str | None,
        passes: bool,
    ) -> tuple[RowBlocks, Pass]:
        rank = total_rank(landmarks)
        mapped = self._must_map(landmarks, dtype, memory_limit, passes)
        store = new_store(self.n_samples, rank, dtype, mapped=mapped)
        slices = row_slices(self.n_samples, rank, dtype, self.n_columns)

        def fill(rows: slice) -> list[PartAnswer]:
            parts = (take(self.views[j], rows) for j in range(len(landmarks)))
            answers = fill_block(store[rows], landmarks, parts, share[rows], rows.start)
            release(store[rows])
            return answers

        answers = run_each(fill, slices)
        return LocalBlocks([store[rows] for rows in slices], mapped=mapped), Pass.of(answers)

    def _must_map(
        self,
        landmarks: Sequence[Landmarks],
        dtype: Any,
        memory_limit: float | str | None,
        passes: bool,
    ) -> bool:
        """Return whether features go to a file; refuse where even their blocks do not fit."""
        n, rank, item = self.n_samples, total_rank(landmarks), np.dtype(dtype).itemsize
        largest = max(one.size for one in landmarks)
        rows = min(n, rows_at_a_time(rank, dtype, self.n_columns))
        at_once = min(_core.get_threads(), -(-n // rows))
        sizes = np.array([one.size for one in landmarks])
        most = min(int(sizes.sum()), MOST_LANDMARKS)
        pieces = {
            "landmarks": 8.0 * sum(one.size**2 for one in landmarks),
            f"vectors of {n} rows": 8.0 * _VECTORS * n,
            # Landmarks are found, features computed and systems solved one after the other.
            "steps": max(
                8.0 * min(n, SAMPLE) * sum(one.size for one in landmarks),
                at_once * rows * (8.0 * _FILLING * largest + rank * item),
                gram_bytes(n, rank, item, -(-n // rows)),
                sum(pass_pieces(sizes, most, n).values()) if passes else 0.0,
            ),
        }
        held = 1.5 * n * rank * item  # of the columns in use there may be a copy
        if sum(pieces.values()) + held <= parse_bytes(memory_limit):
            return False
        pieces["blocks of features"] = min(held, 2.0 * rows * rank * item)  # one read, one taken
        check_memory(
            f"{rank} features of {n} rows in a file need",
            pieces,
            memory_limit,
            "use fewer kernels, or kernels on one or two columns (their rank is small)",
        )
        return True

    def add_up(self, work: BlockWork, by_row: Floats, known: Any) -> tuple[Any, ...]:
        def compute(slices: Sequence[slice]) -> list[tuple[Any, ...]]:
            return run_each(lambda rows: self._block(work, rows, by_row, known), slices)

        return add_up_here(compute, work_slices(self.n_samples))

    def collect(self, work: BlockWork, by_row: Floats, known: Any) -> Floats:
        slices = work_slices(self.n_samples)
        return np.concatenate(run_each(lambda rows: self._block(work, rows, by_row, known), slices))

    def _block(self, work: BlockWork, rows: slice, by_row: Floats, known: Any) -> Any:
        return work(self.views.take(rows), by_row[rows], rows.start, known)

    def sums(self, j: int, item: Landmarks, V: Floats) -> Floats:
        def part(rows: slice) -> Floats:
            return feature_sums(item, take(self.views[j], rows), V[rows])

        return np.asarray(sum(run_each(part, work_slices(self.n_samples))))


def pass_pieces(sizes: Indices, largest: int, n: int) -> dict[str, float]:
    """Return the bytes of passes that sum features by ``sizes`` landmarks of each kernel.

    A sum of kernels may have ``largest`` landmarks, more than each of them.
    """
    rows = min(n, WORK_ROWS, rows_at_a_time(largest, float))
    at_once = min(_core.get_threads(), len(work_slices(n)))
    return {
        "products of features": 8.0 * _PRODUCTS * float((sizes.astype(float) ** 2).sum()),
        # The sample for landmarks is freed before the pass over all rows.
        "blocks of rows": 8.0
        * float(max(min(n, SAMPLE) * sizes.sum(), _PASSING * at_once * rows * largest)),
    }


def work_slices(n: int) -> list[slice]:
    """Return the blocks of rows of a pass that keeps no features."""
    return [slice(a, min(a + WORK_ROWS, n)) for a in range(0, n, WORK_ROWS)]


def total_rank(landmarks: Sequence[Landmarks]) -> int:
    """Return the number of features, at least one so that arrays are not empty."""
    return max(1, sum(item.rank for item in landmarks))


def row_slices(n: int, rank: int, dtype: Any, n_columns: int = 1) -> list[slice]:
    """Return rows in blocks of about the size of a cache."""
    at_a_time = rows_at_a_time(rank, dtype, n_columns)
    return [slice(a, min(a + at_a_time, n)) for a in range(0, n, at_a_time)]


def rows_at_a_time(rank: int, dtype: Any, n_columns: int = 1) -> int:
    """Return the number of rows of a block for a number of features and of columns."""
    bytes_a_row = max(np.dtype(dtype).itemsize * max(1, rank), 8 * n_columns)
    return int(max(1, _BLOCK_BYTES // bytes_a_row))


def fill_block(
    out: Stored, landmarks: Sequence[Landmarks], parts: Any, share: Floats, first_row: int
) -> list[PartAnswer]:
    """Write the features of some rows into ``out``, and return their measurements.

    ``parts`` are the rows prepared for every kernel, ``share`` their weights, which sum to one over
    all blocks, and ``first_row`` the number of the first row.
    """
    answers, first = [], 0
    if not sum(item.rank for item in landmarks):
        out[:] = 0.0
    for item, part in zip(landmarks, parts, strict=True):
        features = item.features(part)
        last = first + item.rank
        with np.errstate(over="ignore"):  # measured, and then computed in double precision
            out[:, first:last] = features[:, : item.rank]
        diagonal = item.kernel.diagonal(part)
        squares = features * features
        kept = np.maximum(diagonal - squares[:, : item.rank].sum(axis=1), 0.0)
        left = np.maximum(kept - squares[:, item.rank :].sum(axis=1), 0.0)
        worst = first_row + np.argsort(-left, kind="stable")[:_WORST]
        sums = np.array([diagonal.sum(), kept.sum(), left.sum(), share @ diagonal])
        answers.append((sums, share @ features[:, : item.rank], worst))
        first = last
    return answers


def feature_sums(item: Landmarks, rows: Any, V: Floats) -> Floats:
    """Return ``F' V`` of some rows with all landmarks; rows of zeros cost nothing."""
    used = np.flatnonzero(V.any(axis=1))
    return np.asarray(item.features(take(rows, used)).T @ V[used])
