"""Numeric encoding of a mixed table: numbers, categories, dates and gaps.

Numbers are standardised and averaged with their normal scores, categories become indicators of
their levels, dates become a number and cyclic parts, and gaps are filled with the median beside an
indicator. The encoding is learned from the columns alone, never from the target, so that
leave-one-out errors stay unbiased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats
from kernelweave.errors import InputError, warn

from .column_encoding import (
    CategoryEncoding,
    ColumnEncoding,
    DateEncoding,
    EncodedColumn,
    Key,
    NumberEncoding,
    as_number,
)
from .spread import clip_outliers, warn_of_outliers
from .table import Columns, Encoding, Table, normal_columns, read_table

_ALIKE = 0.95  # ratio of the smallest to the largest spread from which columns are alike
_TINY = 1e-6  # spread, relative to the largest, of columns that do not matter
_DAYS = np.timedelta64(1, "D")


_KNOWN: ContextVar[dict[tuple[int, str], tuple[Any, Floats]] | None] = ContextVar(
    "encoded rows", default=None
)


@contextmanager
def encode_once() -> Iterator[None]:
    """Keep encoded rows of tables, which must not be changed meanwhile, and use them again."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


class NothingToEncodeError(InputError):
    """No column of the table varies."""


_NAMES = {NumberEncoding: "numbers", CategoryEncoding: "categories", DateEncoding: "dates"}


