"""Geometry of the charts of a report; the template ``charts.html`` draws them as inline SVG.

Inline SVG follows the theme of the page and needs no plotting package. Horizontal positions are in
per cent of the width, so that a narrow window squeezes lines but not letters; vertical ones are in
pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats

_LEFT, RIGHT = 11.0, 99.0  # per cent of the width between which data are drawn
_EDGE = 1.0  # the same on the left where there are no numbers
_NAMED = 24  # groups of a map beyond which names would hide the points
_DOTS = 60  # points of a line beyond which they are not marked
_TOP, _LINE = 18.0, 22.0  # pixels above the plot, and for a line of text below it
_STEP = 58.0  # pixels for each score
SMALL = 240.0  # height of charts that stand side by side


@dataclass(frozen=True)
class Axis:
    """Range of an axis and its ticks, pairs of value and text."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def at(self, value: Any) -> Any:
        """Return the position between the ends, from 0 to 1."""
        low, high, x = self.low, self.high, np.asarray(value, dtype=np.float64)
        if self.log:
            low, high, x = np.log10(low), np.log10(high), np.log10(np.maximum(x, 1e-300))
        return (x - low) / ((high - low) or 1.0)


def _short(value: float) -> str:
    """Return a round number in few letters, such as 20k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if 10 * size <= abs(value) < 1e4 * size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def linear(
    low: float, high: float, form: Callable[[float], str] = _short, n_ticks: int = 4
) -> Axis:
    """Return an axis with ticks at round numbers that covers a range."""
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    raw = (high - low) / n_ticks
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    values = [round(float(k * step), 12) for k in np.arange(first, last + 1)]
    return Axis(values[0], values[-1], [(v, form(v)) for v in values])


def logarithmic(low: float, high: float, form: Any, most: int = 6) -> Axis:
    """Return an axis with ticks at powers of ten that covers a range of positive numbers."""
    first, last = int(np.floor(np.log10(low) + 1e-9)), int(np.ceil(np.log10(high) - 1e-9))
    last = max(last, first + 1)
    step = -(-(last - first) // most)
    powers = [10.0**k for k in range(first, last + 1, step)]
    return Axis(10.0**first, 10.0**last, [(p, form(p)) for p in powers], log=True)


@dataclass(frozen=True)
class Interval:
    """A score: its name, mean, ends of its interval (NaN if unknown) and its folds."""

    name: str
    mean: float
    low: float
    high: float
    folds: Floats

    def __str__(self) -> str:
        ends = "" if np.isnan(self.low) else f", interval {self.low:.3g} to {self.high:.3g}"
        return f"{self.name}: {self.mean:.3g}{ends}"


@dataclass(frozen=True)
class Mark:
    """A point with the ends of its interval (NaN: none)."""

    x: float
    y: float
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True)
class Chart:
    """Lines, points, a histogram or intervals over one horizontal axis.

    Parameters
    ----------
    x, y : Axis
        Without a vertical axis, heights have no numbers.
    label, caption : str
        Description for screen readers, and text below the chart.
    title, y_title : str
        Titles of the axes.
    heading : str
        Text above the chart.
    line : pair of arrays, optional
        Points of a line.
    reference : pair of arrays, optional
        A dashed line to compare it with.
    faint : sequence of pairs of arrays
        Further lines, drawn thin.
    band : three arrays, optional
        Positions, lower and upper ends of a band around the line.
    marks : sequence of Mark
        Points with intervals.
    cloud : pair of arrays, optional
        Many small points.
    rug : array
        Positions of rows on the horizontal axis.
    level, upright : (float, str), optional
        A dashed horizontal or vertical line with its name.
    edges, counts : array, and dict of arrays by colour, optional
        Bins of a histogram and their contents.
    intervals : sequence of Interval
        Scores, one below the other.
    step : float
        Pixels for each of them.
    margin : float
        Per cent of the width for the numbers of the vertical axis.
    """

    x: Axis
    label: str
    caption: str
    title: str = ""
    y: Axis | None = None
    height: float = 260.0
    y_title: str = ""
    heading: str = ""
    line: tuple[Floats, Floats] | None = None
    reference: tuple[Floats, Floats] | None = None
    faint: Sequence[tuple[Floats, Floats]] = ()
    band: tuple[Floats, Floats, Floats] | None = None
    marks: Sequence[Mark] = ()
    cloud: tuple[Floats, Floats] | None = None
    rug: Any = ()
    level: tuple[float, str] | None = None
    upright: tuple[float, str] | None = None
    edges: Any = ()
    counts: Any = None
    intervals: Sequence[Interval] = ()
    step: float = _STEP
    margin: float = _LEFT

    right = RIGHT

    @property
    def top(self) -> float:
        """Where the plot begins, in pixels from the top: below the title of its axis."""
        return _TOP + (8.0 if self.y_title else 0.0)

    @property
    def left(self) -> float:
        """Where data begin, in per cent of the width."""
        return _EDGE if self.y is None else self.margin

    @property
    def floor(self) -> float:
        """Height of the horizontal axis, in pixels from the top."""
        return self.height - (2 if self.title else 1) * _LINE

    def across(self, values: Any) -> Any:
        """Return horizontal positions in per cent."""
        return self.left + (RIGHT - self.left) * self.x.at(values)

    def down(self, values: Any) -> Any:
        """Return vertical positions in pixels."""
        assert self.y is not None
        return self.floor - (self.floor - self.top) * self.y.at(values)

    @property
    def points(self) -> list[tuple[float, float]]:
        """Points of the line."""
        return self._places(self.line)

    @property
    def reference_points(self) -> list[tuple[float, float]]:
        """Points of the line to compare with."""
        return self._places(self.reference)

    @property
    def faint_points(self) -> list[list[tuple[float, float]]]:
        """Points of the thin lines."""
        return [self._places(line) for line in self.faint]

    @property
    def cloud_points(self) -> list[tuple[float, float]]:
        """Places of the many points."""
        return self._places(self.cloud)

    @property
    def band_points(self) -> list[tuple[float, float]]:
        """Corners of the band: along its lower end, and back along its upper end."""
        if self.band is None:
            return []
        x, low, high = self.band
        return self._places((np.append(x, x[::-1]), np.append(low, high[::-1])))

    def _places(self, values: tuple[Floats, Floats] | None) -> list[tuple[float, float]]:
        if values is None:
            return []
        return list(zip(self.across(values[0]), self.down(values[1]), strict=True))

    @property
    def dots(self) -> list[tuple[float, float]]:
        """Points that are marked: all, unless they are too many."""
        plain = self.reference is None and self.band is None
        return self.points if plain and len(self.points) <= _DOTS else []

    @property
    def bars(self) -> list[dict[str, Any]]:
        """Rectangles of the histogram; the largest count reaches the top."""
        counts = self.counts or {}
        most = max((float(c.max()) for c in counts.values()), default=1.0) or 1.0
        ends = self.across(self.edges)
        return [
            {
                "x": a + 0.1,
                "width": max(b - a - 0.2, 0.1),
                "height": (self.floor - self.top) * float(n) / most,
                "colour": colour,
            }
            for colour, heights in counts.items()
            for a, b, n in zip(ends[:-1], ends[1:], heights, strict=True)
            if n
        ]


def interval_chart(rows: Sequence[Interval], x: Axis, caption: str) -> Chart:
    """Return one line for each score."""
    height = _TOP + _STEP * len(rows) + _LINE + 4
    return Chart(x, "; ".join(map(str, rows)), caption, height=height, intervals=rows)


@dataclass(frozen=True)
class Map:
    """Points in the plane with the number of their colour, and names at the middle of groups."""

    points: list[tuple[float, float, int]]
    names: list[tuple[float, float, str]]
    height: float
    label: str
    caption: str
    width: float = 640.0


def scatter(points: Floats, codes: Any, names: Sequence[str], label: str, caption: str) -> Map:
    """Return a map with equal scales of both axes, so that distances are true."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-12)
    unit = float((np.array([600.0, 400.0]) / span).min())
    width, height = Map.width, max(160.0, unit * float(span[1]) + 40)
    xy = (points - 0.5 * (low + high)) * unit * (1, -1) + (width / 2, height / 2)
    marks = []
    for c, name in enumerate(names if len(names) <= _NAMED else []):
        own = xy[codes == c]
        if len(own):
            x, y = np.median(own, axis=0)
            marks.append((float(x), float(y), name))
    dots = [(x, y, int(c) % 8) for (x, y), c in zip(xy.tolist(), codes, strict=True)]
    return Map(dots, marks, height, label, caption)
