"""What was measured under wrong labels: a Markdown page and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .noisy_labels_data import CLASS_NOISE, COMPARED, CONDITIONS, GROUPS, SOURCES
from .noisy_labels_protocol import METHODS
from .noisy_labels_published import (
    CLAIMS,
    COLUMNS,
    GAP_LAM,
    GAP_RHO,
    GAP_SECONDS,
    GAP_TOL,
    LEVELS,
    SOLVERS,
)
from .page import make_table
from .store import Record

Key = tuple[str, int, str]  # data set, division, condition
Cells = dict[str, dict[Key, float]]  # values of a measure by method

MEASURES = {
    "accuracy": "Accuracy",
    "balanced": "Balanced accuracy",
    "ranking": "Ranking of wrong labels (area under the curve)",
}
BLOCKS = {
    "q = 0": ("0",),
    "symmetric 0.1-0.2": ("0.1", "0.2"),
    "symmetric 0.3-0.4": ("0.3", "0.4"),
    CLASS_NOISE: (CLASS_NOISE,),
    "all noisy": CONDITIONS[1:],
}
PAIRS = (
    *(("auto", name) for name in METHODS if name not in ("auto",)),
    ("class", "balanced"),
    ("class", "uniform"),
    ("symmetric", "uniform"),
    ("capped", "mkl"),
)
WITHIN = 0.05  # an estimate so near to the truth counts as good
LOUD = ("0.2", "0.3", "0.4")  # levels of which that is asked
_COLOURS = ("#1f5f8b", "#c2571a", "#4f8f3a", "#7b4fa3", "#6b7280", "#b3902b", "#111827", "#a83250")


@dataclass(frozen=True)
class Difference:
    """A mean difference between two methods, in points."""

    mean: float
    error: float  # standard error over units
    wins: int
    losses: int

    def __str__(self) -> str:
        return f"{self.mean:+.1f} ± {self.error:.1f} ({self.wins}/{self.losses})"


def compare_cells(
    one: dict[Key, float],
    other: dict[Key, float],
    conditions: Sequence[str],
    unit: Callable[[Key], Any] = lambda key: key[0],
) -> Difference | None:
    """Average differences over the cells of a unit, a data set say, then over units."""
    units: dict[Any, list[float]] = {}
    for key in one.keys() & other.keys():
        if key[2] in conditions:
            units.setdefault(unit(key), []).append(one[key] - other[key])
    if not units:
        return None
    means = [float(np.mean(values)) for values in units.values()]
    everything = np.concatenate([np.array(values) for values in units.values()])
    error = float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
    wins, losses = np.sum(everything > 1e-9), np.sum(everything < -1e-9)
    return Difference(float(np.mean(means)), error, int(wins), int(losses))


def to_markdown(records: Sequence[Record], seed: int) -> str:
    """Return the page: a section for every part that has results."""
    by_part: dict[str, list[Record]] = {}
    for record in records:
        by_part.setdefault(record["part"], []).append(record)
    parts = [f"# Learning from wrong labels\n\nSeed {seed}; all numbers in per cent or points.\n"]
    for group in COMPARED:
        of = [r for r in by_part.get("comparison", []) if r["data"] in GROUPS[group]]
        if of:
            parts += _comparison(group, of)
    if "estimates" in by_part:
        parts += _estimates(by_part["estimates"])
    if "figure" in by_part:
        parts += _figure(by_part["figure"])
    if "gap" in by_part:
        parts += _gap(by_part["gap"])
    return "\n".join(parts)


def read_cells(records: Iterable[Record], measure: str) -> Cells:
    """Return a measure by method and cell."""
    cells: Cells = {}
    for record in records:
        if record[measure] is not None:
            key = (record["data"], record["split"], record["condition"])
            cells.setdefault(record["method"], {})[key] = record[measure]
    return cells


def _comparison(group: str, records: list[Record]) -> list[str]:
    sets = [s for s in GROUPS[group] if any(r["data"] == s for r in records)]
    seen = {record["method"] for record in records}
    methods = [m for m in METHODS if m in seen]
    splits = sorted({record["split"] for record in records})
    parts = [
        f"## Comparison, {group} group\n",
        f"{', '.join(SOURCES[s].title for s in sets)}: means over data sets and {len(splits)} "
        f"division{'s' if len(splits) > 1 else ''}, 70 % to train on.\n",
    ]
    for measure, title in MEASURES.items():
        parts += [f"### {title}\n", _means(read_cells(records, measure), methods, splits)]
    fewer = sorted({METHODS[m].n_splits for m in methods} - {max(splits) + 1})
    for n in fewer:
        if n < len(splits):
            parts += [
                f"Accuracy on the first {n} divisions, with the methods that take longer:\n",
                _means(read_cells(records, "accuracy"), methods, splits[:n]),
            ]
    parts += [
        "### Paired differences\n",
        "Points, ± standard error over data sets, (wins/losses) over cells.\n",
    ]
    for measure, title in MEASURES.items():
        parts += [f"{title}:\n", _pairs(read_cells(records, measure), methods)]
    parts += ["### Accuracy by data set, mean of the noisy conditions\n"]
    cells = read_cells(records, "accuracy")
    n_most = max(len(cells[m]) for m in methods)
    full = [m for m in methods if len(cells[m]) == n_most]
    rows = []
    for name in sets:
        values = [
            [v for (data, _, c), v in cells[m].items() if data == name and c != "0"] for m in full
        ]
        rows.append([SOURCES[name].title, *(f"{np.mean(v):.1f}" if v else "" for v in values)])
    parts.append(make_table(["data", *(METHODS[m].label for m in full)], rows))
    seconds = [
        [METHODS[m].label, f"{np.mean([r['seconds'] for r in records if r['method'] == m]):.2f}"]
        for m in methods
    ]
    parts += [
        "### Processor seconds for one training set, including tuning\n",
        make_table(["method", "seconds"], seconds),
    ]
    return parts


def _means(cells: Cells, methods: Sequence[str], splits: Sequence[int]) -> str:
    conditions = [c for c in CONDITIONS if any(k[2] == c for of in cells.values() for k in of)]
    noisy = [c for c in conditions if c != "0"]
    wanted = {k for of in cells.values() for k in of if k[1] in splits}
    rows = []
    for method in methods:
        of = cells.get(method, {})
        if not wanted <= of.keys():
            continue  # a mean over fewer cells than the neighbours have would mislead
        row = [METHODS[method].label]
        for chosen in (*([c] for c in conditions), noisy):
            values = [of[k] for k in wanted if k[2] in chosen]
            row.append(f"{np.mean(values):.1f}" if values else "")
        rows.append(row)
    return make_table(["method", *conditions, "all noisy"], rows)


def _pairs(cells: Cells, methods: Sequence[str]) -> str:
    rows = []
    for one, other in PAIRS:
        if one in methods and other in methods:
            found = [compare_cells(cells[one], cells[other], block) for block in BLOCKS.values()]
            label = f"{METHODS[one].label} - {METHODS[other].label}"
            rows.append([label, *("" if d is None else str(d) for d in found)])
    return make_table(["pair", *BLOCKS], rows)


def mean_estimates(records: Iterable[Record]) -> dict[tuple[str, str], dict[str, float]]:
    """Return mean truth and mean estimates by data set and level."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["data"], record["condition"]), []).append(record)
    return {
        key: {name: float(np.mean([r[name] for r in of])) for name in ("truth", "range", "counts")}
        for key, of in groups.items()
    }


