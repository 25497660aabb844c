"""Learners for one fixed kernel."""

from .base import Curvature, DualShape, Machine, Solution
from .ridge import Square
from .support import EpsilonInsensitive, Hinge, Huber

__all__ = [
    "Curvature",
    "DualShape",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Machine",
    "Solution",
    "Square",
]
