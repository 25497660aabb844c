"""Time and peak memory of pieces of work, each in a process of its own.

A case names a function of `benchmarks.tasks`. Its process prepares the data off the clock, does the
work once at a small size so that imports are not timed, and then waits for orders. Cases that are
compared take turns (ours, reference, ours, reference, ...): on a machine that is not quiet, only
times taken next to each other can be divided. This side imports nothing but the standard library,
so that the processes it starts begin small.
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
_POOLS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@dataclass(frozen=True)
class Case:
    """Work to measure: a function of `benchmarks.tasks` as "module:function", and its arguments."""

    task: str
    args: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1
    timeout: float = 600.0  # seconds for the preparation, and again for each repeat


@dataclass(frozen=True)
class Sample:
    """One repeat; work of a few milliseconds is done several times, and medians are kept."""

    wall: float
    cpu: float
    base: int  # resident bytes just before
    peak: int  # most resident bytes until the end


@dataclass
class Run:
    """What was measured of a case, or why nothing was."""

    case: Case
    samples: list[Sample] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there is something to report."""
        return bool(self.samples) and self.problem is None

    @property
    def wall(self) -> float:
        """Median seconds that passed."""
        return self._middle(lambda sample: sample.wall)

    @property
    def cpu(self) -> float:
        """Median seconds of processor time, over all threads."""
        return self._middle(lambda sample: sample.cpu)

    @property
    def added(self) -> float:
        """Bytes that the work needed at its peak, on top of the prepared data."""
        return max((float(s.peak - s.base) for s in self.samples), default=math.nan)

    @property
    def peak(self) -> float:
        """Resident bytes of the whole process at its peak."""
        return max((float(s.peak) for s in self.samples), default=math.nan)

    def fact(self, name: str) -> Any:
        """Return something the work told about its result, or None."""
        return self.facts.get(name)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)

    def _middle(self, of: Callable[[Sample], float]) -> float:
        return median(map(of, self.samples)) if self.samples else math.nan


@dataclass(frozen=True)
class Ratio:
    """Ratio of two medians, with the least and largest ratio of neighbouring repeats."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return ""
        spread = "" if self.low == self.high else f" ({short(self.low)} - {short(self.high)})"
        return short(self.value) + spread


def ratio(one: Run, other: Run, *, cpu: bool = False, times: float = 1.0) -> Ratio:
    """Divide the time of a run by ``times`` the time of another that took turns with it."""
    if not (one.ok and other.ok):
        return Ratio(math.nan, math.nan, math.nan)
    pairs = [
        ((a.cpu / b.cpu) if cpu else (a.wall / b.wall)) / times
        for a, b in zip(one.samples, other.samples, strict=False)
    ]
    middle = (one.cpu / other.cpu if cpu else one.wall / other.wall) / times
    return Ratio(middle, min(pairs), max(pairs))


def measure(
    cases: Mapping[str, Case],
    *,
    repeats: int = 5,
    patience: float = 60.0,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, Run]:
    """Measure cases in turn, round after round.

    Parameters
    ----------
    cases : dict of str to Case
        What to measure; each gets a fresh process that lives through all rounds.
    repeats : int
        Rounds.
    patience : float
        A case that has used this many seconds is not repeated further.
    note : callable
        Told what is going on.

    Returns
    -------
    runs : dict of str to Run
        Failures and timeouts are runs with a `problem`.
    """
    with ExitStack() as stack:
        workers = {name: stack.enter_context(_Worker(case)) for name, case in cases.items()}
        for name, worker in workers.items():
            note(f"preparing {name}")
            worker.prepare()
        for number in range(1, repeats + 1):
            for name, worker in workers.items():
                if sum(sample.wall for sample in worker.run.samples) < patience:
                    note(f"{name}, {number} of {repeats}")
                    worker.repeat()
        for name, worker in workers.items():
            note(f"reading the result of {name}")
            worker.tell()
        return {name: worker.run for name, worker in workers.items()}


class _Worker:
    """The process of one case."""

    def __init__(self, case: Case) -> None:
        self.run = Run(case)
        self._errors = tempfile.TemporaryFile("w+")
        self._answers: queue.Queue[str] = queue.Queue()
        env = os.environ | dict.fromkeys(_POOLS, str(case.threads))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=env,
            cwd=ROOT,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        self._errors.close()

    def prepare(self) -> None:
        case = self.run.case
        self._ask({"task": case.task, "args": {**case.args, "threads": case.threads}})

    def repeat(self) -> None:
        answer = self._ask("repeat")
        if answer is not None:
            self.run.samples.append(Sample(**answer))

    def tell(self) -> None:
        answer = self._ask("tell")
        if answer is not None:
            self.run.facts = answer

    def _ask(self, order: Any) -> dict[str, Any] | None:
        """Send an order and return the answer, or None after noting what went wrong."""
        if self.run.problem is not None:
            return None
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self.run.case.timeout)
        except queue.Empty:
            self._process.kill()
            self.run.problem = f"not done after {self.run.case.timeout:g} s"
            return None
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"problem": self._death()}
        self.run.problem = answer.pop("problem", None)
        return None if self.run.problem else answer

    def _death(self) -> str:
        code = self._process.wait()
        if code < 0:
            return f"ended by {signal.Signals(-code).name}"
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"ended with exit code {code}"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")  # the process is gone


def short(value: float) -> str:
    """Write a ratio with two or three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"
