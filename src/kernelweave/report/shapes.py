"""Bars of importance and charts of shape functions, from plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelweave._summary import show_number
from kernelweave._text import clip

from .charts import Axis, Chart, Interval, linear

_LEVELS = 6  # categories of a shape function
_RUG = 60  # rows marked below a shape function
_DATES = 4  # ticks of an axis of dates
_TICKS = 10  # letters below a small chart
_MARGIN = 27.0  # per cent of the width of a small chart, for numbers


@dataclass(frozen=True)
class Bar:
    """A bar: name, value as text, length and ends of the error from 0 to 1."""

    name: str
    text: str
    length: float
    low: float | None = None
    high: float | None = None


def draw_importance(
    names: Sequence[str], means: Sequence[float], errors: Sequence[float]
) -> tuple[Bar, ...]:
    """Return bars with standard errors, in the given order."""
    top = max((mean + error for mean, error in zip(means, errors, strict=True)), default=0.0) or 1.0
    return tuple(
        Bar(
            name,
            _with_error(mean, error),
            mean / top,
            max(mean - error, 0.0) / top,
            (mean + error) / top,
        )
        for name, mean, error in zip(names, means, errors, strict=True)
    )


def _with_error(mean: float, error: float) -> str:
    """Return a number and its error with as many digits as the error has two."""
    if not error > 0:
        return show_number(mean)
    places = max(0, 1 - int(np.floor(np.log10(error))))
    if places > 6:
        return f"{mean:.2g} \u00b1 {error:.1g}"
    return f"{mean:,.{places}f} \u00b1 {error:,.{places}f}"


def draw_shape(
    name: str,
    points: Any,
    values: Any,
    errors: Any,
    axis: Axis,
    *,
    kind: str = "number",
    rows: Any = (),
    output: str = "",
) -> Chart:
    """Return the shape function of a column: a curve with a band, or a line for each category.

    ``points`` are numbers, days since 1970 or categories, ``errors`` half the width of the band,
    and ``axis`` that of the effect.
    """
    of = f", for {clip(output, 20)}" if output else ""
    heading = f"{clip(name, 28)}{of}"
    spoken = f"Effect of {clip(name)}{of}, from {values.min():.3g} to {values.max():.3g}."
    if kind == "category":
        kept = range(min(len(points), _LEVELS))
        levels = [
            Interval(
                clip(str(points[i]), 24),
                float(values[i]),
                float(values[i] - errors[i]),
                float(values[i] + errors[i]),
                np.empty(0),
            )
            for i in kept
        ]
        more = f"{len(points) - len(kept)} rarer values are not shown." if len(points) > 6 else ""
        step = axis.ticks[1][0] - axis.ticks[0][0]
        ticks = [tick for tick in axis.ticks if round(tick[0] / step) % 2 == 0]  # zero among them
        return Chart(
            replace(axis, ticks=ticks),
            spoken,
            more,
            heading=heading,
            intervals=levels,
            upright=(0.0, ""),
            step=34.0,
            height=34.0 * len(levels) + 54.0,
        )
    low, high = float(points[0]), float(points[-1])
    ticks = _dates(low, high) if kind == "date" else list(linear(low, high).ticks)
    ticks = [tick for tick in ticks if low <= tick[0] <= high]
    while sum(len(text) for _, text in ticks) > _TICKS and len(ticks) > 1:
        ticks = ticks[::2]
    inside = np.asarray(rows, dtype=np.float64)
    inside = np.unique(inside[(inside >= low) & (inside <= high)])
    some = inside[np.linspace(0, len(inside) - 1, min(len(inside), _RUG)).round().astype(int)]
    return Chart(
        Axis(low, high, ticks),
        spoken,
        "",
        y=axis,
        heading=heading,
        height=170.0,
        margin=_MARGIN,
        line=(points, values),
        band=(points, values - errors, values + errors),
        reference=(np.array([low, high]), np.zeros(2)),
        rug=some,
    )


def _dates(low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks at the start of years, or of months in a short time; days since 1970."""
    letters = {"Y": 4, "M": 7, "D": 10}  # of a date that is shown
    ends = np.array([low, high]).astype(np.int64).astype("datetime64[D]")
    for unit in letters:
        first, last = ends.astype(f"datetime64[{unit}]")
        starts = np.arange(first, last + 1)
        if len(starts) > 3:
            break
    days = starts[:: -(-len(starts) // _DATES)].astype("datetime64[D]")
    return [(float(day.astype(int)), str(day)[: letters[unit]]) for day in days]
