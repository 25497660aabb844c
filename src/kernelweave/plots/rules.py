"""Rules as bars, and the score as a function of their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._summary import by_norm, count_rules
from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.rules.linear import Term, is_linear

from .drawing import DARK, GREY, LIGHT, WARM, check_aspect, check_count, new_axes, tidy, wrap


def plot_rules(model: Any, ax: Any = None, max_rules: int = 20) -> Any:
    """Draw the weights and the coverage of the most important rules.

    The bar of a linear term is what it adds from the lower to the upper end of its range.

    Parameters
    ----------
    model : fitted estimator
        With ``rules_``, such as `RuleEnsembleClassifier`.
    ax : matplotlib axes, optional
        Axes of the weights; coverage is then written behind the rules. By default a new
        figure, with bars for the coverage beside those for the weights.
    max_rules : int
        How many rules to show at most.

    Returns
    -------
    ax : matplotlib axes
        Where the weights are; in a new figure ``ax.figure.axes[1]`` shows the coverage.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import RuleEnsembleClassifier
    >>> from kernelweave.plots import plot_rules
    >>> model = RuleEnsembleClassifier(C=10).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> plot_rules(model).get_xlabel()
    'adds to the score (positive: 1)'
    """
    check_aspect(model, "rules", "has no rules; draw plot_weights")
    check_count("max_rules", max_rules)
    shown = [_Bar.of(term) for term, _ in by_norm(model)[:max_rules]]
    outputs = output_names(model)
    at, height = np.arange(len(shown)), 0.7 / len(outputs)
    names = [wrap(bar.name) for bar in shown]
    if ax is None:
        tall = 1.3 + (0.36 + 0.1 * (len(outputs) - 1)) * len(shown)
        ax = new_axes((9.0, tall), 2, sharey=True, width_ratios=[3, 1])[0]
        _draw_coverage(ax.figure.axes[1], shown)
    else:
        names = [f"{name} ({bar.covers})" for name, bar in zip(names, shown, strict=True)]
    for t, output in enumerate(outputs):
        weights = np.array([bar.weights[t] for bar in shown])
        colours: Any = f"C{t}"
        if len(outputs) == 1:
            colours = np.where(weights > 0, DARK, WARM).tolist()
        place = at + height * (t - 0.5 * (len(outputs) - 1))
        ax.barh(place, weights, height=height, color=colours, label=wrap(output, 46))
    ax.set_yticks(at, names, fontsize=9 if len(shown) <= 12 else 8)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_xlabel(adds_to(model))
    if len(outputs) > 1 and shown:
        ax.legend(
            frameon=False, fontsize=8, ncols=len(outputs), loc="lower right", bbox_to_anchor=(1, 1)
        )
    more = f", the {len(shown)} that matter most" if len(shown) < len(model._added) else ""
    ax.set_title(f"{count_rules(model)}{more}", loc="left", fontsize=11)
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def plot_rule_path(model: Any, ax: Any = None) -> Any:
    """Draw the score on held-out folds against the number of rules.

    For each number of rules the best C counts; the band is one standard error to both sides. The
    circle is the model that was chosen.

    Parameters
    ----------
    model : fitted estimator
        `RuleEnsembleClassifierCV` or `RuleEnsembleRegressorCV`.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        The axes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import RuleEnsembleClassifierCV
    >>> from kernelweave.datasets import make_monks
    >>> from kernelweave.plots import plot_rule_path
    >>> monks = make_monks(3)
    >>> model = RuleEnsembleClassifierCV(Cs=[1, 10], cv=3).fit(monks.X, monks.y)
    >>> plot_rule_path(model).get_xlabel()
    'number of rules'
    """
    check_aspect(model, "rules", "has no rules; draw plot_weights")
    if "cv_results_" not in model._declaration.saved:
        raise InputError(f"{type(model).__name__} chose nothing; fit a class with CV in its name.")
    path = rule_path(model.cv_results_)
    if ax is None:
        ax = new_axes((6.0, 3.6))
    ax.fill_between(
        path.n_rules, path.score - path.error, path.score + path.error, color=LIGHT, alpha=0.5
    )
    ax.plot(path.n_rules, path.score, color=DARK, marker=".", linewidth=1.4)
    chosen = len(model._added)
    ax.plot(chosen, np.interp(chosen, path.n_rules, path.score), "o", color=WARM, markersize=9)
    ax.set_xlabel("number of rules")
    ax.set_ylabel("mean score on folds")
    ax.set_title(f"{count_rules(model)} were chosen", loc="left", fontsize=11)
    tidy(ax, grid="y")
    return ax


@dataclass(frozen=True)
class RulePath:
    """Best mean score for each number of rules, with its standard error."""

    n_rules: Floats
    score: Floats
    error: Floats


def rule_path(results: dict[str, Any]) -> RulePath:
    """Return the best score for each number of rules from ``cv_results_``."""
    # Without a limit of the number, each value of C gives its own number of rules.
    limits = results.get("max_rules", np.arange(len(results["C"])))
    best = [
        max(np.flatnonzero(limits == limit), key=lambda k: results["mean_score"][k])
        for limit in np.unique(limits)
    ]
    order = sorted(best, key=lambda k: results["n_rules"][k])
    n_folds = results["scores"].shape[1]
    return RulePath(
        results["n_rules"][order],
        results["mean_score"][order],
        results["std_score"][order] / np.sqrt(max(1, n_folds - 1)),
    )


@dataclass(frozen=True)
class _Bar:
    """A rule or a linear term as it is drawn."""

    name: str
    weights: tuple[float, ...]
    coverage: float
    covers: str

    @classmethod
    def of(cls, term: Term) -> _Bar:
        if is_linear(term):
            swing = tuple(weight * (term.high - term.low) for weight in term.weights)
            return cls(term.name, swing, 0.0, "linear")
        return cls(term.text, term.weights, term.coverage, f"{100 * term.coverage:.0f} %")


def _draw_coverage(ax: Any, shown: list[_Bar]) -> None:
    shares = [100 * bar.coverage for bar in shown]
    bars = ax.barh(np.arange(len(shown)), shares, height=0.7, color=LIGHT)
    ax.bar_label(bars, [bar.covers for bar in shown], padding=3, fontsize=8, color=GREY)
    ax.margins(x=0.25)
    ax.set_xlabel("covers (% of rows)")
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)


def output_names(model: Any) -> list[Any]:
    """Return the names of the outputs of a rule ensemble."""
    n_outputs = len(model.intercept_)
    for attribute in ("tasks_", "classes_"):
        names = getattr(model, attribute, ())
        if len(names) == n_outputs:
            return list(names)
    return [f"output {t}" for t in range(n_outputs)]


def adds_to(model: Any) -> str:
    """Return the label of the axis of rule weights."""
    if "classes_" not in model._declaration.saved:
        return "adds to the prediction"
    one = len(model.intercept_) == 1
    return (
        f"adds to the score (positive: {wrap(model.classes_[-1], 46)})"
        if one
        else "adds to the scores"
    )
