"""How far rows lie apart, as default widths need it: outliers do not count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelweave._types import Bools, Floats
from kernelweave.errors import warn

from .base import Rows, is_sparse

_FAR = 20.0  # interquartile ranges beyond the quartiles at which values are cut off
_ABSURD = 1e6  # interquartile ranges beyond which a value is reported


def clip_outliers(rows: Floats, weight: Floats | None = None) -> tuple[Floats, Bools]:
    """Cut off values far outside the quartiles of their column.

    Ordinary columns stay as they are. The interquartile range of a column that is mostly one value
    is zero; the median distance of its other values stands in for it. Returned are the rows, the
    same array where nothing is cut off, and which columns have a value a million interquartile
    ranges away.
    """
    absurd = np.zeros(rows.shape[1], dtype=bool)
    if not len(rows):
        return rows, absurd
    with np.errstate(over="ignore"):
        low, high = quantiles(rows, [0.25, 0.75], weight)
        ranges = high - low
        for j in np.flatnonzero(ranges == 0).tolist():
            differs = rows[:, j] != low[j]
            other = np.flatnonzero(differs if weight is None else differs & (weight > 0))
            if len(other):
                distance = np.abs(rows[other, j] - low[j])
                ranges[j] = quantiles(distance, 0.5, None if weight is None else weight[other])
        beyond = np.maximum(low - rows.min(axis=0), rows.max(axis=0) - high)
        absurd = (ranges > 0) & (beyond > _ABSURD * ranges)
        if not (beyond > _FAR * ranges).any():
            return rows, absurd
        return np.clip(rows, low - _FAR * ranges, high + _FAR * ranges), absurd


def quantiles(values: Floats, q: float | Sequence[float], weight: Floats | None) -> Floats:
    """Return quantiles of columns, of the definition by which a weight of two is two rows."""
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    return np.asarray(np.quantile(values, q, axis=0, weights=weight, method="inverted_cdf"))


def warn_of_outliers(columns: Sequence[str | int]) -> None:
    """Warn of columns with values a million interquartile ranges away."""
    if not columns:
        return
    names = [repr(column) for column in columns]
    listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    warn(
        f"X: column{'s' if len(names) > 1 else ''} {listed}: some values are more than a million "
        "interquartile ranges away from the others; default widths do not count them. "
        "Hint: look for codes of missing values such as 1e9, or use scikit-learn's "
        "QuantileTransformer."
    )


def column_deviations(rows: Floats, weight: Floats | None) -> Floats:
    """Return the standard deviation of every column, infinite for constant ones.

    Gaps (NaN) do not count.
    """
    if np.isnan(rows).any():
        parts = []
        for column in rows.T:
            known = ~np.isnan(column)
            own = None if weight is None else weight[known]
            parts.append(column_deviations(column[known][:, None], own))
        return np.concatenate(parts)
    share = np.full(len(rows), 1.0 / len(rows)) if weight is None else weight / weight.sum()
    rows, _ = clip_outliers(rows, weight)
    unit = np.abs(rows).max(axis=0, initial=0.0)
    unit[unit == 0] = 1.0  # squares of tiny or huge entries must not vanish or overflow
    deviations = np.sqrt(share @ (rows / unit - share @ (rows / unit)) ** 2) * unit
    # What rounding leaves of a constant column is no scale.
    return np.where(deviations <= 1e-12 * unit, np.inf, deviations)


def typical_distance(
    rows: Rows, weight: Floats | None, columns: Sequence[str | int] | None = None
) -> float:
    """Return the root mean squared distance between two rows, or 1 if it is 0.

    A mean and not a median, so that a weight of two is the same as a row given twice. Outliers in
    dense rows are cut off first; where ``columns`` are named, absurd ones are reported. Gaps (NaN)
    do not count.
    """
    if not is_sparse(rows) and np.isnan(rows).any():
        # The squared distance is a sum over columns; each has the rows that are known in it.
        parts = []
        for j, column in enumerate(rows.T):
            known = ~np.isnan(column) if weight is None else ~np.isnan(column) & (weight > 0)
            own = None if weight is None else weight[known]
            label = None if columns is None else columns[j : j + 1]
            parts.append(_root_mean_square(column[known][:, None], own, label))
        return float(np.linalg.norm(parts)) or 1.0
    if is_sparse(rows) and np.isnan(rows.data).any():
        rows = rows.copy()
        rows.data[np.isnan(rows.data)] = 0.0
    return _root_mean_square(rows, weight, columns) or 1.0


def _root_mean_square(
    rows: Rows, weight: Floats | None, columns: Sequence[str | int] | None
) -> float:
    n = rows.shape[0]
    if not n:
        return 0.0
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    if not is_sparse(rows):
        rows, absurd = clip_outliers(rows, weight)
        if columns is not None:
            warn_of_outliers([columns[j] for j in np.flatnonzero(absurd).tolist()])
    # Measured in units of the largest entry, so that squares neither overflow nor vanish.
    unit = float(abs(rows).max()) or 1.0
    rows = rows / unit
    means = share @ rows
    squares = share @ (rows.power(2) if is_sparse(rows) else (rows - means) ** 2)
    variance = squares - means**2 if is_sparse(rows) else squares
    return float(np.sqrt(2.0 * max(float(variance.sum()), 0.0))) * unit
