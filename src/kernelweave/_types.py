"""Aliases shared by every layer."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Stored: TypeAlias = NDArray[np.floating[Any]]  # float64, or float32 where memory matters
Indices: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]
