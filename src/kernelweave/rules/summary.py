"""Value counts of the columns, from which propositions are chosen; blocks of rows can be joined.

A column of numbers with more than `COUNTED` distinct values is represented by a random sample of
its rows, `DRAWN` of the whole table on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Bools, Floats
from kernelweave.errors import InputError

from .columns import Column, Kind, Label, infer_kind, plain_label
from .cuts import count_values
from .table import Table, read_table

COUNTED = 10_000  # distinct numbers counted exactly; chosen by hand
DRAWN = 50_000  # rows sampled beyond that: the standard error of a quantile is below 0.0023
_SEED = 20150617


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random sample of the rows of a column of numbers, in the order of the rows."""

    values: NDArray[Any]
    weight: Floats


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """The distinct values of a column and their weights."""

    name: str  # as in error messages
    declared: Kind | None  # None: inferred from the values
    levels: tuple[Label, ...]  # all values of an ordered column, lowest first
    categories: tuple[Label, ...] | None  # in the order of the library, where it keeps one
    values: NDArray[Any] | tuple[Label, ...]  # ascending numbers, or labels; empty if incomplete
    counts: Floats  # rows of each value, or their summed weights
    drawn: Drawn | None = None  # only for columns of numbers in blocks
    complete: bool = True  # False: there were too many numbers to count

    @property
    def kind(self) -> Kind:
        """The kind of the column, inferred from its values where it has no declared type."""
        return infer_kind(self.values) if self.declared is None else self.declared

    def numbers(self) -> tuple[Floats, Floats]:
        """Return distinct numbers, ascending, and their weights: all, or those of the sample."""
        values, counts = self.values, self.counts
        if not self.complete:
            assert self.drawn is not None
            values, counts = self.drawn.values, self.drawn.weight
        return count_values(np.asarray(values, dtype=np.float64), counts)

    def ranks(self) -> tuple[Floats, Floats]:
        """Return the ranks of an ordered column among its levels, ascending, and their weights."""
        rank_of = {level: float(rank) for rank, level in enumerate(self.levels)}
        ranks = np.array([rank_of[value] for value in self.values])
        present = self.counts > 0
        return count_values(ranks[present], self.counts[present])

    def present(self) -> list[Label]:
        """Return the values that occur, in the order of the categories, else sorted."""
        if not self.complete:
            raise InputError(
                f"categorical: {self.name!r} has more than {COUNTED} distinct numbers, too "
                "many to be categories. Hint: leave it out, so that it is cut."
            )
        values = [
            plain_label(value, self.name)
            for value, count in zip(_listed(self.values), self.counts, strict=True)
            if count > 0
        ]
        if self.categories is not None:
            return values
        return sorted(values, key=lambda value: (isinstance(value, str), value))

    def join(self, other: ColumnSummary) -> ColumnSummary:
        """Return the summary of both; the rows of ``other`` come later."""
        if other.is_empty:
            return self
        if self.is_empty:
            return other
        if self.declared != other.declared or self.levels != other.levels:
            raise InputError(
                f"X: {self.name!r} holds {self.kind} values in some blocks of rows and "
                f"{other.kind} values in others, or other levels. Hint: give the column one type "
                "everywhere."
            )
        if self.drawn is not None and other.drawn is not None:
            return self._join_numbers(other, self.drawn, other.drawn)
        counts = dict(zip(self.values, self.counts.tolist(), strict=True))
        for value, count in zip(other.values, other.counts.tolist(), strict=True):
            counts[value] = counts.get(value, 0.0) + count
        same = self.categories == other.categories
        return replace(
            self,
            categories=self.categories if same else None,
            values=tuple(counts),
            counts=np.array(list(counts.values())),
        )

    @property
    def is_empty(self) -> bool:
        """Whether no value was known."""
        return self.complete and not (self.counts > 0).any()

    def _join_numbers(self, other: ColumnSummary, mine: Drawn, theirs: Drawn) -> ColumnSummary:
        drawn = Drawn(
            np.concatenate([mine.values, theirs.values]),
            np.concatenate([mine.weight, theirs.weight]),
        )
        values, counts = count_values(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.counts, other.counts]),
        )
        complete = self.complete and other.complete
        return _limited(replace(self, values=values, counts=counts, drawn=drawn, complete=complete))


