"""``kernelweave compare``: our methods beside those of scikit-learn."""

from __future__ import annotations

from typing import Any

import click

from .commands import (
    COUNT,
    FILE,
    POSITIVE,
    command,
    gap_options,
    option,
    output_options,
    read_sources,
    seed_option,
    table_options,
)
from .terminal import (
    open_console,
    print_facts,
    print_notes,
    print_table,
    records,
    require,
    write_json,
)

_HELP = """\
Nested cross-validation: every method sees the same folds and chooses its options on the training
part alone. kernelweave auto is what fit would write; the others are a tuned SVM, a tuned linear
model and gradient boosting, and CatBoost, LightGBM and xRFM where they are installed. Says which
is best, and how far the others are behind, with 95% intervals from the same rows.

examples:
  kernelweave compare patients.csv --target outcome
  kernelweave compare patients.csv --target outcome --time 600
  kernelweave compare patients.csv --target outcome --methods auto rules --plot all.png"""


@command("compare", _HELP)
@table_options
@option(
    "--methods",
    "ours: auto, metric, linear, svm, mkl, radius, noisy, rules, structure (auto)",
    "METHOD...",
    click.Choice(
        ["auto", "metric", "linear", "svm", "mkl", "radius", "noisy", "rules", "structure"]
    ),
    multiple=True,
    default=["auto"],
)
@gap_options
@option("--folds", "outer folds (5)", "N", COUNT, default=5)
@option("--time", "about how long it may take, in seconds (120)", "SECONDS", POSITIVE)
@option("--max-rows", "maximum number of rows (as many as the time allows)", "N", COUNT)
@option("--plot", "the picture (FILE with -compare.png)", "PNG", FILE)
@option("--no-plot", "draw nothing", is_flag=True)
@seed_option
@output_options
def compare(args: Any) -> int:
    """Compare, print and draw."""
    from pathlib import Path

    from kernelweave.errors import DataError

    stem = Path(args.file).name.split(".")[0]
    plot = None if args.no_plot else Path(args.plot or f"{stem}-compare.png")
    if plot is not None and not plot.parent.is_dir():
        raise DataError(f"--plot: {plot} is in a folder that does not exist.")

    from kernelweave.tables import Settings, compare_table, read_table

    from .live import live

    console = None if args.quiet or args.json else open_console()
    table = read_table(args.file)
    with live(args.quiet) as announce:
        found = compare_table(
            table.frame,
            args.target,
            methods=args.methods,
            task=args.task,
            ignore=args.ignore,
            groups=args.groups,
            folds=args.folds,
            max_rows=args.max_rows,
            seconds=args.time,
            settings=Settings(seed=args.seed),
            sources=read_sources(args),
            missing=args.missing,
            announce=announce,
        )
    notes = [*table.notes, *found.notes]
    if plot is not None:
        require("matplotlib", "The picture", ", or use --no-plot")
        found.plot().figure.savefig(plot, dpi=120)
    scores = found.to_frame()
    if args.json:
        report = {
            "measure": found.measure,
            "rows": found.n_rows,
            "notes": notes,
            "verdict": found.summarize(),
            "methods": records(scores),
            "scores": {name: values.tolist() for name, values in found.scores.items()},
            "plot": None if plot is None else str(plot),
        }
        return write_json(report)
    if console is not None:
        for line in found.summarize():
            console.print(line, soft_wrap=True)
        lines = [
            (name, f"{mean:.4f}", f"{error:.4f}", f"{spent:.1f} s")
            for name, mean, error, _, _, spent in scores.itertuples(index=False)
        ]
        print_table(console, ["method", found.measure, "standard error", "one fold"], lines)
        print_notes(console, notes)
        facts = [("rows", f"{found.n_rows}, in {args.folds} folds")]
        print_facts(console, [*facts, *([("picture", str(plot))] if plot else [])])
    return 0
