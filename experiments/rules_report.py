"""Ours beside the published numbers as a Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .page import make_table
from .rules_cells import OURS, Cell, Cells, compare, counted, mean_of, of_kind, sets
from .rules_data import SOURCES
from .rules_protocol import METHODS, TOL
from .rules_published import read_shapes
from .rules_significance import significance

SHAPES = read_shapes()
RIVALS = ("hkl-l1", "rulefit", "slipper", "ender")
ADDED = (
    "ghkl-1.1-own",
    "ghkl-1.1-single",
    "ender-200",
    "tree",
    "boosting",
    "majority",
)


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
        some = of_kind(cells, binary)
        if not some:
            continue
        parts += [
            f"## Table {number}: {what}\n",
            _table(some, OURS, _show_score, _mean_score),
            "### Rules and their mean length\n",
            _table(some, OURS, _show_rules, _mean_rules),
            *_others("### Other systems of the paper\n", some, RIVALS),
            significance(some, OURS + RIVALS),
            *_others("### What the paper does not have\n", some, ADDED),
        ]
    binary_cells = of_kind(cells, True)
    if binary_cells:
        parts += [
            "## Table 5: area under the ROC curve\n",
            _table(binary_cells, OURS + RIVALS, _show_area, _mean_area),
        ]
    parts += ["## rho = 1.1 against rho = 2\n", *_paired(cells)]
    parts += ["## Differences from the published values\n", _differences(cells)]
    parts += ["## Propositions\n", _propositions(cells)]
    parts += [
        "## Work\n",
        "Processor seconds of one thread for a whole search, with all values of C and folds; "
        "active conjunctions of the final fit; divisions whose C is the smallest / largest of the "
        "grid; largest relative gap of the final fits.\n",
        _work(cells),
        _gaps(cells),
    ]
    return "\n".join(part for part in parts if part)


def _others(title: str, cells: Cells, methods: Sequence[str]) -> list[str]:
    methods = [m for m in methods if counted(cells, m)]
    if not methods:
        return []
    parts = [title, _table(cells, methods, _show_score, _mean_score)]
    readable = [m for m in methods if any(cell.rules is not None for cell in counted(cells, m))]
    if readable:
        parts += ["Their rules:\n", _table(cells, readable, _show_rules, _mean_rules)]
    return parts


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
    for data in sets(cells):
        found = [cells.get((data, method)) for method in methods]
        rows.append([SOURCES[data].title, *("" if c is None else show(c) for c in found)])
    rows.append(["mean", *(total(counted(cells, method)) for method in methods)])
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
    ours = f"{mean_of([c.rules for c in there]):.1f}, {_length(mean_of([c.length for c in there]))}"
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
    ours = mean_of([cell.auc for cell in of])
    theirs = mean_of([None if cell.published is None else cell.published.auc for cell in of])
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
        some = of_kind(cells, binary)
        rows = []
        for method in METHODS:
            of = counted(some, method)
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


def _paired(cells: Cells) -> list[str]:
    rows = []
    for data in sets(cells):
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
    even = [c for c in counted(cells, "rulefit-imodels") if c.even is not None]
    if even:
        lines.append(
            "\nThe RuleFit of imodels predicts the second class where its log odds exceed 1/2. "
            f"With even odds its mean F1 is {np.mean([c.even for c in even if c.even]):.3f} in "
            f"place of {np.mean([c.score for c in even]):.3f}."
        )
    return "\n".join(lines) + "\n"


def _propositions(cells: Cells) -> str:
    wrong = []
    for data in sets(cells):
        shape = SHAPES[SOURCES[data].published]
        ours = next(c.n_propositions for (other, _), c in cells.items() if other == data)
        if ours != shape.n_propositions:
            wrong.append(f"{SOURCES[data].title} {ours}, published {shape.n_propositions}")
    if not wrong:
        return "All sets have as many propositions as published.\n"
    return f"As many as published, except: {'; '.join(wrong)}.\n"


def _work(cells: Cells) -> str:
    head = ["data"]
    for method in OURS:
        head += [METHODS[method].label + part for part in (", s", ", active", ", edge", ", gap")]
    rows = []
    for data in sets(cells):
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
        f"all {n_fits} fits, including those on folds, {n_short} did not reach it. Removing rules "
        f"below a thousandth of the largest changed the prediction of {changed} training rows in "
        "all final fits together.\n"
    )
