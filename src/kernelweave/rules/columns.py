"""One column of a table from any library, as numbers or as codes of its distinct values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats, Indices
from kernelweave._validation import is_missing
from kernelweave.errors import InputError, InputTypeError

Label: TypeAlias = str | bool | int | float
Kind: TypeAlias = Literal["numeric", "boolean", "nominal", "ordered"]

# Subclasses (numpy scalars, enumerations) become Python's own types; bool comes before int.
_PLAIN: dict[type, Callable[[Any], Label]] = {str: str.__str__, bool: bool, int: int, float: float}
_EXACT = 2**53  # integers of smaller size are floats without rounding
_NUMERIC: dict[str, Kind | None] = dict.fromkeys("fiu", "numeric")
_ARRAY_KINDS = _NUMERIC | {"b": "boolean", "U": "nominal", "O": None}  # by numpy's dtype.kind


@dataclass(frozen=True, eq=False)
class Labels:
    """Distinct values of a column and the code of each row; code -1 is a missing value."""

    codes: Indices
    values: tuple[Label, ...]

    @cached_property
    def code_of(self) -> dict[Label, int]:
        """The code of every value."""
        return {value: code for code, value in enumerate(self.values)}


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table; make it with `read_column`."""

    name: str  # as in error messages
    values: NDArray[Any]  # numbers, truth values or objects
    declared: Kind | None = None  # None: inferred from the values
    levels: tuple[Label, ...] = ()  # all values of an ordered column, lowest first
    coded: tuple[Indices, list[Any]] | None = None  # codes and categories of a pandas categorical
    first: int = 0  # row number of the first value in the whole table

    @cached_property
    def kind(self) -> Kind:
        """The kind of the column, inferred from its values where it has no declared type."""
        return infer_kind(self.labels.values) if self.declared is None else self.declared

    @cached_property
    def numbers(self) -> Floats:
        """The column as floats, NaN where a value is missing; infinity is refused."""
        values = self.values
        if values.dtype.kind not in "fiub":
            values = np.array([self._number(value) for value in values.tolist()], dtype=np.float64)
        with np.errstate(over="ignore"):  # a long double may become infinite; refused below
            # Contiguous: a strided column of a row-major array would be read many times.
            numbers = np.ascontiguousarray(values, dtype=np.float64)
        if np.isinf(numbers).any():
            row = self.first + int(np.flatnonzero(np.isinf(numbers))[0])
            raise InputError(
                f"X: {self.name!r} is infinite in row {row}. Hint: replace infinity by a large "
                "number, or by NaN where the value is not known."
            )
        return numbers

    def _number(self, value: Any) -> float:
        if is_missing(value):
            return np.nan
        if isinstance(value, Real | Decimal):
            return float(value)
        raise InputError(
            f"X: {self.name!r} must hold numbers, as it did in fit, but has {value!r}. Hint: "
            "convert the column first."
        )

    @cached_property
    def labels(self) -> Labels:
        """The column as codes of its distinct values."""
        if self.coded is not None:
            codes, distinct = self.coded
        elif self.values.dtype.kind == "b":
            return Labels(self.values.astype(np.intp), (False, True))
        elif self.values.dtype.kind in "fiu":
            known = self.values == self.values
            numbers, inverse = np.unique(self.values[known], return_inverse=True)
            codes = np.full(len(self.values), -1, dtype=np.intp)
            codes[known] = inverse
            distinct = numbers.tolist()
        else:
            codes, distinct = self._encode_objects()
        return Labels(codes, tuple(plain_label(value, self.name) for value in distinct))

    def _encode_objects(self) -> tuple[Indices, list[Any]]:
        """Return codes and distinct values in order of appearance."""
        found: dict[Any, int] = {}
        try:
            codes = [found.setdefault(value, len(found)) for value in self.values.tolist()]
        except TypeError:
            raise InputTypeError(
                f"X: {self.name!r} holds values that cannot be compared, such as lists. Hint: "
                "turn them into text or numbers."
            ) from None
        known = [value for value in found if not is_missing(value)]
        # By identity: NaN is not equal to itself.
        code_of = {id(value): code for code, value in enumerate(known)}
        renumbered = np.array([code_of.get(id(value), -1) for value in found], dtype=np.intp)
        return renumbered[codes] if found else np.empty(0, dtype=np.intp), known


