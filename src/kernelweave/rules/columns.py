"""One column of a table of any library, as numbers or as codes of its distinct values."""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(frozen=True, eq=False)
class Labels:
    """Distinct values of a column and where they stand; code -1 is a missing value."""

    codes: Indices
    values: tuple[Label, ...]

    @cached_property
    def code_of(self) -> dict[Label, int]:
        """The code of every value."""
        return {value: code for code, value in enumerate(self.values)}


@dataclass(frozen=True, eq=False)
class Column:
    """A column that was read once; make it with `read_column`.

    Attributes
    ----------
    name : str
        How messages call it.
    values : ndarray of shape (n_samples,)
        Numbers, truth values or objects.
    declared : str or None
        Its kind where the type of the column tells, None where the values must.
    levels : tuple
        All values of an ordered column, lowest first.
    coded : tuple of ndarray and list, or None
        Codes and categories where the library keeps them.
    first : int
        Which row of the whole table the first one is.
    """

    name: str
    values: NDArray[Any]
    declared: Kind | None = None
    levels: tuple[Label, ...] = ()
    coded: tuple[Indices, list[Any]] | None = None
    first: int = 0

    @cached_property
    def kind(self) -> Kind:
        """What the column holds; objects are judged by the values that are there."""
        if self.declared is not None:
            return self.declared
        values = self.labels.values
        if values and all(isinstance(value, bool) for value in values):
            return "boolean"
        return "nominal" if any(isinstance(value, str | bool) for value in values) else "numeric"

    @cached_property
    def numbers(self) -> Floats:
        """The column as floats, NaN where a value is missing; infinity is refused."""
        values = self.values
        if values.dtype.kind not in "fiub":
            values = np.array([self._number(value) for value in values.tolist()], dtype=np.float64)
        with np.errstate(over="ignore"):  # a long double may become infinite; refused below
            # One column of an array in rows is read many times, so it is put together first.
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
            codes, categories = self.coded
            return Labels(codes, tuple(plain_label(value, self.name) for value in categories))
        if self.values.dtype.kind == "b":
            return Labels(self.values.astype(np.intp), (False, True))
        if self.values.dtype.kind in "fiu":
            known = self.values == self.values
            distinct, inverse = np.unique(self.values[known], return_inverse=True)
            codes = np.full(len(self.values), -1, dtype=np.intp)
            codes[known] = inverse
            return Labels(
                codes, tuple(plain_label(value, self.name) for value in distinct.tolist())
            )
        return self._listed()

    def _listed(self) -> Labels:
        found: dict[Any, int] = {}
        try:
            codes = [found.setdefault(value, len(found)) for value in self.values.tolist()]
        except TypeError:
            raise InputTypeError(
                f"X: {self.name!r} holds values that cannot be compared, such as lists. Hint: "
                "turn them into text or numbers."
            ) from None
        known = [value for value in found if not is_missing(value)]
        place = {id(value): code for code, value in enumerate(known)}
        moved = np.array([place.get(id(value), -1) for value in found], dtype=np.intp)
        return Labels(
            moved[codes] if found else np.empty(0, dtype=np.intp),
            tuple(plain_label(value, self.name) for value in known),
        )


def plain_value(value: Any) -> Any:
    """Return text, truth values and numbers of numpy, enumerations and the like as Python's own.

    Only then does ``repr`` give text that Python reads back.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return float(value) if isinstance(value, float) else value


def plain_label(value: Any, name: str) -> Label:
    """Return a value of a column as text, truth value or number of Python."""
    value = plain_value(value)
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        if value in (np.inf, -np.inf):
            raise InputError(f"X: {name!r} has an infinite value; replace it first.")
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    raise InputTypeError(
        f"X: {name!r} holds {type(value).__name__} values, but text, numbers and truth values are "
        "possible. Hint: for pandas categories, .cat.rename_categories(str) makes text of them "
        "and keeps their order."
    )


def read_column(values: Any, name: str) -> Column:
    """Read a column: an array, a list, or a series of any library."""
    if isinstance(values, Column):
        return values
    series = values if isinstance(values, nw.Series) else _series(values)
    if series is None:
        return Column(name, *_plain(values, name))
    dtype = series.dtype
    if isinstance(dtype, nw.Enum):
        levels = tuple(plain_label(value, name) for value in dtype.categories)
        return Column(name, _objects(series), "ordered", levels, _codes(series))
    if dtype == nw.Boolean:
        return Column(name, series.to_numpy(), "boolean")
    if dtype.is_numeric():
        return Column(name, series.to_numpy(), "numeric")
    if dtype in (nw.Categorical, nw.String):
        return Column(name, _objects(series), "nominal", (), _codes(series))
    if dtype in (nw.Object, nw.Unknown):
        return Column(name, _objects(series))
    raise InputTypeError(
        f"X: {name!r} holds {dtype} values, but numbers, truth values, text and categories are "
        "possible. Hint: turn dates into numbers, such as days since the first."
    )


def _series(values: Any) -> nw.Series[Any] | None:
    if isinstance(values, np.ndarray):
        return None
    series: Any = nw.from_native(values, pass_through=True, allow_series=True)
    return series if isinstance(series, nw.Series) else None


def _plain(values: Any, name: str) -> tuple[NDArray[Any], Kind | None]:
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # a list may mix text and numbers
    if array.ndim != 1:
        raise InputError(f"X: {name!r} must be one column, got {array.ndim} dimensions.")
    if array.dtype.kind not in "fiubUO":
        raise InputTypeError(
            f"X: {name!r} holds {array.dtype} values, but numbers, truth values and text are "
            "possible. Hint: convert the column first."
        )
    kinds: dict[str, Kind] = {"b": "boolean", "U": "nominal", "f": "numeric"}
    return array, kinds.get(array.dtype.kind, None if array.dtype.kind == "O" else "numeric")


def _objects(series: nw.Series[Any]) -> NDArray[Any]:
    if series.implementation.is_polars() and series.dtype not in (nw.Object, nw.Unknown):
        return np.array(series.to_list(), dtype=object)  # ten times faster for text
    return series.to_numpy()


def _codes(series: nw.Series[Any]) -> tuple[Indices, list[Any]] | None:
    """Return the codes that pandas keeps of a categorical column, which saves reading the text."""
    if not series.implementation.is_pandas() or series.dtype == nw.String:
        return None
    native = nw.to_native(series)
    return native.cat.codes.to_numpy().astype(np.intp), native.cat.categories.tolist()


def shown(items: Iterable[Any], limit: int = 5) -> str:
    """Return the first few items for a message."""
    items = list(items)
    return ", ".join(map(repr, items[:limit])) + (", ..." if len(items) > limit else "")
