"""Sets of kernel weights."""

from .base import WeightSet
from .fixed import Uniform
from .lp import LpBall
from .simplex import Simplex

__all__ = ["LpBall", "Simplex", "Uniform", "WeightSet"]
