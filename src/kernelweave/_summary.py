"""Summaries of fitted models in sentences, for notebooks, plots and reports."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from kernelweave._declaration import Declaration, has_aspect
from kernelweave._text import clip, visible
from kernelweave._types import Floats

_TOP = 5  # weights that a notebook shows
_LEAST = 1e-6  # per cent below which digits are not meaningful
_VACUOUS = 0.01  # relative gap from which on a bound for the exact kernels is of no use
TITLES = {  # of scores, by name
    "r2": "R2",
    "absolute_error": "mean error",
    "roc_auc": "AUC",
    "log_loss": "log-loss",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "pairs": "AUC of pairs",
}
SMALLER = {"log_loss", "absolute_error"}  # scores of which smaller values are better
APPROXIMATE = "approximate kernels, not certified"  # of a Nystroem fit without a proof beyond it


@dataclass(frozen=True)
class FitStatus:
    """How a fit ended: in a word or number, in sentences, and whether it converged."""

    short: str
    text: str
    good: bool


def count(n: int, noun: str) -> str:
    """Return ``"1 row"`` or ``"2 rows"``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def listed(items: Any, most: int = 8, last: str = "and") -> str:
    """Return ``"a, b and c"``, with the number of all where they are many."""
    names = [clip(item, 40) for item in items]
    if len(names) > most:
        return f"{', '.join(names[:most])}, \u2026 ({len(names)} in all)"
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def show_score(name: str, value: float) -> str:
    """Return a score as text."""
    if name in ("accuracy", "balanced_accuracy"):
        return f"{value:.1%}"
    return show_number(value) if name == "absolute_error" else f"{value:.3f}"


def show_number(value: float) -> str:
    """Return a number with four digits, and without an exponent where it is not very large."""
    if 1e3 <= abs(value) < 1e12:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"


def relative_gap(model: Any) -> float:
    """Return the duality gap relative to the objective; NaN for closed forms."""
    return float(model.duality_gap_ / max(abs(model.objective_), 1e-300))


def relative_landmark_gap(model: Any) -> float:
    """Return the gap of the Nystroem problem relative to the objective; NaN for exact kernels."""
    gap = getattr(model, "landmark_gap_", np.nan)
    return float(gap / max(abs(model.objective_), 1e-300))


def is_approximate(gap: float, landmark_gap: float, tol: float) -> bool:
    """Return whether a fit is proven optimal for the Nystroem kernels at most.

    ``gap`` and ``landmark_gap`` are relative gaps for the exact kernels and of the Nystroem problem
    (NaN without landmarks). Such a fit is not called certified.
    """
    return bool(np.isfinite(landmark_gap) and not gap <= tol)


def is_vacuous(gap: float, tol: float) -> bool:
    """Return whether a gap for the exact kernels exceeds ten tolerances and one per cent."""
    return not gap <= max(10.0 * tol, _VACUOUS)


def weight_names(model: Any) -> list[str]:
    """Return the kernel, path of kernels, column or member that each weight belongs to."""
    if _declared(model).learns == "members":
        return list(map(str, model.names_))
    if _declared(model).learns == "paths":
        return [str(model.network_.describe(path)) for path in model.paths_]
    if model.kernels_ is None:
        return column_names(model, len(model.weights_))
    return [str(kernel) for kernel in model.kernels_]


def column_names(model: Any, n_columns: int) -> list[str]:
    """Return the names of the columns seen in fit, or their numbers."""
    names = getattr(model, "feature_names_in_", None)
    return [f"column {j}" for j in range(n_columns)] if names is None else list(map(str, names))


def shares(model: Any) -> Floats:
    """Return the weights divided by their sum."""
    weights = np.asarray(model.weights_, dtype=np.float64)
    return weights / (weights.sum() or 1.0)