@dataclass(frozen=True, eq=False)
class TableEncoding(Encoding):
    """The encodings of the columns of a table, in their order."""

    keys: tuple[Key, ...]  # names of the encoded columns of the table, positions where it has none
    encodings: tuple[ColumnEncoding, ...]  # one per key

    def __post_init__(self) -> None:
        keys = isinstance(self.keys, tuple) and all(isinstance(k, str | int) for k in self.keys)
        known = isinstance(self.encodings, tuple) and all(
            type(encoding) in _NAMES for encoding in self.encodings
        )
        if not keys or not known or len(self.keys) != len(self.encodings) or not self.keys:
            raise ValueError("a table needs an encoding for each of its columns")

    @classmethod
    def learn(
        cls, X: Any, columns: Columns = None, sample_weight: Floats | None = None
    ) -> TableEncoding:
        """Learn the encoding of the chosen columns; constant ones and names are left out."""
        table = read_table(X, "X")
        positions = table.positions(normal_columns(columns, "X"), "X")
        n = table.body.shape[0]
        weight = np.ones(n) if sample_weight is None else sample_weight
        used = weight > 0
        found: dict[Key, ColumnEncoding] = {}
        absurd: list[Key] = []
        empty: list[Key] = []
        for key, position in zip(table.keys(positions), positions, strict=True):
            kind, values = _read(table, position)
            if (learned := kind.learn(values[used], weight[used])) is not None:
                found[key] = learned
            elif not table.known((key,), "X")[used].any():
                empty.append(key)
            if isinstance(learned, NumberEncoding) and _is_absurd(values[used], weight[used]):
                absurd.append(key)
        warn_of_outliers(absurd)
        if not found:
            raise NothingToEncodeError(
                "X: no column to learn from: every column is constant or empty, or a category in "
                "which most rows have a level of their own."
            )
        if empty:
            warn(
                f"X: column{'s' if len(empty) > 1 else ''} {', '.join(map(repr, empty[:3]))}"
                f"{f' and {len(empty) - 3} more' if len(empty) > 3 else ''}: no training row has "
                "a value; nothing is learned from there."
            )
        return cls(tuple(found), tuple(found.values()))

    def only(self, keys: Sequence[Key]) -> TableEncoding:
        """Return the encoding of some of the columns."""
        known = dict(zip(self.keys, self.encodings, strict=True))
        return TableEncoding(tuple(keys), tuple(known[key] for key in keys))

    @cached_property
    def key(self) -> str:
        """A digest that equal encodings share."""
        parts = (self.keys, self.encodings)
        return hashlib.sha256(repr(_plain(parts)).encode()).hexdigest()

    @property
    def spreads(self) -> Floats:
        """Standard deviations of encoded columns, where all are numbers without gaps."""
        return np.array([getattr(encoding, "spread", np.nan) for encoding in self.encodings])

    def in_own_units(self) -> TableEncoding | None:
        """Return the encoding with columns that keep their spread relative to the largest.

        None unless all are numbers without gaps, of different spread. Columns of a millionth of the
        largest spread are left out.
        """
        numbers = [e for e in self.encodings if isinstance(e, NumberEncoding) and not e.gaps]
        if len(numbers) < len(self.encodings):
            return None
        largest = max(encoding.deviation for encoding in numbers)
        relative = {k: e.deviation / largest for k, e in zip(self.keys, numbers, strict=True)}
        if not min(relative.values()) < _ALIKE:
            return None
        own = {
            key: replace(encoding, scale=encoding.scale / relative[key], spread=relative[key])
            for key, encoding in zip(self.keys, numbers, strict=True)
            if relative[key] > _TINY
        }
        return TableEncoding(tuple(own), tuple(own.values()))

    def standardised(self) -> TableEncoding:
        """Return the encoding whose numbers are standardised only, without their normal scores."""

        def straight(part: Any) -> Any:
            if isinstance(part, DateEncoding):
                return replace(part, number=straight(part.number))
            if not np.isfinite(getattr(part, "deviation", np.inf)):  # categories have none
                return part
            # The line through the ends of the range replaces the normal scores.
            ends = part.knots[[0, -1]]
            return replace(part, knots=ends, scores=(ends - part.mean) / part.deviation, scale=1.0)

        return TableEncoding(self.keys, tuple(map(straight, self.encodings)))

    @property
    def n_encoded(self) -> int:
        """Number of columns after encoding."""
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableEncoding) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<TableEncoding of {', '.join(map(str, self.keys))}>"

    @property
    def owners(self) -> list[int]:
        """The place in `keys` of the column that each encoded column comes from."""
        parts = zip(self.keys, self.encodings, strict=True)
        return [k for k, (key, part) in enumerate(parts) for _ in part.describe(key)]

    @property
    def columns(self) -> list[EncodedColumn]:
        """The columns of the encoded matrix."""
        out: list[EncodedColumn] = []
        group = -1
        for key, encoding in zip(self.keys, self.encodings, strict=True):
            last = None
            for name, source in encoding.describe(key):
                # Levels of a category, and the two parts of a cycle, share one weight.
                tied = isinstance(encoding, CategoryEncoding) or ": sin of" in name
                if last is None or not tied:
                    group += 1
                last = name
                out.append(EncodedColumn(name, source, group))
        return out

    def encode(self, X: Any) -> Floats:
        """Return the encoded rows, of shape (n_rows, n_encoded)."""
        known = _KNOWN.get()
        if known is None:
            return self._encode(X)
        if (id(X), self.key) not in known:
            rows = self._encode(X)
            rows.setflags(write=False)
            known[id(X), self.key] = X, rows  # X is kept, so that no other table gets its number
        return known[id(X), self.key][1]

    def _encode(self, X: Any) -> Floats:
        table = read_table(X, "X")
        parts = []
        for key, encoding in zip(self.keys, self.encodings, strict=True):
            (position,) = table.positions(key, "X")
            values = _read_as(table, position, type(encoding))
            if isinstance(encoding, CategoryEncoding):
                codes = encoding.codes(values)
                if unseen := sum(value is not None for value in values[codes < 0]):
                    warn(
                        f"X: {unseen} values of {table.label(position)} are levels that no "
                        "training row had; they match no level."
                    )
                parts.append(encoding.encode_codes(codes))
            else:
                parts.append(encoding.encode(values))
        return np.ascontiguousarray(np.hstack(parts))


