"""Plots of kernel weights: bars for one model, lines along a regularisation path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._declaration import has_aspect
from kernelweave._summary import shares, weight_names
from kernelweave.errors import InputError

from .drawing import DARK, GREY, LIGHT, check_aspect, check_count, new_axes, tidy, wrap


def plot_weights(model: Any, ax: Any = None, max_kernels: int = 20) -> Any:
    """Draw the heaviest kernels as bars, with their contributions beside the weights.

    Parameters
    ----------
    model : fitted estimator
        Has ``kernels_``, ``weights_`` and ``contributions_``.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.
    max_kernels : int
        How many kernels to show at most.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

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


def plot_path(models: Sequence[Any], ax: Any = None, max_kernels: int = 8) -> Any:
    """Draw the weights of the kernels over C, as `fit_path` returns them.

    Kernels are named that are among the heaviest anywhere on the path; the others are grey.

    Parameters
    ----------
    models : sequence of fitted estimators
        The same estimator on the same kernels, for several values of ``C``.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.
    max_kernels : int
        How many kernels to name at most.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from kernelweave import MKLClassifier
    >>> from kernelweave.plots import plot_path
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> plot_path(MKLClassifier().fit_path(X, y, Cs=[0.1, 1, 10])).get_xscale()
    'log'
    """
    check_count("max_kernels", max_kernels)
    models = sorted(_checked(models), key=lambda model: float(model.C))
    costs = [float(model.C) for model in models]
    weights = 100 * np.array([shares(model) for model in models])
    names, heavy = weight_names(models[0]), np.argsort(-weights.max(axis=0), kind="stable")
    named = [j for j in heavy[:max_kernels] if weights[:, j].any()]
    ax = new_axes((7.0, 4.2)) if ax is None else ax
    for j in np.flatnonzero(weights.any(axis=0)):
        if j not in named:
            ax.plot(costs, weights[:, j], color=GREY, alpha=0.3, linewidth=0.8)
    for j in named:
        ax.plot(costs, weights[:, j], marker="o", ms=4, label=wrap(names[j]))
    ax.set_xscale("log")
    ax.set_xlabel("C, the cost of errors")
    ax.set_ylabel("share of the weight (%)")
    used = [int(np.count_nonzero(row)) for row in weights]
    ax.set_title(
        f"{used[0]} kernels at the smallest C, {used[-1]} at the largest", loc="left", fontsize=11
    )
    ax.legend(frameon=False, fontsize=8)
    tidy(ax, grid="y")
    return ax


def _checked(models: Any) -> list[Any]:
    given: list[Any] = list(models) if isinstance(models, Sequence) else []
    if len(given) < 2:
        raise InputError("models: must be two or more fitted estimators, as fit_path returns them.")
    for model in given:
        check_is_fitted(model)
        if (
            not has_aspect(model, "kernels")
            or "C" not in model.get_params()
            or not len(model.weights_)
        ):
            raise InputError(f"models: {type(model).__name__} has no weights that depend on C.")
    sizes = {len(model.weights_) for model in given}
    if len(sizes) > 1:
        raise InputError(
            f"models: all must have the same kernels, but there are {min(sizes)} and {max(sizes)}."
        )
    return given
