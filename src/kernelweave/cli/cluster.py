"""``kernelweave cluster``: groups of similar rows."""

from __future__ import annotations

from typing import Any

from .commands import (
    COUNT,
    FILE,
    command,
    exclude,
    file_argument,
    gap_options,
    ignore_option,
    option,
    output_options,
    read_sources,
    seed_option,
)
from .terminal import shown, write_frame, write_json, write_message

_HELP = """\
Writes the cluster of every row, the largest cluster being 0. Without hints all columns count the
same. With --target, a column with the classes of a few rows, or --pairs, a file of pairs that
belong together or apart, kernel weights are learned from them first; with --model the kernel of a
model is used.

examples:
  kernelweave cluster customers.csv --clusters 4 > clusters.csv
  kernelweave cluster customers.csv --target segment --out clusters.csv
  kernelweave cluster papers.csv --pairs same_author.csv --clusters 10 --out clusters.csv"""


@command("cluster", _HELP)
@file_argument
@option("--clusters", "how many (by the eigenvalues of the kernel)", "N", COUNT)
@ignore_option
@option("--target", "classes of some of the rows", "COLUMN")
@option("--pairs", "two columns of row numbers, from 0, and same or different", "CSV", FILE)
@option("--model", "use the kernel of this model", "MODEL", FILE)
@gap_options
@option("--out", "where to write; standard output by default", "CSV", FILE)
@seed_option
@output_options
def cluster(args: Any) -> int:
    """Read, cluster and write."""
    exclude(args, "target", "pairs", "model")

    from kernelweave.io import load
    from kernelweave.tables import cluster_table, read_for, read_pairs_table, read_table
    from kernelweave.tables.reading import import_pandas

    from .live import live

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
            sources=read_sources(args),
            missing=args.missing,
            seed=args.seed,
        )
    notes = [*table.notes, *found.notes]
    labels = pandas.DataFrame({"cluster": found.labels})
    if args.out is not None:
        write_frame(labels, args.out)
    if args.json:
        report = {
            "sizes": found.sizes,
            "agreement": found.agreement,
            "kernels": None if found.kernels is None else found.kernels.to_dict("records"),
            "notes": notes,
            "clusters": found.labels.tolist(),
        }
        return write_json(report, indent=None)
    if args.quiet:
        return 0
    if args.out is None:
        write_frame(labels, None)
    for note in notes:
        write_message(f"note: {note}")
    write_message(f"{len(found.sizes)} clusters of {', '.join(map(str, found.sizes))} rows")
    if found.agreement is not None:
        column = shown(repr(args.target), 60)
        write_message(f"agreement with {column} (adjusted Rand index): {found.agreement:.3f}")
    return 0
