"""The comparison on one table in pictures: differences by table, and scores against rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .store import Record
from .tables_data import GROUPS
from .tables_methods import METHODS
from .tables_summary import OURS, Cells, Row, complete, growth_rows, main_rows, summarise

_COLOURS = {
    "metric": "#123f5f",
    "plain": "#5b9dc4",
    "hgb": "#d9a066",
    "hgb-t": "#b45309",
    "cat": "#4d7c0f",
}
_RIVALS = ("cat", "hgb-t", "plain")
_WIDEST = 0.1  # differences beyond are drawn at the edge


def draw(records: Iterable[Record], folder: Path, stem: str) -> list[Path]:
    """Draw differences by table and, where there are results, the growth with the rows."""
    cells = summarise(records)
    paths = []
    groups = {group: main_rows(cells, group) for group in GROUPS}
    groups = {g: of for g, of in groups.items() if any(OURS in row for row in of.values())}
    if groups:
        paths.append(folder / f"{stem}-differences.png")
        _draw_differences(groups, paths[-1])
    if growth_rows(cells):
        paths.append(folder / f"{stem}-growth.png")
        _draw_growth(cells, paths[-1])
    return paths


def _draw_differences(groups: dict[str, dict[str, Row]], path: Path) -> None:
    from matplotlib.figure import Figure  # without a window, whatever the settings

    most = max(map(len, groups.values()))
    figure = Figure(figsize=(1 + 3.4 * len(groups), 1.3 + 0.27 * most), layout="constrained")
    panels = figure.subplots(1, len(groups), squeeze=False, sharex=True)[0]
    for panel, (group, rows) in zip(panels, groups.items(), strict=True):
        gains = {
            rival: {
                table: row[OURS].score - row[rival].score
                for table, row in complete(rows, (OURS, rival)).items()
            }
            for rival in _RIVALS
        }
        first = next((of for of in gains.values() if of), {})
        names = sorted(first, key=lambda table: -first[table])
        for rival, of in gains.items():
            places = [at for at, name in enumerate(names) if name in of]
            values = [min(max(of[names[at]], -_WIDEST), _WIDEST) for at in places]
            panel.plot(
                values,
                places,
                "o" if rival != "plain" else "|",
                color=_COLOURS[rival],
                markersize=6 if rival != "plain" else 9,
                markeredgewidth=1 if rival != "plain" else 2,
                label=METHODS[rival].label,
                zorder=3,
            )
        panel.axvline(0, color="#111827", linewidth=1)
        panel.set_yticks(range(len(names)), names, fontsize=8)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.grid(color="#e5e7eb")
        panel.set_axisbelow(True)
        panel.tick_params(axis="x", labelsize=8)
        panel.set_title(group, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    marks, texts = panels[0].get_legend_handles_labels()
    figure.legend(
        marks,
        texts,
        title="score of the learned metric minus that of",
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
        title_fontsize=9,
    )
    figure.savefig(path, dpi=110)


def _draw_growth(cells: Cells, path: Path) -> None:
    from matplotlib.figure import Figure

    by_table = growth_rows(cells)
    figure = Figure(figsize=(1 + 3.2 * len(by_table), 3.4), layout="constrained")
    panels = figure.subplots(1, len(by_table), squeeze=False)[0]
    for panel, (table, of) in zip(panels, by_table.items(), strict=True):
        for method, colour in _COLOURS.items():
            points = [
                (row[method].n_train, row[method].score) for row in of.values() if method in row
            ]
            if points:
                panel.plot(
                    *zip(*sorted(points), strict=True),
                    "o-",
                    color=colour,
                    markersize=4,
                    label=METHODS[method].label,
                )
        sizes = sorted({cell.n_train for row in of.values() for cell in row.values()})
        panel.set_xscale("log")
        panel.set_xticks(sizes[:-2] + sizes[-1:], sizes[:-2] + sizes[-1:])  # the last two are close
        panel.minorticks_off()
        panel.set_xlabel("training rows", fontsize=9)
        panel.tick_params(labelsize=8)
        panel.set_title(table, fontsize=10)
        panel.grid(color="#e5e7eb")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    marks, texts = panels[0].get_legend_handles_labels()
    figure.legend(marks, texts, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
