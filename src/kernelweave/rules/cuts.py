"""Thresholds that cut a column of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats


def count_values(numbers: NDArray[Any], weight: Floats | None) -> tuple[NDArray[Any], Floats]:
    """Return the distinct values of a column, ascending and without NaN, and their weights."""
    known = numbers == numbers
    if weight is None:
        values, counts = np.unique(numbers[known], return_counts=True)
        return values, counts.astype(np.float64)
    values, places = np.unique(numbers[known], return_inverse=True)
    return values, np.bincount(places, weight[known], len(values)).astype(np.float64)


def cut_values(values: Floats, counts: Floats, n_cuts: int, strategy: str) -> list[float]:
    """Return ``min(n_cuts, k - 1)`` ascending thresholds between k distinct values.

    Each lies midway between two neighbouring values. With "quantile" the wanted cuts have the
    shares ``j / (n_cuts + 1)`` of the rows below them, which any increasing function of the column
    leaves as they are; with "uniform" they lie in equal steps from the smallest to the largest
    value. One wanted cut after the other takes the nearest gap that is still free. Values are
    ascending; counts are the summed weights of their rows.
    """
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


def _nearest_free(middles: Floats, wanted: Floats) -> list[int]:
    """Return for each wanted place the nearest free cut; sorted."""
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
    """Return a short decimal near the middle that separates ``low`` from ``high``.

    ``low <= cut < high`` always; both are strict unless the two are neighbouring floats. The cut
    is the middle to within a hundredth of the distance.
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
