"""Summary of a fitted model, as a dictionary and as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from kernelweave._declaration import has_aspect
from kernelweave._summary import (
    APPROXIMATE,
    count,
    is_approximate,
    is_vacuous,
    relative_landmark_gap,
    show_number,
    weight_names,
    weight_noun,
)
from kernelweave._text import clip

from .terminal import NAME, NUMBER, print_table, shown, write_message

_SHOWN = 12  # kernels or rules in a table
_DECIDING, _LITTLE = 6, 0.02  # columns of a short table, and their share of the largest importance
_LEAST = 20  # letters of a text before it is broken
IMPORTANCE = ("importance", "standard error")  # titles of the columns of a table
_KERNEL = 120  # letters of the name of a kernel, some of which are products of others
_RULE = 600  # letters of a rule, whose conditions are shortened one by one


def summarize(model: Any, record: Any = None) -> dict[str, Any]:
    """Return what an estimator has learned, ready for JSON; ``record`` is that of its fit."""
    known = None if record is None else record.importance
    classes, gap = getattr(model, "classes_", None), getattr(model, "duality_gap_", np.inf)
    return {
        "estimator": type(model).__name__,
        "norm": getattr(model, "norm", None),
        "C": _optional(model, "C"),
        "classes": None if classes is None else [_plain(label) for label in classes],
        **(_rules if has_aspect(model, "rules") else _kernels)(model),
        "importance": None if known is None else asdict(known),
        "column_weights": _column_weights(model),
        "objective": _known(model.objective_),
        "lower_bound": _known(model.objective_ - gap),
        "relative_gap": _known(gap / max(abs(model.objective_), 1e-300)),
        "relative_landmark_gap": _known(relative_landmark_gap(model)),
        "squared_radius": _known(getattr(model, "squared_radius_", np.nan)),
        "noise_level": _optional(model, "noise_level_"),
        "counted_noise_level": _optional(model, "counted_noise_level_"),
        "tol": _optional(model, "tol"),
        "converged": bool(model.converged_),
        "inner_solves": int(model.n_iter_),
        "max_iter": getattr(model, "max_iter", None),
        "searched_in_full": getattr(model, "n_nodes_", 0) < getattr(model, "max_nodes", 1),
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
        "n_rules": len(model.rules_),
        "intercept": model.intercept_.tolist(),
        "rules": [
            {
                "rule": rule.text,
                "columns": list(rule.columns),
                "weights": list(rule.weights),
                "coverage": rule.coverage,
            }
            for rule in model.rules_
        ],
        "linear_terms": [
            {
                "column": term.feature,
                "low": term.low,
                "high": term.high,
                "mean": term.mean,
                "weights": list(term.weights),
            }
            for term in getattr(model, "linear_terms_", ())
        ],
    }


def _kernels(model: Any) -> dict[str, Any]:
    order = np.argsort(-model.weights_, kind="stable")
    used = [int(j) for j in order if model.weights_[j] > 0]
    names, shares = weight_names(model), getattr(model, "contributions_", None)
    return {
        "weights_of": weight_noun(model),
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


def _column_weights(model: Any) -> dict[str, float] | None:
    """Return the weights of the columns in a learned metric, the largest first; None without one.

    Those of the members of a combination are averaged with the weights of the members.
    """
    found: dict[str, float] = {}
    members = getattr(model, "members_", [model])
    shares = np.asarray(getattr(model, "weights_", [1.0])) if members[0] is not model else [1.0]
    for member, share in zip(members, shares, strict=True):
        for name, weight in getattr(member, "column_weights_", {}).items():
            found[str(name)] = found.get(str(name), 0.0) + float(share) * weight
    total = sum(found.values())
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return {name: weight / total for name, weight in ordered} if total else None


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _optional(model: Any, name: str) -> float | None:
    return float(getattr(model, name)) if hasattr(model, name) else None


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None  # JSON has no infinity


def certificate(summary: dict[str, Any]) -> tuple[str, str]:
    """Return the objective and the bound on its distance from the optimum of its problem."""
    if summary["tol"] is None and summary["objective"] is None:
        return "weights", "by predictions for rows that were left out"
    if summary["tol"] is None:
        return "leave-one-out error", f"{summary['objective']:.6g}, in closed form"
    reached = "" if summary["converged"] else ", not reached"
    gap, tol = summary["relative_gap"], f"tol {summary['tol']:g}{reached}"
    near = np.nan if summary["relative_landmark_gap"] is None else summary["relative_landmark_gap"]
    if summary["objective"] is None:
        return "weights", f"averages of several fits, with {tol}"
    if gap is None:
        proof = f"no bound is known (stationary to {tol})"
    elif is_approximate(gap, near, summary["tol"]):
        proof = f"{APPROXIMATE}: within {near:.1e} of the optimum of the Nystroem problem ({tol})"
        if not is_vacuous(gap, summary["tol"]):
            proof += f", {gap:.1e} of that of the exact kernels"
    elif summary["converged"] and gap > summary["tol"]:
        proof = f"within {gap:.1e} of the optimum, which is rounding error ({tol})"
    else:
        proof = f"certified within {gap:.1e} of the optimum ({tol})"
    return "objective", f"{summary['objective']:.6g}, {proof}"


def model_facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the certificate, and what only the radius and noise methods know."""
    facts = [certificate(summary)]
    if summary["squared_radius"] is not None:
        if summary["lower_bound"] is not None:
            whose = "no function on these" if summary["norm"] == "uniform" else "no"
            proof = f"{summary['lower_bound']:.6g}, {whose} weights can do better"
            facts.append(("lower bound", proof))
        ball = f"{summary['squared_radius']:.6g}, of the smallest ball around the rows fitted to"
        facts.append(("squared radius", ball))
    if summary["noise_level"] is not None:
        counted = summary["counted_noise_level"]
        other = "" if counted is None else f" ({counted:.1%} by counts)"
        facts.append(("labels that look wrong", f"{summary['noise_level']:.1%}{other}"))
    return facts


