"""How far a fit has come: one line on the terminal, or news for whoever listens."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol, Self

from kernelweave.solvers import Step


class Listener(Protocol):
    """Is told of every step of every fit while it listens."""

    def step(self, step: Step, tol: float) -> None:
        """Hear of a step of a fit that stops at a relative gap of ``tol``."""

    def count(self, done: int, total: int) -> None:
        """Hear of a part of a fit that consists of ``total`` parts."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell someone of all fits in this block, whatever their ``verbose``.

    Parameters
    ----------
    listener : Listener
        Takes the place of the line on the terminal.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


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
        if (listener := _listener.get()) is not None:
            listener.step(step, self.tol)
            return
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


class Counter:
    """Counts parts of a fit, on the terminal or for a listener; silent unless asked.

    Parameters
    ----------
    verbose : int
        0 is silent.
    total : int
        How many parts there are.
    noun : str
        What they are called.
    """

    def __init__(self, verbose: int, total: int, noun: str) -> None:
        self.verbose, self.total, self.noun = verbose, total, noun
        self.done = 0

    def __call__(self) -> None:
        """Count one more."""
        self.done += 1
        if (listener := _listener.get()) is not None:
            listener.count(self.done, self.total)
        elif self.verbose:
            end = "\n" if self.done == self.total else ""
            sys.stderr.write(f"\rkernelweave: {self.done} of {self.total} {self.noun}{end}")
            sys.stderr.flush()
