"""What a fitted model amounts to, as a dictionary and as text."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from kernelweave._summary import APPROXIMATE, is_approximate, is_vacuous, relative_landmark_gap
from kernelweave.errors import KernelweaveError

from .parsing import complain, shown


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
        "relative_landmark_gap": _known(relative_landmark_gap(model)),
        "squared_radius": _known(getattr(model, "squared_radius_", np.nan)),
        "noise_level": _optional(model, "noise_level_"),
        "tol": _optional(model, "tol"),
        "converged": bool(model.converged_),
        "machines_solved": int(model.n_iter_),
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
        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(shown(text), **options)  # all that is printed comes by here

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # for `main` to deal with; rich would exit

    if hasattr(sys.stdout, "reconfigure"):  # a name that the terminal cannot show is no failure
        sys.stdout.reconfigure(errors="backslashreplace")
    return Output(file=sys.stdout, markup=False, highlight=False, emoji=False)


def certificate(summary: dict[str, Any]) -> tuple[str, str]:
    """Return the objective and how far from the optimum of its problem it can be at most."""
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
    """Say on standard error that the tolerance was not met, and what would help."""
    if summary["converged"]:
        return
    gap = summary["relative_gap"]
    where = "without a bound" if gap is None else f"at a relative gap of {gap:.1e}"
    complain(
        f"warning: stopped after {summary['machines_solved']} machines {where}; {_remedy(summary)}",
        0,
    )


def _remedy(summary: dict[str, Any]) -> str:
    """Return the options of fit that let a fit like this one reach its tolerance."""
    limit = summary["max_iter"]
    if not summary["searched_in_full"]:
        return "the search for rules ended at its limit, so lower --C or raise --tol."
    if limit is not None and summary["machines_solved"] >= limit:
        return f"raise --max-iter (now {limit}) or --tol."
    return "raise --tol, or lower --C."
