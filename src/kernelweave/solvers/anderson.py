"""Safeguarded Anderson acceleration of alternating minimisation, and stall detection.

Alternating between the function and the kernel weights never raises the objective. Combining the
last steps so that their residuals cancel shortens the way; a combination that raises the objective
is replaced by the plain step it was made from.

References
----------
D. G. Anderson (1965), Iterative procedures for nonlinear integral equations, JACM 12.
J. Zhang, B. O'Donoghue, S. Boyd (2020), Globally convergent type-I Anderson acceleration for
nonsmooth fixed-point iterations, SIAM J. Optim. 30.
"""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats

# Chosen by hand.
_MEMORY = 6  # steps
_FARTHEST = 2.0  # how far a mixture may lie from the plain step in any coordinate (log weights)
_MAX_FAILED = 10  # inner solves without progress that missed their tolerance
_BACKWARD = 0.5  # share of the plain step that a mixture may take back


class Mixer:
    """Combines the last steps of a fixed-point map so that their residuals cancel."""

    def __init__(self) -> None:
        self.steps: list[Floats] = []
        self.residuals: list[Floats] = []

    def mix(self, point: Floats, step: Floats, importance: Floats) -> Floats:
        """Return the mixed step from ``point``, whose image is ``step``, in logarithms of weights.

        `importance` says how much the residual of each coordinate counts.
        """
        residual = importance * (step - point)
        steps, residuals = self.steps, self.residuals
        self.steps = [*steps, step][-_MEMORY:]
        self.residuals = [*residuals, residual][-_MEMORY:]
        if not steps:
            return step
        # Least squares: the share of every earlier step at which residuals cancel best.
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


class Alternation:
    """Mixed steps of alternating minimisation, with the plain step as a fallback.

    Every round, `fallback` is asked with the objective at the present point; if it returns None,
    `advance` gives the next one.
    """

    def __init__(self) -> None:
        self._mixer = Mixer()
        self._plain: Floats | None = None  # the safe step while a mixed one is tried
        self._accepted = np.inf

    def fallback(self, value: float, slack: float = 1e-12) -> Floats | None:
        """Return the plain step to take instead if the objective rose, relatively by the slack."""
        if self._plain is None or not value > self._accepted * (1.0 + slack):
            self._accepted = value
            return None
        plain, self._plain = self._plain, None
        self.restart()
        return plain

    def advance(
        self,
        point: Floats,
        plain: Floats,
        importance: Floats,
        *,
        mix: bool = True,
        keep: Floats | None = None,
    ) -> Floats:
        """Return the next point, in logarithms; see `Mixer.mix`.

        `keep` is what `fallback` returns if that is not the plain step in logarithms.
        """
        self._plain = plain if keep is None else keep
        return self._mixer.mix(point, plain, importance) if mix else plain

    def restart(self) -> None:
        """Forget earlier steps."""
        self._mixer = Mixer()


class Patience:
    """Detects a stall: the gap has not fallen by a factor within a number of inner solves.

    Inner solves that fail, one after the other, are a stall sooner: what they return is rounding.
    """

    def __init__(self, factor: float, limit: int) -> None:
        self.factor, self.limit = factor, limit
        self.gap, self.since = np.inf, 0  # at the last progress
        self.progressed = False
        self.failed = 0  # inner solves in a row that missed their tolerance

    def is_exhausted(self, gap: float, solves: int, solved: bool = True) -> bool:
        """Return whether the limit is reached; a gap below the factor restarts the count."""
        self.progressed = gap <= self.factor * self.gap
        if self.progressed:
            self.renew(gap, solves)
        self.failed = 0 if solved else self.failed + 1
        return not self.progressed and (solves - self.since >= self.limit or self.is_at_rounding)

    @property
    def is_at_rounding(self) -> bool:
        """Whether the last inner solves all failed."""
        return self.failed >= _MAX_FAILED

    def renew(self, gap: float, solves: int) -> None:
        """Restart the count here."""
        self.gap, self.since, self.failed = gap, solves, 0
