"""``kernelweave fit``: learn from a table and write a model file."""

from __future__ import annotations

from typing import Any

import click

from .commands import (
    COST,
    COUNT,
    FILE,
    NORM,
    POSITIVE,
    SHARE,
    check_output,
    command,
    gap_options,
    option,
    output_options,
    read_sources,
    seed_option,
    table_options,
)
from .terminal import open_console, print_facts, print_notes, print_table, shown, write_json

_METHODS = [
    "auto",
    "metric",
    "linear",
    "svm",
    "mkl",
    "radius",
    "noisy",
    "annotators",
    "rules",
    "structure",
    "pairs",
]

_MOST_PEOPLE = 12  # annotators that are shown
_SCORES = ["auto", "log_loss", "roc_auc", "accuracy", "balanced_accuracy", "r2", "absolute_error"]

_HELP = """\
Compares models on the same folds of the table and writes the best one, fitted to all rows: a model
in a learned metric, a linear model, an SVM, multiple kernel learning where there is time or text,
or a combination of them if it is significantly better. Gradient boosting is compared as a
reference. Two classes are compared by the area under the ROC curve, more by log-loss, numbers by
R2; both scales of a skewed target are tried. The output says first what was chosen, against what
and by how much.

Columns that hold one value only, count the rows, identify them or look like names are left out;
dates become years and places in the year, week and day; missing values are filled and marked
unless --missing says otherwise. A note reports every step. Everything done to the columns is part
of the model, so predict takes the raw file.

methods:
  auto        the best of those below that are marked with *, or a combination
  metric *    one kernel in a metric that is learned from the table
  linear *    a linear model
  svm *       one Gaussian kernel
  mkl *       weights for kernels on all columns and on single ones
  radius      classes by margin and radius: the scale of kernels cannot matter
  noisy       classes of which some labels are wrong; then see kernelweave suspects and review
  annotators  answers of several people, given with --answers; then see kernelweave report
  rules       a sum of readable rules, for classification and regression; then see kernelweave rules
  structure   classes, by products and sums of groups of kernels
  pairs       kernels that separate the classes; then see kernelweave cluster

A method that is asked for chooses its C on the same folds, and is compared with the others there.
With --gram, --source, --C, --norm, --tol or --max-iter, auto is mkl.

examples:
  kernelweave fit patients.csv --target outcome
  kernelweave fit patients.csv --target outcome --time 60
  kernelweave fit patients.csv --target outcome --scoring roc_auc --class-weight balanced
  kernelweave fit patients.csv --target outcome --method rules
  kernelweave fit patients.csv --target outcome --source scan=scan_* --source lab=hdl,ldl \
    --missing complete
  kernelweave fit patients.csv --target outcome --method radius --C 10
  kernelweave fit patients.csv --target outcome --method noisy --decisions decisions.csv
  kernelweave fit songs.csv --target genre --method annotators --answers answers.csv
  kernelweave fit houses.parquet --target price --ignore agent --gram photos=photos.npy --C 10"""


