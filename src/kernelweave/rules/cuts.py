"""Where to cut a column of numbers."""

from __future__ import annotations

import math

import numpy as np

from kernelweave._types import Floats


def place_cuts(numbers: Floats, n_cuts: int, strategy: str) -> list[float]:
    """Return up to ``n_cuts`` thresholds between the distinct values of a column, ascending.

    With k distinct values there are ``min(n_cuts, k - 1)``. The wanted places, quantiles
    ``j / (n_cuts + 1)`` or equal steps from the smallest to the largest value, are moved one
    after the other to the nearest midpoint between neighbouring values that is still free.

    Parameters
    ----------
    numbers : ndarray of shape (n_samples,)
        NaN is left out.
    n_cuts : int
        How many at most.
    strategy : {"quantile", "uniform"}
        Which places are wanted.
    """
    ordered = np.sort(numbers[~np.isnan(numbers)])
    first = np.flatnonzero(ordered[1:] != ordered[:-1])  # last row of each value but the largest
    low, high = ordered[first], ordered[first + 1]
    if len(first) <= n_cuts:
        return [cut_between(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    shares = np.arange(1, n_cuts + 1) / (n_cuts + 1)
    if strategy == "quantile":
        at = shares * (len(ordered) - 1)
        below = at.astype(np.intp)  # numpy's quantile would overflow for numbers around 1e308
        part = at - below
        wanted = ordered[below] * (1 - part) + ordered[below + 1] * part
    else:
        wanted = ordered[0] * (1 - shares) + ordered[-1] * shares
    chosen = _nearest_free(low / 2 + high / 2, wanted)
    return [cut_between(float(low[i]), float(high[i])) for i in chosen]


def _nearest_free(middles: Floats, wanted: Floats) -> list[int]:
    """Return for each wanted place the nearest middle that is not taken yet; sorted."""
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
