"""Pictures of a fitted model: its kernels, its structure, and how its bounds met."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave.errors import InputError, KernelweaveError

__all__ = ["plot_history", "plot_structure", "plot_weights"]

_DARK, _LIGHT, _GREY = "#1f5f8b", "#8fc1de", "#6b7280"


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
    if isinstance(max_kernels, bool) or not isinstance(max_kernels, int) or max_kernels < 1:
        raise InputError(f"max_kernels must be a whole number >= 1, got {max_kernels!r}.")
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
    return {
        i: (float(last if not network.nodes[i].children else depth[i]), height[i])
        for i in network.order
    }


def _verdict(model: Any) -> str:
    gap = model.duality_gap_ / max(abs(model.objective_), 1e-300)
    if not np.isfinite(gap):
        return "no lower bound is known"
    return f"certified within {gap:.1e} of the optimum"


def _new_axes(size: tuple[float, float]) -> Any:
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise KernelweaveError(
            'Plots need matplotlib; install it with pip install "kernelweave[cli]".'
        ) from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def _wrap(name: str) -> str:
    return "\n".join(textwrap.wrap(name, 46, max_lines=2, placeholder=" ...")) or name


def _tidy(ax: Any, grid: str) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(axis=grid, color="#e5e7eb", linewidth=0.8)
    ax.set_axisbelow(True)
