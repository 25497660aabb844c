"""``kernelweave suspects``: labels that look wrong."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .parsing import add_command, add_output, count, shown

_JUDGEMENT = 4  # columns that are always shown: row, quality, given, suggested

_HELP = """\
Models of kernelweave fit --method noisy have judged their training labels. Any other classifier is
fitted again to folds of the table it was learned from, which --data names. Rows are counted from 0
below the header. Quality is between 0 (surely wrong) and 1.

examples:
  kernelweave fit patients.csv --target outcome --method noisy
  kernelweave suspects patients.kw --top 20 --data patients.csv"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, "suspects", "show labels that look wrong", _HELP)
    parser.add_argument("model", metavar="MODEL", help="a file that fit wrote")
    parser.add_argument(
        "--top", type=count, metavar="N", default=20, help="the N most suspicious ones (20)"
    )
    parser.add_argument("--data", metavar="FILE", help="the table the model was learned from")
    parser.add_argument("--out", metavar="CSV", help="write them to a file, with all columns")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Load, judge and show."""
    from kernelweave.io import load
    from kernelweave.tables import find_suspects, read_for
    from kernelweave.tables.predicting import last_step
    from kernelweave.tables.reading import read_table

    from .console import open_console
    from .live import live
    from .output import records, write_frame

    model = load(args.model)
    frame = None
    if args.data is not None:
        frame = (read_for(model, args.data) if _prepared(model) else read_table(args.data)).frame
    with live(args.quiet) as announce:
        announce("judging the labels", 0.0)
        found = find_suspects(model, frame, limit=args.top)
    if args.out is not None:
        write_frame(found, args.out)
    if args.json:
        level = getattr(last_step(model), "noise_level_", None)
        report = {
            "noise_level": None if level is None else float(level),
            "suspects": records(found),
        }
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    elif not args.quiet:
        console = open_console()
        _print(console, found)
        level = getattr(last_step(model), "noise_level_", None)
        about = "" if level is None else f" About {level:.0%} of all labels may be wrong."
        found_any = f"The {len(found)} most suspicious labels, the worst first."
        console.print(
            f"{found_any if len(found) else 'No label looks wrong.'}{about}", soft_wrap=True
        )
    return 0


def _print(console: Any, found: Any) -> None:
    """Print as many columns of the table as fit beside the judgement."""
    from .printing import print_table

    names: list[str] = []
    columns: list[list[str]] = []
    width = 0
    for name in found.columns:
        form = ".3f" if name == "quality" else ".3g"  # a probability, which may be tiny
        texts = [f"{v:{form}}" if isinstance(v, float) else shown(v, 60) for v in found[name]]
        width += 3 + max(map(len, [shown(name, 60), *texts]))
        if len(names) >= _JUDGEMENT and width > console.width:
            break
        names.append(str(name))
        columns.append(texts)
    words = [k for k, name in enumerate(names) if found[name].dtype.kind not in "biufc"]
    print_table(console, names, zip(*columns, strict=True), texts=words)


def _prepared(model: Any) -> bool:
    return hasattr(model, "steps")
