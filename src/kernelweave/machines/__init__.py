"""Learners for one fixed kernel."""

from .base import Curvature, DualShape, Machine, Solution
from .capped import CappedHinge
from .radius import Chapelle, Criterion, Do, Judged, RadiusMargin
from .ridge import Square
from .support import EpsilonInsensitive, Hinge, Huber, SquaredHinge
from .tasks import solve_tasks

__all__ = [
    "CappedHinge",
    "Chapelle",
    "Criterion",
    "Curvature",
    "Do",
    "DualShape",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Judged",
    "Machine",
    "RadiusMargin",
    "Solution",
    "Square",
    "SquaredHinge",
    "solve_tasks",
]
