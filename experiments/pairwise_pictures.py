"""The comparison on linked documents in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .pairwise_data import DATA
from .pairwise_methods import METHODS
from .pairwise_protocol import KINDS, SIZES
from .pairwise_published import TABLE_2
from .pairwise_report import Values, collect
from .store import Record

_COLOURS = {"true": "#6b7280", "noise": "#1f5f8b", "naive": "#c2410c"}
_GROUPS = {"paper": "#1f5f8b", "ours": "#6b7280", "beyond": "#4d7c0f"}


def draw(records: Sequence[Record], folder: Path, stem: str) -> list[Path]:
    """Draw the clusters of all systems, and Figure 1; return what was drawn."""
    paths = []
    if nmi := collect(records, "table", "nmi"):
        paths.append(folder / f"{stem}-table.png")
        _draw_table(nmi, paths[-1])
    if nmi := collect(records, "figure", "nmi"):
        paths.append(folder / f"{stem}-figure.png")
        _draw_figure(nmi, paths[-1])
    return paths


def _spread(values: Any) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _sets(nmi: Values) -> dict[str, str]:
    return {data: title for data, title in DATA.items() if any(key[0] == data for key in nmi)}


def _draw_table(nmi: Values, path: Path) -> None:
    from matplotlib.figure import Figure  # without a window, whatever the settings

    rows = [
        name
        for group in _GROUPS
        for name, method in METHODS.items()
        if method.group == group and any((data, name) in nmi for data in DATA)
    ]
    sets = _sets(nmi)
    figure = Figure(figsize=(4 + 3 * len(sets), 1.2 + 0.27 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for panel, (data, title) in zip(panels, sets.items(), strict=True):
        for place, name in enumerate(rows):
            method, values = METHODS[name], nmi.get((data, name))
            if method.published:
                panel.plot(
                    TABLE_2[data][method.published][0], place, "D", color="black", mfc="none", ms=6
                )
            if values is not None:
                panel.errorbar(
                    values.mean(), place, xerr=_spread(values), fmt="o", color=_GROUPS[method.group]
                )
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("NMI (diamonds: published)")
        panel.grid(axis="x", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(rows)), [METHODS[name].label for name in rows], fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=110)


def _draw_figure(nmi: Values, path: Path) -> None:
    from matplotlib.figure import Figure

    sets = _sets(nmi)
    figure = Figure(figsize=(1 + 4 * len(sets), 3.6), layout="constrained")
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for panel, (data, title) in zip(panels, sets.items(), strict=True):
        for kind, label in KINDS.items():
            there = [size for size in SIZES if (data, f"{kind}@{size}") in nmi]
            values = [nmi[data, f"{kind}@{size}"] for size in there]
            means = np.array([v.mean() for v in values])
            spread = np.array([_spread(v) for v in values])
            panel.plot(there, means, marker="o", label=label, color=_COLOURS[kind])
            panel.fill_between(
                there, means - spread, means + spread, alpha=0.12, color=_COLOURS[kind], lw=0
            )
        panel.set_xscale("log")
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("pairs")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("NMI")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=110)
