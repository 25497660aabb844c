"""``kernelweave cluster``: groups of similar rows."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .parsing import add_command, add_ignore, add_output, add_seed, complain, count, shown

_HELP = """\
Writes the cluster of every row, the largest cluster being 0. Without hints all columns count the
same. With --target, a column that names the class of a few rows, or --pairs, a file of pairs that
belong together or apart, kernels are weighted by them first; with --model the kernel of a model is
used.

examples:
  kernelweave cluster customers.csv --clusters 4 > clusters.csv
  kernelweave cluster customers.csv --target segment --out clusters.csv
  kernelweave cluster papers.csv --pairs same_author.csv --clusters 10 --out clusters.csv"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, "cluster", "group similar rows of a table", _HELP)
    parser.add_argument("file", metavar="FILE", help="a .csv, .tsv, .txt (or .gz) or .parquet file")
    parser.add_argument(
        "--clusters", type=count, metavar="N", help="how many (by the eigenvalues of the kernel)"
    )
    add_ignore(parser)
    hints = parser.add_mutually_exclusive_group()
    hints.add_argument("--target", metavar="COLUMN", help="classes of some of the rows")
    hints.add_argument(
        "--pairs", metavar="CSV", help="two columns of row numbers, from 0, and same or different"
    )
    hints.add_argument("--model", metavar="MODEL", help="use the kernel of this model")
    parser.add_argument("--out", metavar="CSV", help="where to write; standard output by default")
    add_seed(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Read, cluster and write."""
    from kernelweave.io import load
    from kernelweave.tables import cluster_table, read_for, read_pairs_table, read_table
    from kernelweave.tables.reading import import_pandas

    from .live import live
    from .output import write_frame

    pandas = import_pandas()
    model = None if args.model is None else load(args.model)
    table = read_table(args.file) if model is None else read_for(model, args.file)
    pairs = None if args.pairs is None else read_pairs_table(args.pairs)
    with live(args.quiet) as announce:
        announce("clustering", 0.0)
        found = cluster_table(
            table.frame,
            args.clusters,
            ignore=args.ignore,
            target=args.target,
            pairs=pairs,
            model=model,
            seed=args.seed,
        )
    notes = [*table.notes, *found.notes]
    if args.out is not None:
        write_frame(pandas.DataFrame({"cluster": found.labels}), args.out)
    if args.json:
        weights = None if found.kernels is None else found.kernels.to_dict("records")
        report = {
            "sizes": found.sizes,
            "agreement": found.agreement,
            "kernels": weights,
            "notes": notes,
            "clusters": found.labels.tolist(),
        }
        sys.stdout.write(json.dumps(report) + "\n")
        return 0
    if args.quiet:
        return 0
    if args.out is None:
        write_frame(pandas.DataFrame({"cluster": found.labels}), None)
    for note in notes:
        complain(f"note: {note}", 0)
    complain(f"{len(found.sizes)} clusters of {', '.join(map(str, found.sizes))} rows", 0)
    if found.agreement is not None:
        whom = shown(repr(args.target), 60)
        complain(f"agreement with {whom} (adjusted Rand index): {found.agreement:.3f}", 0)
    return 0