def _estimates(records: list[Record]) -> list[str]:
    means = mean_estimates(records)
    sets = [s for s in SOURCES if any(data == s for data, _ in means)]
    draws = len({record["split"] for record in records})
    parts = [
        "## How many labels are wrong: estimates\n",
        f"Means of {draws} draws of wrong labels among all rows, for each share of wrong labels.\n",
    ]
    for name in ("range", "counts"):
        rows = [
            [
                SOURCES[s].title,
                *(f"{means[s, q][name]:.2f}" if (s, q) in means else "" for q in LEVELS),
            ]
            for s in sets
        ]
        parts += [f"By {name}:\n", make_table(["data", *LEVELS], rows)]
    for name in ("range", "counts"):
        loud = {key: m[name] - m["truth"] for key, m in means.items() if key[1] in LOUD}
        if not loud:
            continue
        good = sum(abs(error) <= WITHIN for error in loud.values())
        far = {key[0] for key, error in loud.items() if abs(error) > WITHIN}
        named = ", ".join(SOURCES[s].title for s in sets if s in far) or "none"
        parts.append(
            f"By {name}, {good} of {len(loud)} means at 0.2 and more lie within {WITHIN:g} of the "
            f"truth; sets with one that does not: {named}.\n"
        )
        clean = {key[0] for key, m in means.items() if key[1] == "0" and m[name] > WITHIN}
        overlap = ", ".join(SOURCES[s].title for s in sets if s in clean) or "none"
        parts.append(f"Sets whose overlap looks like more than {WITHIN:g} of noise: {overlap}.\n")
    return parts


