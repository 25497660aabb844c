"""The comparison of structures as a Markdown page and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .page import make_table
from .store import Record
from .sum_product_data import SOURCES
from .sum_product_protocol import METHODS, REFERENCE

_DARK, _LIGHT, _GREY = "#1f5f8b", "#8fc1de", "#6b7280"
_LEVEL = 0.05
Cells = dict[tuple[str, str], "Cell"]


@dataclass(frozen=True)
class Difference:
    """How much more accurate the reference is than another method, over the same divisions."""

    mean: float
    error: float  # standard error of the mean
    notable: bool  # beyond the 5 % point of the t distribution


@dataclass(frozen=True)
class Cell:
    """Results of a method on the divisions of a problem."""

    data: str
    method: str
    n_splits: int
    accuracy: float
    deviation: float
    ahead: Difference | None  # of the reference; None for the reference itself
    n_paths: float
    n_used: float
    solves: float
    seconds_fit: float  # of the fit with the chosen C, median
    seconds: float  # all fits of all divisions
    n_lowest: int  # divisions whose C is the smallest of the grid
    n_highest: int
    n_fits: int
    n_unfinished: int
    truth: float | None  # share of the decision function in the terms that decide, if known

    @property
    def label(self) -> str:
        """The name of the method in tables."""
        return METHODS[self.method].label

    @property
    def score(self) -> str:
        """Accuracy and deviation."""
        return f"{self.accuracy:.1f} ({self.deviation:.1f})"


def summarise(records: Iterable[Record], grid: Sequence[float]) -> Cells:
    """Return the cells by problem and method, in the order of the table."""
    by_cell: dict[tuple[str, str], dict[int, Record]] = {}
    for record in records:
        by_cell.setdefault((record["data"], record["method"]), {})[record["split"]] = record
    cells: Cells = {}
    for data in SOURCES:
        for name in METHODS:
            if (data, name) not in by_cell:
                continue
            by_split = by_cell[data, name]
            of = list(by_split.values())
            accuracy = np.array([r["accuracy"] for r in of])
            ours = by_cell.get((data, REFERENCE), {})
            both = sorted(set(ours) & set(by_split))
            gains = [ours[s]["accuracy"] - by_split[s]["accuracy"] for s in both]
            cells[data, name] = Cell(
                data=data,
                method=name,
                n_splits=len(of),
                accuracy=float(accuracy.mean()),
                deviation=float(accuracy.std(ddof=1)) if len(of) > 1 else 0.0,
                ahead=None if name == REFERENCE else compare(gains, SOURCES[data].made_up),
                n_paths=float(np.mean([r["n_paths"] for r in of])),
                n_used=float(np.mean([r["n_used"] for r in of])),
                solves=float(np.mean([r["solves"] for r in of])),
                seconds_fit=float(np.median([r["seconds_fit"] for r in of])),
                seconds=sum(r["seconds"] for r in of),
                n_lowest=sum(r["C"] == grid[0] for r in of),
                n_highest=sum(r["C"] == grid[-1] for r in of),
                n_fits=sum(r["n_fits"] for r in of),
                n_unfinished=sum(r["n_unfinished"] for r in of),
                truth=_true_share(data, of),
            )
    return cells


def compare(gains: Sequence[float], fresh: bool) -> Difference | None:
    """Return the mean of paired differences with its standard error; None for fewer than two.

    Divisions of one table share rows, which the usual standard error does not know. For these the
    variance is multiplied by ``1/n + n_test/n_train`` in place of ``1/n`` (Nadeau and Bengio 2003);
    halves have ``n_test = n_train``.
    """
    n = len(gains)
    if n < 2:
        return None
    error = float(np.std(gains, ddof=1)) * np.sqrt(1 / n + (0 if fresh else 1))
    mean = float(np.mean(gains))
    return Difference(mean, float(error), abs(mean) > stats.t.ppf(1 - _LEVEL / 2, n - 1) * error)


def _true_share(data: str, records: list[Record]) -> float | None:
    truth = [" * ".join(sorted(term)) for term in SOURCES[data].truth]
    if not truth or not all(set(truth) <= set(r["terms"]) for r in records):
        return None
    return float(np.mean([sum(r["terms"][term] for term in truth) for r in records]))


def to_markdown(cells: Cells, grid: Sequence[float], seed: int) -> str:
    """Return the page: accuracy, differences, what was found in made-up data, and details."""
    n_fits = sum(cell.n_fits for cell in cells.values())
    n_unfinished = sum(cell.n_unfinished for cell in cells.values())
    splits = max(cell.n_splits for cell in cells.values())
    parts = [
        "# Structured and flat combinations of kernels\n",
        f"Accuracy in per cent (standard deviation) over {splits} divisions, seed {seed}; at most "
        "400 rows, half of them for training; "
        f"C from {{{', '.join(f'{C:g}' for C in grid)}}} by three-fold cross-validation on the "
        f"training half, lam = 1. {n_unfinished} of {n_fits} fits did not reach their "
        "tolerance.\n",
        "## Accuracy\n",
        _overview(cells),
        f"## {METHODS[REFERENCE].label} against the others\n",
        "Mean of the paired differences in points (standard error); positive: the structure is "
        "more accurate. Standard errors on real data are corrected for rows that divisions share. "
        "A star marks differences beyond the 5 % point of the t distribution.\n",
        _differences(cells),
    ]
    if any(cell.truth is not None for cell in cells.values()):
        parts += [
            "## What was found\n",
            "Share of the decision function, in per cent, in the terms that determine the label; "
            "methods that are given these terms have no others.\n",
            _found(cells),
        ]
    parts += [
        "## Details\n",
        '"Used": kernels, or paths, with more than a thousandth of the decision function. '
        '"Solves": inner solves of the fit with the chosen C. "Fit": seconds of that '
        "fit, median. "
        '"All": seconds of all fits of all divisions; multiplying out the paths for the flat '
        'methods is not counted. "Edge": divisions whose C is the smallest and the largest of the '
        "grid.\n",
    ]
    for data in dict.fromkeys(data for data, _ in cells):
        rows = [cell for (other, _), cell in cells.items() if other == data]
        parts += [f"### {SOURCES[data].title}\n", _details(rows)]
    return "\n".join(parts)


def _axes(cells: Cells) -> tuple[list[str], list[str]]:
    """Return the problems and the methods there are."""
    return (
        [data for data in SOURCES if any(data == other for other, _ in cells)],
        [name for name in METHODS if any(name == other for _, other in cells)],
    )


def _grid(cells: Cells, show: Any) -> tuple[list[str], list[list[str]]]:
    sets, names = _axes(cells)
    head = ["method", *(SOURCES[data].title for data in sets)]
    rows = []
    for name in names:
        found = [cells.get((data, name)) for data in sets]
        rows.append([METHODS[name].label, *("" if cell is None else show(cell) for cell in found)])
    return head, rows


def _overview(cells: Cells) -> str:
    return make_table(*_grid(cells, lambda cell: cell.score))


def _differences(cells: Cells) -> str:
    def show(cell: Cell) -> str:
        if cell.ahead is None:
            return ""
        mark = " *" if cell.ahead.notable else ""
        return f"{cell.ahead.mean:+.1f} ({cell.ahead.error:.1f}){mark}"

    head, rows = _grid(cells, show)
    compared = [cell.ahead for cell in cells.values() if cell.ahead is not None]
    n_notable = sum(difference.notable for difference in compared)
    text = (
        f"\n{n_notable} of {len(compared)} have a star; by chance alone one in twenty would, "
        "if they were independent.\n"
    )
    return make_table(head, [row for row in rows if any(row[1:])]) + text


def _found(cells: Cells) -> str:
    known = {key: cell for key, cell in cells.items() if cell.truth is not None}
    return make_table(*_grid(known, lambda cell: f"{100 * (cell.truth or 0):.0f}"))


def _details(cells: list[Cell]) -> str:
    head = ["method", "accuracy", "used", "solves", "fit", "all", "edge"]
    rows = [
        [
            cell.label,
            cell.score,
            f"{cell.n_used:.0f} of {cell.n_paths:.0f}",
            f"{cell.solves:.1f}",
            f"{cell.seconds_fit:.2f}",
            f"{cell.seconds:.0f}",
            f"{cell.n_lowest} / {cell.n_highest} of {cell.n_splits}",
        ]
        for cell in cells
    ]
    return make_table(head, rows)


def draw(cells: Cells, path: Path) -> None:
    """Draw the accuracy of every method on every problem as a dot with its deviation."""
    from matplotlib.figure import Figure  # without a window, whatever the settings

    sets, names = _axes(cells)
    n_columns = min(4, len(sets))
    n_rows = -(-len(sets) // n_columns)
    size = (1.8 + 2.2 * n_columns, 0.6 + n_rows * (0.6 + 0.2 * len(names)))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
    for panel in panels.flat[len(sets) :]:
        panel.set_visible(False)
    for panel, data in zip(panels.flat, sets, strict=False):
        for at, name in enumerate(names):
            if (cell := cells.get((data, name))) is None:
                continue
            style = {"color": _colour(name), "fmt": "o", "markersize": 5, "elinewidth": 1}
            panel.errorbar(cell.accuracy, at, xerr=cell.deviation, **style)
        panel.set_title(SOURCES[data].title, fontsize=10)
        panel.set_yticks(range(len(names)), [METHODS[name].label for name in names], fontsize=8)
        panel.set_ylim(len(names) - 0.4, -0.6)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(axis="y", color="#e5e7eb")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(
        "accuracy (%), bars: deviation over divisions; dark: structured, light: flat, "
        "grey: nothing learned",
        fontsize=9,
    )
    figure.savefig(path, dpi=110)


def _colour(name: str) -> str:
    if name.startswith("equal"):
        return _GREY
    return _DARK if name in ("groups", "structure", "structure-p2", "shared", "told") else _LIGHT
