"""Weights in the unit lp ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import WeightSet, lp_norm


@dataclass(frozen=True)
class LpBall(WeightSet):
    """Non-negative weights whose lp norm is at most one (Kloft et al. 2011)."""

    p: float = 2.0  # 1 favours few kernels; large values approach equal weights

    @property
    def dual_exponent(self) -> float:
        """The exponent of the dual norm."""
        return np.inf if self.p == 1 else self.p / (self.p - 1)

    def start(self, n_kernels: int) -> Floats:
        return np.full(n_kernels, n_kernels ** (-1.0 / self.p))

    def update(self, theta: Floats, norms: Floats) -> Floats:
        top = norms.max(initial=0.0)
        if top <= 0.0:
            return theta
        return self.normalise((norms / top) ** (2.0 / (self.p + 1.0)))

    def normalise(self, weights: Floats) -> Floats:
        return np.asarray(weights / lp_norm(weights, self.p))

    def penalty(self, norms: Floats) -> float:
        return 0.5 * lp_norm(norms, 2.0 * self.p / (self.p + 1.0)) ** 2

    def support_value(self, quadratic_forms: Floats) -> float:
        return lp_norm(quadratic_forms, self.dual_exponent)
