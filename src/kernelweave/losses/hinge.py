"""The hinge loss of support vector classification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, Loss


@dataclass(frozen=True)
class Hinge(Loss):
    """The loss ``cost * max(0, 1 - y f)``; targets are +-1."""

    fit_intercept: bool = True  # whether to add a bias to every output

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        zero = np.zeros_like(cost)
        return DualBox(np.where(Y > 0, zero, -cost), np.where(Y > 0, cost, zero), zero)
