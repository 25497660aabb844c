"""Results of rule ensembles by data set and system, beside the published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .rules_data import SOURCES
from .rules_protocol import METHODS
from .rules_published import Published, read_tables
from .store import Record

PUBLISHED = read_tables()
OURS = ("ghkl-2", "ghkl-1.5", "ghkl-1.1")


@dataclass(frozen=True)
class Cell:
    """Results of a system on the divisions of a data set."""

    data: str
    method: str
    published: Published | None
    scores: dict[int, float]  # by division
    auc: float | None
    auc_deviation: float
    rules: float | None
    length: float | None
    even: float | None  # F1 of RuleFit with a threshold of even odds
    seconds: float  # processor seconds of a search, mean over divisions
    nodes: float | None
    n_fits: int
    n_unfinished: int
    gaps: list[float]
    n_changed: int
    n_lowest: int  # divisions whose C is the smallest of the grid
    n_highest: int
    n_propositions: int

    @property
    def score(self) -> float:
        """Mean over divisions."""
        return float(np.mean(list(self.scores.values())))

    @property
    def deviation(self) -> float:
        """Standard deviation over divisions."""
        values = list(self.scores.values())
        return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0

    @property
    def difference(self) -> float | None:
        """How much better ours is than the published score."""
        return None if self.published is None else self.score - self.published.score


Cells = dict[tuple[str, str], Cell]


def summarise(records: Iterable[Record], grid: Sequence[float]) -> Cells:
    """Return the cells by data set and system, in the order of the tables."""
    by_cell: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        by_cell.setdefault((record["data"], record["method"]), []).append(record)
    return {
        (data, method): _cell(data, method, by_cell[data, method], grid)
        for data in SOURCES
        for method in METHODS
        if (data, method) in by_cell
    }


def _cell(data: str, method: str, of: list[Record], grid: Sequence[float]) -> Cell:
    areas = [r["auc"] for r in of if r.get("auc") is not None]
    column = METHODS[method].published
    return Cell(
        data=data,
        method=method,
        published=PUBLISHED.get((SOURCES[data].published, column or "")),
        scores={r["split"]: r["score"] for r in of},
        auc=mean_of([r.get("auc") for r in of]),
        auc_deviation=float(np.std(areas, ddof=1)) if len(areas) > 1 else 0.0,
        rules=mean_of([r["rules"] for r in of]),
        length=mean_of([r["length"] for r in of]),
        even=mean_of([r.get("even") for r in of]),
        seconds=float(np.mean([r["seconds"] for r in of])),
        nodes=mean_of([r.get("n_nodes") for r in of]),
        n_fits=sum(r.get("n_fits", 0) for r in of),
        n_unfinished=sum(r["n_unfinished"] for r in of),
        gaps=[r["gap"] for r in of if "gap" in r],
        n_changed=sum(r.get("n_changed", 0) for r in of),
        n_lowest=sum(r.get("C") == grid[0] for r in of),
        n_highest=sum(r.get("C") == grid[-1] for r in of),
        n_propositions=of[0]["n_propositions"],
    )


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is there: a model without rules has no mean length."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def of_kind(cells: Cells, binary: bool) -> Cells:
    """Return the cells of data sets with two classes, or with more."""
    return {key: cell for key, cell in cells.items() if SOURCES[key[0]].binary == binary}


def sets(cells: Cells) -> list[str]:
    """Return the data sets there are, in the order of the tables."""
    return [data for data in SOURCES if any(data == other for other, _ in cells)]


def counted(cells: Cells, method: str) -> list[Cell]:
    """Return the cells of a system that means are over: other forms of a set are left out."""
    return [cell for (data, m), cell in cells.items() if m == method and not SOURCES[data].variant]


def compare(one: Cell, other: Cell) -> tuple[float, float] | None:
    """Return the mean of the paired differences and its standard error over divisions."""
    both = sorted(set(one.scores) & set(other.scores))
    if len(both) < 2:
        return None
    gains = [one.scores[split] - other.scores[split] for split in both]
    return float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
