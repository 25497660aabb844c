"""Progress of a command: the step, the duality gap and the time left, in one line."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .terminal import shown

if TYPE_CHECKING:
    from kernelweave.solvers import Step

_SURE = 0.05  # share of the work from which on the time left is estimated


class LiveDisplay:
    """Shows the steps of a command on a `rich.progress.Progress` and the gap within a fit."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.task = progress.add_task("reading the table", total=1.0, state="", left="")
        self.began, self.first_gap, self.stage = time.monotonic(), math.nan, 0.0

    def __call__(self, what: str, done: float) -> None:
        """Show a step, of which the share ``done`` is finished."""
        if done == 0.0:
            self.began = time.monotonic()
        self.first_gap, self.stage = math.nan, done
        self.progress.update(self.task, description=shown(what, 60), state="")
        self._show(done)

    def step(self, step: Step, tol: float) -> None:
        """Show the gap; without a bound, the value."""
        if not math.isfinite(step.lower):
            self.progress.update(self.task, state=f"value {step.upper:.4g}, {step.solves} solves")
            return
        gap = min(max(step.relative_gap, 1e-16), 1.0)
        self.progress.update(self.task, state=f"gap {gap:.1e}, to {tol:.0e}")
        if self.stage == 0.0 and "choosing" not in self.progress.tasks[self.task].description:
            if math.isnan(self.first_gap):
                self.first_gap = max(gap, 2 * tol)
            self._show(min(1.0, math.log(self.first_gap / gap) / math.log(self.first_gap / tol)))

    def count(self, done: int, total: int) -> None:
        """Show how many parts of a fit are done."""
        self.progress.update(self.task, state=f"{done} of {total} kernels")
        self._show(done / total)

    def _show(self, done: float) -> None:
        left, spent = "", time.monotonic() - self.began
        if _SURE < done < 1.0 and spent > 1.0:
            seconds = spent * (1 - done) / done
            left = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
            left = f"about {left} left"
        self.progress.update(self.task, completed=max(0.0, done), left=left)


def show_nothing(what: str, done: float) -> None:
    """Take the place of a display where there is no terminal."""


def make_progress(console: Any) -> Any:
    """Return the line: step, bar, gap, time spent and time left."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
    )


@contextmanager
def live(quiet: bool) -> Iterator[Any]:
    """Show progress while this block runs, if standard error is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield show_nothing
        return
    try:
        from rich.console import Console
    except ImportError:  # commands that need rich report it themselves
        yield show_nothing
        return
    from kernelweave._progress import listening

    with make_progress(Console(file=sys.stderr, highlight=False)) as progress:
        display = LiveDisplay(progress)
        with listening(display):
            yield display
