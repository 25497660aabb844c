"""Small pictures as inline SVG.

They are drawn by hand, not by matplotlib: their colours then follow the theme of the page, they are
sharp in print, a chart is a kilobyte or two, and a report needs no package for pictures. Horizontal
places are in per cent, so that a narrow window squeezes the lines and not the letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats

from .html import Markup, join, tag

_LEFT, _RIGHT = 11.0, 99.0  # per cent of the width between which data are drawn
_EDGE = 1.0  # the same on the left where no numbers stand there
_NAMED = 24  # groups of a map beyond which names would hide the points
_DOTS = 60  # points of a line beyond which they are not marked
_TOP, _LINE = 18.0, 22.0  # pixels above the plot, and for a line of letters below it


@dataclass(frozen=True)
class Axis:
    """Where numbers are drawn, and which of them are written.

    Parameters
    ----------
    low, high : float
        Ends.
    ticks : sequence of (float, str)
        Numbers and how they are written.
    log : bool
        Whether equal ratios are equal lengths.
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def at(self, value: Any) -> Any:
        """Return the place between the ends, from 0 to 1."""
        low, high, x = self.low, self.high, np.asarray(value, dtype=np.float64)
        if self.log:
            low, high, x = np.log10(low), np.log10(high), np.log10(np.maximum(x, 1e-300))
        return (x - low) / ((high - low) or 1.0)


def linear(low: float, high: float, form: str = "{:g}", n_ticks: int = 4) -> Axis:
    """Return an axis with ticks at round numbers that covers a range."""
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    raw = (high - low) / n_ticks
    size = 10.0 ** np.floor(np.log10(raw))
    step = size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    values = [round(float(k * step), 12) for k in np.arange(first, last + 1)]
    return Axis(values[0], values[-1], [(v, form.format(v)) for v in values])


