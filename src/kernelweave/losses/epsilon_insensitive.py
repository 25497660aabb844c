"""The epsilon-insensitive loss of support vector regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, Loss


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """The loss ``cost * max(0, |y - f| - epsilon)``."""

    epsilon: float = 0.1  # residuals up to this cost nothing
    fit_intercept: bool = True  # whether to add a bias to every output

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        return DualBox(-cost, cost, np.zeros_like(cost), self.epsilon)

    def linear(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        return float(np.vdot(Y, dual_coef) - self.epsilon * np.abs(dual_coef).sum())
