"""What a fitted model amounts to, as a dictionary and as text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from kernelweave.errors import KernelweaveError

_SHOWN = 12


def summarize(model: Any) -> dict[str, Any]:
    """Return what an estimator has learned, ready for JSON."""
    classes, gap = getattr(model, "classes_", None), getattr(model, "duality_gap_", np.inf)
    return {
        "estimator": type(model).__name__,
        "norm": getattr(model, "norm", None),
        "C": _optional(model, "C"),
        "classes": None if classes is None else [_plain(label) for label in classes],
        **(_rules(model) if hasattr(model, "rules_") else _kernels(model)),
        "objective": _known(model.objective_),
        "lower_bound": _known(model.objective_ - gap),
        "relative_gap": _known(gap / max(abs(model.objective_), 1e-300)),
        "squared_radius": _known(getattr(model, "squared_radius_", np.nan)),
        "noise_level": _optional(model, "noise_level_"),
        "tol": _optional(model, "tol"),
        "converged": bool(model.converged_),
        "machines_solved": int(model.n_iter_),
    }


def summarize_clusters(model: Any) -> dict[str, Any]:
    """Return what a clustering has found, ready for JSON."""
    return {
        "estimator": type(model).__name__,
        "norm": None,
        "C": None,
        "classes": None,
        "sizes": sorted(np.bincount(model.labels_).tolist(), reverse=True),
        "eigenvalues": model.eigenvalues_.tolist(),
    }


def _rules(model: Any) -> dict[str, Any]:
    return {
        "intercept": model.intercept_.tolist(),
        "rules": [
            {"rule": rule.text, "weights": list(rule.weights), "coverage": rule.coverage}
            for rule in model.rules_
        ],
    }


def _kernels(model: Any) -> dict[str, Any]:
    order = np.argsort(-model.weights_, kind="stable")
    used = [int(j) for j in order if model.weights_[j] > 0]
    names, shares = _names(model), getattr(model, "contributions_", None)
    return {
        "kernels_offered": len(order),
        "kernels_used": len(used),
        "kernels": [
            {
                "kernel": names[j],
                "weight": float(model.weights_[j]),
                "contribution": None if shares is None else float(shares[j]),
            }
            for j in used
        ],
        "support_rows": len(model.support_) if hasattr(model, "support_") else None,
    }


def _names(model: Any) -> list[str]:
    """Return what the weights belong to: kernels, paths of a structure, or columns."""
    if hasattr(model, "paths_"):
        return [model.network_.describe(path) for path in model.paths_]
    if model.kernels_ is None:
        numbers = [f"column {j}" for j in range(len(model.weights_))]
        return list(map(str, getattr(model, "feature_names_in_", numbers)))
    return [str(kernel) for kernel in model.kernels_]


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _optional(model: Any, name: str) -> float | None:
    return float(getattr(model, name)) if hasattr(model, name) else None


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None  # JSON has no infinity


def open_console() -> Any:
    """Return where text is printed: plain when piped, coloured on a terminal."""
    try:
        from rich.console import Console
    except ImportError as error:
        raise KernelweaveError(
            'This command needs rich; install it with pip install "kernelweave[cli]", or use '
            "--json where it is offered."
        ) from error

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # for `main` to deal with; rich would exit

    if hasattr(sys.stdout, "reconfigure"):  # a name that the terminal cannot show is no failure
        sys.stdout.reconfigure(errors="backslashreplace")
    return Output(file=sys.stdout, markup=False, highlight=False, emoji=False)


def print_kernels(console: Any, summary: dict[str, Any]) -> None:
    """Print a table of the heaviest kernels."""
    kernels, total = summary["kernels"], sum(k["weight"] for k in summary["kernels"])
    named = ["kernel", "weight"]
    lines = [[k["kernel"], f"{k['weight']:.4g}"] for k in kernels[:_SHOWN]]
    if kernels and kernels[0]["contribution"] is not None:
        named.append("contribution")
        for line, kernel in zip(lines, kernels, strict=False):
            line.append(f"{kernel['contribution']:.1%}")
    print_table(console, named, lines)
    kept = f"{summary['kernels_used']} of {summary['kernels_offered']} kernels are in use"
    if len(kernels) > _SHOWN:
        share = sum(k["weight"] for k in kernels[:_SHOWN]) / total
        kept += f"; the {_SHOWN} heaviest above carry {share:.0%} of the weight"
    console.print(f"{kept}.", soft_wrap=True)


def print_rules(console: Any, summary: dict[str, Any], limit: int = _SHOWN) -> None:
    """Print a table of the heaviest rules."""
    rules, n_outputs = summary["rules"], len(summary["intercept"])
    known = summary["classes"]
    outputs = known if known is not None and len(known) == n_outputs else range(n_outputs)
    weights = ["weight"] if n_outputs == 1 else [f"weight {name}" for name in outputs]
    lines = [
        (rule["rule"], *(f"{w:+.4g}" for w in rule["weights"]), f"{rule['coverage']:.1%}")
        for rule in rules[:limit]
    ]
    lines.append(("intercept", *(f"{b:+.4g}" for b in summary["intercept"]), ""))
    print_table(console, ["rule", *weights, "coverage"], lines)
    more = f"; the {limit} that matter most are above" if len(rules) > limit else ""
    console.print(f"A score is the intercept and the weights of the rules that hold{more}.")


def print_table(console: Any, names: list[str], lines: Iterable[Iterable[str]]) -> None:
    """Print a table; all columns but the first are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(names[0], overflow="fold", style="cyan")
    for name in names[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    console.print()
    console.print(table)
    console.print()


def print_facts(console: Any, facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    facts = list(facts)
    width = max(len(name) for name, _ in facts)
    console.print()
    for name, value in facts:
        console.print(f"{name:<{width}}  {value}", soft_wrap=True)


def certificate(summary: dict[str, Any]) -> tuple[str, str]:
    """Return the objective and how far from the optimum it can be at most."""
    if summary["tol"] is None:
        return "leave-one-out error", f"{summary['objective']:.6g}, in closed form"
    reached = "" if summary["converged"] else ", not reached"
    gap, tol = summary["relative_gap"], f"tol {summary['tol']:g}{reached}"
    if summary["objective"] is None:
        return "weights", f"averages of several fits, with {tol}"
    if gap is None:
        proof = f"no bound is known (stationary to {tol})"
    else:
        proof = f"certified within {gap:.1e} of the optimum ({tol})"
    return "objective", f"{summary['objective']:.6g}, {proof}"


def radius_facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a model by margin and radius knows beyond the others."""
    if summary["squared_radius"] is None:
        return []
    facts = []
    if summary["lower_bound"] is not None:
        whose = "no function on these" if summary["norm"] == "uniform" else "no"
        proof = f"{summary['lower_bound']:.6g}, {whose} weights can do better"
        facts.append(("lower bound", proof))
    ball = f"{summary['squared_radius']:.6g}, of the smallest ball around the rows fitted to"
    return [*facts, ("squared radius", ball)]


def noise_facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a model for wrong labels knows beyond the others."""
    if summary["noise_level"] is None:
        return []
    return [("labels that look wrong", f"{summary['noise_level']:.1%}")]


def warn_unless_converged(summary: dict[str, Any]) -> None:
    """Say on standard error that the tolerance was not met."""
    if not summary["converged"]:
        gap = summary["relative_gap"]
        where = "without a bound" if gap is None else f"at a relative gap of {gap:.1e}"
        sys.stderr.write(
            f"kernelweave: warning: stopped after {summary['machines_solved']} machines {where}; "
            "raise --max-iter or --tol.\n"
        )
