"""``kernelweave review``: a page on which a person goes through doubtful labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .commands import COUNT, FILE, check_output, command, model_argument, option, quiet_option
from .terminal import standard_output

_HELP = """\
Writes one HTML page that needs no network. It shows one row at a time: the given label, the label
that the model suggests, what contradicts the given one, and similar rows. K keeps the label, C
changes it, U is for unsure, Z takes a decision back, E exports all decisions as decisions.csv. What
was decided is kept in the browser until then. kernelweave fit --decisions takes the file; the page
of the model fitted with it asks what would teach most next.

Models of --method noisy and of other classifiers are asked for labels that look wrong, those of
--method annotators for rows whose class is least certain, those of --method pairs for pairs: of a
file with --pairs, or drawn from the table.

examples:
  kernelweave fit patients.csv --target outcome --method noisy
  kernelweave review patients.kw --data patients.csv
  kernelweave fit patients.csv --target outcome --method noisy --decisions decisions.csv
  kernelweave review patients.kw --data patients.csv --decisions decisions.csv"""


@command("review", _HELP)
@model_argument
@option("--data", "the table the model was learned from", "FILE", FILE, required=True)
@option("--decisions", "decisions of earlier rounds, not asked again", "CSV", FILE)
@option("--pairs", "pairs of rows to ask about: two columns of row numbers", "FILE", FILE)
@option("--top", "number of questions (5 % of the rows, at least 20)", "N", COUNT)
@option("--out", "where to write (MODEL with ending .review.html)", "HTML", FILE)
@quiet_option
def review(args: Any) -> int:
    """Load, find what to ask, and write the page."""
    from kernelweave.io import load
    from kernelweave.report.review import write_review
    from kernelweave.tables import make_review, read_for

    from .live import live

    out = Path(args.out or f"{Path(args.model).stem}.review.html")
    check_output("--out", out)
    model = load(args.model)
    frame = read_for(model, args.data).frame
    with live(args.quiet) as announce:
        announce("looking for doubtful labels", 0.0)
        found = make_review(
            model,
            frame,
            limit=args.top,
            decisions=args.decisions,
            pairs=None if args.pairs is None else _read_pairs(args.pairs),
        )
        write_review(found, out)
    if not args.quiet:
        standard_output().write(f"{out}\n")
    return 0


def _read_pairs(file: str) -> tuple[Any, Any]:
    from kernelweave.tables import read_pairs_table, read_table

    labelled = len(read_table(file).frame.columns) > 2
    return read_pairs_table(file, labelled=labelled)
