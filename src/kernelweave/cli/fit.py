"""``kernelweave fit``: learn from a table and write a model file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelweave.errors import DataError

from . import parsing

if TYPE_CHECKING:
    from kernelweave.tables import TableFit

_HELP = """\
Looks at the columns first. Numbers and dates are offered as Gaussian kernels of five widths, each
alone and all together, and as a linear kernel; categories are compared by equality, text by its
words, and matrices of similarities are taken as they are (--gram). Columns that hold one value
only, count the rows or look like names are left out; missing values are filled. Every step is said.

C is chosen by cross-validation. The score is measured on held-out rows beside a plain SVM; the
model that is written is then fitted to all rows, or to as many as the method can take in reasonable
time. Everything done to the columns is part of the model, so predict takes the raw file.

methods:
  auto, mkl   weights for kernels, for classes and quantities
  radius      classes by margin and radius: the scale of kernels cannot matter
  noisy       classes of which some labels are wrong; then see kernelweave suspects
  rules       a sum of readable rules, for classes and quantities; then see kernelweave rules
  structure   classes, by products and sums of groups of kernels
  pairs       which kernels tell rows of one class from others; then see kernelweave cluster

examples:
  kernelweave fit patients.csv --target outcome
  kernelweave fit patients.csv --target outcome --method rules
  kernelweave fit patients.csv --target outcome --method radius --C 10
  kernelweave fit houses.parquet --target price --ignore agent --gram photos=photos.npy --C 10"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = parsing.add_command(commands, "fit", "learn from a table", _HELP)
    parsing.add_table(parser)
    parser.add_argument(
        "--gram",
        metavar="NAME=FILE",
        type=parsing.named_file,
        action="append",
        default=[],
        help="a Gram matrix in a .npy file, one row for each row of the table, or for each number "
        "in its column NAME; may be repeated",
    )
    parser.add_argument("--out", metavar="MODEL", help="the model file (FILE with ending .kw)")
    _add_method(parser.add_argument_group("method"))
    _add_evaluation(parser.add_argument_group("evaluation and output"))


def _add_method(group: Any) -> None:
    group.add_argument(
        "--method",
        choices=("auto", "mkl", "radius", "noisy", "rules", "structure", "pairs"),
        default="auto",
        help="see above (auto)",
    )
    group.add_argument(
        "--C",
        type=parsing.cost,
        metavar="NUMBER",
        default="auto",
        help="cost of errors, auto by cross-validation; quantity: in units of its standard "
        "deviation; radius: for a kernel of unit radius",
    )
    group.add_argument(
        "--norm",
        type=parsing.norm,
        metavar="P",
        help="mkl: 1 keeps few kernels (default), above 1 all of them, 'uniform' averages them; "
        "radius: 1 or 2, by which the same weights are scaled, or 'uniform'",
    )
    group.add_argument(
        "--max-rows",
        type=parsing.count,
        metavar="NUMBER",
        help="rows to fit to at most, drawn by chance (mkl: all, or 5000 where these would take "
        "long; noisy 4000; radius, structure 2000; pairs 20000; rules 10000)",
    )
    number: dict[str, Any] = {"metavar": "NUMBER"}
    group.add_argument(
        "--tol",
        type=parsing.positive,
        help="relative gap to stop at (0.001; rules 0.01)",
        **number,
    )
    group.add_argument(
        "--max-iter", type=int, help="maximum number of inner solves (200; rules 2000)", **number
    )
    yes_or_no = argparse.BooleanOptionalAction
    group.add_argument(
        "--per-feature", action=yes_or_no, default=True, help="offer kernels on single columns"
    )
    group.add_argument(
        "--standardize", action=yes_or_no, default=True, help="put numeric columns on one scale"
    )


def _add_evaluation(group: Any) -> None:
    group.add_argument(
        "--test-share",
        type=parsing.share,
        metavar="SHARE",
        default=0.25,
        help="share of rows held out for the score (0.25); 0 skips it",
    )
    parsing.add_seed(group)
    group.add_argument(
        "--report",
        metavar="HTML",
        help="where to write a page about the model (beside the model file)",
    )
    group.add_argument("--no-report", action="store_true", help="write no page")
    group.add_argument("--strict", action="store_true", help="exit with 1 if tol is not reached")
    parsing.add_output(group)


