"""Numeric encoding of a mixed table: numbers, categories, dates and gaps.

Numbers are standardised and averaged with their normal scores, categories become indicators of
their levels, dates become a number and cyclic parts, and gaps are filled with the median beside an
indicator. The encoding is learned from the columns alone, never from the target, so that
leave-one-out errors stay honest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, warn

from .spread import clip_outliers, warn_of_outliers
from .table import Columns, Encoding, Table, read_table

_CLIP = 8.0  # standard deviations at which standardised values and encoded values are cut
_KNOTS = 2000  # values at which normal scores are kept; between them they are interpolated
_SCORE = 0.002  # normal scores are those of ranks between this and one minus this
_CONSTANT = 1e-12  # standard deviation, relative to the largest value, of a constant column
_LEVEL = np.sqrt(0.5)  # value of an indicator, so that two levels are one unit apart
_CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days
_ALIKE = 0.95  # ratio of the smallest to the largest spread from which columns are alike
_TINY = 1e-6  # spread, relative to the largest, of columns that do not matter
_DAYS = np.timedelta64(1, "D")

Key: TypeAlias = str | int


class NothingToEncodeError(InputError):
    """No column of the table varies."""


@dataclass(frozen=True)
class EncodedColumn:
    """One column of the encoded matrix.

    Parameters
    ----------
    name : str
        For people: ``age``, ``age?`` (the indicator of its gaps), ``town=Ulm``.
    source : str or int
        The column of the table that it comes from; the indicator of gaps is a source of its own.
    group : int
        Columns with the same number share one weight of the metric.
    """

    name: str
    source: Key
    group: int


@dataclass(frozen=True)
class NumberEncoding:
    """Standardised values averaged with normal scores.

    Parameters
    ----------
    mean, deviation : float
        Of the training values.
    knots, scores : ndarray
        Distinct training values and their normal scores, interpolated between them.
    scale : float
        Standard deviation of the average over the training rows.
    median : float
        Takes the place of gaps.
    gaps : bool
        Whether training rows had gaps, so that there is an indicator column.
    spread : float
        Standard deviation of the encoded training values.
    """

    mean: float
    deviation: float
    knots: Floats
    scores: Floats
    scale: float
    median: float
    gaps: bool
    spread: float = 1.0

    def __post_init__(self) -> None:
        numbers = (self.mean, self.scale, self.median, self.spread)
        if not all(isinstance(x, float) and np.isfinite(x) for x in numbers) or not self.scale > 0:
            raise ValueError("the numbers of an encoded column must be finite")
        if not (isinstance(self.deviation, float) and self.deviation > 0):
            raise ValueError("the deviation of an encoded column must be positive")
        for array in (self.knots, self.scores):
            if getattr(array, "dtype", None) != np.float64 or not np.isfinite(array).all():
                raise ValueError("the scores of an encoded column must be finite numbers")
        if self.knots.ndim != 1 or not len(self.knots) or self.knots.shape != self.scores.shape:
            raise ValueError("an encoded column needs a score for each of its values")
        if not (np.diff(self.knots) > 0).all() or not isinstance(self.gaps, bool):
            raise ValueError("the values of an encoded column must increase")

    @classmethod
    def learn(cls, values: Floats, weight: Floats) -> NumberEncoding | None:
        """Return the encoding of a column, or None where it is constant up to rounding."""
        gaps = ~np.isfinite(values)
        known, share = values[~gaps], weight[~gaps]
        if not share.sum() > 0:
            return None
        median = _weighted_median(known, share)
        filled = np.where(gaps, median, values)
        size = float(np.abs(filled).max()) or 1.0
        total = weight.sum()
        # Values near the largest number would overflow in squares.
        mean = size * float(weight @ (filled / size)) / total
        deviation = size * float(np.sqrt(weight @ ((filled - mean) / size) ** 2 / total))
        if not deviation > _CONSTANT * size:
            return None if not gaps.any() else cls._of_gaps(median, filled)
        knots, place = np.unique(filled, return_inverse=True)
        mass = np.bincount(place, weights=weight)
        below = np.cumsum(mass) - mass
        ranks = np.clip((below + 0.5 * mass) / total, _SCORE, 1.0 - _SCORE)
        if len(knots) > _KNOTS:
            kept = np.linspace(0, len(knots) - 1, _KNOTS).round().astype(np.intp)
            knots, ranks = knots[kept], ranks[kept]
        found = cls(mean, deviation, knots, ndtri(ranks), 1.0, median, bool(gaps.any()))
        values = found._average(filled)
        middle = float(weight @ values) / total
        scale = float(np.sqrt(weight @ (values - middle) ** 2 / total))
        return cls(mean, deviation, knots, found.scores, scale or 1.0, median, found.gaps)

    @classmethod
    def _of_gaps(cls, median: float, filled: Floats) -> NumberEncoding:
        """Return the encoding of a constant column with gaps: only the indicator is left."""
        return cls(median, np.inf, filled[:1], np.zeros(1), 1.0, median, True)

    def _average(self, filled: Floats) -> Floats:
        # Differences of huge values may overflow to infinity, which the clip turns into a number.
        with np.errstate(over="ignore"):
            standard = np.clip((filled - self.mean) / self.deviation, -_CLIP, _CLIP)
        return np.asarray(0.5 * (standard + np.interp(filled, self.knots, self.scores)))

    def encode(self, values: Floats) -> Floats:
        """Return the encoded values, and the indicator of gaps if training rows had some."""
        gaps = ~np.isfinite(values)
        average = self._average(np.where(gaps, self.median, values))
        columns = [np.clip(average / self.scale, -_CLIP, _CLIP)]
        if self.gaps:
            columns.append(gaps.astype(np.float64))
        return np.column_stack(columns)

    def describe(self, key: Key) -> list[tuple[str, Key]]:
        """Return name and source of each encoded column."""
        return [(str(key), key), *([(f"{key}?", f"{key}?")] if self.gaps else [])]


@dataclass(frozen=True)
class CategoryEncoding:
    """One indicator per level; a gap is a level of its own, an unseen level is all zeros."""

    levels: tuple[str | None, ...]

    def __post_init__(self) -> None:
        known = isinstance(self.levels, tuple) and all(
            level is None or isinstance(level, str) for level in self.levels
        )
        if not known or len(set(self.levels)) != len(self.levels) or not self.levels:
            raise ValueError("the levels of an encoded column must be different texts")

    @classmethod
    def learn(cls, values: NDArray[Any], weight: Floats) -> CategoryEncoding | None:
        """Return the levels of a column, or None where it is constant or holds names.

        It holds names where there are more than half as many levels as rows.
        """
        levels = sorted(set(values.tolist()), key=lambda level: (level is None, level or ""))
        return cls(tuple(levels)) if 2 <= len(levels) <= max(2.0, len(weight) / 2) else None

    def codes(self, values: NDArray[Any]) -> Indices:
        """Return the position of every level, minus one where it is unseen."""
        place = {level: k for k, level in enumerate(self.levels)}
        return np.array([place.get(value, -1) for value in values.tolist()], dtype=np.intp)

    def encode(self, values: NDArray[Any]) -> Floats:
        """Return one column per level."""
        codes = self.codes(values)
        return np.asarray(_LEVEL * (codes[:, None] == np.arange(len(self.levels))))

    def describe(self, key: Key) -> list[tuple[str, Key]]:
        """Return name and source of each encoded column."""
        shown = ("(missing)" if level is None else level for level in self.levels)
        return [(f"{key}={level}", key) for level in shown]


@dataclass(frozen=True)
class DateEncoding:
    """A number (days) and the place in the year, the week and the day, as far as they vary."""

    number: NumberEncoding
    cycles: tuple[str, ...]

    def __post_init__(self) -> None:
        cycles = isinstance(self.cycles, tuple) and set(self.cycles) <= set(_CYCLES)
        if not isinstance(self.number, NumberEncoding) or not cycles:
            raise ValueError("the encoding of dates is not complete")

    @classmethod
    def learn(cls, days: Floats, weight: Floats) -> DateEncoding | None:
        """Return the encoding of a column, or None where it is constant."""
        number = NumberEncoding.learn(days, weight)
        if number is None:
            return None
        known = days[np.isfinite(days)]
        angles = {name: 2 * np.pi * known / period for name, period in _CYCLES.items()}
        spread = {name: np.ptp(np.cos(a)) + np.ptp(np.sin(a)) for name, a in angles.items()}
        return cls(number, tuple(name for name in _CYCLES if spread[name] > 1e-6))

    def encode(self, days: Floats) -> Floats:
        """Return the encoded number, then cosine and sine of each cycle; zeros for gaps."""
        parts = [self.number.encode(days)]
        known = np.isfinite(days)
        for name in self.cycles:
            angle = np.where(known, 2 * np.pi * days / _CYCLES[name], 0.0)
            parts.append(known[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
        return np.hstack(parts)

    def describe(self, key: Key) -> list[tuple[str, Key]]:
        """Return name and source of each encoded column."""
        cyclic = [
            (f"{key}: {part} of the {c}", key) for c in self.cycles for part in ("cos", "sin")
        ]
        return [*self.number.describe(key), *cyclic]


ColumnEncoding: TypeAlias = NumberEncoding | CategoryEncoding | DateEncoding
_NAMES = {NumberEncoding: "numbers", CategoryEncoding: "categories", DateEncoding: "dates"}


@dataclass(frozen=True, eq=False)
class TableEncoding(Encoding):
    """The encodings of the columns of a table, in their order.

    Parameters
    ----------
    keys : tuple of str or int
        Names of the encoded columns of the table, positions where it has none.
    encodings : tuple
        One per key.
    """

    keys: tuple[Key, ...]
    encodings: tuple[ColumnEncoding, ...]

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
        positions = table.positions(columns, "X")
        n = table.body.shape[0]
        weight = np.ones(n) if sample_weight is None else sample_weight
        used = weight > 0
        found: dict[Key, ColumnEncoding] = {}
        absurd: list[Key] = []
        for key, position in zip(table.keys(positions), positions, strict=True):
            kind, values = _read(table, position)
            if (learned := kind.learn(values[used], weight[used])) is not None:
                found[key] = learned
            if isinstance(learned, NumberEncoding) and _is_absurd(values[used], weight[used]):
                absurd.append(key)
        warn_of_outliers(absurd)
        if not found:
            raise NothingToEncodeError(
                "X: no column to learn from: every column is constant, or a category in which "
                "most rows have a level of their own."
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
        table = read_table(X, "X")
        parts = []
        for key, encoding in zip(self.keys, self.encodings, strict=True):
            (position,) = table.positions(key, "X")
            values = _read_as(table, position, type(encoding))
            if isinstance(encoding, CategoryEncoding):
                if unseen := int((encoding.codes(values) < 0).sum()):
                    warn(
                        f"X: {unseen} values of {table.label(position)} are levels that no "
                        "training row had; they match no level."
                    )
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


def _weighted_median(values: Floats, weight: Floats) -> float:
    order = np.argsort(values, kind="stable")
    values, mass = values[order], np.cumsum(weight[order])
    half = 0.5 * mass[-1]
    low, high = np.searchsorted(mass, half, "left"), np.searchsorted(mass, half, "right")
    return float(0.5 * values[low] + 0.5 * values[min(high, len(values) - 1)])


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
    out = np.empty(len(values), dtype=object)
    out[:] = [str(v) if there else None for v, there in zip(values, known, strict=True)]
    return CategoryEncoding, out


def _is_known(value: Any) -> bool:
    return not (value is None or type(value).__name__ in ("NAType", "NaTType") or value != value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


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
    raise InputError(
        f"X: {table.label(position)} held {_NAMES[kind]} in training, but now {known[0]!r}."
    )