def _plain(value: Any) -> Any:
    """Return nested tuples of plain values, arrays as bytes."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return (type(value).__name__, *(_plain(v) for v in vars(value).values()))
    return value


def _is_absurd(values: Floats, weight: Floats) -> bool:
    known = np.isfinite(values)
    share = weight[known] if (weight != 1.0).any() else None
    return bool(clip_outliers(values[known][:, None], share)[1].any())


def _read(table: Table, position: int) -> tuple[type[ColumnEncoding], NDArray[Any]]:
    """Return how a column is encoded, and its values: numbers, days, or text and None."""
    if table.is_sparse:
        raise InputError("X: sparse tables are not supported here; pass X.toarray().")
    if table.names is None:
        column = table.body[:, position]
        if column.dtype.kind in "fiu":
            return NumberEncoding, column.astype(np.float64)
        if column.dtype.kind == "M":
            return DateEncoding, _days(column)
        if column.dtype.kind == "m":
            return NumberEncoding, _days(column + np.datetime64(0, "D"))
        return _read_objects(column.tolist(), column.dtype.kind == "b")
    series = table.body[:, position]
    if series.dtype in (nw.Date, nw.Datetime):
        if getattr(series.dtype, "time_zone", None) is not None:
            series = series.dt.replace_time_zone(None)  # the hours of clocks where rows come from
        return DateEncoding, _days(series.cast(nw.Datetime("us")).to_numpy())
    if series.dtype == nw.Duration:
        return NumberEncoding, _days(series.to_numpy() + np.datetime64(0, "D"))
    if series.dtype.is_numeric() and not series.null_count():
        return NumberEncoding, np.asarray(series.to_numpy(), dtype=np.float64)
    kind = series.dtype
    return _read_objects(series.to_list(), not (kind.is_numeric() or kind == nw.Object))


def _days(times: NDArray[Any]) -> Floats:
    days = (times - np.datetime64(0, "D")) / _DAYS
    return np.where(np.isnat(times), np.nan, days)


def _read_objects(
    values: list[Any], text: bool = False
) -> tuple[type[ColumnEncoding], NDArray[Any]]:
    """Take a column of objects as dates or numbers where all known values are, else as text."""
    out = np.empty(len(values), dtype=object)
    if str in set(map(type, values)):  # neither dates nor numbers: no need to look at each value
        out[:] = [v if type(v) is str else str(v) if _is_known(v) else None for v in values]
        return CategoryEncoding, out
    known = [_is_known(value) for value in values]
    dates = all(isinstance(v, date) for v, there in zip(values, known, strict=True) if there)
    if dates and any(known) and not text:
        plain = (
            v.replace(tzinfo=None) if isinstance(v, datetime) and there else v if there else None
            for v, there in zip(values, known, strict=True)
        )
        return DateEncoding, _days(np.array(list(plain), dtype="datetime64[us]"))
    numbers = all(_is_number(v) for v, there in zip(values, known, strict=True) if there)
    if numbers and any(known) and not text:
        floats = (float(v) if there else np.nan for v, there in zip(values, known, strict=True))
        return NumberEncoding, np.fromiter(floats, np.float64, len(values))
    out[:] = [str(v) if there else None for v, there in zip(values, known, strict=True)]
    return CategoryEncoding, out


def _is_known(value: Any) -> bool:
    return not (value is None or type(value).__name__ in ("NAType", "NaTType") or value != value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool)


def _read_as(table: Table, position: int, kind: type[ColumnEncoding]) -> NDArray[Any]:
    """Return a column as the kind that it had in training."""
    found, values = _read(table, position)
    if found is kind:
        return values
    if kind is CategoryEncoding:
        series = table.body[:, position]
        listed = series.tolist() if table.names is None else series.to_list()
        return _read_objects(listed, text=True)[1]
    known = [value for value in values.tolist() if value is not None and value == value]
    if not known:
        return np.full(len(values), np.nan)
    wrong = known[0]
    if kind is NumberEncoding and found is CategoryEncoding:  # truth values, numbers as text
        wrong = next((value for value in known if as_number(value) is None), None)
        if wrong is None:
            numbers = (as_number(value) for value in values)
            return np.array([np.nan if v is None else v for v in numbers])
    raise InputError(
        f"X: {table.label(position)} held {_NAMES[kind]} in training, but now {wrong!r}."
    )
