"""Contracts of kernels, losses and weight sets, for whoever adds one.

Each function examines one object from outside, compares it with the definition or with plain NumPy,
and raises an `AssertionError` that names the broken promise. They need small inputs (up to a few
hundred rows) and no test framework.
"""

from .kernels import check_kernel
from .losses import check_loss
from .weights import check_weight_set

__all__ = [
    "check_kernel",
    "check_loss",
    "check_weight_set",
]
