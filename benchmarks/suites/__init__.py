"""Which cases are run, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measure import Case, Run, measure
from benchmarks.tables import Table


@dataclass
class Session:
    """How to measure, and what has been measured so far.

    Parameters
    ----------
    quick : bool
        Small sizes, to see that everything works.
    threads : list of int
        Thread counts to report.
    repeats : int
        Rounds per comparison.
    note : callable
        Told what is going on.
    """

    quick: bool
    threads: list[int]
    repeats: int
    note: Callable[[str], None] = lambda text: None
    tables: list[Table] = field(default_factory=list)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def measure(
        self, title: str, cases: Mapping[str, Case], *, repeats: int | None = None
    ) -> dict[str, Run]:
        """Measure cases in turn and keep the raw numbers."""
        runs = measure(
            cases,
            repeats=self.repeats if repeats is None else repeats,
            patience=20.0 if self.quick else 60.0,
            note=lambda text: self.note(f"{title}: {text}"),
        )
        for name, run in runs.items():
            self.runs[f"{title}: {name}"] = run.to_json()
        return runs
