"""Progress of a fit: a line on the terminal, or calls of a listener."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from kernelweave.solvers import Step


class Listener(Protocol):
    """Receives every step of all fits in a block of `listening`."""

    def step(self, step: Step, tol: float) -> None:
        """Receive a step of a fit that stops at a relative gap of ``tol``."""

    def count(self, done: int, total: int) -> None:
        """Receive the number of finished parts of a fit."""


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass the steps of all fits in this block to a listener, whatever their ``verbose``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Progress:
    """A bar from the first gap to the tolerance, rewritten in place; silent if not ``verbose``."""

    def __init__(self, verbose: int, tol: float) -> None:
        self.verbose, self.tol = verbose, tol
        self.began = time.monotonic()
        self.shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
    """Counts finished parts of a fit, named by ``noun``; silent if not ``verbose``."""

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
