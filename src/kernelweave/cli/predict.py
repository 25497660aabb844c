"""``kernelweave predict``: predictions for the rows of a table, as CSV."""

from __future__ import annotations

from typing import Any

from .commands import COVERAGE, FILE, command, file_argument, model_argument, option
from .terminal import write_frame, write_message

_HELP = """\
The table needs the columns the model was fitted to, in any order; others are ignored, or copied
with --keep. --interval 0.9 adds lower and upper ends between which nine of ten targets should be,
--set 0.9 the classes that cannot be excluded, joined by |. A model that was learned from pairs
scores pairs of rows, which --pairs names.

examples:
  kernelweave predict patients.kw new.csv > predictions.csv
  kernelweave predict patients.kw new.csv --keep id,name --proba --set 0.9
  kernelweave predict houses.kw new.csv --keep id --interval 0.9
  kernelweave predict patients.kw new.parquet --proba --out predictions.csv"""


@command("predict", _HELP)
@model_argument
@file_argument
@option("--out", "where to write; standard output by default", "CSV", FILE)
@option("--proba", "add the probability of every class (classifiers only)", is_flag=True)
@option("--interval", "add an interval of this coverage (regression only)", "SHARE", COVERAGE)
@option("--set", "add the set of classes of this coverage (classifiers only)", "SHARE", COVERAGE)
@option(
    "--keep", "copy these columns, separated by commas; may be repeated", "NAMES", multiple=True
)
@option("--decision", "add decision values (classifiers only)", is_flag=True)
@option("--pairs", "pairs to score: two columns of row numbers, from 0", "CSV", FILE)
@option("--json", "print as JSON in place of CSV", is_flag=True)
@option("--quiet", "no notes on how the file was read", is_flag=True)
def predict(args: Any) -> int:
    """Load, predict and write."""
    from kernelweave.io import load_steps
    from kernelweave.tables import predict_pairs_table, predict_table, read_for, read_pairs_table
    from kernelweave.tables.predicting import read_kept

    from .live import live

    model = load_steps(args.model)
    keep = read_kept(args.file, args.keep)
    table = read_for(model, args.file, () if keep is None else list(keep.columns))
    if not args.quiet:
        for note in table.notes:
            write_message(f"note: {note}")
    with live(args.quiet) as announce:
        announce(f"predicting {len(table.frame)} rows", 0.0)
        if args.pairs is not None:
            pairs, _ = read_pairs_table(args.pairs, labelled=False)
            predictions = predict_pairs_table(model, table.frame, pairs)
        else:
            predictions = predict_table(
                model,
                table.frame,
                decision=args.decision,
                probabilities=args.proba,
                interval=args.interval,
                sets=args.set,
                keep=keep,
            )
    write_frame(predictions, args.out, as_json=args.json)
    return 0
