"""``kernelweave predict``: predictions for the rows of a table, as CSV."""

from __future__ import annotations

import argparse
from typing import Any

from .parsing import add_command

_HELP = """\
The table needs the columns the model was fitted to, in any order; others are ignored. A model that
was learned from pairs judges pairs of rows, which --pairs names.

examples:
  kernelweave predict patients.kw new.csv > predictions.csv
  kernelweave predict patients.kw new.parquet --decision --out predictions.csv"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, "predict", "predict the rows of a table, as CSV", _HELP)
    parser.add_argument("model", metavar="MODEL", help="a file that fit or save wrote")
    parser.add_argument("file", metavar="FILE", help="a .csv, .tsv, .txt (or .gz) or .parquet file")
    parser.add_argument("--out", metavar="CSV", help="where to write; standard output by default")
    parser.add_argument(
        "--decision", action="store_true", help="add decision values (classifiers only)"
    )
    parser.add_argument(
        "--pairs", metavar="CSV", help="pairs to judge: two columns of row numbers, from 0"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON in place of CSV")
    parser.add_argument("--quiet", action="store_true", help="no notes on how the file was read")


def run(args: argparse.Namespace) -> int:
    """Load, predict and write."""
    from kernelweave.io import load
    from kernelweave.tables import (
        predict_pairs_table,
        predict_table,
        read_for,
        read_pairs_table,
    )

    from .live import live
    from .output import write_frame
    from .parsing import complain

    model = load(args.model)
    table = read_for(model, args.file)
    if not args.quiet:
        for note in table.notes:
            complain(f"note: {note}", 0)
    with live(args.quiet) as announce:
        announce(f"predicting {len(table.frame)} rows", 0.0)
        if args.pairs is not None:
            pairs, _ = read_pairs_table(args.pairs, labelled=False)
            predictions = predict_pairs_table(model, table.frame, pairs)
        else:
            predictions = predict_table(model, table.frame, decision=args.decision)
    write_frame(predictions, args.out, as_json=args.json)
    return 0
