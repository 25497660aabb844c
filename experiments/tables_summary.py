"""Results on one table by method: means over divisions, ranks and paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from .store import Record
from .tables_data import QUICK_ROWS, ROWS, TABLES
from .tables_methods import METHODS

OURS = "metric"


@dataclass(frozen=True)
class Cell:
    """Results of a method on the divisions of a table, with as many training rows."""

    score: float
    log_loss: float | None
    seconds: float
    n_train: int
    n_columns: int | None  # after encoding; known for ours
    divisions: tuple[int, ...]


Row = dict[str, Cell]  # by method
Cells = dict[tuple[str, int], Row]  # by table and rows


@dataclass(frozen=True)
class Difference:
    """Differences between two methods over tables."""

    n_wins: int
    n_tables: int
    mean: float
    error: float  # standard error of the mean over tables
    median: float


def summarise(records: Iterable[Record]) -> Cells:
    """Return means over divisions by table, rows and method, in the order of the tables."""
    by_cell: dict[tuple[str, int, str], list[Record]] = {}
    for record in records:
        if record["score"] is not None:
            key = (record["table"], record["rows"], record["method"])
            by_cell.setdefault(key, []).append(record)
    order = list(TABLES)
    cells: Cells = {}
    for table, rows, method in sorted(
        by_cell, key=lambda key: (order.index(key[0]), key[1], list(METHODS).index(key[2]))
    ):
        cells.setdefault((table, rows), {})[method] = _cell(by_cell[table, rows, method])
    return cells


def _cell(of: list[Record]) -> Cell:
    losses = [record["log_loss"] for record in of if record["log_loss"] is not None]
    return Cell(
        score=float(np.mean([record["score"] for record in of])),
        log_loss=float(np.mean(losses)) if losses else None,
        seconds=float(np.mean([record["seconds"] for record in of])),
        n_train=int(np.mean([record["n_train"] for record in of])),
        n_columns=of[0].get("n_columns"),
        divisions=tuple(sorted(record["division"] for record in of)),
    )


def main_rows(cells: Cells, group: str, task: str | None = None) -> dict[str, Row]:
    """Return the results of a group of tables by table; those of growing tables are left out."""
    return {
        table: row
        for (table, rows), row in cells.items()
        if TABLES[table].group == group
        and rows in (ROWS[group], QUICK_ROWS)
        and task in (None, TABLES[table].task)
    }


def growth_rows(cells: Cells) -> dict[str, dict[int, Row]]:
    """Return the results of growing tables by table and number of training rows."""
    found: dict[str, dict[int, Row]] = {}
    for (table, rows), row in cells.items():
        if rows not in (ROWS[TABLES[table].group], QUICK_ROWS):
            found.setdefault(table, {})[rows] = row
    return found


def ranked(rows: dict[str, Row]) -> list[str]:
    """Return the ranked methods that have results, in the order of the tables."""
    there = {method for row in rows.values() for method in row}
    return [name for name, method in METHODS.items() if method.ranked and name in there]


def complete(rows: dict[str, Row], methods: Sequence[str]) -> dict[str, Row]:
    """Return the tables on which each of the methods has the same divisions."""
    return {
        table: row
        for table, row in rows.items()
        if all(method in row for method in methods)
        and len({row[method].divisions for method in methods}) == 1
    }


def mean_ranks(rows: dict[str, Row], methods: Sequence[str]) -> dict[str, float]:
    """Return the mean rank of each method over the tables that all of them have; ties share."""
    scores = [
        [-row[method].score for method in methods] for row in complete(rows, methods).values()
    ]
    if not scores:
        return {}
    ranks = np.mean([rankdata(of) for of in scores], axis=0)
    return dict(zip(methods, map(float, ranks), strict=True))


def firsts(rows: dict[str, Row], methods: Sequence[str]) -> dict[str, int]:
    """Return on how many tables each method has the best score; ties count for all of them."""
    found = dict.fromkeys(methods, 0)
    for row in complete(rows, methods).values():
        best = max(row[method].score for method in methods)
        for method in methods:
            found[method] += row[method].score == best
    return found


def compare(
    rows: dict[str, Row], one: str, other: str, *, of_loss: bool = False
) -> Difference | None:
    """Return the differences of scores, one minus other; of log losses, other minus one."""
    gains = []
    for row in complete(rows, (one, other)).values():
        if not of_loss:
            gains.append(row[one].score - row[other].score)
            continue
        losses = row[one].log_loss, row[other].log_loss
        if losses[0] is not None and losses[1] is not None:
            gains.append(losses[1] - losses[0])
    if not gains:
        return None
    error = float(np.std(gains, ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.nan
    return Difference(
        int(np.sum(np.array(gains) > 0)),
        len(gains),
        float(np.mean(gains)),
        error,
        float(np.median(gains)),
    )