def figure_cells(records: Iterable[Record]) -> Cells:
    """Return the accuracy of every column of the figure by cell."""
    cells: Cells = {}
    for record in records:
        key = (record["data"], record["split"], record["condition"])
        for name, found in record["columns"].items():
            cells.setdefault(name, {})[key] = found["accuracy"]
    return cells


def _figure(records: list[Record]) -> list[str]:
    cells = figure_cells(records)
    names = [c for c in COLUMNS if c in cells]
    keys = {k for of in cells.values() for k in of}
    sets = [s for s in SOURCES if any(k[0] == s for k in keys)]
    levels = [q for q in LEVELS if any(k[2] == q for k in keys)]
    splits = len({k[1] for k in keys})
    rows = []
    for name in sets:
        for level in levels:
            row = [SOURCES[name].title, level]
            for column in names:
                of = [v for k, v in cells[column].items() if (k[0], k[2]) == (name, level)]
                row.append(f"{np.mean(of):.1f}" if of else "")
            rows.append(row)
    parts = [
        "## Figure 1, left: accuracy against the share of wrong labels\n",
        f"Means of {splits} divisions; settings chosen on a noisy tenth of the training rows.\n",
        make_table(["data", "q", *(COLUMNS[c].label for c in names)], rows),
        "Paired differences, ± standard error over data sets and divisions, (wins/losses) over "
        "cells:\n",
        _figure_pairs(cells, sets, levels),
        "### The published claims\n",
        *_claims(cells, levels),
    ]
    notes = [r["columns"]["tuned"] for r in records if "tuned" in r["columns"]]
    if notes:
        n_fits = sum(note["n_fits"] for note in notes)
        n_short = sum(note["n_unfinished"] for note in notes)
        agree = [note["agreement"] for note in notes if note["agreement"] is not None]
        text = f"{n_short} of {n_fits} capped and plain fits did not reach their tolerance."
        if agree:
            text += (
                f" Capped models whose cap binds predict as plain l1-MKL with lam times gamma on "
                f"{100 * np.mean(agree):.1f} % of the test rows."
            )
        parts.append(text + "\n")
    return parts


def _unit(key: Key) -> tuple[str, int]:
    return key[:2]


def _figure_pairs(cells: Cells, sets: Sequence[str], levels: Sequence[str]) -> str:
    noisy = [q for q in levels if q != "0"]
    loud = [q for q in noisy if float(q) >= 0.3]
    pairs = (
        ("tuned", "plain"),
        ("capped", "plain"),
        ("tuned", "best"),
        ("best", "plain"),
        ("uniform", "plain"),
        ("rbf", "plain"),
    )
    rows = []
    for one, other in pairs:
        if one not in cells or other not in cells:
            continue
        found = [compare_cells(cells[one], cells[other], noisy, _unit)]
        found.append(compare_cells(cells[one], cells[other], loud, _unit))
        for name in sets:
            mine, theirs = (
                {k: v for k, v in cells[c].items() if k[0] == name} for c in (one, other)
            )
            found.append(compare_cells(mine, theirs, noisy, _unit))
        label = f"{COLUMNS[one].label} - {COLUMNS[other].label}"
        rows.append([label, *("" if d is None else str(d) for d in found)])
    titles = [SOURCES[s].title for s in sets]
    return make_table(["pair", "all noisy", "q ≥ 0.3", *titles], rows)


def _claims(cells: Cells, levels: Sequence[str]) -> list[str]:
    noisy = [q for q in levels if q != "0"]
    loud = [q for q in noisy if float(q) >= 0.3]

    def said(one: str, other: str, among: Sequence[str]) -> str:
        if one not in cells or other not in cells:
            return "not measured"
        found = compare_cells(cells[one], cells[other], among, _unit)
        return "not measured" if found is None else str(found)

    measured = (
        f"tuned cap {said('tuned', 'plain', noisy)}, cap 1-q {said('capped', 'plain', noisy)}",
        f"{said('tuned', 'best', noisy)} over all, {said('tuned', 'best', loud)} from 0.3 on",
        f"cap 1-q {said('capped', 'plain', ['0'])}, MiPMKL {said('best', 'plain', ['0'])}",
    )
    rows = [
        [f"({'i' * (k + 1)}) {claim}", found]
        for k, (claim, found) in enumerate(zip(CLAIMS, measured, strict=True))
    ]
    return [make_table(["published", "measured, points"], rows)]


