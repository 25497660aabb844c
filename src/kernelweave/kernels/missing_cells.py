"""Cells without a value: NaN, NaT, None, pandas' NA, and masked entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Indices


def missing_rows(column: NDArray[Any]) -> Indices:
    """Return the rows without a value; a value that cannot be hashed is a TypeError."""
    if column.dtype.kind in "fcmM":
        return np.flatnonzero(column != column)
    if column.dtype != object:
        return np.empty(0, dtype=np.intp)
    values = column.tolist()
    # NaN and NaT differ from themselves; the comparison of pandas' NA has no truth value.
    missing = {
        id(value)
        for value in set(values)
        if value is None or type(value).__name__ == "NAType" or value != value
    }
    if not missing:
        return np.empty(0, dtype=np.intp)
    # Equal NaNs may be different objects, of which a set holds each.
    return np.array([i for i, value in enumerate(values) if id(value) in missing], dtype=np.intp)
