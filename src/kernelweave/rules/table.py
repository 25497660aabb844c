"""A table from any library, read column by column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import validate_data

from kernelweave._dask import fetch
from kernelweave._types import Indices
from kernelweave._validation import is_frame
from kernelweave.errors import InputError, InputTypeError

from .columns import Column, read_column

_ROWS = 65_536  # rows of a block: large enough to vectorise, small enough for the cache


@dataclass(frozen=True, eq=False)
class Table:
    """A two-dimensional ``X``; make it with `read_table`."""

    body: Any  # a narwhals frame or an ndarray
    names: list[Any] | None  # of a frame
    first: int = 0  # row number of the first row in the whole table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.body.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.body.shape[1])

    def label(self, position: int) -> str:
        """Return the name of a column in propositions."""
        name = position if self.names is None else self.names[position]
        return name if isinstance(name, str) else f"column {name}"

    def column(self, position: int) -> Column:
        """Read one column."""
        column = read_column(self.body[:, position], self.label(position))
        return replace(column, first=self.first) if self.first else column

    def rows(self, index: slice | Indices) -> Table:
        """Return some of the rows."""
        first = index.start if isinstance(index, slice) else 0
        return Table(self.body[index], self.names, self.first + first)

    def blocks(self) -> list[slice]:
        """Return ranges of rows; one range where a column of objects needs all for its kind."""
        if self.names is None:
            objects = self.body.dtype.kind == "O"
        else:
            objects = any(dtype in (nw.Object, nw.Unknown) for dtype in self.body.schema.values())
        size = max(1, self.n_rows) if objects else _ROWS
        return [slice(i, min(i + size, self.n_rows)) for i in range(0, self.n_rows, size)]

    def find(self, feature: str, position: int) -> Column:
        """Read the column of a name, or at a position where the table has no names."""
        if self.names is not None:
            labels = [self.label(i) for i in range(self.n_columns)]
            if feature in labels:
                return self.column(labels.index(feature))
            raise InputError(
                f"X: the column {feature!r} is needed, but the columns are {labels[:8]}. Hint: "
                "give the columns the names they had in fit."
            )
        if position < self.n_columns:
            return self.column(position)
        raise InputError(
            f"X: column {position} is needed, but there are only {self.n_columns} columns, "
            "counted from 0."
        )


def read_table(X: Any) -> Table:
    """Wrap an array, a nested list or an eager data frame without copying it; once is enough."""
    if isinstance(X, Table):
        return X
    if is_frame(X):
        try:
            frame = nw.from_native(X, eager_only=True)
        except nw.exceptions.DuplicateError:
            raise InputError("X: two columns of the same name; rename one of them.") from None
        return Table(frame, list(frame.columns))
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputTypeError("X: a lazy frame has no rows yet; pass X.collect().")
    if hasattr(X, "tocsr"):
        raise InputTypeError("X: sparse data cannot be used here; pass X.toarray().")
    body = np.asarray(X)
    if body.dtype.kind in "US" and not isinstance(X, np.ndarray):
        body = np.asarray(X, dtype=object)  # a list may mix text and numbers
    if body.ndim != 2:
        raise InputError(
            f"X: expected a 2D array, got a {body.ndim}D array. Reshape your data with "
            "X.reshape(-1, 1) if it is one column or X.reshape(1, -1) if it is one row."
        )
    return Table(body, None)


def check_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """Read ``X``, and check names and the number of columns as scikit-learn does."""
    X = fetch(X)
    table = read_table(X)
    if table.names is not None:
        if table.n_rows < 1:
            raise InputError("X: found 0 rows, but 1 or more are needed.")
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return table
    body = validate_data(estimator, table.body, reset=reset, dtype=None, ensure_all_finite=False)
    return Table(body, None)