def run(args: argparse.Namespace) -> int:
    """Fit, evaluate, write and report."""
    out = Path(args.out or f"{Path(args.file).name.split('.')[0]}.kw")
    _check_place("--out", out)  # better said before a long fit than after
    page = None if args.no_report else Path(args.report or out.with_suffix(".html"))
    if args.report:
        _check_place("--report", Path(args.report))

    from kernelweave.io import save
    from kernelweave.tables import Settings, fit_table, read_table

    from .console import open_console, summarize, warn_unless_converged
    from .live import live

    console = None if args.quiet or args.json else open_console()
    table = read_table(args.file)
    with live(args.quiet) as announce:
        fit = fit_table(
            table.frame,
            args.target,
            method=args.method,
            task=args.task,
            C=args.C,
            ignore=args.ignore,
            grams={name: read_gram(name, file) for name, file in args.gram},
            settings=Settings(
                norm=args.norm,
                tol=args.tol,
                max_iter=args.max_iter,
                per_feature=args.per_feature,
                standardize=args.standardize,
                seed=args.seed,
            ),
            test_share=args.test_share,
            max_rows=args.max_rows,
            announce=announce,
        )
    save(fit.model, out)
    summary = summarize(fit.model[-1])
    report = {
        "file": args.file,
        "model": str(out),
        "report": write_page(fit, page, args),
        "target": args.target,
        "task": "regression" if fit.problem.regression else "classification",
        "n_classes": None if fit.problem.regression else int(fit.problem.y.nunique()),
        "method": fit.method,
        "rows": len(fit.problem.y),
        "fitted_rows": fit.n_rows,
        "columns": list(fit.problem.X.columns),
        "kinds": {c.name: c.kind for c in fit.problem.kinds},
        "notes": [*table.notes, *fit.notes],
        "C_search": None if fit.search is None else fit.search.to_dict(),
        "held_out": fit.held_out,
        "seconds": fit.seconds,
        **summary,
    }
    if args.json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    elif console is not None:
        _print(console, report)
    warn_unless_converged(summary)
    return 1 if args.strict and not summary["converged"] else 0


def _check_place(option: str, path: Path) -> None:
    if not path.parent.is_dir() or path.is_dir():
        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise DataError(f"{option}: {path} {what}.")


def read_gram(name: str, file: str) -> Any:
    """Read a Gram matrix; files that could run code are refused."""
    import numpy as np

    try:
        gram = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(f"--gram {name}: {file} is not a .npy file of numbers.") from error
    if not isinstance(gram, np.ndarray) or gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        shape = getattr(gram, "shape", "several arrays")
        raise DataError(f"--gram {name}: the matrix in {file} must be square, got {shape}.")
    return gram


def write_page(fit: TableFit, page: Path | None, args: argparse.Namespace) -> str | None:
    """Write the page about the model, unless none is wanted."""
    from kernelweave import report

    if page is None:
        return None
    facts: dict[str, Any] = {"file": args.file, "target": args.target, "method": fit.method}
    rows, y = fit.problem.X, fit.problem.y
    report.write(fit.model, page, rows, y, cv=None, held_out=_held_out(fit), facts=facts)
    return str(page)


def _held_out(fit: TableFit) -> Any:
    """Return the score on held-out rows as the page shows it."""
    from kernelweave.report import HeldOut

    found = fit.held_out
    if found is None:
        return None
    fewer = f", fitted to {found['plain_svm_rows']} rows" if found["plain_svm_rows"] else ""
    beside = {f"plain SVM{fewer}": found["plain_svm"], "one answer for all": found["guess"]}
    last = "" if found["same_model"] else f"The model was then fitted to all {fit.n_rows} rows."
    return HeldOut(
        "R\u00b2" if found["measure"] == "R2" else found["measure"],
        found["score"],
        found["rows"],
        found["interval"],
        {name: value for name, value in beside.items() if value is not None},
        last,
    )


def _print(console: Any, report: dict[str, Any]) -> None:
    from .console import certificate, noise_facts, radius_facts
    from .printing import print_facts, print_kernels, print_rules

    task = "a quantity" if report["task"] == "regression" else f"{report['n_classes']} classes"
    console.print(
        f"{report['file']}: {report['rows']} rows, {len(report['columns'])} columns to learn from, "
        f"target {parsing.shown(repr(report['target']), 60)} ({task}).",
        soft_wrap=True,
    )
    for note in report["notes"]:
        console.print(f"Note: {note}.", soft_wrap=True)
    (print_rules if "rules" in report else print_kernels)(console, report)
    facts = [certificate(report), *radius_facts(report), *noise_facts(report)]
    if search := report["C_search"]:
        tried = ", ".join(
            f"{C:g}: {score:.3f}"
            for C, score in zip(search["values"], search["mean_scores"], strict=True)
        )
        measure = "R2" if report["task"] == "regression" else "accuracy"
        facts.append(("C", f"{search['C']:g}, by {measure} on {search['folds']} folds ({tried})"))
    facts.append(("fit", f"{report['method']}, {report['seconds']:.1f} s"))
    if held_out := report["held_out"]:
        facts += score_facts(held_out, report["fitted_rows"])
    facts.append(("model", f"{report['model']} (fitted to {report['fitted_rows']} rows)"))
    if report["report"]:
        facts.append(("report", report["report"]))
    print_facts(console, facts)


def score_facts(held_out: dict[str, Any], n_rows: int) -> list[tuple[str, str]]:
    """Return the score on held-out rows beside those of the plain SVM and of a guess."""
    where = f"{held_out['measure']} on {held_out['rows']} held-out rows"
    form = ".1%" if held_out["measure"] == "accuracy" else ".3f"
    plain, known = held_out["plain_svm"], held_out["plain_svm_rows"]
    fewer = f" from {known} rows" if known and known < n_rows - held_out["rows"] else ""
    beside = "" if plain is None else f"plain SVM{fewer}: {plain:{form}}, "
    guess = f"one answer for all: {held_out['guess']:{form}}"
    interval = ""
    if held_out["interval"] is not None:
        low, high = held_out["interval"]
        interval = f", 95% interval {low:{form}} to {high:{form}}"
    return [(where, f"{held_out['score']:{form}}{interval}   ({beside}{guess})")]
