"""The square loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, InnerSolver, Loss, Tangent


@dataclass(frozen=True)
class Square(Loss):
    """The loss ``cost / 2 * (y - f)^2`` of kernel ridge regression."""

    fit_intercept: bool = True  # whether to add a bias to every output
    inner_solver = InnerSolver.LINEAR_SYSTEM
    bounded = False

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        present = cost > 0
        limit = np.where(present, np.inf, 0.0)
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=present)
        return DualBox(-limit, limit, ridge)

    def value(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        residual = Y - fitted
        bias = np.zeros(Y.shape[1])
        if self.fit_intercept:
            weight = cost.sum(axis=0)
            for _ in range(2):  # the second time corrects the rounding of the first mean
                total = (cost * (residual - bias)).sum(axis=0)
                bias += np.divide(total, weight, out=np.zeros_like(bias), where=weight > 0)
        return float(0.5 * (cost * (residual - bias) ** 2).sum()), bias

    def tangent(
        self, fitted: Floats, Y: Floats, cost: Floats, near: Floats | None = None
    ) -> Tangent:
        value, bias = self.value(fitted, Y, cost)
        return Tangent(value, bias, cost * (Y - fitted - bias), cost)

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        return float(0.5 * (cost * Y**2).sum())

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        present = cost > 0
        dual_coef = np.where(present, dual_coef, 0.0)
        if self.fit_intercept:
            counts = np.maximum(present.sum(axis=0), 1)
            dual_coef -= np.where(present, dual_coef.sum(axis=0) / counts, 0.0)
        return dual_coef
