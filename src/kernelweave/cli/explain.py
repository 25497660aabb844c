"""``kernelweave explain``: which columns made the predictions of a model."""

from __future__ import annotations

import re
from typing import Any

import click

from kernelweave.errors import InputError

from .commands import COUNT, FILE, command, file_argument, model_argument, option, output_options
from .terminal import (
    NAME,
    NUMBER,
    open_console,
    print_table,
    records,
    shown,
    write_frame,
    write_json,
    write_message,
)

_BY = ["column", "source", "kernel", "rule"]
_LEAST = 30  # letters for the names of a table

_HELP = """\
Shapley values: the prediction of a row minus the average prediction of the background, shared among
the columns. Without --rows a table shows how much each column changes predictions on average, over
200 rows of the table (100 for models that compare columns together). Rows are counted from 0 below
the header. Of several classes single rows show the predicted one. The table needs the columns the
model was fitted to; the target is ignored.

examples:
  kernelweave explain patients.kw new.csv --background patients.csv
  kernelweave explain patients.kw patients.csv --rows 0,5,7
  kernelweave explain patients.kw new.csv --background patients.csv --out values.csv"""


def _row_numbers(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"must be row numbers such as 0,5,7, got {value!r}")
    return [int(part) for part in parts]


@command("explain", _HELP)
@model_argument
@file_argument
@option("--background", "rows to compare with; those of FILE by default", "FILE", FILE)
@option("--rows", "explain these rows one by one, such as 0,5,7", "NUMBERS", _row_numbers)
@option("--by", "what values belong to (column)", type=click.Choice(_BY), default="column")
@option("--top", "show the N largest values (8)", "N", COUNT, default=8)
@option("--out", "write the values of all rows, or of --rows", "CSV", FILE)
@output_options
def explain(args: Any) -> int:
    """Load, explain and show."""
    from kernelweave.io import load
    from kernelweave.tables import explain_table, read_for

    from .live import live

    model = load(args.model)
    table = read_for(model, args.file)
    behind = None if args.background is None else read_for(model, args.background)
    if not args.quiet:
        for note in dict.fromkeys((*table.notes, *(behind.notes if behind else ()))):
            write_message(f"note: {note}")
    with live(args.quiet) as announce:
        announce("explaining", 0.0)
        try:
            found, rows = explain_table(
                model,
                table.frame,
                None if behind is None else behind.frame,
                rows=args.rows,
                every=args.out is not None,
                by=args.by,
            )
        except InputError as error:  # arguments by the names that the command has for them
            said = re.sub("^(by|background):", r"--\1:", str(error))
            raise InputError(re.sub("^X:", "The table", said)) from None
    if args.out is not None:
        frame = found.to_frame()
        frame["row"] = [rows[i] for i in frame["row"]]
        write_frame(frame, args.out)
    if args.json:
        return write_json(_as_json(found, rows, args))
    if not args.quiet:
        console = open_console()
        if args.rows is None:
            _print_importance(console, found, args)
        else:
            _print_rows(console, found, rows, args.top)
        _print_remarks(console, found)
    return 0


def _as_json(found: Any, rows: list[int], args: Any) -> dict[str, Any]:
    """Return the importance of all players, or the values of single rows."""
    report: dict[str, Any] = {
        "by": args.by,
        "quantity": found.quantity,
        "outputs": list(found.output_names),
        "rows": len(rows),
        "background_rows": found.n_background,
        "permutations": found.n_permutations,
    }
    if args.rows is None:
        return report | {"importance": records(found.importance())}
    frame = found.to_frame()
    frame["row"] = [rows[i] for i in frame["row"]]
    return report | {"values": records(frame)}


def _print_importance(console: Any, found: Any, args: Any) -> None:
    """Print the players with the largest values on average."""
    from .console import IMPORTANCE, importance_remark, show_importance

    means, errors = found.mean_sizes()
    n_outputs = len(found.output_names)
    means, errors = (array.reshape(-1, n_outputs) for array in (means, errors))
    order = (-means.sum(axis=1)).argsort(kind="stable")[: args.top]
    lines: list[tuple[str, ...]]
    if n_outputs == 1:
        names = [args.by, *IMPORTANCE]
        lines = [
            (found.feature_names[k], *show_importance(means[k, 0], errors[k, 0])) for k in order
        ]
    elif NUMBER * n_outputs + _LEAST <= console.width:
        names = [args.by, *(shown(name, 24) for name in found.output_names)]
        lines = [(found.feature_names[k], *(f"{value:.3g}" for value in means[k])) for k in order]
    else:
        names = [args.by, IMPORTANCE[0]]
        lines = [(found.feature_names[k], f"{means[k].mean():.3g}") for k in order]
    print_table(console, names, lines, most=NAME)
    whose = f" for {shown(found.output_names[0], NAME)}" if found.quantity == "decision" else ""
    whose = whose if n_outputs == 1 else " of each class" if found.quantity == "decision" else ""
    more = len(found.feature_names) - len(order)
    console.print(importance_remark(found.quantity, whose, len(found), more), soft_wrap=True)


def _print_rows(console: Any, found: Any, rows: list[int], top: int) -> None:
    """Print the values of single rows; of several classes those of the predicted one."""
    for i, row in enumerate(rows):
        one = found[i]
        if len(found.output_names) > 1:
            one = one[..., int(one.predictions.argmax())]
        first, *others = one.text(top).splitlines()
        console.print(f"row {row}: {first}", soft_wrap=True)
        for line in others:
            console.print(line, soft_wrap=True)
        console.print()


def _print_remarks(console: Any, found: Any) -> None:
    if found.n_permutations:
        console.print(
            f"Values are sampled with {found.n_permutations:,} permutations, because the model "
            "compares columns together.",
            soft_wrap=True,
        )
    console.print(
        f"Each row is compared with {found.n_background} rows of the background; values describe "
        "the model, not causes.",
        soft_wrap=True,
    )