def _gap(records: list[Record]) -> list[str]:
    parts = [
        "## Figure 1, right: gap against iterations\n",
        f"lam = {GAP_LAM:g}, rho = {GAP_RHO:g}, original labels. Gaps of the averaged pair "
        "(Algorithm 1 and VI), of the average since the last restart, and of the best pair so far "
        "(fast, whose iterations are inner SVM solves).\n",
    ]
    rows = []
    for record in records:
        curve = record["curve"]
        shown = []
        for steps in (10, 100, 1000):
            at = [row for row in curve if row[0] <= steps]
            over = curve[-1][0] < steps and record["method"] != "fast"
            shown.append(f"{at[-1][2] - at[-1][3]:.2g}" if at and not over else "")
        rows.append(
            [
                _title(record),
                SOLVERS[record["method"]],
                *shown,
                f"{curve[-1][1]:.1f}",
            ]
        )
    head = ["data", "solver", "gap after 10", "after 100", "after 1000", "processor seconds"]
    parts += [make_table(head, rows), _times(records)]
    return parts


def _title(record: Record) -> str:
    return SOURCES[record["data"]].title


def _times(records: list[Record]) -> str:
    fast = {r["data"]: r["seconds"] for r in records if r["method"] == "fast"}
    rows = []
    for record in records:
        if not record["timed"]:
            continue
        ratio = ""
        if record["method"] != "fast" and record["data"] in fast:
            times = record["seconds"] / max(fast[record["data"]], 1e-9)
            ratio = f"{'' if record['reached'] else '> '}{times:.0f}"
        rows.append(
            [
                _title(record),
                SOLVERS[record["method"]],
                "yes" if record["reached"] else f"no, stopped after {GAP_SECONDS:g} s",
                str(record["steps"]),
                f"{record['seconds']:.2f}",
                ratio,
            ]
        )
    head = ["data", "solver", "reached", "iterations", "processor seconds", "times fast"]
    return f"Time to a certified relative gap of {GAP_TOL:g}:\n\n" + make_table(head, rows)


def draw(records: Sequence[Record], folder: Path, stem: str) -> list[Path]:
    """Draw a picture for every part that has results, and return their files."""
    drawn = []
    for part, make in _PICTURES.items():
        of = [record for record in records if record["part"] == part]
        if of:
            figure = make(of)
            path = folder / f"{stem}-{part}.png"
            figure.savefig(path, dpi=90)
            drawn.append(path)
    return drawn


def _panels(n: int, width: float, height: float, **options: Any) -> Any:
    from matplotlib.figure import Figure  # without a window, whatever the settings

    figure = Figure(figsize=(width * n, height), layout="constrained")
    panels = figure.subplots(1, n, squeeze=False, **options)[0]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="y", color="#e5e7eb")
        panel.set_axisbelow(True)
    return figure, panels


def _legend(figure: Any, panels: Any, n_columns: int) -> None:
    marks, texts = panels[0].get_legend_handles_labels()
    figure.legend(
        marks, texts, loc="outside lower center", ncols=n_columns, frameon=False, fontsize=8
    )


