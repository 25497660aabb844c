"""Solvers of the problem with one fixed kernel."""

from .curvature import Curvature, weight_curvature
from .multitask import solve_multitask
from .smo import MAX_FREE
from .solution import Solution, unsolved
from .solve import solve_inner

__all__ = [
    "MAX_FREE",
    "Curvature",
    "Solution",
    "solve_inner",
    "solve_multitask",
    "unsolved",
    "weight_curvature",
]
