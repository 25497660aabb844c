"""Where to cut a column of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats


def place_cuts(
    numbers: Floats, n_cuts: int, strategy: str, weight: Floats | None = None
) -> list[float]:
    """Return up to ``n_cuts`` thresholds between the distinct values of a column, ascending.

    With k distinct values there are ``min(n_cuts, k - 1)``, each midway between two neighbouring
    values. Wanted are cuts with the shares ``j / (n_cuts + 1)`` of the rows below them, or in equal
    steps from the smallest to the largest value; one after the other takes the nearest that is
    still free. Cuts at shares go along with every increasing function of the column.

    Parameters
    ----------
    numbers : ndarray of shape (n_samples,)
        NaN is left out.
    n_cuts : int
        How many at most.
    strategy : {"quantile", "uniform"}
        Which places are wanted.
    weight : ndarray of shape (n_samples,), optional
        Positive weights of the rows.
    """
    values, counts = count_values(numbers, weight)
    return cut_values(values, counts, n_cuts, strategy)


def count_values(numbers: NDArray[Any], weight: Floats | None) -> tuple[NDArray[Any], Floats]:
    """Return the distinct values of a column, ascending and without NaN, and their weights."""
    known = numbers == numbers
    if weight is None:
        values, counts = np.unique(numbers[known], return_counts=True)
        return values, counts.astype(np.float64)
    values, places = np.unique(numbers[known], return_inverse=True)
    return values, np.bincount(places, weight[known], len(values)).astype(np.float64)


def cut_values(values: Floats, counts: Floats, n_cuts: int, strategy: str) -> list[float]:
    """Return the thresholds of `place_cuts` for distinct values, ascending, and their weights."""
    low, high = values[:-1], values[1:]
    if len(low) <= n_cuts:
        return [cut_between(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    shares = np.arange(1, n_cuts + 1) / (n_cuts + 1)
    if strategy == "quantile":
        mass = np.cumsum(counts)
        chosen = _nearest_free(mass[:-1], shares * mass[-1])
    else:
        wanted = values[0] * (1 - shares) + values[-1] * shares
        chosen = _nearest_free(low / 2 + high / 2, wanted)
    return [cut_between(float(low[i]), float(high[i])) for i in chosen]


def _nearest_free(middles: Any, wanted: Floats) -> list[int]:
    """Return for each wanted place the nearest cut that is not taken yet; sorted."""
    taken = np.zeros(len(middles), dtype=bool)
    for place in wanted:
        right = int(np.searchsorted(middles, place))
        left = right - 1
        while left >= 0 and taken[left]:
            left -= 1
        while right < len(middles) and taken[right]:
            right += 1
        if left >= 0 and (right == len(middles) or place - middles[left] <= middles[right] - place):
            taken[left] = True
        else:
            taken[right] = True
    return [int(i) for i in np.flatnonzero(taken)]


def cut_between(low: float, high: float) -> float:
    """Return a short number near the middle that parts ``low`` from ``high``.

    ``low <= cut < high`` always, and both are strict unless the two are neighbouring floats.
    The cut is the middle to within a hundredth of the distance, which keeps it readable.
    """
    middle = low / 2 + high / 2  # the sum itself may overflow
    gap = high - low
    if 0 < gap < math.inf:
        try:
            short = round(middle, 2 + math.ceil(-math.log10(gap)))
        except OverflowError:
            short = middle
        if low < short < high:
            return short
    return middle if low <= middle < high else low
