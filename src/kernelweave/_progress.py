"""One line on the terminal that shows how far a fit has come."""

from __future__ import annotations

import math
import sys
import time
from types import TracebackType
from typing import Self

from kernelweave.solvers import Step


class Progress:
    """A bar from the first gap to the tolerance, rewritten in place; silent unless asked.

    Parameters
    ----------
    verbose : int
        0 is silent.
    tol : float
        The relative gap that fills the bar.
    """

    def __init__(self, verbose: int, tol: float) -> None:
        self.verbose, self.tol = verbose, tol
        self.began = time.monotonic()
        self.shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            sys.stderr.write("\n")

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if not self.verbose:
            return
        gap = min(max(step.relative_gap, 1e-16), 1.0)
        done = min(1.0, math.log(gap) / math.log(min(self.tol, 0.1)))
        bar = "#" * round(20 * done)
        seconds = time.monotonic() - self.began
        state = f"gap {step.relative_gap:.1e} of {self.tol:.0e}"
        if not math.isfinite(step.lower):  # no bound is known, so there is no gap
            bar, state = "." * (step.solves % 21), f"value {step.upper:.6g}"
        text = f"{state}, {step.solves} solves, {seconds:.1f} s"
        sys.stderr.write(f"\rkernelweave [{bar:<20}] {text}")
        sys.stderr.flush()
        self.shown = True
