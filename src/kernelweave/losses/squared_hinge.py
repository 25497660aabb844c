"""The squared hinge loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, Loss


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """The loss ``cost / 2 * max(0, 1 - y f)^2``; targets are +-1.

    Its coefficients have no upper bound. None exceeds the box used here, because the objective at
    the solution is at most that of the zero function, ``sum(cost) / 2``.
    """

    fit_intercept: bool = True  # whether to add a bias to every output
    bounded = False

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        zero = np.zeros_like(cost)
        limit = 1.1 * np.sqrt(cost * cost.sum(axis=0))
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0)
        return DualBox(np.where(Y > 0, zero, -limit), np.where(Y > 0, limit, zero), ridge)
