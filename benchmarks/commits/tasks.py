"""Tasks of `benchmarks.tasks` in the form that asv looks for, at sizes of a few seconds."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # asv knows this folder only

from benchmarks.tasks import Task

CASES = {
    "210 kernels, 1000 rows": ("fits:whole", {"n": 1000, "threads": 1}),
    "210 kernels, norm 2, 1000 rows": ("fits:whole", {"n": 1000, "threads": 1, "norm": 2.0}),
    "a bank of 210 kernels, 1000 rows": ("fits:bank", {"n": 1000, "threads": 1}),
    "60 kernels of one column, 5000 rows": ("scale:weights", {"n": 5000, "threads": 1}),
    "rules, 5000 rows": ("rules:many_rows", {"n": 5000, "threads": 1}),
}
FITS = tuple(name for name, (task, _) in CASES.items() if task == "fits:whole")


def make(name: str) -> Task:
    """Return a task with its data."""
    task, arguments = CASES[name]
    module, function = task.split(":")
    made: Task = getattr(import_module(f"benchmarks.tasks.{module}"), function)(**arguments)
    return made


class Work:
    """Seconds and peak memory of each task."""

    params = tuple(CASES)
    param_names = ("task",)
    timeout = 300

    def setup(self, name: str) -> None:
        self.task = make(name)

    def time_work(self, name: str) -> None:
        self.task.work()

    def peakmem_work(self, name: str) -> None:
        self.task.work()


class Optimum:
    """What fits tell of themselves, which a faster solver must not lose."""

    params = FITS
    param_names = ("task",)
    timeout = 300

    def setup(self, name: str) -> None:
        task = make(name)
        self.told = task.tell(task.work())

    def track_relative_gap(self, name: str) -> float:
        return float(self.told["gap"])

    def track_accuracy(self, name: str) -> float:
        return float(self.told["accuracy"])

    def track_inner_solves(self, name: str) -> int:
        return int(self.told["solves"])
