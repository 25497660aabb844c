"""Weights of kernels as bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import weight_names

from .drawing import DARK, GREY, LIGHT, check_aspect, check_count, new_axes, tidy, wrap


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
    check_aspect(model, "kernels", "has no weights of kernels")
    check_count("max_kernels", max_kernels)
    order = np.argsort(-model.weights_, kind="stable")
    n_used = int(np.count_nonzero(model.weights_))
    shown = order[: min(max_kernels, n_used)]
    weights = model.weights_ / model.weights_.sum()
    ax = new_axes((7.0, 1.3 + 0.36 * len(shown))) if ax is None else ax
    at = np.arange(len(shown))
    for label, (values, colour, shift, height) in _bars(model, weights).items():
        bars = ax.barh(at + shift, 100 * values[shown], height=height, color=colour, label=label)
        ax.bar_label(bars, fmt="%.1f", padding=3, fontsize=7 if height < 0.5 else 8, color=GREY)
    every = weight_names(model)
    names = [wrap(every[j]) for j in shown]
    ax.set_yticks(at, names, fontsize=9 if len(shown) <= 12 else 8)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.margins(x=0.12)
    ax.set_xlabel("share (%)")
    share = f"\nthe {len(shown)} shown carry {weights[shown].sum():.0%} of the weight"
    title = f"{n_used} of {len(order)} kernels in use"
    ax.set_title(title + (share if len(shown) < n_used else ""), loc="left", fontsize=11)
    ax.legend(frameon=False, loc="lower right")
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def _bars(model: Any, weights: Any) -> dict[str, tuple[Any, str, float, float]]:
    """Return values, colour, shift and height by label; at an l1 optimum both kinds agree."""
    if np.abs(weights - model.contributions_).max() < 0.002:
        return {"weight (and contribution)": (weights, DARK, 0.0, 0.66)}
    return {
        "weight": (weights, DARK, -0.19, 0.36),
        "contribution": (model.contributions_, LIGHT, 0.19, 0.36),
    }
