"""The duality gap over the iterations of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._summary import (
    APPROXIMATE,
    is_approximate,
    relative_gap,
    relative_landmark_gap,
)
from kernelweave.errors import InputError

from .drawing import DARK, GREY, LIGHT, new_axes, tidy


def plot_history(model: Any, ax: Any = None) -> Any:
    """Draw the relative duality gap, and both bounds behind it, over the inner solves.

    Parameters
    ----------
    model : fitted estimator
        Has ``history_``.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

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
    ax = new_axes((6.0, 4.0)) if ax is None else ax
    solves = np.array([step.solves for step in model.history_])
    best = model.objective_
    size = max(abs(best), 1e-300)
    floor = 1e-12  # where rounding takes over; zero has no place on a logarithmic axis
    lines: dict[str, tuple[list[float], dict[str, Any]]] = {
        "upper bound above the best": (
            [(step.upper - best) / size for step in model.history_],
            {"color": LIGHT, "linestyle": "--"},
        ),
        "relative gap": (
            [step.relative_gap for step in model.history_],
            {"color": DARK, "linewidth": 2},
        ),
    }
    for label, (heights, style) in lines.items():
        values = np.array(heights)
        kept = np.isfinite(values) & (values > floor)
        if kept.any():
            ax.plot(solves[kept], values[kept], marker="o", ms=4, label=label, **style)
    ax.axhline(model.tol, color=GREY, linewidth=1, linestyle=":", label=f"tol = {model.tol:g}")
    ax.set_yscale("log")
    ax.set_xlabel("inner solves")
    ax.set_ylabel("relative to the objective")
    ax.set_title(_title(model), loc="left", fontsize=11)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    tidy(ax, grid="y")
    return ax


def _title(model: Any) -> str:
    gap, near = relative_gap(model), relative_landmark_gap(model)
    if is_approximate(gap, near, model.tol):
        return f"{APPROXIMATE}:\nwithin {near:.1e} of the optimum of the Nystroem problem"
    if not np.isfinite(gap):
        return "no lower bound is known"
    return f"certified within {gap:.1e} of the optimum"
