"""Weights that are not learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import WeightSet


@dataclass(frozen=True)
class Uniform(WeightSet):
    """Equal weights that sum to one: the average kernel."""

    is_fixed = True

    def start(self, n_kernels: int) -> Floats:
        return np.full(n_kernels, 1.0 / n_kernels)

    def update(self, theta: Floats, norms: Floats) -> Floats:
        return theta

    def normalise(self, weights: Floats) -> Floats:
        return self.start(len(weights))

    def penalty(self, norms: Floats) -> float:
        return float(0.5 * len(norms) * (norms**2).sum())

    def support_value(self, quadratic_forms: Floats) -> float:
        return float(quadratic_forms.mean())
