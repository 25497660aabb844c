"""Loss functions: value, conjugate, box of the dual variable, curvature."""

from .base import DualBox, Loss
from .cvar_hinge import CVaRHinge
from .epsilon_insensitive import EpsilonInsensitive
from .hinge import Hinge
from .huber import Huber
from .smoothed import Smoothed
from .square import Square
from .squared_hinge import SquaredHinge

__all__ = [
    "CVaRHinge",
    "DualBox",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Loss",
    "Smoothed",
    "Square",
    "SquaredHinge",
]
