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


def place(axis: Axis, value: float) -> str:
    """Return a horizontal place in per cent."""
    return f"{_LEFT + (_RIGHT - _LEFT) * float(axis.at(value)):.2f}%"


def frame(x: Axis, y: Axis | None, height: float, x_title: str, marks: Any, label: str) -> Markup:
    """Return marks between axes; titles of the vertical axis belong into the words below."""
    floor = height - 2 * _LINE
    lines = [] if y is None else [_grid(y, value, text, floor) for value, text in y.ticks]
    baseline = tag("line", x1=f"{_LEFT}%", x2=f"{_RIGHT}%", y1=floor, y2=floor, class_="axis")
    words = [
        tag(
            "text",
            text,
            x=place(x, value),
            y=floor + 16,
            class_="tick",
            text_anchor=_anchor(x, value),
        )
        for value, text in x.ticks
    ]
    title = tag("text", x_title, x=f"{_RIGHT}%", y=floor + 36, class_="title", text_anchor="end")
    inside = join([tag("title", label), lines, baseline, words, title, marks])
    return tag("svg", inside, class_="chart", width="100%", height=f"{height:.0f}", role="img")


def _anchor(axis: Axis, value: float) -> str:
    return "end" if axis.at(value) > 0.97 else "middle"


def _grid(y: Axis, value: float, text: str, floor: float) -> Markup:
    at = f"{height_of(y, value, floor):.1f}"
    line = tag("line", x1=f"{_LEFT}%", x2=f"{_RIGHT}%", y1=at, y2=at, class_="grid")
    return join([line, tag("text", text, x="0", y=float(at) + 4, class_="tick")])


def height_of(y: Axis, value: Any, floor: float) -> Any:
    """Return vertical places in pixels."""
    return floor - (floor - _TOP) * y.at(value)


def lines(
    x: Axis, y: Axis, series: Sequence[tuple[str, Floats, Floats]], height: float = 260
) -> Markup:
    """Return broken lines with a dot at every point; each has a class, places and values."""
    floor = height - 2 * _LINE
    out = []
    for kind, xs, ys in series:
        across = _LEFT + (_RIGHT - _LEFT) * x.at(xs)
        down = height_of(y, ys, floor)
        points = " ".join(f"{a:.2f},{b:.1f}" for a, b in zip(across, down, strict=True))
        # Only lines are stretched to the width of the window; dots and letters keep their shape.
        stretched = tag(
            "svg",
            tag(
                "polyline", points=points, class_=f"line {kind}", vector_effect="non-scaling-stroke"
            ),
            width="100%",
            height=f"{height:.0f}",
            viewBox=f"0 0 100 {height:.0f}",
            preserveAspectRatio="none",
        )
        dots = [
            tag("circle", cx=f"{a:.2f}%", cy=f"{b:.1f}", r=3, class_=f"dot {kind}")
            for a, b in zip(across, down, strict=True)
        ]
        out.append(join([stretched, dots if len(dots) <= 60 else None]))
    return join(out)


def level(y: Axis, value: float, text: str, height: float = 260) -> Markup:
    """Return a dashed line across the plot, with its name."""
    at = height_of(y, value, height - 2 * _LINE)
    line = tag(
        "line", x1=f"{_LEFT}%", x2=f"{_RIGHT}%", y1=f"{at:.1f}", y2=f"{at:.1f}", class_="level"
    )
    words = tag("text", text, x=f"{_LEFT + 0.5}%", y=f"{at - 6:.1f}", class_="tick strong")
    return join([line, words])


def upright(x: Axis, value: float, text: str, height: float) -> Markup:
    """Return a dashed line from top to bottom, with its name."""
    at, right = place(x, value), x.at(value) > 0.6
    line = tag("line", x1=at, x2=at, y1=_TOP - 4, y2=height - 2 * _LINE, class_="level")
    shift = {"dx": -6, "text_anchor": "end"} if right else {"dx": 6}
    return join([line, tag("text", text, x=at, y=_TOP + 6, class_="tick strong", **shift)])


def histogram(
    x: Axis, edges: Floats, counts: Floats, top: float, kind: str, height: float
) -> Markup:
    """Return bars that stand on the axis."""
    floor = height - 2 * _LINE
    bars = []
    for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
        a, b = (_LEFT + (_RIGHT - _LEFT) * float(x.at(v)) for v in (left, right))
        tall = (floor - _TOP) * float(count) / (top or 1.0)
        if count:
            bars.append(
                tag(
                    "rect",
                    x=f"{a + 0.1:.2f}%",
                    y=f"{floor - tall:.1f}",
                    width=f"{max(b - a - 0.2, 0.1):.2f}%",
                    height=f"{tall:.1f}",
                    class_=f"column {kind}",
                )
            )
    return join(bars)


def intervals(rows: Sequence[tuple[str, float, float, float, Floats]], x: Axis) -> Markup:
    """Return one line of picture for each score: name, mean, ends of its interval, and folds."""
    step = 58.0
    marks = []
    for k, (name, mean, low, high, folds) in enumerate(rows):
        at = _TOP + 30 + step * k
        marks += [
            tag("text", name, x=f"{_LEFT}%", y=at - 16, class_="name"),
            tag("line", x1=place(x, low), x2=place(x, high), y1=at, y2=at, class_="interval"),
            [tag("circle", cx=place(x, fold), cy=at, r=3, class_="fold") for fold in folds],
            tag("circle", cx=place(x, mean), cy=at, r=5.5, class_="dot main"),
        ]
    height = _TOP + step * len(rows) + 2 * _LINE + 4
    words = "; ".join(f"{name}: {m:.3g}, interval {a:.3g} to {b:.3g}" for name, m, a, b, _ in rows)
    return frame(x, None, height, "", marks, words)


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
    for c, name in enumerate(names):
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