def _named_file(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise click.BadParameter(f"must be NAME=FILE.npy, got {text!r}")
    return name, file


@command("fit", _HELP)
@table_options
@option(
    "--gram",
    "a Gram matrix in a .npy file, one row for each row of the table, or for each number in its "
    "column NAME; may be repeated",
    "NAME=FILE",
    _named_file,
    multiple=True,
)
@gap_options
@option("--out", "the model file (FILE with ending .kw)", "MODEL", FILE)
@option("--method", "see above (auto)", type=click.Choice(_METHODS), default="auto")
@option(
    "--scoring",
    "what models are compared by (auto: roc_auc of two classes, log_loss of more, r2 of numbers)",
    type=click.Choice(_SCORES),
    default="auto",
)
@option(
    "--class-weight",
    "balanced: all classes count the same, however many rows they have",
    type=click.Choice(["balanced"]),
)
@option(
    "--time",
    "about how long the comparison may take, in seconds (3 for 1000 rows, 60 at most)",
    "SECONDS",
    POSITIVE,
)
@option(
    "--C C",
    "cost of errors, auto by rows left out; regression: in units of the standard deviation of the "
    "target; radius: for a kernel of unit radius",
    "NUMBER",
    COST,
    default="auto",
)
@option(
    "--norm",
    "mkl: 1 keeps few kernels (default), above 1 all of them, 'uniform' averages them; radius: 1 "
    "or 2, by which the same weights are scaled, or 'uniform'",
    "P",
    NORM,
)
@option(
    "--max-rows",
    "maximum number of rows to use, drawn at random (50000; mkl: all, or 5000 where these would "
    "take long; noisy 4000; radius, structure 2000; pairs 20000; rules 10000)",
    "NUMBER",
    COUNT,
)
@option("--tol", "relative gap to stop at (0.001)", "NUMBER", POSITIVE)
@option("--max-iter", "maximum number of inner solves (200; rules 2000)", "NUMBER", int)
@option("--per-feature/--no-per-feature", "offer kernels on single columns", default=True)
@option(
    "--test-share",
    "share of rows held out once, in place of folds; 0: a method is not compared with others",
    "SHARE",
    SHARE,
)
@option(
    "--answers",
    "annotators: a table of row (or a column that identifies it), annotator and answer",
    "FILE",
    FILE,
)
@option(
    "--class-prior",
    "annotators: equal, where classes are about equally frequent",
    type=click.Choice(["equal"]),
)
@option(
    "--decisions",
    "decisions of a person, exported from the page of kernelweave review; they are certain",
    "CSV",
    FILE,
)
@seed_option
@option("--report", "page about the model (beside the model file)", "HTML", FILE)
@option("--no-report", "write no page", is_flag=True)
@option("--strict", "exit with 1 if tol is not reached", is_flag=True)
@output_options
def fit(args: Any) -> int:
    """Compare, fit, write and report."""
    from pathlib import Path

    _check_answers(args)
    out = Path(args.out or f"{Path(args.file).name.split('.')[0]}.kw")
    check_output("--out", out)  # before a long fit
    page = None if args.no_report else Path(args.report or out.with_suffix(".html"))
    if args.report:
        check_output("--report", Path(args.report))

    from kernelweave.io import save
    from kernelweave.report import write
    from kernelweave.tables import read_table
    from kernelweave.tables.recording import record_fit
    from kernelweave.tables.sureness import offers
    from kernelweave.tables.verdicts import (
        choice_as_json,
        describe_choice,
        name_unmeasured,
        score_table,
    )

    from .console import summarize, warn_unless_converged
    from .live import live

    console = None if args.quiet or args.json else open_console()
    table = read_table(args.file)
    with live(args.quiet) as announce:
        found = (_fit_answers if args.answers else _fit_table)(args, table.frame, announce)
    record = record_fit(found, {"file": Path(args.file).name})
    save(found.model, out, record=record)
    if page is not None:
        X, y = found.problem.X, found.problem.y
        write(found.model, page, X, y, cv=None, record=record)
    summary, problem = summarize(found.model[-1], record), found.problem
    report = {
        "file": args.file,
        "model": str(out),
        "report": None if page is None else str(page),
        "target": args.target,
        "task": "regression" if problem.regression else "classification",
        "n_classes": None if problem.regression else int(problem.y.nunique()),
        "method": found.method,
        "choice": None if found.choice is None else choice_as_json(found.choice),
        "verdict": []
        if found.choice is None
        else [*describe_choice(found.choice), name_unmeasured(args.file, args.target)],
        "rows": len(problem.y),
        "fitted_rows": found.n_rows,
        "columns": list(problem.X.columns),
        "kinds": {c.name: c.kind for c in problem.kinds},
        "warnings": list(found.warnings),
        "notes": [*table.notes, *found.notes],
        "C_search": None if found.search is None else found.search.to_dict(),
        "seconds": found.seconds,
        "annotators": _annotators(found.model[-1]),
        "offers": offers(found.model),
        "offers_seconds": found.sure_seconds,
        **summary,
    }
    if args.json:
        write_json(report)
    elif console is not None:
        _print(console, report, None if found.choice is None else score_table(found.choice))
    warn_unless_converged(summary)
    return 1 if args.strict and not summary["converged"] else 0


def _fit_table(args: Any, frame: Any, announce: Any) -> Any:
    """Compare models, and fit the chosen one."""
    from kernelweave.tables import Settings, fit_table

    return fit_table(
        frame,
        args.target,
        method=args.method,
        task=args.task,
        C=args.C,
        ignore=args.ignore,
        groups=args.groups,
        grams={name: _read_gram(name, file) for name, file in args.gram},
        settings=Settings(
            norm=args.norm,
            tol=args.tol,
            max_iter=args.max_iter,
            per_feature=args.per_feature,
            seed=args.seed,
            class_weight=args.class_weight,
        ),
        test_share=args.test_share,
        max_rows=args.max_rows,
        scoring=args.scoring,
        seconds=args.time,
        decisions=args.decisions,
        sources=read_sources(args),
        missing=args.missing,
        announce=announce,
    )


def _fit_answers(args: Any, frame: Any, announce: Any) -> Any:
    """Fit to the answers of several annotators."""
    from kernelweave.tables import fit_answers, read_table

    return fit_answers(
        frame,
        read_table(args.answers).frame,
        target=args.target,
        ignore=args.ignore,
        grams={name: _read_gram(name, file) for name, file in args.gram},
        class_prior=args.class_prior,
        decisions=args.decisions,
        missing=args.missing,
        seed=args.seed,
        announce=announce,
    )


def _check_answers(args: Any) -> None:
    """Refuse options that do not go together with answers."""
    if (args.method == "annotators") != (args.answers is not None):
        raise click.UsageError(
            "--method annotators and --answers FILE must be given together.",
            click.get_current_context(),
        )
    if args.groups and args.answers:
        raise click.UsageError(
            "--groups: not with --method annotators, which compares nothing.",
            click.get_current_context(),
        )
    if args.source and args.answers:
        raise click.UsageError(
            "--source: not with --method annotators.", click.get_current_context()
        )
    if args.class_prior and not args.answers:
        raise click.UsageError(
            "--class-prior: only with --method annotators.", click.get_current_context()
        )


def _read_gram(name: str, file: str) -> Any:
    """Read a Gram matrix; files that could run code are refused."""
    import numpy as np

    from kernelweave.errors import DataError

    try:
        gram = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"--gram {name}: {file} is not a .npy file of numbers.") from error
    if not isinstance(gram, np.ndarray) or gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        shape = getattr(gram, "shape", "several arrays")
        raise DataError(f"--gram {name}: the matrix in {file} must be square, got {shape}.")
    return gram


