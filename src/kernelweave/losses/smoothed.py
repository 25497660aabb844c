"""A smoothed loss, for continuation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, Loss


@dataclass(frozen=True)
class Smoothed(Loss):
    """Another loss whose nondifferentiable points are replaced by parabolas of a given width.

    It is nowhere larger than that loss, and coefficients feasible for one are so for the other:
    with these coefficients, the bounds differ by half of ``sum width / cost * dual_coef^2``.
    """

    loss: Loss  # the loss, with finite boxes
    width: float  # in units of the targets

    def __post_init__(self) -> None:
        for name in ("fit_intercept", "bounded"):
            object.__setattr__(self, name, getattr(self.loss, name))

    def of_output(self, o: int) -> Smoothed:
        return replace(self, loss=self.loss.of_output(o))

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        box = self.loss.box(Y, cost)
        ridge = np.divide(self.width, cost, out=np.zeros_like(cost), where=cost > 0)
        return replace(box, ridge=box.ridge + ridge)

    def linear(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        return self.loss.linear(dual_coef, Y, cost)
