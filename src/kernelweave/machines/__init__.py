"""Losses with the solvers of their problem for one fixed kernel."""

from .base import Curvature, DualShape, Machine, Solution
from .capped import CappedHinge
from .ridge import Square
from .support import EpsilonInsensitive, Hinge, Huber, SquaredHinge
from .tasks import solve_tasks

__all__ = [
    "CappedHinge",
    "Curvature",
    "DualShape",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Machine",
    "Solution",
    "Square",
    "SquaredHinge",
    "solve_tasks",
]
