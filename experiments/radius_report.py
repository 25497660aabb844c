"""Ours beside the published numbers: a Markdown page and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .page import make_table
from .radius_protocol import METHODS, N_FOLDS
from .radius_published import SETS, TITLES, Published, read_table, source
from .store import Record

PUBLISHED = read_table()
_DARK, _GREY = "#1f5f8b", "#6b7280"


@dataclass(frozen=True)
class Cell:
    """Results of a method on the folds of a data set."""

    title: str
    label: str
    published: Published | None
    n_folds: int
    accuracy: float
    deviation: float
    kernels: float
    solves: float
    n_lowest: int  # folds whose C is the smallest of the grid
    n_highest: int
    seconds: float  # all fits of all folds
    n_fits: int
    n_unfinished: int

    @property
    def difference(self) -> float | None:
        """How much better ours is than the published accuracy."""
        return None if self.published is None else self.accuracy - self.published.accuracy

    @property
    def differs(self) -> bool:
        """Whether the difference is larger than both deviations, and than their rounding."""
        if self.published is None or self.difference is None:
            return False
        return abs(self.difference) > self.deviation + self.published.deviation + 0.05


def summarise(records: Iterable[Record], grid: Sequence[float]) -> dict[tuple[str, str], Cell]:
    """Return the cells by data set and method, in the order of the table."""
    records = list(records)
    cells = {}
    for data, title in SETS.items():
        for method in METHODS.values():
            of = [r for r in records if (r["data"], r["method"]) == (data, method.name)]
            if not of:
                continue
            accuracy = np.array([r["accuracy"] for r in of])
            cells[data, method.name] = Cell(
                title=title,
                label=method.label,
                published=PUBLISHED.get((TITLES[source(data)], method.published or "")),
                n_folds=len(of),
                accuracy=float(accuracy.mean()),
                deviation=float(accuracy.std(ddof=1)) if len(of) > 1 else 0.0,
                kernels=float(np.mean([r["kernels"] for r in of])),
                solves=float(np.mean([r["solves"] for r in of])),
                n_lowest=sum(r["C"] == grid[0] for r in of),
                n_highest=sum(r["C"] == grid[-1] for r in of),
                seconds=sum(r["seconds"] for r in of),
                n_fits=sum(r["n_fits"] for r in of),
                n_unfinished=sum(r["n_unfinished"] for r in of),
            )
    return cells


def to_markdown(cells: dict[tuple[str, str], Cell], grid: Sequence[float], seed: int) -> str:
    """Return the page: an overview, where the numbers differ, and a table per data set."""
    n_fits = sum(cell.n_fits for cell in cells.values())
    n_unfinished = sum(cell.n_unfinished for cell in cells.values())
    folds = max(cell.n_folds for cell in cells.values())
    parts = [
        "# Radius-based kernel learning: Table 1 of Gai et al. (2010)\n",
        f"Accuracy in per cent (standard deviation) over {folds} of {N_FOLDS} stratified folds, "
        f"seed {seed}; "
        f"C from {{{', '.join(f'{C:g}' for C in grid)}}} by cross-validation on the training part. "
        '"C x n": the grid times the number of rows. "Literal": KL-C with the radius of the kernel '
        "without its ridge, as printed in equation (10). "
        '"Rows standardised": forms added after the accuracy of the raw one was seen; they are not '
        "part of the protocol, and are excluded from means and comparisons. "
        f"{n_unfinished} of {n_fits} fits did not reach their tolerance.\n",
        "## Overview\n",
        _overview(cells),
        "## Differences from the published values\n",
        _differences([cell for (data, _), cell in cells.items() if data in TITLES]),
        "## Details\n",
        '"Kernels": number with more than a thousandth of the weight, published and ours. '
        '"Solves": inner solves of the fit with the chosen C. '
        '"Edge": folds whose C is the smallest and the largest of the grid. "Seconds": all fits of '
        "all folds.\n",
    ]
    for data in dict.fromkeys(data for data, _ in cells):
        rows = [cell for (other, _), cell in cells.items() if other == data]
        parts += [f"### {rows[0].title}\n", _details(rows)]
    return "\n".join(parts)


def _overview(cells: dict[tuple[str, str], Cell]) -> str:
    names = [name for name in METHODS if any(name == other for _, other in cells)]
    sets = list(dict.fromkeys(data for data, _ in cells))
    rows = []
    for data in sets:
        row = [cells.get((data, name)) for name in names]
        rows.append([SETS[data]] + ["" if c is None else _score(c) for c in row])
    counted = [data for data in sets if data in TITLES]
    ours, theirs = ["mean, ours"], ["mean, published"]
    for name in names:
        column = [cells[data, name] for data in counted if (data, name) in cells]
        published = [cell.published.accuracy for cell in column if cell.published]
        # A mean over fewer data sets than the neighbours have would mislead.
        ours.append(_mean([cell.accuracy for cell in column], len(counted)))
        theirs.append(_mean(published, len(counted)))
    rows += [ours, theirs]
    return make_table(["data", *(METHODS[name].label for name in names)], rows)


def _differences(cells: list[Cell]) -> str:
    compared = [cell for cell in cells if cell.difference is not None]
    far = sorted((c for c in compared if c.differs), key=lambda c: -abs(c.difference or 0))
    text = (
        f"{len(far)} of {len(compared)} differ by more than the two deviations together"
        f"{':' if far else '.'}\n"
    )
    return (
        text
        + "".join(
            f"\n- {cell.title}, {cell.label}: {cell.accuracy:.1f}, published "
            f"{cell.published.accuracy:.1f} ({cell.difference:+.1f})"
            for cell in far
            if cell.published is not None
        )
        + ("\n" if far else "")
    )


def _details(cells: list[Cell]) -> str:
    head = ["method", "published", "ours", "difference", "kernels", "solves", "edge", "seconds"]
    rows = []
    for cell in cells:
        theirs, difference = cell.published, cell.difference
        rows.append(
            [
                cell.label,
                f"{theirs.accuracy:.1f} ({theirs.deviation:.1f})" if theirs else "",
                _score(cell),
                "" if difference is None else f"{difference:+.1f}{' *' if cell.differs else ''}",
                f"{f'{theirs.kernels:g}' if theirs else '-'} / {cell.kernels:.1f}",
                f"{cell.solves:.1f}",
                f"{cell.n_lowest} / {cell.n_highest} of {cell.n_folds}",
                f"{cell.seconds:.1f}",
            ]
        )
    return make_table(head, rows)


def _mean(values: list[float], n_needed: int) -> str:
    return f"{np.mean(values):.1f}" if values and len(values) == n_needed else ""


def _score(cell: Cell) -> str:
    return f"{cell.accuracy:.1f} ({cell.deviation:.1f})"


def draw(cells: dict[tuple[str, str], Cell], path: Path) -> None:
    """Draw the methods of each data set as dots: published hollow, ours filled."""
    from matplotlib.figure import Figure  # without a window, whatever the settings

    sets = list(dict.fromkeys(data for data, _ in cells))
    names = [name for name in METHODS if any(name == other for _, other in cells)]
    n_columns = min(4, len(sets))
    n_rows = -(-len(sets) // n_columns)
    size = (1.6 + 2.6 * n_columns, 0.9 + n_rows * (0.7 + 0.22 * len(names)))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
    for panel in panels.flat[len(sets) :]:
        panel.set_visible(False)
    for panel, data in zip(panels.flat, sets, strict=False):
        for at, name in enumerate(names):
            cell = cells.get((data, name))
            if cell is None:
                continue
            ours = {"color": _DARK, "fmt": "o", "markersize": 5, "capsize": 0, "elinewidth": 1}
            panel.errorbar(cell.accuracy, at + 0.12, xerr=cell.deviation, label="ours", **ours)
            if cell.published is not None:
                theirs = {**ours, "color": _GREY, "markerfacecolor": "white"}
                value, width = cell.published.accuracy, cell.published.deviation
                panel.errorbar(value, at - 0.12, xerr=width, label="published", **theirs)
        panel.set_title(SETS[data], fontsize=10)
        panel.set_yticks(range(len(names)), [METHODS[name].label for name in names], fontsize=8)
        panel.set_ylim(len(names) - 0.4, -0.6)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(axis="y", color="#e5e7eb")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    shown: dict[str, Any] = {}
    for panel in panels.flat:
        marks, texts = panel.get_legend_handles_labels()
        shown |= zip(texts, marks, strict=True)
    figure.legend(shown.values(), shown.keys(), loc="outside upper right", ncols=2, frameon=False)
    figure.supxlabel("accuracy (%), bars: deviation over folds", fontsize=9)
    figure.savefig(path, dpi=110)
