"""Rule ensembles in pictures: scores against numbers of rules, and numbers of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .rules_cells import OURS, Cells, counted, of_kind, sets
from .rules_data import SOURCES
from .rules_protocol import METHODS

_COLOURS = {
    "ghkl-2": "#8fc1de",
    "ghkl-1.5": "#4a90bf",
    "ghkl-1.1": "#123f5f",
    "hkl-l1": "#7a5195",
    "rulefit": "#b45309",
    "slipper": "#4d7c0f",
    "ender": "#b91c5c",
    "tree": "#6b7280",
}


def draw(cells: Cells, folder: Path, stem: str) -> list[Path]:
    """Draw scores against numbers of rules, and numbers of rules by data set."""
    scores, counts = folder / f"{stem}-scores.png", folder / f"{stem}-counts.png"
    _draw_scores(cells, scores)
    _draw_counts(cells, counts)
    return [scores, counts]


def _draw_scores(cells: Cells, path: Path) -> None:
    from matplotlib.figure import Figure  # without a window, whatever the settings

    kinds = [binary for binary in (True, False) if of_kind(cells, binary)]
    figure = Figure(figsize=(1 + 4.6 * len(kinds), 4.2), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for panel, binary in zip(panels, kinds, strict=True):
        some = of_kind(cells, binary)
        for method, colour in _COLOURS.items():
            of = [cell for cell in counted(some, method) if cell.rules is not None]
            if not of:
                continue
            x = float(np.mean([cell.rules for cell in of if cell.rules is not None]))
            y = float(np.mean([cell.score for cell in of]))
            theirs = [cell.published for cell in of if cell.published is not None]
            if len(theirs) == len(of) and theirs:
                end = (
                    float(np.mean([p.rules for p in theirs])),
                    float(np.mean([p.score for p in theirs])),
                )
                panel.plot([end[0], x], [end[1], y], color=colour, linewidth=0.8, alpha=0.6)
                panel.plot(*end, "o", color=colour, markerfacecolor="white", markersize=7)
            panel.plot(x, y, "o", color=colour, markersize=8, label=METHODS[method].label)
        panel.set_xscale("log")
        panel.set_xlabel("rules, mean over data sets")
        panel.set_ylabel("F1, mean over data sets" if binary else "accuracy, mean over data sets")
        panel.set_title("two classes" if binary else "several classes", fontsize=10)
        panel.grid(color="#e5e7eb")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    marks, texts = panels[0].get_legend_handles_labels()
    figure.legend(marks, texts, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.suptitle("filled: ours, hollow: published", fontsize=9, color="#6b7280")
    figure.savefig(path, dpi=110)


def _draw_counts(cells: Cells, path: Path) -> None:
    from matplotlib.figure import Figure

    kinds = [binary for binary in (True, False) if of_kind(cells, binary)]
    most = max(len(sets(of_kind(cells, binary))) for binary in kinds)
    figure = Figure(figsize=(1 + 4.6 * len(kinds), 1.4 + 0.42 * most), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    shown: dict[str, Any] = {}
    for panel, binary in zip(panels, kinds, strict=True):
        some = of_kind(cells, binary)
        names = sets(some)
        for at, data in enumerate(names):
            for k, method in enumerate(OURS):
                cell = some.get((data, method))
                if cell is None or cell.rules is None:
                    continue
                place = at + 0.26 * (k - 1)
                bar = panel.barh(place, max(cell.rules, 0.1), 0.24, color=_COLOURS[method])
                shown.setdefault(METHODS[method].label, bar)
                if cell.published is not None:
                    mark = panel.plot(
                        cell.published.rules, place, "o", color="#111827", mec="white", ms=5
                    )
                    shown["published"] = mark[0]
        panel.set_xscale("log")
        panel.set_xlim(left=0.8)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_yticks(range(len(names)), [SOURCES[data].title for data in names], fontsize=8)
        panel.set_xlabel("rules")
        panel.set_title("two classes" if binary else "several classes", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    texts = [*(text for text in shown if text != "published"), "published"]
    marks = [shown[text] for text in texts if text in shown]
    texts = [text for text in texts if text in shown]
    figure.legend(marks, texts, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