@dataclass(frozen=True, eq=False)
class TableSummary:
    """Summaries of all columns, in order."""

    names: list[Any] | None  # of a frame
    columns: tuple[ColumnSummary, ...]

    def join(self, other: TableSummary) -> TableSummary:
        """Return the summary of both; the rows of ``other`` come later."""
        if self.names != other.names or len(self.columns) != len(other.columns):
            raise InputError(
                "X: all blocks of rows must have the same columns, but one has "
                f"{self.names or len(self.columns)} and another "
                f"{other.names or len(other.columns)}."
            )
        pairs = zip(self.columns, other.columns, strict=True)
        return TableSummary(self.names, tuple(a.join(b) for a, b in pairs))


def summarise(X: Any, weight: Floats | None = None) -> TableSummary:
    """Count the values of every column of a whole table; rows without weight are left out."""
    return _summary(*_weighted(X, weight, None))


def summarise_block(X: Any, first: int, weight: Floats | None, n_rows: int) -> TableSummary:
    """Count the values of every column of one block of `RowParts`.

    ``first`` rows of the ``n_rows`` of the whole table come before the block. Rows are sampled by
    their number in the table, so that the sample does not depend on where blocks begin; rows
    without weight are left out. `join_summaries` joins summaries in the order of the blocks.
    """
    generator = np.random.Generator(np.random.PCG64(_SEED).advance(first))
    drawn = generator.random(read_table(X).n_rows) < DRAWN / n_rows
    return _summary(*_weighted(X, weight, drawn))


def join_summaries(summaries: Sequence[TableSummary]) -> TableSummary:
    """Return the summary of the table from those of its blocks, in order."""
    return reduce(TableSummary.join, summaries)


def _weighted(
    X: Any, weight: Floats | None, drawn: Bools | None
) -> tuple[Table, Floats | None, Bools | None]:
    """Leave out rows without weight."""
    table = read_table(X)
    if weight is None or weight.all():
        return table, weight, drawn
    kept = np.flatnonzero(weight)
    return table.rows(kept), weight[kept], None if drawn is None else drawn[kept]


def _summary(table: Table, weight: Floats | None, drawn: Bools | None) -> TableSummary:
    columns = (table.column(position) for position in range(table.n_columns))
    return TableSummary(table.names, tuple(_count(column, weight, drawn) for column in columns))


def _count(column: Column, weight: Floats | None, drawn: Bools | None) -> ColumnSummary:
    if column.declared == "numeric" and column.values.dtype.kind in "fiu":
        numbers = column.numbers  # refuses infinity
        values, counts = count_values(column.values, weight)
        found = ColumnSummary(column.name, "numeric", (), None, values, counts)
        if drawn is None:
            return found
        part = drawn & (numbers == numbers)
        rows = np.ones(np.count_nonzero(part)) if weight is None else weight[part]
        return _limited(replace(found, drawn=Drawn(column.values[part], rows)))
    labels = column.labels
    known = labels.codes >= 0
    counts = np.bincount(
        labels.codes[known], None if weight is None else weight[known], len(labels.values)
    ).astype(np.float64)
    categories = None if column.coded is None else labels.values
    declared, levels = column.declared, column.levels
    return ColumnSummary(column.name, declared, levels, categories, labels.values, counts)


def _limited(summary: ColumnSummary) -> ColumnSummary:
    """Drop the counts of a column with too many distinct numbers."""
    if summary.complete and len(summary.values) <= COUNTED:
        return summary
    return replace(summary, values=np.empty(0), counts=np.empty(0), complete=False)


def _listed(values: NDArray[Any] | tuple[Label, ...]) -> Sequence[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values
