"""Tables of any kind, and the columns that a kernel picks from one."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals.selectors import Selector
from numpy.typing import NDArray

from kernelweave._linalg import all_finite
from kernelweave._types import Bools, Floats, Indices
from kernelweave._validation import unmasked
from kernelweave.errors import InputError, InputTypeError, RowError

from .missing_cells import missing_rows


class Encoding(ABC):
    """A choice of columns together with a rule that makes numbers of them."""

    keys: tuple[str | int, ...]
    numeric: bool = True  # whether the encoded columns are numbers

    @property
    @abstractmethod
    def key(self) -> str:
        """A text that is equal for equal encodings."""

    @property
    @abstractmethod
    def n_encoded(self) -> int:
        """Number of columns after encoding."""

    @property
    @abstractmethod
    def owners(self) -> list[int]:
        """The place in `keys` of the column that each encoded column comes from."""

    @abstractmethod
    def encode(self, X: Any) -> Floats:
        """Return the encoded rows, of shape (n_rows, n_encoded)."""


Columns: TypeAlias = (
    str
    | int
    | slice
    | Sequence[Any]
    | NDArray[Any]
    | Callable[[Any], Any]
    | Selector
    | Encoding
    | None
)
"""What ``columns=`` accepts."""


def is_sparse(rows: Any) -> bool:
    """Whether rows are a sparse array or matrix of scipy."""
    return bool(sp.issparse(rows))


class _Same:
    """Compares an object by identity, and keeps it alive so that the identity stays its own."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def columns_key(columns: Any) -> Hashable:
    """Return a key that is equal for equal column choices."""
    match columns:
        case None:
            return None
        case slice():  # not hashable before Python 3.12
            return ("slice", columns.start, columns.stop, columns.step)
        case str() | int():
            return ((type(columns).__name__, columns),)
        case Encoding():
            return ("encoded", columns.key)
        case tuple():  # with types, because True == 1
            return tuple((type(item).__name__, item) for item in columns)
    return _Same(columns)


def describe_columns(columns: Any) -> str:
    """Return `` on age`` and the like; nothing for all columns."""
    items: tuple[Any, ...]
    match columns:
        case None:
            return ""
        case Encoding():
            return describe_columns(columns.keys)
        case Selector():
            return " on selected columns"
        case slice(start=start, stop=stop, step=step):
            ends = ":".join("" if end is None else str(end) for end in (start, stop))
            return f" on columns {ends}" + ("" if step is None else f":{step}")
        case (bool(), *_):
            items = tuple(i for i, chosen in enumerate(columns) if chosen)
        case tuple():
            items = columns
        case _ if callable(columns):
            return f" on columns by {getattr(columns, '__name__', type(columns).__name__)}"
        case _:
            items = (columns,)
    if len(items) == 1:
        return f" on {items[0]}" if isinstance(items[0], str) else f" on column {items[0]}"
    return f" on {len(items)} columns ({_listed(items)})"


def normal_columns(columns: Any, who: str) -> Any:
    """Turn lists and arrays of columns into tuples of plain values, and refuse other types."""
    allowed = "names, positions, a slice, a boolean mask, a callable or a narwhals selector"
    match columns:
        case None | Selector() | Encoding():
            return columns
        case str():
            return str(columns)
        case slice():
            return slice(*(_plain(end) for end in (columns.start, columns.stop, columns.step)))
        case _ if callable(columns):
            return columns
        case int() | np.integer() if not isinstance(columns, bool):
            return int(columns)
    if not isinstance(columns, Iterable) or isinstance(columns, bytes | dict | set | frozenset):
        raise InputTypeError(f"{who}: columns must be {allowed}, got {columns!r}.")
    items = tuple(_plain(item) for item in columns)
    for i, item in enumerate(items):
        if not isinstance(item, str | int) or isinstance(item, bool) != isinstance(items[0], bool):
            raise InputTypeError(f"{who}: columns must be {allowed}, but item {i} is {item!r}.")
    return items


