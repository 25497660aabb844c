"""Plots of Shapley values: one row as a waterfall, and the importance of the players."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection import Attributions

from .drawing import DARK, GREY, LIGHT, WARM, check_count, new_axes, tidy, wrap

_SIDE_BY_SIDE = 4  # outputs whose bars stand side by side; more are stacked


def plot_attributions(
    attributions: Attributions, row: int | None = None, ax: Any = None, max_players: int = 10
) -> Any:
    """Draw how a prediction is composed, from the average to the prediction of one row.

    Parameters
    ----------
    attributions : Attributions
        Result of `kernelweave.inspection.explain`, of one output or several; of several outputs the
        largest is drawn, which is the predicted class.
    row : int, optional
        Which row; not needed where there is one.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.
    max_players : int
        How many players to show at most; the others are one bar.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np
    >>> from kernelweave import RuleEnsembleRegressor
    >>> from kernelweave.inspection import explain
    >>> from kernelweave.plots import plot_attributions
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = RuleEnsembleRegressor(C=10).fit(X, 2.0 * (X[:, 0] > 0))
    >>> plot_attributions(explain(model, X), row=0).get_xlabel()
    'prediction'
    """
    check_count("max_players", max_players)
    one = _one_row(attributions, row)
    order = np.argsort(-np.abs(one.values), kind="stable")
    n_shown = min(max_players, max(1, np.count_nonzero(one.values)))
    shown, rest = order[:n_shown], order[n_shown:]
    steps = np.append(one.values[shown], [one.values[rest].sum()] if len(rest) else [])
    names = [wrap(one.label(int(k), 64)) for k in shown]
    names += [count(len(rest), "other")] if len(rest) else []
    base, prediction = float(one.base_values), float(one.predictions)
    starts = base + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    at = np.arange(len(steps))
    ax = new_axes((7.0, 1.5 + 0.36 * len(steps))) if ax is None else ax
    colours = np.where(steps >= 0, DARK, WARM).tolist()
    ax.barh(at, steps, left=starts, height=0.66, color=colours)
    errors, ends = np.zeros(len(steps)), starts + steps
    if one.errors is not None and np.isfinite(one.errors).all():
        errors[: len(shown)] = one.errors[shown]
        ax.errorbar(ends, at, xerr=errors, fmt="none", ecolor=GREY, elinewidth=1)
    for k, (step, end, error) in enumerate(zip(steps, ends, errors, strict=True)):
        side = 1 if step >= 0 else -1
        ax.annotate(
            f"{step:+.3g}",
            (end + side * error, k),
            (3 * side, 0),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
            va="center",
            fontsize=8,
            color=GREY,
        )
    for k in range(len(steps) - 1):  # each bar begins where the last one ends
        ax.plot([starts[k + 1]] * 2, [k - 0.33, k + 1.33], color=GREY, linewidth=0.6)
    ax.axvline(base, color=GREY, linewidth=1, linestyle=":")
    ax.axvline(prediction, color=GREY, linewidth=1)
    ax.set_yticks(at, names, fontsize=9 if len(at) <= 12 else 8)
    ax.set_ylim(len(steps) - 0.4, -0.6)
    ax.use_sticky_edges = False  # the first bar begins at the average, which must be seen
    ax.set_xmargin(0.15)
    ax.autoscale_view(scaley=False)
    ax.set_xlabel(one.quantity)
    output = "" if one.output_names[0] == one.quantity else f"{wrap(one.output_names[0], 46)}: "
    rows = count(one.n_background, "row")
    ax.set_title(
        f"{output}{one.quantity} {prediction:.3g}, average of {rows} {base:.3g}",
        loc="left",
        fontsize=11,
    )
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def plot_importance(attributions: Attributions, ax: Any = None, max_players: int = 20) -> Any:
    """Draw the mean size of the values of each player, with standard errors.

    Parameters
    ----------
    attributions : Attributions
        Result of `kernelweave.inspection.explain` for several rows.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.
    max_players : int
        How many players to show at most.

    Returns
    -------
    ax : matplotlib axes
        The axes of the plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np
    >>> from kernelweave import RuleEnsembleRegressor
    >>> from kernelweave.inspection import explain
    >>> from kernelweave.plots import plot_importance
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = RuleEnsembleRegressor(C=10).fit(X, 2.0 * (X[:, 0] > 0))
    >>> plot_importance(explain(model, X)).get_title(loc="left")
    'Mean change of the prediction, 60 rows'
    """
    check_count("max_players", max_players)
    _check(attributions)
    if attributions.is_row:
        raise InputError(
            "attributions: importance needs several rows, got one; draw plot_attributions."
        )
    means, errors = attributions.mean_sizes()
    outputs = attributions.output_names
    means, errors = means.reshape(-1, len(outputs)), errors.reshape(-1, len(outputs))
    order = np.argsort(-means.sum(axis=1), kind="stable")
    shown = order[:max_players]
    at = np.arange(len(shown))
    beside = len(outputs) <= _SIDE_BY_SIDE
    height = 0.7 / len(outputs) if beside else 0.7
    if ax is None:
        tall = 0.36 + (0.1 * (len(outputs) - 1) if beside else 0.0)
        ax = new_axes((7.0, 1.5 + tall * len(shown)))
    left = np.zeros(len(shown))
    for t, output in enumerate(outputs):
        place = at + height * (t - 0.5 * (len(outputs) - 1)) if beside else at
        error = errors[shown, t] if beside and np.isfinite(errors).all() else None
        bars = ax.barh(
            place,
            means[shown, t],
            left=None if beside else left,
            height=height,
            xerr=error,
            color=DARK if len(outputs) == 1 else f"C{t}",
            ecolor=LIGHT if len(outputs) == 1 else GREY,
            label=wrap(output, 46),
        )
        left = left + means[shown, t]
        if len(outputs) == 1:
            ends = [f"{value:.3g}" for value in means[shown, 0]]
            ax.bar_label(bars, ends, padding=3, fontsize=8, color=GREY)
    names = [wrap(attributions.feature_names[k]) for k in shown]
    ax.set_yticks(at, names, fontsize=9 if len(shown) <= 12 else 8)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.margins(x=0.12)
    ax.set_xlabel("importance (lines: standard errors)" if beside else "importance")
    if len(outputs) > 1:
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    more = f"\nthe {len(shown)} largest of {len(order)}" if len(shown) < len(order) else ""
    rows = count(len(attributions), "row")
    ax.set_title(
        f"Mean change of the {attributions.quantity}, {rows}{more}",
        loc="left",
        fontsize=11,
    )
    tidy(ax, grid="x")
    ax.tick_params(axis="y", length=0)
    return ax


def _check(attributions: Any) -> None:
    if not hasattr(attributions, "mean_sizes"):
        raise InputTypeError(
            "attributions: must be the result of kernelweave.inspection.explain, got "
            f"{type(attributions).__name__}."
        )


def _one_row(attributions: Any, row: Any) -> Attributions:
    """Return one row and one output."""
    _check(attributions)
    one: Attributions = attributions
    if one.is_row:
        if row is not None:
            raise InputError("row: must be None where attributions are those of one row.")
    else:
        if row is None and len(one) > 1:
            raise InputError(f"row: must be a number from 0 to {len(one) - 1}; pass row=0.")
        number = 0 if row is None else row
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            raise InputError(f"row: must be a number from 0 to {len(one) - 1}, got {row!r}.")
        if not -len(one) <= number < len(one):
            raise InputError(f"row: must be a number from 0 to {len(one) - 1}, got {row}.")
        one = one[int(number)]
    if len(one.output_names) > 1:
        one = one[..., int(np.argmax(one.predictions))]
    return one
