"""Huber's loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, Loss


@dataclass(frozen=True)
class Huber(Loss):
    """Half the squared residual up to a threshold, linear beyond, times ``cost``."""

    threshold: float = 0.1  # residual at which the loss becomes linear
    fit_intercept: bool = True  # whether to add a bias to every output

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        limit = self.threshold * cost
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0)
        return DualBox(-limit, limit, ridge)