def infer_kind(values: Iterable[Label]) -> Kind:
    """Return the kind of a column without a declared type."""
    types = {type(value) for value in values}
    if types == {bool}:
        return "boolean"
    return "nominal" if types & {str, bool} else "numeric"


def plain_value(value: Any) -> Any:
    """Return text, truth values and numbers as Python's own types; ``repr`` then reads back."""
    if isinstance(value, np.generic):
        value = value.item()
    for kind, convert in _PLAIN.items():
        if isinstance(value, kind):
            return convert(value)
    return value


def plain_label(value: Any, name: str) -> Label:
    """Return a value of the column ``name`` as text, truth value or number of Python."""
    value = plain_value(value)
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        if value in (np.inf, -np.inf):
            raise InputError(f"X: {name!r} has an infinite value; replace it first.")
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    raise InputTypeError(
        f"X: {name!r} holds {type(value).__name__} values, but text, numbers and truth values are "
        "possible. Hint: for pandas categories, .cat.rename_categories(str) makes text of them "
        "and keeps their order."
    )


def read_column(values: Any, name: str) -> Column:
    """Return an array, a list, or a series of any library as a column."""
    if isinstance(values, Column):
        return values
    series = values if isinstance(values, nw.Series) else _as_series(values)
    if series is None:
        return _array_column(values, name)
    dtype = series.dtype
    if isinstance(dtype, nw.Enum):
        levels = tuple(plain_label(value, name) for value in dtype.categories)
        return Column(name, _objects(series), "ordered", levels, _pandas_codes(series))
    if dtype == nw.Boolean:
        return Column(name, series.to_numpy(), "boolean")
    if dtype.is_numeric():
        return Column(name, _exact_numbers(series), "numeric")
    if dtype in (nw.Categorical, nw.String):
        return Column(name, _objects(series), "nominal", (), _pandas_codes(series))
    if dtype in (nw.Object, nw.Unknown):
        return Column(name, _objects(series))
    raise InputTypeError(
        f"X: {name!r} holds {dtype} values, but numbers, truth values, text and categories are "
        "possible. Hint: turn dates into numbers, such as days since the first."
    )


def _as_series(values: Any) -> nw.Series[Any] | None:
    if isinstance(values, np.ndarray):
        return None
    series: Any = nw.from_native(values, pass_through=True, allow_series=True)
    return series if isinstance(series, nw.Series) else None


def _array_column(values: Any, name: str) -> Column:
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # a list may mix text and numbers
    if array.ndim != 1:
        raise InputError(f"X: {name!r} must be one column, got {array.ndim} dimensions.")
    if array.dtype.kind not in _ARRAY_KINDS:
        raise InputTypeError(
            f"X: {name!r} holds {array.dtype} values, but numbers, truth values and text are "
            "possible. Hint: convert the column first."
        )
    return Column(name, array, _ARRAY_KINDS[array.dtype.kind])


def _exact_numbers(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column of numbers; as objects where floats would round integers beside gaps."""
    values = series.to_numpy()
    rounded = series.dtype.is_integer() and values.dtype.kind == "f"
    if not rounded or not (np.abs(values) >= _EXACT).any():
        return values
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return np.array([None if gap else value for value, gap in pairs], dtype=object)


def _objects(series: nw.Series[Any]) -> NDArray[Any]:
    if series.implementation.is_polars() and series.dtype not in (nw.Object, nw.Unknown):
        return np.array(series.to_list(), dtype=object)  # ten times faster for text
    return series.to_numpy()


def _pandas_codes(series: nw.Series[Any]) -> tuple[Indices, list[Any]] | None:
    """Return the codes that pandas keeps of a categorical column; the text is not read."""
    if not series.implementation.is_pandas() or series.dtype == nw.String:
        return None
    native = nw.to_native(series)
    return native.cat.codes.to_numpy().astype(np.intp), native.cat.categories.tolist()


def shown(items: Iterable[Any], limit: int = 5) -> str:
    """Return the first few items for a message."""
    items = list(items)
    return ", ".join(map(repr, items[:limit])) + (", ..." if len(items) > limit else "")