def _print(
    console: Any, report: dict[str, Any], table: tuple[list[str], list[list[str]]] | None
) -> None:
    """Print what was chosen, against what, then notes, and what the model consists of."""
    from .console import model_facts, print_importance, print_weights

    console.print(_subject(report), soft_wrap=True)
    for line in report["verdict"]:
        console.print(line, soft_wrap=True)
    if table is not None:
        print_table(console, *table)
    print_notes(console, report["warnings"], "Warning")
    print_notes(console, report["notes"])
    facts = []
    if report["importance"]:
        print_importance(console, report["importance"])
    if report["annotators"]:
        _print_annotators(console, report["annotators"])
    elif report["method"] not in ("auto", "metric", "linear", "svm"):
        print_weights(console, report)
        facts = model_facts(report)
    if search := report["C_search"]:
        tried = zip(search["values"], search["losses"], strict=True)
        listed = ", ".join(f"{C:g}: {loss:.4g}" for C, loss in tried)
        facts.append(("C", f"{search['C']:g}, by the loss of {search['scoring']} ({listed})"))
    elif report["method"] == "rules":
        facts.append(("C", f"{report['C']:.3g}, chosen with the number of rules on folds"))
    facts += _sure_facts(report)
    facts.append(("model", f"{report['model']} (fitted to {report['fitted_rows']} rows)"))
    if report["report"]:
        facts.append(("report", report["report"]))
    print_facts(console, facts)


def _annotators(estimator: Any) -> list[dict[str, Any]]:
    """Return annotators with their answers and accuracy, the least accurate first."""
    from kernelweave._declaration import has_aspect

    if not has_aspect(estimator, "annotators"):
        return []
    found: list[dict[str, Any]] = estimator.to_frame().to_dict("records")
    return found


def _print_annotators(console: Any, people: list[dict[str, Any]]) -> None:
    rows = [
        [shown(one["annotator"], 40), str(one["n_answers"]), f"{one['accuracy']:.1%}"]
        for one in people[:_MOST_PEOPLE]
    ]
    print_table(console, ["annotator", "answers", "accuracy"], rows, texts=[0])
    if len(people) > _MOST_PEOPLE:
        console.print(f"The {_MOST_PEOPLE} least accurate of {len(people)} annotators.")


def _sure_facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how to get probabilities, sets or intervals from the model, in one line."""
    options = {"probabilities": "--proba", "sets": "--set 0.9", "intervals": "--interval 0.9"}
    known = [f"{name} ({options[name]})" for name in report["offers"]]
    if not known:
        return []
    spent = report["offers_seconds"]
    cost = f"; they took {spent:.1f} s" if spent >= 0.05 else ""
    return [("predict also gives", f"{' and '.join(known)}{cost}")]


def _subject(report: dict[str, Any]) -> str:
    regression = report["task"] == "regression"
    task = "regression" if regression else f"{report['n_classes']} classes"
    return (
        f"{report['file']}: {report['rows']} rows, {len(report['columns'])} columns to learn from, "
        f"target {shown(repr(report['target']), 60)} ({task})."
    )