def weight_noun(model: Any) -> str:
    """Return "kernel", "path", "column" or "model", the owner of a weight."""
    if _declared(model).learns == "members":
        return "model"
    if _declared(model).learns == "paths":
        return "path"
    return "column" if model.kernels_ is None else "kernel"


def _declared(model: Any) -> Declaration:
    declaration: Declaration = model._declaration
    return declaration


def headline(model: Any, target: str | None = None) -> str:
    """Return one or two sentences that summarise a model; ``target`` names its target."""
    learns = _declared(model).learns
    if learns == "clusters":
        return _clusters(model)
    if learns == "pairs":
        return _pairs(model)
    goal = describe_goal(model, target)
    if learns == "rules":
        return f"{goal} by {count_rules(model)}{_strongest_rule(model)}."
    text = f"{goal} {_means(model)}"
    if has_aspect(model, "labels"):
        wrong = model.suspects()
        looks = "label looks" if wrong.n_wrong == 1 else "labels look"
        text += f". {wrong.n_wrong:,} of its {wrong.n_samples:,} training {looks} wrong"
    return f"{text}."


def describe_goal(model: Any, target: str | None) -> str:
    """Return the start of a sentence on what a model predicts."""
    what = "" if target is None else f" \u201c{clip(target)}\u201d"
    tasks = getattr(model, "tasks_", None)
    several = f" in {len(tasks)} tasks" if tasks is not None else ""
    if "classes_" not in _declared(model).saved:
        n_outputs = len(model.intercept_)
        quantity = " a quantity" if n_outputs == 1 or several else f" {n_outputs} quantities"
        if getattr(model, "_several_levels", False):
            return f"This model predicts {n_outputs} quantiles of{what or ' a quantity'}"
        return f"This model predicts{what or quantity}{several}"
    classes = model.classes_
    if getattr(model, "_several", False) or getattr(model, "_multilabel", False):
        return f"This model predicts {len(classes)} labels at once"
    kinds = listed(classes, last="or") if len(classes) <= 4 else f"{len(classes)} classes"
    if what:
        return f"This model predicts{what} ({kinds}){several}"
    if len(classes) == 2:
        return f"This model separates {clip(classes[0], 40)} from {clip(classes[1], 40)}{several}"
    return f"This model separates {len(classes)} classes"


def _means(model: Any) -> str:
    """Return the parts of the prediction: kernels, paths or widths."""
    learns = _declared(model).learns
    if learns == "widths":
        return f"with a Gaussian kernel whose widths were learned, {clip(model.kernel_)}"
    if learns == "paths" and not model.paths_:
        n_paths, n_weights = model.network_.count_paths(), len(model.node_weights_)
        return f"with {count(n_paths, 'product')} of kernels that share {n_weights} weights"
    names, weights = weight_names(model), shares(model)
    used, offered = int(np.count_nonzero(weights)), len(weights)
    noun = weight_noun(model)
    of = "" if learns == "nodes" else f" of {offered:,}"  # inactive nodes have no weight
    if not used:
        return "by a constant: no kernel has a weight"
    top = int(np.argmax(weights))
    if used == 1:
        where = of if offered > 1 else ""
        return f"with 1{where} {noun}{'s' if where else ''}, {clip(names[top])}"
    kept = _kept(used, offered) if of else f"{used:,}"
    return f"with {kept} {noun}s; {_heaviest(names, weights)}"


def _kept(used: int, offered: int) -> str:
    if used < offered:
        return f"{used:,} of {offered:,}"
    return "both" if offered == 2 else f"all {offered:,}"


def _heaviest(names: list[str], weights: Floats) -> str:
    used = weights[weights > 0]
    if np.ptp(used) <= 1e-9 * used.max():
        return "each has the same weight"
    top = int(np.argmax(weights))
    word = "heavier" if len(used) == 2 else "heaviest"
    return f"the {word}, {clip(names[top])}, carries {weights[top]:.0%} of the weight"


