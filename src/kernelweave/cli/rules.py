"""``kernelweave rules``: the rules of a model as text, SQL or Python."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .parsing import add_command, add_output, complain, count

_HELP = """\
For models of kernelweave fit --method rules. The score of a row is the intercept and the weights of
the rules that hold for it. --sql and --python write a complete program that scores rows without
kernelweave.

examples:
  kernelweave rules patients.kw
  kernelweave rules patients.kw --sql --dialect postgresql --table visits
  kernelweave rules patients.kw --python > score.py"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands, "rules", "show the rules of a model, as text, SQL or code", _HELP
    )
    parser.add_argument("model", metavar="MODEL", help="a file with a rule ensemble")
    parser.add_argument("--top", type=count, metavar="N", help="only the N that matter most")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--sql", action="store_true", help="write an SQL query")
    form.add_argument("--python", action="store_true", help="write a Python function")
    parser.add_argument(
        "--dialect",
        choices=("standard", "sqlite", "postgresql", "duckdb", "mysql"),
        default="standard",
        help="of the SQL (standard)",
    )
    parser.add_argument("--table", metavar="NAME", default="data", help="of the SQL (data)")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Load and write."""
    from kernelweave.errors import InputError
    from kernelweave.io import load
    from kernelweave.tables.predicting import last_step

    from .console import open_console, summarize
    from .output import standard_output
    from .printing import print_rules

    model = load(args.model)
    ensemble = last_step(model)
    if not hasattr(ensemble, "rules_"):
        raise InputError(
            f"{args.model} holds a {type(ensemble).__name__}, which has no rules; fit with "
            "--method rules."
        )
    if args.quiet:
        return 0
    if args.sql or args.python:
        _warn_of_dates(model, ensemble)
        text = ensemble.to_sql(args.dialect, table=args.table) if args.sql else ensemble.to_python()
        if args.json:
            text = json.dumps({"sql" if args.sql else "python": text})
        standard_output().write(text if text.endswith("\n") else f"{text}\n")
        return 0
    summary = summarize(ensemble)
    summary["rules"] = summary["rules"][: args.top]
    if args.json:
        keys = ("classes", "intercept", "rules", "relative_gap", "converged")
        sys.stdout.write(json.dumps({key: summary[key] for key in keys}, indent=2) + "\n")
        return 0
    print_rules(open_console(), summary, limit=args.top or len(summary["rules"]))
    return 0


def _warn_of_dates(model: Any, ensemble: Any) -> None:
    """Say which columns a program has to be given in another form than the table has them."""
    dates = getattr(model[0], "dates", None) if model is not ensemble else None
    used = {c.feature for rule in ensemble.rules_ for c in rule.conditions}
    if names := [name for name in dates or () if name in used]:
        complain(
            f"warning: {', '.join(map(repr, names))} must be given as years with decimals, such as "
            "2024.5, not as dates",
            0,
        )
