"""Pictures of a fitted model: its kernels, its structure, its rules, and how its bounds met."""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.errors import InputError, KernelweaveError

__all__ = ["plot_history", "plot_rules", "plot_structure", "plot_weights"]

_APART = 0.55  # of the rows of a drawn structure, the least between two nodes of a column
_DARK, _LIGHT, _GREY, _WARM = "#1f5f8b", "#8fc1de", "#6b7280", "#c2410c"


def plot_weights(model: Any, ax: Any = None, max_kernels: int = 20) -> Any:
    """Draw the heaviest kernels as bars, with their contributions beside the weights.

    Parameters
    ----------
    model : fitted estimator
        Has ``kernels_``, ``weights_`` and ``contributions_``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    max_kernels : int
        How many kernels to show at most.

    Returns
    -------
    ax : matplotlib axes
        What was drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.plots import plot_weights
    >>> model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> ax = plot_weights(model)
    >>> ax.get_xlabel()
    'share (%)'
    """
    check_is_fitted(model)
    _check_count("max_kernels", max_kernels)
    order = np.argsort(-model.weights_, kind="stable")
    n_used = int(np.count_nonzero(model.weights_))
    shown = order[: min(max_kernels, n_used)]
    weights = model.weights_ / model.weights_.sum()
    ax = _new_axes((7.0, 1.3 + 0.36 * len(shown))) if ax is None else ax
    at = np.arange(len(shown))
    for label, (values, colour, shift, height) in _bars(model, weights).items():
        bars = ax.barh(at + shift, 100 * values[shown], height=height, color=colour, label=label)
        ax.bar_label(bars, fmt="%.1f", padding=3, fontsize=7 if height < 0.5 else 8, color=_GREY)
    names = [_wrap(_name(model, int(j))) for j in shown]
    ax.set_yticks(at, names, fontsize=9 if len(shown) <= 12 else 8)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.margins(x=0.12)
    ax.set_xlabel("share (%)")
    share = f"\nthe {len(shown)} shown carry {weights[shown].sum():.0%} of the weight"
    title = f"{n_used} of {len(order)} kernels in use"
    ax.set_title(title + (share if len(shown) < n_used else ""), loc="left", fontsize=11)
    ax.legend(frameon=False, loc="lower right")
    _tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def plot_rules(model: Any, ax: Any = None, max_rules: int = 20) -> Any:
    """Draw what the rules that matter most add to the score, and how many rows they cover.

    Parameters
    ----------
    model : fitted estimator
        Has ``rules_``, such as `RuleEnsembleClassifier`.
    ax : matplotlib axes, optional
        Where to draw the weights; coverage is then written behind the rules. By default a new
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
    check_is_fitted(model)
    if not hasattr(model, "rules_"):
        raise InputError(f"model: {type(model).__name__} has no rules; draw plot_weights.")
    _check_count("max_rules", max_rules)
    shown = model.rules_[:max_rules]
    outputs = _outputs(model)
    at, height = np.arange(len(shown)), 0.7 / len(outputs)
    names = [_wrap(rule.text) for rule in shown]
    if ax is None:
        tall = 1.3 + (0.36 + 0.1 * (len(outputs) - 1)) * len(shown)
        ax = _new_axes((9.0, tall), 2, sharey=True, width_ratios=[3, 1])[0]
        _draw_coverage(ax.figure.axes[1], shown)
    else:
        names = [f"{name} ({_percent(rule)})" for name, rule in zip(names, shown, strict=True)]
    for t, output in enumerate(outputs):
        weights = np.array([rule.weights[t] for rule in shown])
        colours: Any = f"C{t}"
        if len(outputs) == 1:
            colours = np.where(weights > 0, _DARK, _WARM).tolist()
        place = at + height * (t - 0.5 * (len(outputs) - 1))
        ax.barh(place, weights, height=height, color=colours, label=str(output))
    ax.set_yticks(at, names, fontsize=9 if len(shown) <= 12 else 8)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.axvline(0.0, color=_GREY, linewidth=0.8)
    ax.set_xlabel(_adds_to(model))
    if len(outputs) > 1 and shown:
        ax.legend(
            frameon=False, fontsize=8, ncols=len(outputs), loc="lower right", bbox_to_anchor=(1, 1)
        )
    n_rules = len(model.rules_)
    more = f", the {len(shown)} that matter most" if len(shown) < n_rules else ""
    ax.set_title(f"{n_rules} rules{more}", loc="left", fontsize=11)
    _tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def _draw_coverage(ax: Any, rules: Any) -> None:
    shares = [100 * rule.coverage for rule in rules]
    bars = ax.barh(np.arange(len(rules)), shares, height=0.7, color=_LIGHT)
    ax.bar_label(bars, [_percent(rule) for rule in rules], padding=3, fontsize=8, color=_GREY)
    ax.margins(x=0.25)
    ax.set_xlabel("covers (% of rows)")
    _tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)


def _percent(rule: Any) -> str:
    return f"{100 * rule.coverage:.0f} %"


def _outputs(model: Any) -> list[Any]:
    """Return names of the scores of a model of rules."""
    n_outputs = len(model.intercept_)
    for names in (getattr(model, "tasks_", None), getattr(model, "classes_", None)):
        if names is not None and len(names) == n_outputs:
            return list(names)
    return [f"output {t}" for t in range(n_outputs)]


def _adds_to(model: Any) -> str:
    if not hasattr(model, "classes_"):
        return "adds to the prediction"
    one = len(model.intercept_) == 1
    return f"adds to the score (positive: {model.classes_[-1]})" if one else "adds to the scores"


def plot_structure(model: Any, ax: Any = None) -> Any:
    """Draw a learned structure from its root on the left to its kernels on the right.

    Products are circles with their weights, larger the heavier they are; sums are squares.

    Parameters
    ----------
    model : fitted SumProductMKLClassifier
        Has ``network_`` and ``node_weights_``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        What was drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import RBF, Linear, SumProductMKLClassifier
    >>> from kernelweave.plots import plot_structure
    >>> model = SumProductMKLClassifier(RBF() * Linear() + Linear())
    >>> ax = plot_structure(model.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
    >>> ax.get_title(loc="left")
    '2 paths, 2 weights'
    """
    check_is_fitted(model)
    if not hasattr(model, "network_"):
        raise InputError(f"model: {type(model).__name__} has no structure; draw plot_weights.")
    network = model.network_
    weights = dict(zip(network.products, model.node_weights_.values(), strict=True))
    largest = max(weights.values()) or 1.0
    places = _places(network)
    right = max(x for x, _ in places.values())
    ax = _new_axes((3.2 + 1.4 * right, 1.2 + 0.42 * len(network.leaves))) if ax is None else ax
    for i, node in enumerate(network.nodes):
        x, y = places[i]
        for c in node.children:
            dead = any(weights.get(k, 1.0) < 1e-6 * largest for k in (i, c))
            line = ":" if dead else "-"
            ax.plot(
                [x, places[c][0]], [y, places[c][1]], line, color=_LIGHT, linewidth=1.2, zorder=1
            )
        if node.kind == "leaf":
            ax.text(x + 0.06, y, _wrap(str(node.kernel)), va="center", fontsize=8)
        elif node.kind == "sum":
            ax.scatter([x], [y], marker="s", s=130, color=_GREY, zorder=2)
            ax.text(x, y, "+", ha="center", va="center", color="white", fontsize=10, zorder=3)
        else:
            area = 60 + 260 * (weights[i] / largest) ** 0.5
            ax.scatter([x], [y], s=area, color=_DARK, zorder=2)
            text = f"{weights[i]:.2g}" if weights[i] > 1e-6 * largest else "0"
            text = f"{node.name}: {text}" if node.name else text
            ax.annotate(
                text,
                (x, y),
                (0, 3 + 0.55 * area**0.5),
                textcoords="offset points",
                ha="center",
                fontsize=8,
            )
    ax.set_xlim(-0.3, right + 1.6)
    ax.margins(y=0.08)
    ax.set_axis_off()
    title = f"{network.count_paths()} paths, {len(weights)} weights"
    ax.set_title(title, loc="left", fontsize=11)
    return ax


def plot_history(model: Any, ax: Any = None) -> Any:
    """Draw the certified relative gap, and both bounds behind it, over the machines solved.

    Parameters
    ----------
    model : fitted estimator
        Has ``history_``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        What was drawn on.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.plots import plot_history
    >>> model = MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> plot_history(model).get_yscale()
    'log'
    """
    check_is_fitted(model)
    if not model.history_:
        raise InputError(f"{type(model).__name__} is fitted in closed form and has no history.")
    ax = _new_axes((6.0, 4.0)) if ax is None else ax
    solves = np.array([step.solves for step in model.history_])
    best = model.objective_
    size = max(abs(best), 1e-300)
    floor = 1e-12  # where rounding takes over; zero has no place on a logarithmic axis
    lines: dict[str, tuple[list[float], dict[str, Any]]] = {
        "upper bound above the best": (
            [(step.upper - best) / size for step in model.history_],
            {"color": _LIGHT, "linestyle": "--"},
        ),
        "relative gap": (
            [step.relative_gap for step in model.history_],
            {"color": _DARK, "linewidth": 2},
        ),
    }
    for label, (heights, style) in lines.items():
        values = np.array(heights)
        kept = np.isfinite(values) & (values > floor)
        if kept.any():
            ax.plot(solves[kept], values[kept], marker="o", ms=4, label=label, **style)
    ax.axhline(model.tol, color=_GREY, linewidth=1, linestyle=":", label=f"tol = {model.tol:g}")
    ax.set_yscale("log")
    ax.set_xlabel("machines solved")
    ax.set_ylabel("relative to the objective")
    ax.set_title(_verdict(model), loc="left", fontsize=11)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    _tidy(ax, grid="y")
    return ax


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number >= 1, got {value!r}.")


def _bars(model: Any, weights: Any) -> dict[str, tuple[Any, str, float, float]]:
    """Return values, colour, shift and height by label; at an l1 optimum both kinds agree."""
    if np.abs(weights - model.contributions_).max() < 0.002:
        return {"weight (and contribution)": (weights, _DARK, 0.0, 0.66)}
    return {
        "weight": (weights, _DARK, -0.19, 0.36),
        "contribution": (model.contributions_, _LIGHT, 0.19, 0.36),
    }


def _name(model: Any, weight: int) -> str:
    """Return the kernel, or the path of kernels, that a weight belongs to."""
    if hasattr(model, "network_"):
        return str(model.network_.describe(model.paths_[weight]))
    return str(model.kernels_[weight])


def _places(network: Any) -> dict[int, tuple[float, float]]:
    """Return where each node is drawn: leaves one below the other, parents amid their children."""
    depth = {network.root: 0}
    for i in reversed(network.order):
        for c in network.nodes[i].children:
            depth[c] = max(depth.get(c, 0), depth[i] + 1)
    last = max(depth.values())
    height: dict[int, float] = {}
    rows = {i: k for k, i in enumerate(j for j in network.order if not network.nodes[j].children)}
    for i in network.order:
        children = [height[c] for c in network.nodes[i].children]
        height[i] = float(np.mean(children)) if children else -float(rows[i])
    # Products above one leaf, and sums of the same products, would lie on top of each other.
    columns: dict[float, list[int]] = {}
    for i in sorted(network.order, key=lambda i: (height[i], i)):
        if network.nodes[i].children:
            columns.setdefault(depth[i], []).append(i)
    for members in columns.values():
        for before, i in pairwise(members):
            height[i] = max(height[i], height[before] + _APART)
    return {
        i: (float(last if not network.nodes[i].children else depth[i]), height[i])
        for i in network.order
    }


def _verdict(model: Any) -> str:
    gap = model.duality_gap_ / max(abs(model.objective_), 1e-300)
    if not np.isfinite(gap):
        return "no lower bound is known"
    return f"certified within {gap:.1e} of the optimum"


def _new_axes(size: tuple[float, float], n: int = 1, **options: Any) -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise KernelweaveError(
            'Plots need matplotlib; install it with pip install "kernelweave[cli]".'
        ) from error
    return plt.subplots(1, n, figsize=size, layout="constrained", **options)[1]


def _wrap(name: str) -> str:
    return "\n".join(textwrap.wrap(name, 46, max_lines=2, placeholder=" ...")) or name


def _tidy(ax: Any, grid: str) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=grid, color="#e5e7eb", linewidth=0.8)
    ax.set_axisbelow(True)
