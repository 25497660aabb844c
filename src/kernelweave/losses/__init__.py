"""Loss functions: value, conjugate, box of the dual variable, curvature."""

from .base import DualBox, Loss
from .cvar_hinge import CVaRHinge
from .epsilon_insensitive import EpsilonInsensitive
from .hinge import Hinge
from .huber import Huber
from .logistic import Logistic
from .quantile import Quantile
from .smoothed import Smoothed
from .softmax import Softmax
from .square import Square
from .squared_hinge import SquaredHinge

__all__ = [
    "CVaRHinge",
    "DualBox",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Quantile",
    "Smoothed",
    "Softmax",
    "Square",
    "SquaredHinge",
]
