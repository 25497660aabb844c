"""Assertions that say which promise is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave._types import Floats

ROUNDING = 1e-10  # relative; what reordered float64 sums may differ by


def require(holds: Any, message: str) -> None:
    """Raise an `AssertionError` with a message unless something holds."""
    if not holds:
        raise AssertionError(message)


def close(found: Any, expected: Any, allowed: Any, what: str) -> None:
    """Require equal shapes and entries no further apart than ``allowed``."""
    found, expected = np.asarray(found), np.asarray(expected)
    require(
        found.shape == expected.shape,
        f"{what}: the shape is {found.shape}, expected {expected.shape}.",
    )
    excess = np.abs(found - expected) - allowed
    if excess.size and not excess.max() <= 0:
        place = np.unravel_index(int(np.argmax(np.nan_to_num(excess, nan=np.inf))), excess.shape)
        at = f" at {tuple(map(int, place))}" if place else ""
        raise AssertionError(
            f"{what}: found {found[place]:.12g}, expected {expected[place]:.12g}{at}."
        )


def unchanged(array: Floats, work: Callable[[], Any], what: str) -> Any:
    """Call ``work`` and require that it left ``array`` alone."""
    before = array.copy()
    out = work()
    require(np.array_equal(array, before), f"{what} writes to its input.")
    return out
