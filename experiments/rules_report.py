"""Ours beside the published numbers: a Markdown page and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .page import make_table
from .rules_data import SOURCES
from .rules_protocol import METHODS, TOL
from .rules_published import Published, Shape, read_shapes, read_tables
from .store import Record

PUBLISHED = read_tables()
SHAPES = read_shapes()
OURS = ("ghkl-2", "ghkl-1.5", "ghkl-1.1")
RIVALS = ("hkl-l1", "rulefit", "slipper", "ender")
ADDED = ("ghkl-1.1-own", "ghkl-1.1-single", "ender-200", "tree", "boosting", "majority")
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
        auc=_mean([r.get("auc") for r in of]),
        auc_deviation=float(np.std(areas, ddof=1)) if len(areas) > 1 else 0.0,
        rules=_mean([r["rules"] for r in of]),
        length=_mean([r["length"] for r in of]),
        even=_mean([r.get("even") for r in of]),
        seconds=float(np.mean([r["seconds"] for r in of])),
        nodes=_mean([r.get("n_nodes") for r in of]),
        n_fits=sum(r.get("n_fits", 0) for r in of),
        n_unfinished=sum(r["n_unfinished"] for r in of),
        gaps=[r["gap"] for r in of if "gap" in r],
        n_changed=sum(r.get("n_changed", 0) for r in of),
        n_lowest=sum(r.get("C") == grid[0] for r in of),
        n_highest=sum(r.get("C") == grid[-1] for r in of),
        n_propositions=of[0]["n_propositions"],
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is there: a model without rules has no mean length."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def to_markdown(cells: Cells, grid: Sequence[float], seed: int) -> str:
    """Return the page: summary, tables of scores, rules and areas, differences, work."""
    splits = max(len(cell.scores) for cell in cells.values())
    parts = [
        "# Rule ensembles: Tables 2, 4 and 5 of Jawanpuria et al. (2015)\n",
        f"Means over {splits} stratified divisions with a tenth of the rows for training (MK3: its "
        f"historical division; drawn: {splits} draws like it), first seed {seed}. C from "
        f"{{{', '.join(f'{C:g}' for C in grid)}}} by three-fold cross-validation on the score that "
        "is shown. Every cell is ours / published, then the difference. Standard deviations "
        "are over divisions.\n",
        "## Means over data sets\n",
        *_summary(cells),
    ]
    for binary, number, what in ((True, 2, "F1 of both classes averaged"), (False, 4, "accuracy")):
        some = _of_kind(cells, binary)
        if not some:
            continue
        parts += [
            f"## Table {number}: {what}\n",
            _table(some, OURS, _show_score, _mean_score),
            "### Rules and their mean length\n",
            _table(some, OURS, _show_rules, _mean_rules),
            "### Other systems of the paper\n",
            _table(some, RIVALS, _show_score, _mean_score),
            "Their rules:\n",
            _table(some, RIVALS, _show_rules, _mean_rules),
            "### What the paper does not have\n",
            _table(some, ADDED, _show_score, _mean_score),
        ]
    binary_cells = _of_kind(cells, True)
    if binary_cells:
        parts += [
            "## Table 5: area under the ROC curve\n",
            _table(binary_cells, OURS + RIVALS, _show_area, _mean_area),
        ]
    parts += ["## rho = 1.1 against rho = 2\n", *_paired(cells)]
    parts += ["## Where ours differ from the published\n", _differences(cells)]
    parts += ["## Propositions\n", _propositions(cells)]
    parts += [
        "## Work\n",
        "Processor seconds of one thread for a whole search, with all values of C and folds; "
        "conjunctions in play in the final fit; divisions whose C is the smallest / largest of the "
        "grid; largest relative gap of the final fits.\n",
        _work(cells),
        _gaps(cells),
    ]
    return "\n".join(part for part in parts if part)


def _of_kind(cells: Cells, binary: bool) -> Cells:
    return {key: cell for key, cell in cells.items() if SOURCES[key[0]].binary == binary}


def _sets(cells: Cells) -> list[str]:
    return [data for data in SOURCES if any(data == other for other, _ in cells)]


def _counted(cells: Cells, method: str) -> list[Cell]:
    """Return the cells of a system that means are over: other forms of a set are left out."""
    return [cell for (data, m), cell in cells.items() if m == method and not SOURCES[data].variant]


def _table(
    cells: Cells,
    methods: Sequence[str],
    show: Callable[[Cell], str],
    total: Callable[[list[Cell]], str],
) -> str:
    methods = [m for m in methods if any(m == other for _, other in cells)]
    if not methods:
        return ""
    rows = []
    for data in _sets(cells):
        found = [cells.get((data, method)) for method in methods]
        rows.append([SOURCES[data].title, *("" if c is None else show(c) for c in found)])
    rows.append(["mean", *(total(_counted(cells, method)) for method in methods)])
    return make_table(["data", *(METHODS[method].label for method in methods)], rows)


def _show_score(cell: Cell) -> str:
    ours = f"{cell.score:.3f}"
    if len(cell.scores) > 1:
        ours += f" ± {cell.deviation:.3f}"
    if cell.published is None or cell.difference is None:
        return ours
    return f"{ours} / {_three(cell.published.score)} ({cell.difference:+.3f})"


def _mean_score(of: list[Cell]) -> str:
    if not of:
        return ""
    ours = float(np.mean([cell.score for cell in of]))
    theirs = [cell.published.score for cell in of if cell.published is not None]
    if len(theirs) < len(of):
        return f"{ours:.3f}"
    return f"{ours:.3f} / {np.mean(theirs):.3f} ({ours - np.mean(theirs):+.3f})"


def _show_rules(cell: Cell) -> str:
    if cell.rules is None:
        return ""
    ours = f"{cell.rules:.1f}, {_length(cell.length)}"
    if cell.published is None:
        return ours
    return f"{ours} / {cell.published.rules:g}, {cell.published.length:.2f}"


def _mean_rules(of: list[Cell]) -> str:
    there = [cell for cell in of if cell.rules is not None]
    if not there:
        return ""
    ours = f"{_mean([c.rules for c in there]):.1f}, {_length(_mean([c.length for c in there]))}"
    theirs = [cell.published for cell in there if cell.published is not None]
    if len(theirs) < len(there):
        return ours
    rules, length = np.mean([p.rules for p in theirs]), np.mean([p.length for p in theirs])
    return f"{ours} / {rules:.1f}, {length:.2f}"


def _show_area(cell: Cell) -> str:
    if cell.auc is None:
        return ""
    if cell.published is None or cell.published.auc is None:
        return f"{cell.auc:.3f}"
    return f"{cell.auc:.3f} / {_three(cell.published.auc)}"


def _mean_area(of: list[Cell]) -> str:
    ours = _mean([cell.auc for cell in of])
    theirs = _mean([None if cell.published is None else cell.published.auc for cell in of])
    if ours is None:
        return ""
    return f"{ours:.3f}" if theirs is None else f"{ours:.3f} / {theirs:.3f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def _length(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _summary(cells: Cells) -> list[str]:
    parts = []
    for binary, score in ((True, "F1"), (False, "accuracy")):
        some = _of_kind(cells, binary)
        rows = []
        for method in METHODS:
            of = _counted(some, method)
            if not of:
                continue
            area = _mean_area(of) if binary else ""
            seconds = float(np.mean([cell.seconds for cell in of]))
            label = METHODS[method].label
            row = [label, str(len(of)), _mean_score(of), _mean_rules(of), area, f"{seconds:.2f}"]
            rows.append(row)
        if rows:
            head = ["system", "sets", score, "rules, length", "area", "seconds"]
            parts.append(make_table(head, rows))
    return parts


def compare(one: Cell, other: Cell) -> tuple[float, float] | None:
    """Return the mean of the paired differences and its standard error over divisions."""
    both = sorted(set(one.scores) & set(other.scores))
    if len(both) < 2:
        return None
    gains = [one.scores[split] - other.scores[split] for split in both]
    return float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))


def _paired(cells: Cells) -> list[str]:
    rows = []
    for data in _sets(cells):
        small, large = cells.get((data, "ghkl-1.1")), cells.get((data, "ghkl-2"))
        if small is None or large is None or small.rules is None or large.rules is None:
            continue
        found = compare(small, large)
        published = ""
        if small.published is not None and large.published is not None:
            published = f"{small.published.score - large.published.score:+.3f}"
        shown = "" if found is None else f"{found[0]:+.3f} ({found[1]:.3f})"
        share = f"{small.rules / large.rules:.2f}" if large.rules else ""
        rows.append([SOURCES[data].title, shown, published, share])
    if not rows:
        return []
    return [
        "Mean of the paired differences of the score (standard error over divisions, which share "
        "test rows and a few training rows), the published difference, and the rules of rho = 1.1 "
        "as a share of those of rho = 2.\n",
        make_table(["data", "ours", "published", "share of rules"], rows),
    ]


def _differences(cells: Cells) -> str:
    compared = [
        cell
        for (data, method), cell in cells.items()
        if method in OURS and not SOURCES[data].variant and cell.difference is not None
    ]
    far = [cell for cell in compared if abs(cell.difference or 0) > max(cell.deviation, 0.005)]
    far.sort(key=lambda cell: -abs(cell.difference or 0))
    lines = [
        f"{len(far)} of {len(compared)} cells with rho = 2, 1.5 and 1.1 differ from the published "
        f"score by more than our standard deviation{':' if far else '.'}\n"
    ]
    for cell in far:
        assert cell.published is not None
        lines.append(
            f"- {SOURCES[cell.data].title}, {METHODS[cell.method].label}: {cell.score:.3f} ± "
            f"{cell.deviation:.3f}, published {cell.published.score:.3f} ({cell.difference:+.3f})"
        )
    even = [c for c in _counted(cells, "rulefit") if c.even is not None]
    if even:
        lines.append(
            "\nThe RuleFit of imodels predicts the second class where its log odds exceed 1/2. "
            f"With even odds its mean F1 is {np.mean([c.even for c in even if c.even]):.3f} in "
            f"place of {np.mean([c.score for c in even]):.3f}."
        )
    return "\n".join(lines) + "\n"


def _propositions(cells: Cells) -> str:
    wrong = []
    for data in _sets(cells):
        shape: Shape = SHAPES[SOURCES[data].published]
        ours = next(c.n_propositions for (other, _), c in cells.items() if other == data)
        if ours != shape.n_propositions:
            wrong.append(f"{SOURCES[data].title} {ours}, published {shape.n_propositions}")
    if not wrong:
        return "All sets have as many propositions as published.\n"
    return f"As many as published, except: {'; '.join(wrong)}.\n"


def _work(cells: Cells) -> str:
    head = ["data"]
    for method in OURS:
        head += [METHODS[method].label + part for part in (", s", ", in play", ", edge", ", gap")]
    rows = []
    for data in _sets(cells):
        row = [SOURCES[data].title]
        for method in OURS:
            cell = cells.get((data, method))
            if cell is None:
                row += [""] * 4
                continue
            row += [
                f"{cell.seconds:.2f}",
                "" if cell.nodes is None else f"{cell.nodes:.0f}",
                f"{cell.n_lowest} / {cell.n_highest}",
                f"{max(cell.gaps, default=0):.4f}",
            ]
        rows.append(row)
    return make_table(head, rows)


def _gaps(cells: Cells) -> str:
    of = [cell for (_, method), cell in cells.items() if method in OURS]
    gaps = [gap for cell in of for gap in cell.gaps]
    n_met = sum(gap <= TOL * (1 + 1e-9) for gap in gaps)
    n_fits, n_short = sum(c.n_fits for c in of), sum(c.n_unfinished for c in of)
    changed = sum(c.n_changed for c in of)
    return (
        f"{n_met} of {len(gaps)} final fits have a certified relative gap of at most {TOL:g}; of "
        f"all {n_fits} fits, those on folds included, {n_short} stopped short. Leaving out rules "
        f"below a thousandth of the largest changed the prediction of {changed} training rows in "
        "all final fits together.\n"
    )


def draw(cells: Cells, folder: Path, stem: str) -> list[Path]:
    """Draw scores against numbers of rules, and numbers of rules by data set."""
    scores, counts = folder / f"{stem}-scores.png", folder / f"{stem}-counts.png"
    _draw_scores(cells, scores)
    _draw_counts(cells, counts)
    return [scores, counts]


def _draw_scores(cells: Cells, path: Path) -> None:
    from matplotlib.figure import Figure  # without a window, whatever the settings

    kinds = [binary for binary in (True, False) if _of_kind(cells, binary)]
    figure = Figure(figsize=(1 + 4.6 * len(kinds), 4.2), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for panel, binary in zip(panels, kinds, strict=True):
        some = _of_kind(cells, binary)
        for method, colour in _COLOURS.items():
            of = [cell for cell in _counted(some, method) if cell.rules is not None]
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

    kinds = [binary for binary in (True, False) if _of_kind(cells, binary)]
    most = max(len(_sets(_of_kind(cells, binary))) for binary in kinds)
    figure = Figure(figsize=(1 + 4.6 * len(kinds), 1.4 + 0.42 * most), layout="constrained")
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    shown: dict[str, Any] = {}
    for panel, binary in zip(panels, kinds, strict=True):
        some = _of_kind(cells, binary)
        sets = _sets(some)
        for at, data in enumerate(sets):
            for k, method in enumerate(OURS):
                cell = some.get((data, method))
                if cell is None or cell.rules is None:
                    continue
                place = at + 0.26 * (k - 1)
                bar = panel.barh(place, max(cell.rules, 0.1), 0.24, color=_COLOURS[method])
                shown.setdefault(METHODS[method].label, bar)
                if cell.published is not None:
                    mark = panel.plot(cell.published.rules, place, "o", color="#111827", ms=3.5)
                    shown["published"] = mark[0]
        panel.set_xscale("log")
        panel.set_xlim(left=0.8)
        panel.set_ylim(len(sets) - 0.5, -0.5)
        panel.set_yticks(range(len(sets)), [SOURCES[data].title for data in sets], fontsize=8)
        panel.set_xlabel("rules")
        panel.set_title("two classes" if binary else "several classes", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    texts = [*(text for text in shown if text != "published"), "published"]
    marks = [shown[text] for text in texts if text in shown]
    texts = [text for text in texts if text in shown]
    figure.legend(marks, texts, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
