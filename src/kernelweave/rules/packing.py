"""Blocks of rows as packed propositions, by pure functions that can run on a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernelweave._threads import run_each
from kernelweave.banks.rules import PackedRows
from kernelweave.errors import InputError

from .linear import LinearTerm
from .proposition import Proposition
from .table import Table, read_table


class RowParts(Protocol):
    """A table in blocks of rows, in this process or on workers.

    A column that mixes text and numbers is refused where a block has only one of them.
    """

    @property
    def n_rows(self) -> int:
        """How many rows there are in all."""

    @property
    def head(self) -> Any:
        """One row or more, for the names of the columns."""

    def map(
        self, function: Callable[..., Any], *args: Any, by_row: NDArray[Any] | None = None
    ) -> list[Any]:
        """Return ``function(block, first, own, *args)`` for every block, in order.

        ``first`` is the number of rows before the block and ``own`` its part of ``by_row``, or None
        without it. Functions and arguments can be pickled.
        """


def pack_rows(
    X: Any, propositions: Sequence[Proposition], linear: Sequence[LinearTerm] = ()
) -> PackedRows:
    """Return which propositions hold for every row, eight to a byte, and values of linear terms.

    Propositions about one column are adjacent; every column is read once for them.

    Examples
    --------
    >>> from kernelweave.rules import Proposition
    >>> from kernelweave.rules.packing import pack_rows
    >>> statements = [Proposition("age", 0, "<=", 30), Proposition("age", 0, ">", 30)]
    >>> pack_rows([[20], [40]], statements).rows.tolist()
    [[128], [64]]
    """
    table = read_table(X)
    out = np.zeros((table.n_rows, -(-len(propositions) // 8)), dtype=np.uint8)
    values = np.empty((table.n_rows, len(linear)))

    def work(rows: slice) -> None:
        part, here = table.rows(rows), out[rows]
        for j, term in enumerate(linear):
            (weight,) = term.weights
            values[rows, j] = weight * term.amounts(part.column(term.position))
        for position, group in groupby(enumerate(propositions), key=lambda pair: pair[1].position):
            column = part.column(position)
            for j, proposition in group:
                here[:, j // 8] |= proposition.holds(column).view(np.uint8) << np.uint8(7 - j % 8)

    run_each(work, table.blocks())
    return PackedRows(out, len(propositions), values if linear else None)


def pack_block(
    X: Any,
    first: int,
    own: NDArray[Any] | None,
    propositions: Sequence[Proposition],
    linear: Sequence[LinearTerm],
) -> PackedRows:
    """Pack one block of `RowParts`."""
    return pack_rows(X, propositions, linear)


def read_given(X: Any) -> tuple[Proposition, ...]:
    """Return columns of truth values, or of zeros and ones, as propositions."""
    table = read_table(X)
    return tuple(_given(table, position) for position in range(table.n_columns))


def given_block(X: Any, first: int, own: NDArray[Any] | None) -> tuple[Proposition, ...]:
    """Return the columns of one block of `RowParts` as propositions."""
    return read_given(X)


def _given(table: Table, position: int) -> Proposition:
    column = table.column(position)
    if column.kind == "boolean":
        made = Proposition(column.name, position, "==", True)
        array = column.values.dtype.kind == "b"
        fits = array or bool((column.labels.codes >= 0).all())
    else:
        made = Proposition(column.name, position, ">", 0.5)
        fits = column.kind == "numeric" and bool(
            ((column.numbers == 0.0) | (column.numbers == 1.0)).all()
        )
    if not fits:
        raise InputError(
            f"X: {column.name!r} must hold truth values or zeros and ones without gaps where "
            "propositions='given'. Hint: use propositions='auto'."
        )
    return made
