"""The quantile (pinball) loss."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, Loss


@dataclass(frozen=True)
class Quantile(Loss):
    """The loss ``cost * max(level (y - f), (level - 1) (y - f))``, which a quantile minimises."""

    levels: tuple[float, ...] = (0.5,)  # one per output, or one for all outputs; each in (0, 1)
    fit_intercept: bool = True  # whether to add a bias to every output

    def of_output(self, o: int) -> Quantile:
        return replace(self, levels=(self.levels[o if len(self.levels) > 1 else 0],))

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        levels = np.array(self.levels)
        return DualBox((levels - 1.0) * cost, levels * cost, np.zeros_like(cost))
