"""``kernelweave compare``: our methods beside those of scikit-learn."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from kernelweave.errors import DataError

from . import parsing

_HELP = """\
Nested cross-validation: every method sees the same folds and chooses its options on the training
part alone. Prints the mean score with its standard error and the time for a fold, and draws a
picture. Differences within two standard errors mean little.

examples:
  kernelweave compare patients.csv --target outcome
  kernelweave compare patients.csv --target outcome --methods mkl noisy --folds 10 --plot all.png"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = parsing.add_command(
        commands, "compare", "set our methods beside those of scikit-learn", _HELP
    )
    parsing.add_table(parser)
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=("mkl", "radius", "noisy", "rules", "structure"),
        default=["mkl", "rules"],
        metavar="METHOD",
        help="ours: mkl, radius, noisy, rules, structure (mkl rules)",
    )
    parser.add_argument(
        "--folds", type=parsing.count, metavar="N", default=5, help="outer folds (5)"
    )
    parser.add_argument(
        "--max-rows", type=parsing.count, metavar="N", default=1000, help="rows at most (1000)"
    )
    parser.add_argument("--plot", metavar="PNG", help="the picture (FILE with -compare.png)")
    parser.add_argument("--no-plot", action="store_true", help="draw nothing")
    parsing.add_seed(parser)
    parsing.add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Compare, print and draw."""
    stem = Path(args.file).name.split(".")[0]
    plot = None if args.no_plot else Path(args.plot or f"{stem}-compare.png")
    if plot is not None and not plot.parent.is_dir():
        raise DataError(f"--plot: {plot} is in a folder that does not exist.")

    from kernelweave.tables import Settings, compare_table, read_table

    from .console import open_console
    from .live import live
    from .output import records
    from .printing import print_facts, print_table

    console = None if args.quiet or args.json else open_console()
    table = read_table(args.file)
    with live(args.quiet) as announce:
        found = compare_table(
            table.frame,
            args.target,
            methods=args.methods,
            task=args.task,
            ignore=args.ignore,
            folds=args.folds,
            max_rows=args.max_rows,
            settings=Settings(seed=args.seed),
            announce=announce,
        )
    notes = [*table.notes, *found.notes]
    if plot is not None:
        draw(found, plot)
    scores = found.to_frame()
    if args.json:
        report = {
            "measure": found.measure,
            "rows": found.n_rows,
            "notes": notes,
            "methods": records(scores),
            "scores": {name: values.tolist() for name, values in found.scores.items()},
            "plot": None if plot is None else str(plot),
        }
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    elif console is not None:
        for note in notes:
            console.print(f"Note: {note}.", soft_wrap=True)
        lines = [
            (m, f"{mean:.4f}", f"{error:.4f}", f"{spent:.1f} s")
            for m, mean, error, spent in scores.itertuples(index=False)
        ]
        names = ["method", found.measure, "standard error", "one fold"]
        print_table(console, names, lines)
        console.print("Differences within two standard errors mean little.")
        facts = [("rows", f"{found.n_rows}, in {args.folds} folds")]
        print_facts(console, [*facts, *([("picture", str(plot))] if plot else [])])
    return 0


def draw(comparison: Any, path: Path) -> None:
    """Draw a comparison into a file."""
    try:
        ax = comparison.plot()
    except ImportError as error:
        raise DataError(
            'The picture needs matplotlib; install it with pip install "kernelweave[cli]", or use '
            "--no-plot."
        ) from error
    ax.figure.savefig(path, dpi=120)
