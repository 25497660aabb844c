"""Encodings of single columns: numbers, categories and dates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from kernelweave._types import Floats, Indices

CLIP = 8.0  # standard deviations at which standardised values and encoded values are cut
_KNOTS = 2000  # values at which normal scores are kept; between them they are interpolated
_SCORE = 0.002  # normal scores are those of ranks between this and one minus this
_CONSTANT = 1e-12  # standard deviation, relative to the largest value, of a constant column
_TRUTH = {"false": 0.0, "true": 1.0}
_LEVEL = np.sqrt(0.5)  # value of an indicator, so that two levels are one unit apart
_CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # in days

Key: TypeAlias = str | int


@dataclass(frozen=True)
class EncodedColumn:
    """One column of the encoded matrix."""

    name: str  # for people: ``age``, ``age?`` (the indicator of its gaps), ``town=Ulm``
    # The column of the table that it comes from; the indicator of gaps is a source of its own.
    source: Key
    group: int  # columns with the same number share one weight of the metric


@dataclass(frozen=True)
class NumberEncoding:
    """Standardised values averaged with normal scores."""

    is_category: ClassVar[bool] = False

    # mean, deviation: of the training values
    mean: float
    deviation: float
    # knots, scores: distinct training values and their normal scores, interpolated between them
    knots: Floats
    scores: Floats
    scale: float  # standard deviation of the average over the training rows
    median: float  # takes the place of gaps
    gaps: bool  # whether training rows had gaps, so that there is an indicator column
    spread: float = 1.0  # standard deviation of the encoded training values

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
        median = weighted_median(known, share)
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
            standard = np.clip((filled - self.mean) / self.deviation, -CLIP, CLIP)
        return np.asarray(0.5 * (standard + np.interp(filled, self.knots, self.scores)))

    def encode(self, values: Floats) -> Floats:
        """Return the encoded values, and the indicator of gaps if training rows had some."""
        gaps = ~np.isfinite(values)
        average = self._average(np.where(gaps, self.median, values))
        columns = [np.clip(average / self.scale, -CLIP, CLIP)]
        if self.gaps:
            columns.append(gaps.astype(np.float64))
        return np.column_stack(columns)

    def describe(self, key: Key) -> list[tuple[str, Key]]:
        """Return name and source of each encoded column."""
        return [(str(key), key), *([(f"{key}?", f"{key}?")] if self.gaps else [])]


@dataclass(frozen=True)
class CategoryEncoding:
    """One indicator per level; a gap is a level of its own, an unseen level is all zeros."""

    is_category: ClassVar[bool] = True

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
        """Return the position of every level, minus one where it is unseen.

        Numbers are levels by their value, so that 1.0, and 1 where levels are true and false, are
        found where a gap or another file has changed the type of a column.
        """
        place: dict[Any, int] = {level: k for k, level in enumerate(self.levels)}
        found = np.fromiter(map(place.get, values.tolist(), repeat(-1)), np.intp, len(values))
        unseen = np.flatnonzero(found < 0)
        if not len(unseen):
            return found
        numbers = [as_number(level) for level in self.levels]
        places: dict[float | None, int] = {
            v: k for k, v in enumerate(numbers) if v is not None and numbers.count(v) == 1
        }
        if places:
            for row in unseen:
                found[row] = places.get(as_number(values[row]), -1)
        return found

    def encode(self, values: NDArray[Any]) -> Floats:
        """Return one column per level."""
        return self.encode_codes(self.codes(values))

    def encode_codes(self, codes: Indices) -> Floats:
        """Return one column per level, of rows whose levels have these positions."""
        return np.asarray(_LEVEL * (codes[:, None] == np.arange(len(self.levels))))

    def describe(self, key: Key) -> list[tuple[str, Key]]:
        """Return name and source of each encoded column."""
        shown = ("(missing)" if level is None else level for level in self.levels)
        return [(f"{key}={level}", key) for level in shown]


@dataclass(frozen=True)
class DateEncoding:
    """A number (days) and the place in the year, the week and the day, as far as they vary."""

    is_category: ClassVar[bool] = False

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


def weighted_median(values: Floats, weight: Floats) -> float:
    """Return the median by which a weight of two is two values."""
    order = np.argsort(values, kind="stable")
    values, mass = values[order], np.cumsum(weight[order])
    half = 0.5 * mass[-1]
    low, high = np.searchsorted(mass, half, "left"), np.searchsorted(mass, half, "right")
    return float(0.5 * values[low] + 0.5 * values[min(high, len(values) - 1)])


def as_number(text: str | None) -> float | None:
    """Return the number that a text stands for, truth values as zero and one."""
    if text is None or "_" in text:
        return None
    if (truth := _TRUTH.get(text.lower())) is not None:
        return truth
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