def _draw_comparison(records: list[Record]) -> Any:
    groups = [g for g in COMPARED if any(r["data"] in GROUPS[g] for r in records)]
    shown = [m for m in METHODS if METHODS[m].n_splits == max(x.n_splits for x in METHODS.values())]
    figure, panels = _panels(2 * len(groups), 3.3, 3.7)
    for at, (group, measure) in enumerate((g, m) for g in groups for m in ("accuracy", "ranking")):
        panel, of = panels[at], [r for r in records if r["data"] in GROUPS[group]]
        cells = read_cells(of, measure)
        for colour, method in zip(_COLOURS, shown, strict=False):
            if method not in cells:
                continue
            keys = cells[method]
            conditions = [c for c in CONDITIONS if any(k[2] == c for k in keys)]
            values = [np.mean([v for k, v in keys.items() if k[2] == c]) for c in conditions]
            places = [CONDITIONS.index(c) + 0.4 * (c == CLASS_NOISE) for c in conditions]
            ours = METHODS[method].label.startswith("tolerant")
            style = {"color": colour, "linestyle": "-" if ours else "--", "marker": "o"}
            n_line = len([c for c in conditions if c != CLASS_NOISE])
            panel.plot(
                places[:n_line],
                values[:n_line],
                markersize=3.5,
                label=METHODS[method].label,
                **style,
            )
            panel.plot(places[n_line:], values[n_line:], markersize=5, **style)
        panel.set_title(f"{group}: {'accuracy' if measure == 'accuracy' else 'ranking'}", size=10)
        panel.set_xticks([0, 1, 2, 3, 4, 5.4], CONDITIONS, fontsize=8)
        panel.tick_params(axis="y", labelsize=8)
        panel.set_xlabel("share of wrong labels (right: by class)", size=9)
    _legend(figure, panels, 4)
    return figure


def _draw_estimates(records: list[Record]) -> Any:
    means = mean_estimates(records)
    figure, panels = _panels(2, 3.4, 3.8, sharey=True)
    sets = [s for s in SOURCES if any(data == s for data, _ in means)]
    colours = (*_COLOURS, "#0f8b8d")
    for panel, name in zip(panels, ("range", "counts"), strict=True):
        for colour, data in zip(colours, sets, strict=False):
            levels = [q for q in LEVELS if (data, q) in means]
            truth = [means[data, q]["truth"] for q in levels]
            values = [means[data, q][name] for q in levels]
            panel.plot(
                truth, values, color=colour, marker="o", markersize=3.5, label=SOURCES[data].title
            )
        panel.plot([0, 0.45], [0, 0.45], color="#111827", linestyle=":", linewidth=1)
        panel.set_title(f"by {name}", size=10)
        panel.set_xlabel("share of wrong labels", size=9)
        panel.tick_params(labelsize=8)
    panels[0].set_ylabel("mean estimate", size=9)
    _legend(figure, panels, 5)
    return figure


def _draw_figure(records: list[Record]) -> Any:
    cells = figure_cells(records)
    sets = [s for s in SOURCES if any(k[0] == s for of in cells.values() for k in of)]
    figure, panels = _panels(len(sets), 3.2, 3.7)
    for panel, data in zip(panels, sets, strict=True):
        for colour, column in zip(_COLOURS, COLUMNS, strict=False):
            of = {k: v for k, v in cells.get(column, {}).items() if k[0] == data}
            levels = [q for q in LEVELS if any(k[2] == q for k in of)]
            spread = [[v for k, v in of.items() if k[2] == q] for q in levels]
            panel.plot(
                [float(q) for q in levels],
                [np.mean(v) for v in spread],
                color=colour,
                marker="o",
                markersize=3.5,
                linestyle="--" if column in ("uniform", "rbf") else "-",
                label=COLUMNS[column].label,
            )
        panel.set_title(SOURCES[data].title, size=10)
        panel.set_xlabel("share of wrong labels", size=9)
        panel.tick_params(labelsize=8)
    panels[0].set_ylabel("accuracy (%)", size=9)
    _legend(figure, panels, 6)
    return figure


def _draw_gap(records: list[Record]) -> Any:
    sets = [s for s in SOURCES if any(r["data"] == s for r in records)]
    figure, panels = _panels(len(sets), 3.6, 3.6, sharey=True)
    for panel, data in zip(panels, sets, strict=True):
        for colour, solver in zip(_COLOURS, SOLVERS, strict=False):
            for record in records:
                if (record["data"], record["method"]) == (data, solver):
                    curve = [row for row in record["curve"] if row[2] - row[3] > 0]
                    gaps = [row[2] - row[3] for row in curve]
                    steps = [max(row[0], 1) for row in curve]
                    panel.plot(steps, gaps, color=colour, label=SOLVERS[solver], linewidth=1.6)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(bottom=1e-6)
        panel.set_title(SOURCES[data].title, size=10)
        panel.set_xlabel("iterations", size=9)
        panel.tick_params(labelsize=8)
    panels[0].set_ylabel("gap", size=9)
    _legend(figure, panels, 4)
    return figure


_PICTURES: dict[str, Callable[[list[Record]], Any]] = {
    "comparison": _draw_comparison,
    "estimates": _draw_estimates,
    "figure": _draw_figure,
    "gap": _draw_gap,
}