def count_rules(model: Any) -> str:
    """Return the number of rules, and of linear terms where there are some."""
    rules, n_linear = count(len(model.rules_), "rule"), len(getattr(model, "linear_terms_", ()))
    return f"{rules} and {count(n_linear, 'linear term')}" if n_linear else rules


def by_norm(model: Any) -> list[tuple[Any, float]]:
    """Return rules and linear terms with their norms, the largest first."""
    norms = np.append(model.norms_, getattr(model, "linear_norms_", ()))
    order = np.argsort(-norms, kind="stable")
    return [(model._added[k], float(norms[k])) for k in order]


def _strongest_rule(model: Any) -> str:
    if not model._added:
        return ", so it predicts the same for every row"
    return f"; the most important one is \u201c{clip(by_norm(model)[0][0].text)}\u201d"


def _pairs(model: Any) -> str:
    noun = weight_noun(model)
    names, weights = weight_names(model), shares(model)
    used = int(np.count_nonzero(weights))
    if not used:
        return f"This model found no {noun} that separates same from different pairs of rows."
    start = "This model separates same from different pairs of rows by"
    if len(names) == 1:
        return f"{start} one {noun}, {clip(names[0])}."
    return f"{start} {_kept(used, len(names))} {noun}s; {_heaviest(names, weights)}."


def _clusters(model: Any) -> str:
    sizes = np.unique(model.labels_, return_counts=True)[1]
    low, high = int(sizes.min()), int(sizes.max())
    of = f"of {low:,} to {high:,} rows" if low < high else f"of {count(low, 'row')} each"
    where = count(len(sizes), "cluster")
    return f"This model put {count(len(model.labels_), 'row')} into {where} {of}."


def fit_status(model: Any) -> FitStatus:
    """Return how close to the optimum of its problem a fit is, not how good the model is."""
    learns = _declared(model).learns
    if learns == "clusters":
        return FitStatus(
            "direct",
            "There was no iteration to converge: eigenvectors are computed to machine precision, "
            f"and the best of {count(model.n_init, 'run')} of k-means is kept.",
            True,
        )
    if learns == "pairs":
        return _newton_status(model)
    if learns == "metric":
        return FitStatus(
            "exact",
            f"Each of {count(int(model.n_iter_), 'ridge problem')} was solved exactly; the metric "
            f"of step {model.step_} had the smallest leave-one-out error. No bound is known for "
            "the choice of the metric.",
            True,
        )
    if learns == "members":
        good = bool(model.converged_)
        ended = "Each of them met" if good else "One or more did not meet"
        text = f"{count(len(model.members_), 'model')} combined. {ended} the tolerance of its fit."
        return FitStatus("converged" if good else "not converged", text, good)
    gap, solves = relative_gap(model), count(int(model.n_iter_), "inner solve")
    if np.isnan(gap):
        text = "The model has a closed form, so there was no iteration to converge."
        return FitStatus("exact", text, True)
    good = bool(model.converged_)
    hint = "" if good else " Raise max_iter, or accept this by raising tol."
    if np.isinf(gap):
        ended = "reached" if good else "stopped before"
        text = (
            f"The search {ended} a stationary point, to the tolerance {model.tol:g}, after "
            f"{solves}. No bound on the optimum is known.{hint}"
        )
        return FitStatus("stationary" if good else "not converged", text, good)
    near = relative_landmark_gap(model)
    if is_approximate(gap, near, model.tol) and near <= model.tol:
        good, hint = True, ""  # the Nystroem problem is solved; more iterations would not help
    ended = "Converged" if good else "Stopped before the tolerance was met"
    used = f"(tolerance {percentage(model.tol)}), after {solves}."
    if is_approximate(gap, near, model.tol):
        beyond = (
            "There is no useful bound on its distance to the optimum of the exact kernels."
            if is_vacuous(gap, model.tol)
            else f"With the exact kernels it could be up to {percentage(gap)} smaller."
        )
        text = (
            f"{ended}, with {APPROXIMATE}: the objective, {model.objective_:.6g}, is within "
            f"{percentage(near)} of the optimum of the Nystroem problem, in which landmarks "
            f"replace the rows {used} {beyond}{hint}"
        )
        return FitStatus(APPROXIMATE, text, good)
    text = (
        f"{ended}: the objective is {model.objective_:.6g}, and no model of this kind has an "
        f"objective below {model.objective_ - model.duality_gap_:.6g}. The gap between the two is "
        f"{percentage(gap)} of the objective {used}{hint}"
    )
    if np.isfinite(refit := getattr(model, "refit_gap_", np.nan)):
        text += (
            " These are numbers of the search over all rules. The rules that were kept are fitted "
            f"again, within {percentage(refit)} of the optimum of their own problem."
        )
    return FitStatus(percentage(gap), text, good)


