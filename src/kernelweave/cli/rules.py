"""``kernelweave rules``: the rules of a model as text, SQL or Python."""

from __future__ import annotations

import json
from typing import Any

import click

from .commands import COUNT, FILE, command, exclude, model_argument, option, output_options
from .terminal import open_console, standard_output, write_json, write_message

_DIALECTS = ["standard", "sqlite", "postgresql", "duckdb", "mysql"]

_HELP = """\
For models of kernelweave fit --method rules. The score of a row is the intercept and the weights of
the rules that hold for it. --sql and --python write a complete program that scores rows without
kernelweave; --scorecard rounds the weights to whole points for a card on paper.

examples:
  kernelweave rules patients.kw
  kernelweave rules patients.kw --sql --dialect postgresql --table visits
  kernelweave rules patients.kw --python > score.py
  kernelweave rules patients.kw --scorecard html --data patients.csv > card.html"""


@command("rules", _HELP)
@model_argument
@option("--top", "only the N that matter most", "N", COUNT)
@option("--sql", "write an SQL query", is_flag=True)
@option("--python", "write a Python function", is_flag=True)
@option(
    "--scorecard",
    "write whole points per rule, to be added up by hand: text, html or csv",
    type=click.Choice(["text", "html", "csv"]),
)
@option("--data", "rows on which the rounding of points is measured", "FILE", FILE)
@option("--proba", "add probabilities to SQL and Python", is_flag=True)
@option("--dialect", "of the SQL (standard)", type=click.Choice(_DIALECTS), default="standard")
@option("--table", "of the SQL (data)", "NAME", default="data")
@output_options
def rules(args: Any) -> int:
    """Load and write."""
    exclude(args, "sql", "python", "scorecard")

    from kernelweave._declaration import has_aspect
    from kernelweave.errors import InputError
    from kernelweave.io import load
    from kernelweave.tables.predicting import last_step

    from .console import print_rules, summarize

    model = load(args.model)
    ensemble = last_step(model)
    if not has_aspect(ensemble, "rules"):
        raise InputError(
            f"{args.model} holds a {type(ensemble).__name__}, which has no rules; fit with "
            "--method rules."
        )
    if args.quiet:
        return 0
    if args.sql or args.python:
        text = _program(model, ensemble, args)
        if args.json:
            text = json.dumps({"sql" if args.sql else "python": text})
        standard_output().write(text if text.endswith("\n") else f"{text}\n")
        return 0
    if args.scorecard:
        card = _scorecard(model, ensemble, args)
        standard_output().write(card if card.endswith("\n") else f"{card}\n")
        return 0
    summary = summarize(ensemble)
    summary["rules"] = summary["rules"][: args.top]
    if args.json:
        keys = (
            *("classes", "n_rules", "intercept", "rules", "linear_terms"),
            *("relative_gap", "converged"),
        )
        return write_json({key: summary[key] for key in keys})
    print_rules(open_console(), summary, limit=args.top or len(summary["rules"]))
    return 0


def _program(model: Any, ensemble: Any, args: Any) -> str:
    """Return the query or the function; dates are read as the table of the fit had them."""
    used = {c.feature for rule in ensemble._added for c in rule.conditions}
    found = (getattr(model[0], "dates", None) if model is not ensemble else None) or {}
    dates = {name: form for name, form in found.items() if name in used}
    if args.python:
        code: str = ensemble.to_python(dates=dates, probability=args.proba)
        return code
    # These databases read no other dates than 2024-12-24.
    plain = args.dialect in ("standard", "sqlite")
    if other := [name for name, form in dates.items() if plain and not form.startswith("%Y-%m-%d")]:
        write_message(
            f"warning: the table must hold {', '.join(map(repr, other))} as dates or as text such "
            "as 2024-12-24"
        )
    dates |= dict.fromkeys(other)
    named = {"probability": "probability"} if args.proba else {}
    query: str = ensemble.to_sql(args.dialect, table=args.table, dates=dates, **named)
    return query


def _scorecard(model: Any, ensemble: Any, args: Any) -> str:
    """Return a card of points; with --data the effect of rounding is measured."""
    rows = None
    if args.data is not None:
        from kernelweave.tables import read_for, read_table

        prepared = model is not ensemble
        rows = (read_for(model, args.data) if prepared else read_table(args.data)).frame
        rows = model[:-1].transform(rows) if prepared else rows
    card = ensemble.to_scorecard(rows)
    forms = {"html": card.to_html, "csv": card.to_csv}
    text: str = forms[args.scorecard]() if args.scorecard in forms else card.text
    return text
