"""Kernel weights along the regularisation path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._summary import shares, weight_names
from kernelweave.errors import InputError

from .drawing import GREY, check_count, new_axes, tidy, wrap


def plot_path(models: Sequence[Any], ax: Any = None, max_kernels: int = 8) -> Any:
    """Draw the weights of the kernels over C, as `fit_path` returns them.

    Kernels are named that are among the heaviest anywhere on the path; the others are grey.

    Parameters
    ----------
    models : sequence of fitted estimators
        The same estimator on the same kernels, for several values of ``C``.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.
    max_kernels : int
        How many kernels to name at most.

    Returns
    -------
    ax : matplotlib axes
        What was drawn on.

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
        if not hasattr(model, "C") or not np.size(getattr(model, "weights_", ())):
            raise InputError(f"models: {type(model).__name__} has no weights that depend on C.")
    sizes = {len(model.weights_) for model in given}
    if len(sizes) > 1:
        raise InputError(
            f"models: all must have the same kernels, but there are {min(sizes)} and {max(sizes)}."
        )
    return given
