"""Leave-one-out ridge regression over many kernels, exact and with Nystroem features."""

from .leave_one_out import RidgeAverage, average_ridges, default_ridges

__all__ = ["RidgeAverage", "average_ridges", "default_ridges"]
