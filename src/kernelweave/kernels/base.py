"""What a kernel is, and how it picks its columns from a table."""

from __future__ import annotations

import dataclasses
import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from narwhals.selectors import Selector
from numpy.typing import NDArray

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError, RowError

Columns: TypeAlias = (
    str | int | slice | Sequence[Any] | NDArray[Any] | Callable[[Any], Any] | Selector | None
)
"""What ``columns=`` accepts."""

Rows: TypeAlias = Any
"""Prepared rows: an array, a CSR array, or a tuple of these (one per part of a composite)."""

_PAIRS = 64  # pairs compared together, by one small block


def is_sparse(rows: Any) -> bool:
    """Tell scipy's sparse arrays and matrices from everything else."""
    return bool(sp.issparse(rows))


def n_rows(rows: Rows) -> int:
    """Count prepared rows.

    Parameters
    ----------
    rows : prepared rows
        What `Kernel.prepare` returned.
    """
    return n_rows(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0])


def take(rows: Rows, index: Any) -> Rows:
    """Pick some prepared rows.

    Parameters
    ----------
    rows : prepared rows
        What `Kernel.prepare` returned.
    index : positions, mask or slice
        Which to keep.
    """
    if not isinstance(rows, tuple):
        return rows[index]
    # Parts with the same view share their rows; keep it so.
    taken = {id(part): part for part in rows}
    taken = {key: take(part, index) for key, part in taken.items()}
    return tuple(taken[id(part)] for part in rows)


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(ABC):
    """A similarity between rows that is a valid inner product; an immutable value.

    A subclass is a frozen dataclass (``eq=False, repr=False`` keeps the comparison and the short
    repr of this class) and writes `view`, `prepare`, `block` and `diagonal`.

    Parameters
    ----------
    columns : name, position, list of either, slice, boolean mask, callable or narwhals selector
        The columns of ``X`` this kernel looks at; None means all of them. A slice of names
        includes both ends; a callable is given ``X`` and returns names, positions or a mask.
    name : str, optional
        Shown in place of the description.
    """

    columns: Columns = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)

    __array_ufunc__: ClassVar[None] = None  # so that np.float64(2) * kernel reaches __rmul__

    def __post_init__(self) -> None:
        _set(self, columns=normal_columns(self.columns, type(self).__name__))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise InputTypeError(
                f"{type(self).__name__}: name must be a non-empty string or None, "
                f"got {self.name!r}."
            )

    @property
    @abstractmethod
    def view(self) -> Hashable:
        """A key; kernels with equal keys prepare the same rows from the same ``X``."""

    @abstractmethod
    def prepare(self, X: Any) -> Rows:
        """Pick and check this kernel's columns of ``X``; the result may share memory with it."""

    @abstractmethod
    def block(self, A: Rows, B: Rows) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``.

        With ``A is B`` the result is exactly symmetric.
        """

    @abstractmethod
    def diagonal(self, A: Rows) -> Floats:
        """Compare every prepared row with itself."""

    def at_pairs(self, A: Rows, left: Indices, right: Indices) -> Floats:
        """Compare prepared rows pair by pair: ``k(A[left_i], A[right_i])``.

        Small blocks are formed and only their diagonals kept, which suits every kernel.
        """
        out = np.empty(len(left))
        for start in range(0, len(left), _PAIRS):
            some = slice(start, start + _PAIRS)
            out[some] = np.diagonal(self.block(take(A, left[some]), take(A, right[some])))
        return out

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """Return the Gram block between the rows of ``X`` and of ``Y`` (None: of ``X``)."""
        A = self.prepare(X)
        return self.block(A, A if Y is None or Y is X else self.prepare(Y))

    def diag(self, X: Any) -> Floats:
        """Return the diagonal of ``kernel(X)`` without the rest."""
        return self.diagonal(self.prepare(X))

    def renamed(self, name: str | None) -> Self:
        """Return this kernel under another name."""
        return self._changed(name=name)

    def on(self, columns: Columns) -> Self:
        """Return this kernel on other columns."""
        return self._changed(columns=columns)

    def bound(self, X: Any) -> Self:
        """Return this kernel with callables and selectors replaced by what they pick in ``X``.

        New data then yields the same columns as the data a model was fitted to.
        """
        if not (callable(self.columns) or isinstance(self.columns, Selector)):
            return self
        table = read_table(X, str(self))
        return self.on(table.keys(table.positions(self.columns, str(self))))

    def _changed(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def _parameters(self) -> dict[str, Any]:
        """Return the fields of the subclass, which come first in every rendering."""
        names = (f.name for f in dataclasses.fields(self) if f.name not in ("columns", "name"))
        return {name: getattr(self, name) for name in names}

    def _title(self) -> str:
        """Return the readable name without columns."""
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self._parameters().items())
        return type(self).__name__.lower() + (f"({inside})" if inside else "")

    def __str__(self) -> str:
        return self.name or self._title() + describe_columns(self.columns)

    def __repr__(self) -> str:
        shown = self._parameters()
        shown |= {k: v for k in ("columns", "name") if (v := getattr(self, k)) is not None}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def _key(self) -> tuple[Hashable, ...]:
        return (*self._parameters().values(), columns_key(self.columns), self.name)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __sklearn_clone__(self) -> Self:
        return self

    def __add__(self, other: object) -> Kernel:
        from .expression import Sum

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from .expression import Product, Scaled

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scaled(self, other) if is_number(other) else NotImplemented

    def __pow__(self, times: Any) -> Kernel:
        from .expression import Product

        if not is_number(times, Integral):
            return NotImplemented
        if times < 1:
            raise InputError(f"{self} ** {times}: the exponent must be a whole number >= 1.")
        return Product((self,) * int(times))

    def __rmul__(self, other: object) -> Kernel:
        return NotImplemented if isinstance(other, Kernel) else self.__mul__(other)


def is_number(value: Any, kind: type = Real) -> bool:
    """Tell numbers (of any library) from booleans and the rest."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def positive(kernel: Kernel, field_name: str, hint: str, *, zero: bool = False) -> None:
    """Make a field a float, and refuse it unless it is finite and positive (or zero)."""
    value = getattr(kernel, field_name)
    if number := is_number(value):
        value = float(value)
        if math.isfinite(value) and (value > 0 or (zero and value == 0)):
            _set(kernel, **{field_name: value})
            return
    error = InputError if number else InputTypeError
    raise error(
        f"{type(kernel).__name__}({field_name}={value!r}): {field_name} must be a finite number "
        f"{'>=' if zero else '>'} 0. Hint: {hint}."
    )


