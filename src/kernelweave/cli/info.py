"""``kernelweave info``: what a model file holds."""

from __future__ import annotations

import argparse
import json
import sys
from numbers import Real
from typing import Any

from .parsing import add_command, add_output, shown

_HELP = """\
Reads the model file only: which kernels were kept, how close to the optimum the fit stopped, what
columns it needs.

example:
  kernelweave info patients.kw --json"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, "info", "show what a model has learned", _HELP)
    parser.add_argument("model", metavar="MODEL", help="a file that fit or save wrote")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Load and report."""
    from sklearn.pipeline import Pipeline

    from kernelweave.io import describe, load

    from .console import open_console, summarize, summarize_clusters

    model, about = load(args.model), describe(args.model)
    table = model[0] if isinstance(model, Pipeline) else None
    estimator = model if table is None else model[-1]
    names = getattr(estimator, "feature_names_in_", None)
    report = {
        "model": args.model,
        "made_by": about["made_by"],
        "bytes": about["bytes"],
        "target": None if table is None else table.target_,
        "rows": None if table is None else table.n_samples_seen_,
        "standardized": table is not None and table.standardize,
        "columns": None if names is None else list(names),
        "n_columns": int(estimator.n_features_in_),
        **(summarize_clusters if hasattr(estimator, "labels_") else summarize)(estimator),
    }
    if args.json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    elif not args.quiet:
        _print(open_console(), report)
    return 0


def _print(console: Any, report: dict[str, Any]) -> None:
    from .console import certificate, noise_facts, radius_facts
    from .printing import print_facts, print_kernels, print_rules

    versions = ", ".join(f"{name} {version}" for name, version in report["made_by"].items())
    norm = report["norm"]
    norm = f"norm {norm:g}, " if isinstance(norm, Real) else f"norm {norm}, " if norm else ""
    options = "" if report["C"] is None else f" ({norm}C {report['C']:g})"
    facts = [("model", f"{report['estimator']}{options}")]
    if report["target"] is not None:
        facts.append(("target", shown(report["target"], 60)))
    if report["classes"] is not None:
        facts.append(("classes", _listed(report["classes"])))
    columns = report["columns"] or [f"{report['n_columns']} columns without names"]
    facts.append(("columns", _listed(columns)))
    if report["rows"] is not None:
        scale = ", numbers standardised" if report["standardized"] else ""
        facts.append(("fitted to", f"{report['rows']} rows{scale}"))
    file = ("file", f"{report['bytes'] / 1000:.1f} kB, written by {versions}")
    if "sizes" in report:
        sizes = report["sizes"]
        facts.append(("found", f"{len(sizes)} clusters of {_listed(sizes)} rows"))
        console.print(report["model"], soft_wrap=True)
        print_facts(console, [*facts, file])
        return
    if "rules" in report:
        facts.append(("prediction needs", f"{len(report['rules'])} rules"))
    elif report["support_rows"] is not None:
        facts.append(("prediction needs", f"{report['support_rows']} of the rows"))
    facts += [
        certificate(report),
        *radius_facts(report),
        *noise_facts(report),
        ("inner solves", str(report["machines_solved"])),
        file,
    ]
    console.print(report["model"], soft_wrap=True)
    print_facts(console, facts)
    (print_rules if "rules" in report else print_kernels)(console, report)


def _listed(items: list[Any], limit: int = 12) -> str:
    more = f", ... ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(shown(item, 40) for item in items[:limit]) + more