def warn_unless_converged(summary: dict[str, Any]) -> None:
    """Say on standard error that the tolerance was not met, and which options of fit would help."""
    if summary["converged"]:
        return
    gap, limit, solves = summary["relative_gap"], summary["max_iter"], summary["inner_solves"]
    where = "without a bound" if gap is None else f"at a relative gap of {gap:.1e}"
    remedy = "raise --tol, or lower --C."
    if not summary["searched_in_full"]:
        remedy = "the search for rules ended at its limit, so lower --C or raise --tol."
    elif limit is not None and solves >= limit:
        remedy = f"raise --max-iter (now {limit}) or --tol."
    write_message(f"warning: stopped after {solves} inner solves {where}; {remedy}")


def print_weights(console: Any, summary: dict[str, Any]) -> None:
    """Print a table of the rules or kernels with the largest weights.

    Of columns in a learned metric, importance is printed where it is known.
    """
    if summary.get("weights_of") == "column" and summary["importance"]:
        return
    (print_rules if "rules" in summary else print_kernels)(console, summary)


def print_importance(console: Any, known: dict[str, Any]) -> None:
    """Print the columns that decide, as the page about a model lists them."""
    means = known["means"]
    n = sum(mean > _LITTLE * means[0] for mean in means[:_DECIDING]) if means else 0
    if not n:
        return
    lines = [
        (name, *show_importance(mean, error))
        for name, mean, error in zip(known["names"], means, known["errors"], strict=True)
    ]
    print_table(console, ["column", *IMPORTANCE], lines[:n], most=NAME)
    console.print(
        importance_remark(known["quantity"], "", known["n_rows"], known["n_columns"] - n),
        soft_wrap=True,
    )


def show_importance(mean: float, error: float) -> tuple[str, str]:
    """Return the importance of a column and its standard error, without exponents."""
    return show_number(float(f"{mean:.3g}")), show_number(float(f"{error:.2g}"))


def importance_remark(quantity: str, whose: str, n_rows: int, n_others: int) -> str:
    """Return what importance is, and how many columns, kernels or rules have less of it."""
    others = f" {count(n_others, 'other')} changed it less." if n_others else ""
    return f"Importance: mean change of the {quantity}{whose} over {count(n_rows, 'row')}.{others}"


def _is_metric(summary: dict[str, Any]) -> bool:
    return bool(summary["weights_of"] == "column" and summary["column_weights"])


def print_kernels(console: Any, summary: dict[str, Any]) -> None:
    """Print a table of the kernels with the largest weights."""
    kernels, total = summary["kernels"], sum(k["weight"] for k in summary["kernels"])
    noun = summary["weights_of"]
    named = [noun, "metric weight" if _is_metric(summary) else "weight"]
    lines = [[k["kernel"], f"{k['weight']:.4g}"] for k in kernels[:_SHOWN]]
    # The weights of columns are their contributions.
    if kernels and kernels[0]["contribution"] is not None and noun != "column":
        named.append("contribution")
        for line, kernel in zip(lines, kernels, strict=False):
            line.append(f"{kernel['contribution']:.1%}")
    print_table(console, named, lines, most=_KERNEL)
    kept = f"{summary['kernels_used']} of {summary['kernels_offered']} {noun}s are in use"
    if len(kernels) > _SHOWN:
        share = sum(k["weight"] for k in kernels[:_SHOWN]) / total
        kept += f"; the {_SHOWN} heaviest above carry {share:.0%} of the weight"
    console.print(f"{kept}.", soft_wrap=True)
    if _is_metric(summary):
        console.print("Metric weights are no importance; kernelweave explain gives that.")


