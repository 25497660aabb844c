"""Leave-one-out ridge regression: over many kernels, and of one kernel in a learned metric."""

from .leave_one_out import RidgeAverage, average_ridges, default_ridges
from .metric_family import learned_metric

__all__ = ["RidgeAverage", "average_ridges", "default_ridges", "learned_metric"]
