"""A smoothed loss, for continuation on problems with large n."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats

from .base import DualShape, Machine
from .support import SupportMachine


@dataclass(frozen=True)
class Smoothed(SupportMachine):
    """Another loss, its corners replaced by parabolas that are ``width`` wide.

    It is nowhere larger than that loss, and coefficients feasible for one are so for the other:
    with these coefficients, the bounds differ by half of ``sum width / cost * dual_coef^2``.

    Parameters
    ----------
    machine : Machine
        The loss, with finite boxes.
    width : float
        In units of the targets.
    """

    machine: Machine
    width: float

    def __post_init__(self) -> None:
        for name in ("fit_intercept", "bounded"):
            object.__setattr__(self, name, getattr(self.machine, name))

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        shape = self.machine.shape(Y, cost)
        ridge = np.divide(self.width, cost, out=np.zeros_like(cost), where=cost > 0)
        return replace(shape, ridge=shape.ridge + ridge)

    def linear(self, dual_coef: Floats, Y: Floats) -> float:
        return self.machine.linear(dual_coef, Y)