def print_rules(console: Any, summary: dict[str, Any], limit: int = _SHOWN) -> None:
    """Print the rules with the largest weights, grouped by the columns they are about."""
    rules, n_outputs = summary["rules"], len(summary["intercept"])
    known = summary["classes"]
    outputs = known if known is not None and len(known) == n_outputs else range(n_outputs)
    console.print()
    console.print(_rules_say(summary), soft_wrap=True)
    weights = ["weight"] if n_outputs == 1 else [f"weight {clip(name, 24)}" for name in outputs]
    wide = NUMBER * (n_outputs + 1) + _LEAST > console.width
    lines: list[tuple[str, ...]] = []
    for about, group in _by_columns(rules[:limit]):
        lines.append((about, *[""] * (3 if wide else n_outputs + 1)))
        for rule in group:
            cells = (*(f"{w:+.4g}" for w in rule["weights"]), f"{rule['coverage']:.1%}")
            name, *strongest = _strongest(rule, list(outputs))
            lines.append((f"  {name}", *(strongest if wide else cells)))
    if summary["linear_terms"]:
        lines.append(("for each unit of a column", *[""] * (3 if wide else n_outputs + 1)))
    for term in summary["linear_terms"]:
        ends = f"{term['low']:.4g} to {term['high']:.4g}, mean {term['mean']:.4g}"
        named = {"rule": f"{shown(term['column'], NAME)} ({ends})", "weights": term["weights"]}
        name, *strongest = _strongest({**named, "coverage": None}, list(outputs))
        cells = (*(f"{w:+.4g}" for w in term["weights"]), "")
        lines.append((f"  {name}", *(strongest if wide else cells)))
    if wide:
        names = ["rule", "class", "weight", "coverage"]
        print_table(console, names, lines, texts=(0, 1), most=_RULE)
        console.print("Of every rule the class with the largest weight; --json prints all.")
    else:
        lines.append(("base score", *(f"{b:+.4g}" for b in summary["intercept"]), ""))
        print_table(console, ["rule", *weights, "coverage"], lines, most=_RULE)
    if len(rules) > limit:
        console.print(f"The {limit} rules that matter most are above.")


def _rules_say(summary: dict[str, Any]) -> str:
    """Return how many rules there are, how they add up, and what a positive score favours."""
    n, classes, start = summary["n_rules"], summary["classes"], summary["intercept"]
    what = "prediction" if classes is None else "score"
    base = f"the base {what}" + (f" {start[0]:+.4g}" if len(start) == 1 else " of its output")
    found = f"{count(n, 'rule')}. A {what} is {base} plus the weights of the rules that hold"
    if n_linear := len(summary["linear_terms"]):
        found = found.replace(". A", f" and {count(n_linear, 'linear term')}. A", 1)
        found += (
            ", and for each column of a linear term its weight times the distance from the mean, "
            "values outside the range counting as its ends"
        )
    if classes is None:
        return f"{found}."
    if len(start) == 1:
        yes, no = clip(classes[1], 40), clip(classes[0], 40)
        return f"{found}; above zero it favours {yes}, below {no}."
    return f"{found}; the output with the largest score is predicted."


def _by_columns(rules: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for rule in rules:
        about = " and ".join(shown(name, NAME) for name in rule["columns"])
        groups.setdefault(about or "all rows", []).append(rule)
    return list(groups.items())


def _brief(rule: dict[str, Any]) -> str:
    """Return a rule with each of its conditions shortened."""
    return " and ".join(shown(part, NAME) for part in rule["rule"].split(" and "))


def _strongest(rule: dict[str, Any], outputs: list[Any]) -> tuple[str, ...]:
    """Return a rule with the class of its largest weight."""
    weight, name = max(zip(rule["weights"], outputs, strict=True), key=lambda pair: abs(pair[0]))
    share = "" if rule["coverage"] is None else f"{rule['coverage']:.1%}"
    return _brief(rule), shown(name, NAME), f"{weight:+.4g}", share
