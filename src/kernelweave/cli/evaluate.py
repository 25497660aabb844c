"""``kernelweave evaluate``: how good a model file is on new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .commands import (
    FILE,
    check_output,
    command,
    file_argument,
    model_argument,
    option,
    output_options,
    seed_option,
)
from .terminal import (
    NAME,
    open_console,
    print_facts,
    print_notes,
    print_table,
    shown,
    write_json,
)

if TYPE_CHECKING:
    from kernelweave.tables import Evaluation

_CELL = 12  # letters of a class in the head of a confusion matrix
_MOST_CLASSES = 40  # in a table of classes

_HELP = """\
Scores a model, as it is, on rows with a known target: nothing is fitted. The rows must be new, not
those of fit. Says first how good it is beside the best constant prediction for these rows, then
whether probabilities and intervals can be trusted. 95% intervals are by 1000 resamples of the rows,
those of shares exact; they say how a score varies with the rows, not with the model.

--against compares another model on the same rows. --by scores groups of rows. --sources exchanges
the values of one column, or one view of several columns, between rows and tells what is lost.

examples:
  kernelweave evaluate patients.kw new.csv
  kernelweave evaluate patients.kw new.csv --by hospital --page patients-new.html
  kernelweave evaluate patients.kw new.csv --against rules.kw
  kernelweave evaluate patients.kw new.csv --sources --json > scores.json"""


@command("evaluate", _HELP)
@model_argument
@file_argument
@option(
    "--target",
    "what is predicted (the column that fit was given); repeated for several targets",
    "COLUMN",
    multiple=True,
)
@option("--by", "score the groups of this column too", "COLUMN")
@option("--against", "compare this model on the same rows", "MODEL", FILE)
@option("--sources", "score without each source", is_flag=True)
@option("--weight", "a column that says how much each row counts", "COLUMN")
@option("--page", "write a page with curves too", "HTML", FILE)
@option("--positive", "of two classes, the one that F1 and precision refer to", "CLASS")
@seed_option
@output_options
def evaluate(args: Any) -> int:
    """Load, predict, score and print."""
    if args.page is not None:
        check_output("--page", Path(args.page))  # before the work

    from kernelweave.io import describe, load
    from kernelweave.tables import evaluate_table
    from kernelweave.tables.findings import (
        describe_differences,
        describe_evaluation,
        evaluation_as_json,
    )
    from kernelweave.tables.new_rows import target_names
    from kernelweave.tables.predicting import read_with_targets

    from .live import live

    console = None if args.quiet or args.json else open_console()
    model = load(args.model)
    other = None if args.against is None else load(args.against)
    targets = target_names(model, args.target)
    table = read_with_targets([model, *([] if other is None else [other])], args.file, targets)
    with live(args.quiet) as announce:
        found = evaluate_table(
            model,
            table.frame,
            targets,
            weight=args.weight,
            by=args.by,
            against=other,
            against_name=Path(args.against or "").name,
            sources=args.sources,
            positive=args.positive,
            seed=args.seed,
            announce=announce,
        )
    record = describe(args.model)["record"]
    warnings = _seen(model, record, table.frame, targets)
    if args.page is not None:
        _write_page(args, model, table.frame, found, record, warnings)
    verdict = describe_evaluation(found)
    if found.differences:
        verdict += describe_differences(found.differences, str(found.against))
    notes = [*table.notes, *found.notes]
    if args.json:
        report = {"model": args.model, "file": args.file, "page": args.page}
        report |= {"warnings": warnings, "verdict": verdict}
        return write_json({**report, **evaluation_as_json(found), "notes": notes})
    if console is not None:
        _print(console, args, found, [*warnings, *verdict], notes)
    return 0


def _seen(model: Any, record: Any, frame: Any, targets: tuple[str, ...]) -> list[str]:
    """Return a warning where rows of the table are those that the model was fitted to."""
    if record is None or record.row_hashes is None or len(targets) != 1:
        return []
    from kernelweave.tables.recording import count_seen

    known = frame[frame[targets[0]].notna()]
    seen = count_seen(model, record.row_hashes, known, known[targets[0]])
    if not seen:
        return []
    many = (
        "All rows are rows" if seen == len(known) else f"{seen} of the {len(known)} rows are rows"
    )
    if seen == 1 < len(known):
        many = f"1 of the {len(known)} rows is a row"
    return [f"Warning: {many} that the model was fitted to, so scores are too good."]


def _write_page(
    args: Any, model: Any, frame: Any, found: Evaluation, record: Any, warnings: list[str]
) -> None:
    from kernelweave import report

    named = hasattr(model, "feature_names_in_")
    report.write(
        model,
        args.page,
        frame if named else None,
        cv=None,
        record=record,
        evaluation=found,
        data_name=Path(args.file).name,
        warnings=[text.partition(": ")[2] for text in warnings],
        facts={"Model file": Path(args.model).name, "Data file": Path(args.file).name},
    )


def _print(
    console: Any, args: Any, found: Evaluation, verdict: list[str], notes: list[str]
) -> None:
    """Print the answer, then the scores, then what they are made of."""
    from kernelweave.tables import findings

    console.print(_subject(args, found), soft_wrap=True)
    for line in verdict:
        console.print(line, soft_wrap=True)
    print_table(console, *findings.score_table(found), texts=(0,))
    if notes:
        print_notes(console, notes)
        console.print()
    if not found.outputs:
        _print_details(console, found)
    for block in found.blocks():
        _titled(console, shown(block.title, NAME))
        if block.remark:
            console.print(block.remark, soft_wrap=True)
        print_table(console, block.names, block.rows, texts=block.texts)
    if args.page is not None:
        print_facts(console, [("page", args.page)])


def _subject(args: Any, found: Evaluation) -> str:
    listed = ", ".join(shown(repr(name), NAME) for name in found.targets)
    target = "target" if len(found.targets) == 1 else "targets"
    what = "" if found.classes is None else f" ({len(found.classes)} classes)"
    rows = "1 row" if found.n_rows == 1 else f"{found.n_rows} rows"
    return f"{args.model} on {args.file}: {rows}, {target} {listed}{what}."


def _titled(console: Any, title: str) -> None:
    console.print(f"{title}:", soft_wrap=True)


def _print_details(console: Any, found: Evaluation) -> None:
    """Print classes and confusions, coverage, and errors."""
    from kernelweave.tables import findings

    if found.class_scores and len(found.class_scores) <= _MOST_CLASSES:
        _titled(console, "Classes, with exact 95% intervals")
        print_table(console, *findings.class_table(found))
    if found.confusion is not None:
        names, rows = findings.confusion_table(found)
        names = [names[0], *(shown(name, _CELL) for name in names[1:])]
        cells = [max(len(n), *(len(r[k]) for r in rows)) for k, n in enumerate(names)]
        if sum(cells) + 3 * len(cells) <= console.width:
            _titled(console, "Rows by true class (down) and predicted class (across)")
            print_table(console, names, rows)
        else:
            _titled(console, "Classes that are confused most often")
            print_table(console, *findings.confused_table(found), texts=(0, 1))
    if found.coverage:
        _titled(console, "Share of the rows in their intervals, sets or quantiles")
        print_table(console, *findings.coverage_table(found))
    if facts := findings.describe_residuals(found):
        print_facts(console, facts)
        console.print()
