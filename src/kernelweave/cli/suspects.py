"""``kernelweave suspects``: labels that look wrong."""

from __future__ import annotations

from typing import Any

from .commands import COUNT, FILE, command, model_argument, option, output_options
from .terminal import NAME, open_console, print_table, records, shown, write_frame, write_json

_ALWAYS = 4  # columns that are always shown: row, quality, given, suggested

_HELP = """\
Models of kernelweave fit --method noisy have scored their training labels, those of --method
annotators the answers of each annotator. Any other classifier is
fitted again to folds of the table it was learned from, which --data names. Rows are counted from 0
below the header. Quality is between 0 (certainly wrong) and 1.

examples:
  kernelweave fit patients.csv --target outcome --method noisy
  kernelweave suspects patients.kw --top 20 --data patients.csv"""


@command("suspects", _HELP)
@model_argument
@option("--top", "the N most suspicious ones (20)", "N", COUNT, default=20)
@option("--data", "the table the model was learned from", "FILE", FILE)
@option("--out", "write them to a file, with all columns", "CSV", FILE)
@output_options
def suspects(args: Any) -> int:
    """Load, score and show."""
    from kernelweave.io import load
    from kernelweave.tables import find_suspects, read_for, read_table
    from kernelweave.tables.predicting import last_step

    from .live import live

    model = load(args.model)
    estimator, frame = last_step(model), None
    if args.data is not None:
        prepared = model is not estimator
        frame = (read_for(model, args.data) if prepared else read_table(args.data)).frame
    with live(args.quiet) as announce:
        announce("scoring the labels", 0.0)
        found = find_suspects(model, frame, limit=args.top)
    if args.out is not None:
        write_frame(found, args.out)
    level = getattr(estimator, "noise_level_", None)
    counted = getattr(estimator, "counted_noise_level_", None)
    if args.json:
        shown_levels = {
            "noise_level": None if level is None else float(level),
            "counted_noise_level": None if counted is None else float(counted),
        }
        return write_json({**shown_levels, "suspects": records(found)})
    if not args.quiet:
        console = open_console()
        _print(console, found)
        noun = "answer" if "annotator" in found else "label"
        other = "" if counted is None else f" ({counted:.0%} by counts)"
        about = "" if level is None else f" About {level:.0%}{other} of all {noun}s may be wrong."
        found_any = f"The {len(found)} most suspicious {noun}s, the worst first."
        console.print(
            f"{found_any if len(found) else f'No {noun} looks wrong.'}{about}", soft_wrap=True
        )
    return 0


def _print(console: Any, found: Any) -> None:
    """Print as many columns of the table as fit beside the scores."""
    names: list[str] = []
    columns: list[list[str]] = []
    width = 0
    for name in found.columns:
        form = ".3f" if name == "quality" else ".3g"  # a probability, which may be tiny
        texts = [f"{v:{form}}" if isinstance(v, float) else shown(v, NAME) for v in found[name]]
        width += 3 + max(map(len, [shown(name, NAME), *texts]))
        if len(names) >= _ALWAYS and width > console.width:
            break
        names.append(str(name))
        columns.append(texts)
    words = [k for k, name in enumerate(names) if found[name].dtype.kind not in "biufc"]
    print_table(console, names, zip(*columns, strict=True), texts=words)
