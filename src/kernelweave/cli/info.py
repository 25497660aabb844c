"""``kernelweave info``: what a model file holds."""

from __future__ import annotations

from numbers import Real
from typing import Any

from .commands import command, model_argument, output_options
from .terminal import open_console, print_facts, shown, write_json

_HELP = """\
Reads the model file only: which columns decide, which kernels were kept, how close to the optimum
the fit stopped, what columns it needs.

example:
  kernelweave info patients.kw --json"""


@command("info", _HELP)
@model_argument
@output_options
def info(args: Any) -> int:
    """Load and report."""
    from sklearn.pipeline import Pipeline

    from kernelweave._declaration import has_aspect
    from kernelweave.io import describe, load

    from .console import summarize, summarize_clusters

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
        "missing": about["record"].facts.get("missing values") if about.get("record") else None,
    }
    if has_aspect(estimator, "clusters"):
        report |= summarize_clusters(estimator)
    else:
        report |= summarize(estimator, about.get("record"))
    if args.json:
        return write_json(report)
    if not args.quiet:
        _print(open_console(), report)
    return 0


def _print(console: Any, report: dict[str, Any]) -> None:
    from kernelweave._summary import count

    from .console import model_facts, print_importance, print_weights

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
    if report["missing"]:
        facts.append(("missing values", shown(report["missing"], 200)))
    clustering = "sizes" in report
    if clustering:
        sizes = report["sizes"]
        facts.append(("found", f"{len(sizes)} clusters of {_listed(sizes)} rows"))
    else:
        if "rules" in report:
            n_linear = len(report["linear_terms"])
            more = f" and {count(n_linear, 'linear term')}" if n_linear else ""
            facts.append(("prediction needs", f"{len(report['rules'])} rules{more}"))
        elif report["support_rows"] is not None:
            facts.append(("prediction needs", f"{report['support_rows']} of the rows"))
        facts += [*model_facts(report), ("inner solves", str(report["inner_solves"]))]
    facts.append(("file", f"{report['bytes'] / 1000:.1f} kB, written by {versions}"))
    console.print(report["model"], soft_wrap=True)
    print_facts(console, facts)
    if not clustering:
        if report["importance"]:
            print_importance(console, report["importance"])
        print_weights(console, report)


def _listed(items: list[Any], limit: int = 12) -> str:
    more = f", ... ({len(items)} in all)" if len(items) > limit else ""
    return ", ".join(shown(item, 40) for item in items[:limit]) + more
