"""Leave-one-out ridge regression: over many kernels, and of one kernel in a learned metric."""

from typing import TYPE_CHECKING, Any

from .metric_family import learned_metric

if TYPE_CHECKING:
    from .leave_one_out import RidgeAverage, average_ridges, default_ridges

__all__ = ["RidgeAverage", "average_ridges", "default_ridges", "learned_metric"]


def __getattr__(name: str) -> Any:
    """Import the ridges over many kernels when they are used: learned metrics need no bank."""
    if name not in __all__:
        raise AttributeError(f"module 'kernelweave.ridge' has no attribute {name!r}")
    from . import leave_one_out

    return getattr(leave_one_out, name)
