"""Values at which the effect of a column is computed, and tables in which it takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats, Indices
from kernelweave._validation import is_frame, is_missing
from kernelweave.io.dates import read_times

MOST_LEVELS = 12  # categories of a column that are shown, the most frequent ones
_RANGE = (0.05, 0.95)  # quantiles between which numbers are shown
_MICROSECONDS = 86_400e6  # of a day


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of one column.

    Parameters
    ----------
    name : str
        Name of the column.
    position : int
        Its position in the table.
    kind : {"number", "date", "category"}
        How the values are drawn.
    values : ndarray of shape (n_points,)
        Numbers, times, or categories (the most frequent first, None for a missing value).
    places : ndarray of shape (n_points,)
        Where they stand on an axis: numbers, days since 1970, or 0, 1, 2, ...
    rows : ndarray of shape (n_background,)
        The same for the rows of the background; NaN where no place is known.
    cells : series or ndarray of shape (n_points,)
        The values as the table holds them.
    """

    name: str
    position: int
    kind: Literal["number", "date", "category"]
    values: NDArray[Any]
    places: Floats
    rows: Floats
    cells: Any

    def __len__(self) -> int:
        return len(self.places)

    def filled(self, table: Any, rows: Indices, points: Indices) -> Any:
        """Return ``table[rows]`` with this column at the given points of the grid."""
        if not is_frame(table):
            taken = np.array(table[rows])
            taken[:, self.position] = self.cells[points]
            return taken
        frame = nw.from_native(table, eager_only=True)
        return nw.to_native(frame[rows].with_columns(self.cells[points]))


def make_grid(
    table: Any,
    position: int,
    name: str,
    n_points: int,
    *,
    date_format: str | None = None,
    cuts: Sequence[float] = (),
) -> Grid:
    """Return the values of one column of a table.

    Parameters
    ----------
    table : ndarray or data frame
        The background.
    position : int
        Which column.
    name : str
        Its name.
    n_points : int
        Most values of a column of numbers or dates.
    date_format : str or None
        Format of a column of dates that are text.
    cuts : sequence of float
        Thresholds of a step function, on both sides of which a number is added.
    """
    column = _column(table, position)
    values = column.to_list() if isinstance(column, nw.Series) else column.tolist()
    numbers = _numbers(column)
    if numbers is not None:
        points = _points(numbers, n_points, cuts)
        whole = not cuts and bool((numbers[np.isfinite(numbers)] % 1 == 0).all())
        points = np.unique(np.round(points)) if whole else points
        return Grid(name, position, "number", points, points, numbers, _like(column, points))
    times = _times(name, column, values, date_format)
    if times is not None:
        days = np.where(np.isnat(times), np.nan, times.astype(np.int64) / _MICROSECONDS)
        wanted = _points(days, n_points, ())
        known = np.flatnonzero(np.isfinite(days))
        # Dates of the data next to the wanted ones: the table keeps its own form of dates.
        near = [known[np.argmin(np.abs(days[known] - day))] for day in wanted]
        index = np.array(sorted(set(near), key=lambda i: days[i]), dtype=np.intp)
        return Grid(name, position, "date", times[index], days[index], days, column[index])
    return _levels(name, position, column, values)


def _column(table: Any, position: int) -> Any:
    if is_frame(table):
        return nw.from_native(table, eager_only=True)[:, position]
    return table[:, position]


def _numbers(column: Any) -> Floats | None:
    """Return a column of numbers as floats, NaN where values are missing; None for others."""
    if isinstance(column, nw.Series):
        if not column.dtype.is_numeric():
            return None
        return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if column.dtype.kind in "fiu":
        return np.asarray(column, dtype=np.float64)
    known = [v for v in column.tolist() if not is_missing(v)]
    if column.dtype.kind != "O" or any(isinstance(v, str | bool) for v in known) or not known:
        return None
    try:
        return np.array([np.nan if is_missing(v) else float(v) for v in column.tolist()])
    except (TypeError, ValueError):
        return None


def _times(name: str, column: Any, values: list[Any], form: str | None) -> Any:
    """Return a column of dates as times; None for others."""
    dated = isinstance(column, nw.Series) and column.dtype in (nw.Date, nw.Datetime)
    if not dated and form is None and not isinstance(column, nw.Series):
        dated = column.dtype.kind == "M"
    if not dated and form is None:
        return None
    return read_times(name, [None if is_missing(v) else v for v in values], form)


def _points(numbers: Floats, n_points: int, cuts: Sequence[float]) -> Floats:
    """Return values between the 5 and 95 % quantiles; all where they are few."""
    known = numbers[np.isfinite(numbers)]
    distinct = np.unique(known)
    if len(distinct) == 0:
        return np.full(1, np.nan)
    low, high = np.quantile(known, _RANGE, method="nearest")
    if cuts:
        # Between its thresholds a step function is constant, with linear terms a straight line.
        inner = np.unique([cut for cut in cuts if low <= cut < high])
        return np.unique(np.concatenate([[low, high], inner, np.nextafter(inner, np.inf)]))
    if len(distinct) <= n_points:
        return distinct
    if low == high:
        return np.unique(np.quantile(known, np.linspace(0.0, 1.0, n_points), method="nearest"))
    return np.linspace(low, high, n_points)


def _like(column: Any, points: Floats) -> Any:
    """Return points as a column of the table they come from."""
    if not isinstance(column, nw.Series):
        return points
    if column.dtype.is_integer() and (points % 1 == 0).all():
        values: list[Any] = [int(point) for point in points]
        return nw.new_series(column.name, values, column.dtype, backend=column.implementation)
    dtype = column.dtype if column.dtype.is_float() else nw.Float64()
    return nw.new_series(column.name, points.tolist(), dtype, backend=column.implementation)


def _levels(name: str, position: int, column: Any, values: list[Any]) -> Grid:
    """Return the most frequent categories."""
    first: dict[Any, int] = {}
    counts: dict[Any, int] = {}
    plain = [None if is_missing(value) else value for value in values]
    for row, value in enumerate(plain):
        first.setdefault(value, row)
        counts[value] = counts.get(value, 0) + 1
    kept = sorted(first, key=lambda value: (-counts[value], first[value]))[:MOST_LEVELS]
    place = {value: float(k) for k, value in enumerate(kept)}
    levels = np.empty(len(kept), dtype=object)
    levels[:] = kept
    rows = np.array([place.get(value, np.nan) for value in plain])
    cells = column[np.array([first[value] for value in kept], dtype=np.intp)]
    return Grid(name, position, "category", levels, np.arange(float(len(kept))), rows, cells)