def _newton_status(model: Any) -> FitStatus:
    """Return the status of a convex problem of pairs, solved by Newton's method."""
    if model.setting_ is not None and np.isinf(model.setting_.rho):
        text = "Weights are equal (rho is infinite), so none had to be learned."
        return FitStatus("equal weights", text, True)
    steps = count(int(model.n_iter_), "Newton step")
    if not model.converged_:
        text = f"Stopped after {steps} before the tolerance {model.tol:g} was met. Raise max_iter."
        return FitStatus("not converged", text, False)
    text = (
        f"Converged after {steps}, to the tolerance {model.tol:g}. The problem is convex, so no "
        "other weights are better."
    )
    return FitStatus("converged", text, True)


def percentage(share: float) -> str:
    """Return a share in per cent with two significant digits, without an exponent."""
    percent = 100 * share
    if 0 < percent < _LEAST:
        return f"under {np.format_float_positional(_LEAST)}%"
    return np.format_float_positional(percent, precision=2, fractional=False, trim="-") + "%"


class NotebookSummary:
    """Mixin that adds a summary to scikit-learn's diagram of a fitted estimator."""

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + self._notebook_summary()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:  # sklearn.set_config(display="text") asks for none
            bundle["text/html"] += self._notebook_summary()
        return bundle

    def _notebook_summary(self) -> str:
        fitted: bool = self.__sklearn_is_fitted__()  # type: ignore[attr-defined]
        return to_html(self) if fitted else ""


def to_html(model: Any) -> str:
    """Return the headline, the largest weights and the fit status as HTML."""
    parts = [f"<p>{escape(visible(headline(model)))}</p>"]
    bars = [
        f'<tr><td style="text-align:left">{escape(clip(visible(name), 80))}</td>'
        f'<td style="text-align:right">{escape(shown)}</td>'
        '<td style="width:8em"><div style="height:.6em;background:currentColor;opacity:.45;'
        f'width:{100 * length:.1f}%"></div></td></tr>'
        for name, shown, length in largest(model)
    ]
    if bars:
        parts.append(f"<table><tbody>{''.join(bars)}</tbody></table>")
    parts.append(f"<p>{escape(fit_status(model).text)}</p>")
    return f'<div class="kernelweave-summary" style="max-width:48em">{"".join(parts)}</div>'


def largest(model: Any, most: int = _TOP) -> list[tuple[str, str, float]]:
    """Return names of the most important kernels or rules, their weights and lengths of bars."""
    learns = _declared(model).learns
    if learns == "clusters":
        return []
    if learns == "rules":
        found = by_norm(model)
        top = max((norm for _, norm in found), default=0.0) or 1.0
        one = len(model.intercept_) == 1
        return [
            (term.name, f"{term.weights[0]:+.3g}" if one else "", norm / top)
            for term, norm in found[:most]
        ]
    names, weights = weight_names(model), shares(model)
    order = [int(j) for j in np.argsort(-weights, kind="stable")[:most] if weights[j] > 0]
    return [(names[j], f"{weights[j]:.1%}", float(weights[j] / weights[order[0]])) for j in order]
