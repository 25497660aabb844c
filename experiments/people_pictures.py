"""Curves of the simulated reviews: accuracy against the share of rows that were reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .people_protocol import PARTS, STEP
from .store import Record

_COLOURS = {
    "ours": "#123f5f",
    "cleanlab, ranked again": "#b45309",
    "cleanlab, one order": "#d9a066",
    "random": "#9aa3a8",
}


def draw(records: Sequence[Record], path: Path) -> Path | None:
    """Draw a panel for each set with reviews; return the file, or None where there are none."""
    reviews = [r for r in records if r["part"] == "review" and "curve" in r]
    sets = [data for data in PARTS["review"].data if any(r["data"] == data for r in reviews)]
    if not sets:
        return None
    from matplotlib.figure import Figure  # without a window, whatever the settings

    rows = -(-len(sets) // 3)
    figure = Figure(figsize=(9.5, 2.9 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for panel in panels[len(sets) :]:
        panel.axis("off")
    for panel, data in zip(panels, sets, strict=False):
        own = [r for r in reviews if r["data"] == data]
        panel.axhline(np.mean([r["target"] for r in own]), color="black", lw=0.8, ls=":")
        for method, colour in _COLOURS.items():
            curve = mean_curve([r["curve"] for r in own if r["method"] == method])
            shares = 100.0 * STEP * np.arange(len(curve))
            panel.plot(shares, curve, color=colour, lw=1.6, label=method)
        panel.set_title(data, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("reviewed rows, per cent", fontsize=10)
    figure.supylabel("accuracy on new rows (products: F1), per cent", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


def mean_curve(curves: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean over draws; a run that has reached the target stays where it ended."""
    length = max(map(len, curves), default=0)
    padded = [[*curve, *[curve[-1]] * (length - len(curve))] for curve in curves]
    return np.mean(padded, axis=0).tolist() if padded else []