def all_finite(values: NDArray[Any]) -> bool:
    """Tell whether no entry is NaN or infinite."""
    with np.errstate(all="ignore"):
        # One sum decides nearly always; it may itself overflow, hence the second look.
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def finite(kernel: Kernel, K: Floats) -> Floats:
    """Return ``K``, or refuse it when it overflowed."""
    if all_finite(K):
        return K
    raise InputError(
        f"{kernel}: some values overflow; rescale the columns first, for example with "
        "scikit-learn's StandardScaler."
    )


def _set(kernel: Kernel, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(kernel, name, value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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
    if isinstance(columns, slice):  # not hashable before Python 3.12
        return ("slice", columns.start, columns.stop, columns.step)
    if isinstance(columns, str | int):
        return ((type(columns).__name__, columns),)
    if isinstance(columns, tuple):  # types told apart because True == 1
        return tuple((type(item).__name__, item) for item in columns)
    return None if columns is None else _Same(columns)


def describe_columns(columns: Any) -> str:
    """Return `` on age`` and the like; nothing for all columns."""
    if columns is None:
        return ""
    if isinstance(columns, Selector):
        return " on selected columns"
    if callable(columns):
        return f" on columns by {getattr(columns, '__name__', type(columns).__name__)}"
    if isinstance(columns, slice):
        ends = ("" if end is None else str(end) for end in (columns.start, columns.stop))
        step = "" if columns.step is None else f":{columns.step}"
        return " on columns " + ":".join(ends) + step
    items = columns if isinstance(columns, tuple) else (columns,)
    if items and isinstance(items[0], bool):
        items = tuple(i for i, chosen in enumerate(items) if chosen)
    if len(items) == 1:
        return f" on {items[0]}" if isinstance(items[0], str) else f" on column {items[0]}"
    return f" on {len(items)} columns ({_listed(items)})"


def normal_columns(columns: Any, who: str) -> Any:
    """Turn lists and arrays of columns into tuples of plain values, and refuse other types."""
    if columns is None or isinstance(columns, str | Selector) or callable(columns):
        return str(columns) if isinstance(columns, np.str_) else columns
    if isinstance(columns, slice):
        return slice(*(_plain(end) for end in (columns.start, columns.stop, columns.step)))
    if is_number(columns, Integral):
        return int(columns)
    allowed = "names, positions, a slice, a boolean mask, a callable or a narwhals selector"
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
        """How many columns there are."""
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
        if columns is None:
            return list(range(self.n_columns))
        if isinstance(columns, slice):
            start, stop, step = columns.start, columns.stop, columns.step
            if isinstance(start, str):
                start = self._position(start, who)
            if isinstance(stop, str):
                stop = self._position(stop, who) + 1
            return list(range(self.n_columns))[start:stop:step]
        items = columns if isinstance(columns, tuple) else (columns,)
        if items and isinstance(items[0], bool):
            if len(items) != self.n_columns:
                raise InputError(
                    f"{who}: the mask has {len(items)} entries, but X has {self.n_columns} columns."
                )
            return [i for i, chosen in enumerate(items) if chosen]
        return [self._position(item, who) for item in items]

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

    def numbers(self, columns: Any, who: str) -> Any:
        """Return chosen columns as C-contiguous float64, or as CSR where the table is sparse."""
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
        if self.is_sparse:
            at = np.flatnonzero(~np.isfinite(data))[0]
            row, j = (int(axis[at]) for axis in values.tocoo().coords)
        else:
            row, j = (int(i) for i in np.argwhere(~np.isfinite(data))[0])
        raise RowError(
            f"{who}: {self.label(picked[j])} has a missing or infinite value in row {{row}}; "
            "fill it first, for example with scikit-learn's SimpleImputer.",
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
        numeric = self.numeric()
        if wrong := [self.keys([i])[0] for i in picked if not numeric[i]]:
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

    def values(self, columns: Any, who: str) -> NDArray[Any]:
        """Return chosen columns of any type as a two-dimensional array without missing values."""
        if self.is_sparse:
            raise InputError(f"{who}: sparse X is not supported here; pass X.toarray().")
        picked = self.positions(columns, who)
        if self.names is None:
            values = np.ascontiguousarray(self.body[:, picked])
        else:
            values = np.empty((self.body.shape[0], len(picked)), dtype=object)
            for j, i in enumerate(picked):
                values[:, j] = self.body[:, i].to_list()
        for j, i in enumerate(picked):
            try:
                missing = _missing(values[:, j])
            except TypeError:
                raise InputError(
                    f"{who}: {self.label(i)} holds values that cannot be compared; "
                    "use strings, numbers or dates."
                ) from None
            if missing is not None:
                raise RowError(
                    f"{who}: {self.label(i)} has a missing value in row {{row}}; "
                    "fill it first, for example with the word 'missing'.",
                    missing,
                )
        return values


def _missing(column: NDArray[Any]) -> int | None:
    """Return the first row without a value; a value that cannot be hashed is a TypeError."""
    if column.dtype.kind in "fcmM":
        found = np.flatnonzero(column != column)
        return int(found[0]) if len(found) else None
    if column.dtype != object:
        return None
    for value in set(column.tolist()):
        # NaN and NaT differ from themselves; the comparison of pandas' NA has no truth value.
        if value is None or type(value).__name__ == "NAType" or value != value:
            return next(i for i, other in enumerate(column) if other is value)
    return None


def read_table(X: Any, who: str) -> Table:
    """Wrap ``X`` (array, sparse matrix, eager data frame, nested list) without copying it."""
    if is_sparse(X):
        if X.ndim != 2:
            raise InputError(f"{who}: X must have two dimensions, got {X.ndim}.")
        return Table(X, sp.csr_array(X), None)
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