def logarithmic(low: float, high: float, form: Any, most: int = 6) -> Axis:
    """Return an axis with ticks at powers of ten that covers a range of positive numbers."""
    first, last = int(np.floor(np.log10(low) + 1e-9)), int(np.ceil(np.log10(high) - 1e-9))
    last = max(last, first + 1)
    step = -(-(last - first) // most)
    powers = [10.0**k for k in range(first, last + 1, step)]
    return Axis(10.0**first, 10.0**last, [(p, form(p)) for p in powers], log=True)


@dataclass(frozen=True)
class Plot:
    """Axes to draw between; without a vertical one, heights mean nothing but themselves.

    Parameters
    ----------
    x, y : Axis
        Horizontal and, if heights have numbers, vertical.
    height : float
        Of the whole picture, in pixels.
    """

    x: Axis
    y: Axis | None = None
    height: float = 260.0

    @property
    def left(self) -> float:
        """Where data begin, in per cent of the width."""
        return _EDGE if self.y is None else _LEFT

    @property
    def floor(self) -> float:
        """Where the horizontal axis is, in pixels from the top."""
        return self.height - 2 * _LINE

    def across(self, values: Any) -> Any:
        """Return horizontal places in per cent."""
        return self.left + (_RIGHT - self.left) * self.x.at(values)

    def at(self, value: float) -> str:
        """Return one horizontal place as it is written."""
        return f"{float(self.across(value)):.2f}%"

    def down(self, values: Any) -> Any:
        """Return vertical places in pixels."""
        assert self.y is not None
        return self.floor - (self.floor - _TOP) * self.y.at(values)

    def render(self, title: str, marks: Any, label: str) -> Markup:
        """Return the picture; the title of a vertical axis belongs into the words below it."""
        ticks = [] if self.y is None else [self._grid(*tick) for tick in self.y.ticks]
        words = [self._tick(*tick) for tick in self.x.ticks]
        end = {"x": f"{_RIGHT}%", "text_anchor": "end"}
        name = tag("text", title, **end, y=self.floor + 36, class_="title")
        inside = join(
            [tag("title", label), ticks, self._across("axis", self.floor), words, name, marks]
        )
        height = f"{self.height:.0f}"
        return tag("svg", inside, class_="chart", width="100%", height=height, role="img")

    def _across(self, kind: str, at: float) -> Markup:
        ends = {"x1": f"{self.left}%", "x2": f"{_RIGHT}%"}
        return tag("line", **ends, y1=f"{at:.1f}", y2=f"{at:.1f}", class_=kind)

    def _tick(self, value: float, text: str) -> Markup:
        share = float(self.x.at(value))
        side = "end" if share > 0.97 else "start" if share < 0.03 and self.y is None else "middle"
        at = {"x": self.at(value), "y": self.floor + 16}
        return tag("text", text, **at, class_="tick", text_anchor=side)

    def _grid(self, value: float, text: str) -> Markup:
        at = float(self.down(value))
        words = tag("text", text, x="0", y=f"{at + 4:.1f}", class_="tick")
        return join([self._across("grid", at), words])

    def line(self, xs: Floats, ys: Floats) -> Markup:
        """Return a broken line, with a dot at every point where they are not too many."""
        places = list(zip(self.across(xs), self.down(ys), strict=True))
        points = " ".join(f"{a:.2f},{b:.1f}" for a, b in places)
        # Only the line is stretched to the width of the window; dots and letters keep their shape.
        stretched = tag(
            "svg",
            tag("polyline", points=points, class_="line", vector_effect="non-scaling-stroke"),
            width="100%",
            height=f"{self.height:.0f}",
            viewBox=f"0 0 100 {self.height:.0f}",
            preserveAspectRatio="none",
        )
        dots = [tag("circle", cx=f"{a:.2f}%", cy=f"{b:.1f}", r=3, class_="dot") for a, b in places]
        return join([stretched, dots if len(dots) <= _DOTS else None])

    def level(self, value: float, text: str) -> Markup:
        """Return a dashed line across the plot, with its name."""
        at = float(self.down(value))
        place = {"x": f"{self.left + 0.5}%", "y": f"{at - 6:.1f}"}
        return join([self._across("level", at), tag("text", text, **place, class_="tick strong")])

    def upright(self, value: float, text: str) -> Markup:
        """Return a dashed line from top to bottom, with its name."""
        at = self.at(value)
        line = tag("line", x1=at, x2=at, y1=2, y2=f"{self.floor:.1f}", class_="level")
        right = self.x.at(value) > 0.6
        shift: dict[str, Any] = {"dx": -6, "text_anchor": "end"} if right else {"dx": 6}
        return join([line, tag("text", text, x=at, y=_TOP - 6, class_="tick strong", **shift)])

    def columns(self, edges: Floats, counts: Any, top: float, kind: str) -> Markup:
        """Return the bars of a histogram; ``top`` is what reaches the upper end."""
        bars = []
        ends = self.across(edges)
        for a, b, n in zip(ends[:-1], ends[1:], counts, strict=True):
            tall = (self.floor - _TOP) * float(n) / (top or 1.0)
            if n:
                box = {"x": f"{a + 0.1:.2f}%", "y": f"{self.floor - tall:.1f}"}
                size = {"width": f"{max(b - a - 0.2, 0.1):.2f}%", "height": f"{tall:.1f}"}
                bars.append(tag("rect", **box, **size, class_=f"column {kind}"))
        return join(bars)


def intervals(rows: Sequence[tuple[str, float, float, float, Floats]], x: Axis) -> Markup:
    """Return one line of picture for each score: name, mean, ends of its interval, and folds."""
    step = 58.0
    plot = Plot(x, height=_TOP + step * len(rows) + 2 * _LINE + 4)
    marks = []
    for k, (name, mean, low, high, folds) in enumerate(rows):
        y = f"{_TOP + 30 + step * k:.0f}"
        known = not np.isnan(low)
        ends = {"x1": plot.at(low), "x2": plot.at(high), "y1": y, "y2": y} if known else {}
        marks += [
            tag("text", name, x=f"{plot.left}%", y=y, dy=-14, class_="name"),
            tag("line", **ends, class_="interval") if known else None,
            [tag("circle", cx=plot.at(fold), cy=y, r=3, class_="fold") for fold in folds],
            tag("circle", cx=plot.at(mean), cy=y, r=5.5, class_="dot"),
        ]
    words = "; ".join(
        f"{name}: {m:.3g}" + ("" if np.isnan(a) else f", interval {a:.3g} to {b:.3g}")
        for name, m, a, b, _ in rows
    )
    return plot.render("", marks, words)


def scatter(points: Floats, codes: Any, names: Sequence[str], label: str) -> Markup:
    """Return a map of points, coloured by their codes, with the name of each colour amid it."""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.maximum(high - low, 1e-12)
    unit = float((np.array([600.0, 400.0]) / span).min())  # one for both: distances are true
    width, height = 640.0, max(160.0, unit * float(span[1]) + 40)
    xy = (points - 0.5 * (low + high)) * unit * (1, -1) + (width / 2, height / 2)
    dots = [
        tag("circle", cx=f"{a:.1f}", cy=f"{b:.1f}", r=5, class_=f"point hue{int(c) % 8}")
        for (a, b), c in zip(xy, codes, strict=True)
    ]
    words = []
    for c, name in enumerate(names if len(names) <= _NAMED else []):
        own = xy[codes == c]
        if len(own):
            a, b = np.median(own, axis=0)
            words.append(
                tag(
                    "text",
                    name,
                    x=f"{a:.1f}",
                    y=f"{b + 6:.1f}",
                    class_="mark",
                    text_anchor="middle",
                )
            )
    box = f"0 0 {width:.0f} {height:.0f}"
    return tag("svg", tag("title", label), dots, words, class_="map", viewBox=box, role="img")
