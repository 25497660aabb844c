"""The comparison on one table as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from .page import make_table
from .store import Record
from .tables_data import (
    BINARY,
    CLASSES,
    DIVISIONS,
    GROUPS,
    REGRESSION,
    ROWS,
    TABLES,
    TASKS,
    TEST_ROWS,
)
from .tables_methods import METHODS
from .tables_summary import (
    OURS,
    Cells,
    Difference,
    Row,
    compare,
    complete,
    firsts,
    growth_rows,
    main_rows,
    mean_ranks,
    ranked,
    summarise,
)

_LETTERS = {REGRESSION: "r", BINARY: "2", CLASSES: "m"}
_BEHIND = 0.005  # a rival is listed as better from this difference on
_FAR_BEHIND = 0.05  # the front door must say that the rival is better
_REFERENCES = ("svm", "linear")


def to_markdown(records: Iterable[Record]) -> str:
    """Return the page: ranks, differences, losses and scores of each group; growth; columns."""
    cells = summarise(records)
    parts = [
        "# One table: learned metrics beside gradient boosting\n",
        "R2 for regression (r), area under the ROC curve for two classes (2), accuracy for several "
        f"(m). Training rows: at most {ROWS['development']} (development, "
        f"{_count(DIVISIONS['development'])}) or {ROWS['held-out']} (held-out and further, "
        f"{_count(DIVISIONS['held-out'])}), and at most 70 % of the table; the next "
        f"{TEST_ROWS} rows at most are the test rows. Seconds are processor seconds of one thread "
        "for a fit with its tuning.\n",
    ]
    for group in GROUPS:
        rows = main_rows(cells, group)
        if rows:
            parts += _group(group, rows)
    if growth_rows(cells):
        parts += ["## More rows\n", _growth(cells)]
    parts += ["## Columns that are left out\n", _dropped(cells)]
    return "\n".join(part for part in parts if part)


def _count(divisions: int) -> str:
    return "one division" if divisions == 1 else f"{divisions} divisions"


def _group(group: str, rows: dict[str, Row]) -> list[str]:
    methods = ranked(rows)
    parts = [f"## {group.capitalize()} tables\n", _ranks(rows, methods)]
    if OURS in methods:
        parts += [
            "The learned metric minus each method: tables on which it is better, mean ± standard "
            "error over tables, median.\n",
            _differences(rows),
            _losses(rows),
            _behind(rows, methods),
        ]
    if any("fit" in row for row in rows.values()):
        parts.append(_front_door(rows))
    parts += ["Scores, the best of each table in bold:\n", _scores(rows)]
    return parts


def _ranks(rows: dict[str, Row], methods: Sequence[str]) -> str:
    counted = complete(rows, methods)
    if not counted:
        return ""
    ranks, best = mean_ranks(rows, methods), firsts(rows, methods)
    by_task = {
        task: mean_ranks(_of_task(rows, task), methods)
        for task in TASKS
        if complete(_of_task(rows, task), methods)
    }
    table = []
    for method in sorted(methods, key=ranks.__getitem__):
        seconds = np.mean([row[method].seconds for row in counted.values()])
        table.append(
            [
                METHODS[method].label,
                f"{ranks[method]:.2f}",
                *(f"{of[method]:.2f}" for of in by_task.values()),
                str(best[method]),
                f"{seconds:.2f}",
            ]
        )
    left_out = [table_name for table_name in rows if table_name not in counted]
    text = f"Mean rank of {len(methods)} methods on {len(counted)} tables"
    if left_out:
        text += f" ({', '.join(left_out)} left out: not every method has a result)"
    head = ["method", "mean rank", *by_task, "first", "seconds"]
    return f"{text}.\n\n{make_table(head, table)}"


def _of_task(rows: dict[str, Row], task: str) -> dict[str, Row]:
    return {table: row for table, row in rows.items() if TABLES[table].task == task}


def _differences(rows: dict[str, Row]) -> str:
    # The same tables for all rivals, so that their columns can be compared.
    rows = complete(rows, ranked(rows)) or rows
    tasks = [task for task in TASKS if _of_task(rows, task)]
    table = []
    for method in METHODS:
        found = compare(rows, OURS, method)
        if method == OURS or found is None:
            continue
        by_task = (compare(_of_task(rows, task), OURS, method) for task in tasks)
        table.append(
            [
                METHODS[method].label,
                f"{_show(found)}, {found.median:+.4f}",
                *("" if of is None else _show(of) for of in by_task),
            ]
        )
    return make_table(["learned metric minus", "all", *tasks], table)


def _show(found: Difference) -> str:
    error = "" if np.isnan(found.error) else f" ± {found.error:.4f}"
    return f"{found.n_wins} of {found.n_tables}, {found.mean:+.4f}{error}"


def _losses(rows: dict[str, Row]) -> str:
    table = []
    for method in METHODS:
        found = compare(rows, OURS, method, of_loss=True)
        if method != OURS and found is not None:
            error = "" if np.isnan(found.error) else f" ± {found.error:.4f}"
            wins = f"{found.n_wins} of {found.n_tables}"
            table.append([METHODS[method].label, wins, f"{-found.mean:+.4f}{error}"])
    if not table:
        return ""
    head = ["log loss of the learned metric", "is lower on", "by (mean difference)"]
    return make_table(head, table)


def _behind(rows: dict[str, Row], methods: Sequence[str]) -> str:
    """List the tables on which a rival is clearly better."""
    found = []
    for table, row in rows.items():
        rivals = [method for method in methods if method in row and method != OURS]
        if OURS not in row or not rivals:
            continue
        best = max(rivals, key=lambda method: row[method].score)
        if (gap := row[best].score - row[OURS].score) > _BEHIND:
            found.append((gap, f"{table} ({METHODS[best].label}, {-gap:+.3f})"))
    if not found:
        return f"No method is better by more than {_BEHIND:g} on any of these tables.\n"
    listed = ", ".join(text for _, text in sorted(found, reverse=True))
    return f"The best rival is better by more than {_BEHIND:g} on: {listed}.\n"


def _front_door(rows: dict[str, Row]) -> str:
    """Compare `kernelweave fit` with the references that it must not fall behind."""
    gains, far = [], []
    for table, row in complete(rows, ("fit", *_REFERENCES)).items():
        gains.append(row["fit"].score - max(row[method].score for method in _REFERENCES))
        best = max(row, key=lambda method: row[method].score)
        if row[best].score - row["fit"].score > _FAR_BEHIND:
            far.append(f"{table} ({METHODS[best].label})")
    if not gains:
        return ""
    text = (
        f"`kernelweave fit` minus the better of SVM and linear: {np.mean(gains):+.4f} in the mean "
        f"of {len(gains)} tables, {min(gains):+.4f} on the worst. "
    )
    if far:
        return (
            text + f"Another method is better by more than {_FAR_BEHIND:g} on {', '.join(far)}.\n"
        )
    return text + f"No method is better by more than {_FAR_BEHIND:g} on any table.\n"


def _scores(rows: dict[str, Row]) -> str:
    there = {method for row in rows.values() for method in row}
    methods = [method for method in METHODS if method in there]
    table = []
    for name, row in rows.items():
        best = max(round(cell.score, 4) for cell in row.values())
        some = next(iter(row.values()))
        columns = row[OURS].n_columns if OURS in row else None
        size = f"{some.n_train}" if columns is None else f"{some.n_train} x {columns}"
        line = [name, _LETTERS[TABLES[name].task], size]
        for method in methods:
            cell = row.get(method)
            text = "" if cell is None else f"{cell.score:.4f}"
            line.append(f"**{text}**" if cell and round(cell.score, 4) == best else text)
        table.append(line)
    return make_table(["table", "task", "rows", *(METHODS[m].label for m in methods)], table)


def _growth(cells: Cells) -> str:
    table = []
    by_table = growth_rows(cells)
    there = {m for of in by_table.values() for row in of.values() for m in row}
    methods = [method for method in METHODS if method in there]
    for name, of in by_table.items():
        for _, row in sorted(of.items()):
            line = [name, str(next(iter(row.values())).n_train)]
            for method in methods:
                cell = row.get(method)
                line.append("" if cell is None else f"{cell.score:.4f} ({cell.seconds:.1f} s)")
            table.append(line)
    return make_table(["table", "training rows", *(METHODS[m].label for m in methods)], table)


def _dropped(cells: Cells) -> str:
    """List the dropped columns: keys, copies of the target, and what is only known with it."""
    lines = []
    for name in dict.fromkeys(table for table, _ in cells):
        table = TABLES[name]
        if table.dropped or table.removed:
            what = [f"`{column}`" for column in table.dropped]
            what += [f"rows of the class {label}" for label in table.removed]
            lines.append(f"- {name} (`{table.source}`): {', '.join(what)}")
    return "\n".join(lines) + "\n" if lines else "None.\n"