def _plain(item: Any) -> Any:
    """Return numpy's and pandas' scalars as Python's."""
    return item.item() if isinstance(item, np.generic) else item


def _listed(names: Iterable[Any], limit: int = 5) -> str:
    names = list(names)
    return ", ".join(map(str, names[:limit])) + (", ..." if len(names) > limit else "")


@dataclass(frozen=True)
class Table:
    """A two-dimensional ``X`` of any kind; read it with `read_table`."""

    native: Any  # what callables are given
    body: Any  # a narwhals frame, a CSR array or an ndarray
    names: list[Any] | None  # of a frame

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.body.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether the body is a CSR array."""
        return is_sparse(self.body)

    def label(self, position: int) -> str:
        """Return how messages call a column."""
        return f"column {position if self.names is None else self.names[position]!r}"

    def keys(self, positions: Sequence[int]) -> tuple[str | int, ...]:
        """Return names where the table has them, and positions otherwise."""
        names = self.names
        if names is None:
            return tuple(positions)
        return tuple(names[i] if isinstance(names[i], str) else i for i in positions)

    def numeric(self) -> list[bool]:
        """Tell which columns of a frame hold numbers or booleans (elsewhere: all of them)."""
        if self.names is None:
            return [True] * self.n_columns
        return [dtype.is_numeric() or dtype == nw.Boolean for dtype in self.body.schema.values()]

    def positions(self, columns: Any, who: str) -> list[int]:
        """Find the chosen columns."""
        picked = list(range(self.n_columns)) if columns is None else self._find(columns, who)
        if not picked:
            raise InputError(f"{who}: no column is selected of the {self.n_columns} X has.")
        return picked

    def n_prepared(self, columns: Any, who: str) -> int:
        """Return the number of columns that a kernel prepares of the chosen ones."""
        chosen = self.positions(columns, who)
        return columns.n_encoded if isinstance(columns, Encoding) else len(chosen)

    def _find(self, columns: Any, who: str) -> list[int]:
        if isinstance(columns, Selector):
            if self.names is None:
                raise InputError(
                    f"{who}: a selector needs a data frame, but X has no column names."
                )
            columns = tuple(self.body.select(columns).columns)
        elif callable(columns):
            columns = normal_columns(columns(self.native), f"{who} (what the callable returned)")
            if callable(columns) or isinstance(columns, Selector):
                raise InputTypeError(f"{who}: the columns callable must return columns.")
        match columns:
            case None:
                return list(range(self.n_columns))
            case Encoding():
                return [self._position(key, who) for key in columns.keys]
            case slice(start=start, stop=stop, step=step):
                if isinstance(start, str):
                    start = self._position(start, who)
                if isinstance(stop, str):
                    stop = self._position(stop, who) + 1  # a slice of names includes both ends
                return list(range(self.n_columns))[start:stop:step]
            case (bool(), *_):
                if len(columns) != self.n_columns:
                    raise InputError(
                        f"{who}: the mask has {len(columns)} entries, but X has "
                        f"{self.n_columns} columns."
                    )
                return [i for i, chosen in enumerate(columns) if chosen]
            case tuple():
                return [self._position(item, who) for item in columns]
        return [self._position(columns, who)]

    def _position(self, item: str | int, who: str) -> int:
        if isinstance(item, int):
            if -self.n_columns <= item < self.n_columns:
                return item % self.n_columns
            raise InputError(
                f"{who}: column position {item} is out of range, X has {self.n_columns} columns."
            )
        if self.names is None:
            raise InputError(
                f"{who}: column {item!r} is given by name, but X has no column names; "
                f"pass a data frame or use positions 0 to {self.n_columns - 1}."
            )
        if item in self.names:
            return self.names.index(item)
        near = difflib.get_close_matches(item, [n for n in self.names if isinstance(n, str)])
        hint = f"did you mean {' or '.join(map(repr, near))}" if near else "check the spelling"
        raise InputError(
            f"{who}: X has no column {item!r}, {hint}; its columns are {_listed(self.names)}."
        )

    def known(self, columns: Any, who: str) -> Bools:
        """Return which cells of the chosen columns have a value; infinite numbers have none."""
        picked = self.positions(columns, who)
        out = np.ones((self.body.shape[0], len(picked)), dtype=bool)
        if self.is_sparse:
            cells = self.body[:, picked].tocoo()
            gaps = ~np.isfinite(cells.data)
            out[cells.coords[0][gaps], cells.coords[1][gaps]] = False
            return out
        for j, i in enumerate(picked):
            if self.names is not None and self._holds_numbers(i):
                column = self._frame_numbers([i], who)[:, 0]  # infinite beside missing ones, too
            else:
                column = self._column(i)
            if column.dtype.kind in "fc":
                out[:, j] = np.isfinite(column)
            else:
                out[_gaps(column, self.label(i), who), j] = False
        return out

    def _holds_numbers(self, position: int) -> bool:
        """Tell whether all known values of a column of a frame are numbers or truth values.

        A column of a few rows has no type of its own where its values are missing.
        """
        kind = self.body[:, position].dtype
        if kind.is_numeric() or kind == nw.Boolean:
            return True
        values = self._column(position)
        if kind not in (nw.Object, nw.Unknown, nw.String) or str in set(map(type, values)):
            return False
        known = np.delete(values, _gaps(values, self.label(position), "X"))
        return all(isinstance(value, Real | Decimal | np.bool_) for value in known)

    def _column(self, position: int) -> NDArray[Any]:
        """Return one column, of a frame as numbers where it has no nulls, else as objects."""
        if self.names is None:
            return np.asarray(self.body[:, position])
        series = self.body[:, position]
        if series.dtype.is_numeric() and not series.null_count():
            return np.asarray(series.to_numpy())
        values = np.empty(len(series), dtype=object)
        values[:] = series.to_list()
        return values

    def numbers(self, columns: Any, who: str, *, gaps: bool = False) -> Any:
        """Return chosen columns as C-contiguous float64, or as CSR where the table is sparse.

        With ``gaps`` those are NaN; otherwise they are refused.
        """
        picked = self.positions(columns, who)
        everything = picked == list(range(self.n_columns))
        values: Any
        if self.names is not None:
            values = self._frame_numbers(picked, who)
        else:
            values = self._as_floats(self.body if everything else self.body[:, picked], who)
        data = values.data if self.is_sparse else values
        if all_finite(data):
            return values
        if gaps:
            values = values.copy()
            data = values.data if self.is_sparse else values
            data[~np.isfinite(data)] = np.nan
            return values
        if self.is_sparse:
            at = np.flatnonzero(~np.isfinite(data))[0]
            row, j = (int(axis[at]) for axis in values.tocoo().coords)
        else:
            row, j = (int(i) for i in np.argwhere(~np.isfinite(data))[0])
        raise RowError(
            f"{who}: {self.label(picked[j])} has a missing or infinite value in row {{row}}; "
            "fill it first, for example with scikit-learn's SimpleImputer, or give the kernel "
            f"missing='off'{'' if self.is_sparse else ' or missing=' + repr('fill')}.",
            row,
        )

    def _as_floats(self, values: Any, who: str) -> Any:
        if values.dtype.kind not in "fiubO":
            raise InputError(
                f"{who}: X holds {values.dtype} values where real numbers are needed; "
                "use Overlap for categories, or encode them."
            )
        try:
            with np.errstate(all="ignore"):  # a long double may overflow; seen as inf afterwards
                values = values.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{who}: X holds objects that are not real numbers ({error}); "
                "use Overlap for categories, or encode them."
            ) from None
        if not self.is_sparse:
            return np.ascontiguousarray(values)
        if not values.has_canonical_format:  # sorted indices make products exactly symmetric
            values = values.copy()
            values.sum_duplicates()
        return values

    def _frame_numbers(self, picked: list[int], who: str) -> Floats:
        if wrong := [self.keys([i])[0] for i in picked if not self._holds_numbers(i)]:
            raise InputError(
                f"{who}: not numeric: {_listed(wrong)}; choose other columns, encode these, "
                "or use Overlap for categories."
            )
        values = self.body[:, picked].to_numpy()
        if values.dtype.kind not in "fiub":  # mixed booleans, nullable types, decimals
            values = np.empty(values.shape)
            for j, i in enumerate(picked):
                column = self.body[:, i]
                known = ~column.is_null().to_numpy().astype(bool)
                values[:, j] = np.nan
                values[known, j] = column.filter(known.tolist()).to_numpy().astype(np.float64)
        return np.ascontiguousarray(values, dtype=np.float64)

    def values(self, columns: Any, who: str, *, gaps: bool = False) -> NDArray[Any]:
        """Return chosen columns of any type as a two-dimensional array.

        With ``gaps`` they are objects, None where a value is missing; otherwise gaps are refused.
        """
        if self.is_sparse:
            raise InputError(f"{who}: sparse X is not supported here; pass X.toarray().")
        picked = self.positions(columns, who)
        if self.names is None:
            values = np.ascontiguousarray(self.body[:, picked])
        else:
            values = np.empty((self.body.shape[0], len(picked)), dtype=object)
            for j, i in enumerate(picked):
                values[:, j] = self.body[:, i].to_list()
        missing = [_gaps(values[:, j], self.label(i), who) for j, i in enumerate(picked)]
        if gaps:
            values = values.astype(object)
            for j, rows in enumerate(missing):
                values[rows, j] = None
            return values
        for i, rows in zip(picked, missing, strict=True):
            if len(rows):
                raise RowError(
                    f"{who}: {self.label(i)} has a missing value in row {{row}}; "
                    "fill it first, for example with the word 'missing'.",
                    int(rows[0]),
                )
        return values


def _gaps(column: NDArray[Any], label: str, who: str) -> Indices:
    """Return the rows without a value."""
    try:
        return missing_rows(column)
    except TypeError:
        raise InputError(
            f"{who}: {label} holds values that cannot be compared; use strings, numbers or dates."
        ) from None


def read_table(X: Any, who: str) -> Table:
    """Wrap ``X`` (array, sparse matrix, eager data frame, nested list) without copying it."""
    if is_sparse(X):
        if X.ndim != 2:
            raise InputError(f"{who}: X must have two dimensions, got {X.ndim}.")
        return Table(X, sp.csr_array(X), None)
    if isinstance(X, np.ma.MaskedArray):
        X = unmasked(X)
    if not isinstance(X, np.ndarray):
        try:
            frame = nw.from_native(X, pass_through=True)
        except nw.exceptions.DuplicateError:
            raise InputError(f"{who}: X has two columns of the same name; rename one.") from None
        if isinstance(frame, nw.DataFrame):
            return Table(nw.to_native(frame), frame, list(frame.columns))
        if isinstance(frame, nw.LazyFrame):
            raise InputTypeError(f"{who}: X is a lazy frame; collect (or compute) it first.")
    try:
        body = np.asarray(X)
        if body.dtype.kind in "US" and not isinstance(X, np.ndarray):
            body = np.asarray(X, dtype=object)  # a list may mix strings and numbers
    except (TypeError, ValueError):
        raise InputError(f"{who}: X must be a table with rows of equal length.") from None
    if body.ndim != 2:
        raise InputError(
            f"{who}: X must have two dimensions (rows and columns), got {body.ndim}; "
            "reshape one column with X.reshape(-1, 1)."
        )
    return Table(X, body, None)
