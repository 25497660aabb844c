"""Anderson mixing of fixed-point steps."""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats

_MEMORY = 6
_FARTHEST = 2.0  # how far a mixture may lie from the plain step in any coordinate
_BACKWARD = 0.5  # share of the plain step that a mixture may take back


class Mixer:
    """Combines the last steps of a fixed-point map so that their residuals cancel."""

    def __init__(self) -> None:
        self.steps: list[Floats] = []
        self.residuals: list[Floats] = []

    def mix(self, point: Floats, step: Floats, importance: Floats) -> Floats:
        """Return the mixed step from ``point``, whose image is ``step``.

        Parameters
        ----------
        point, step : ndarray of shape (n,)
            Logarithms of weights, before and after.
        importance : ndarray of shape (n,)
            How much the residual of each coordinate counts.
        """
        residual = importance * (step - point)
        steps, residuals = self.steps, self.residuals
        self.steps = [*steps, step][-_MEMORY:]
        self.residuals = [*residuals, residual][-_MEMORY:]
        if not steps:
            return step
        differences = np.array([residual - r for r in residuals])
        gram = differences @ differences.T
        gram += 1e-8 * np.trace(gram) * np.eye(len(gram))
        if not np.trace(gram) > 0:
            return step
        share = np.linalg.lstsq(gram, differences @ residual, rcond=None)[0]
        further = -share @ np.array([step - s for s in steps])
        if residual @ (importance * further) < -_BACKWARD * (residual @ residual):
            further = -further  # steps grow, away from a point that they would never reach
        # The fit says little about small weights, so it may not carry them far.
        return np.asarray(step + np.clip(further, -_FARTHEST, _FARTHEST))
