"""Shape functions as small multiples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave.errors import InputError
from kernelweave.inspection import Curve, Effects, effects

from .drawing import DARK, GREY, LIGHT, check_count, new_axes, tidy, wrap

_ACROSS = 3  # panels in a row
_WIDE = 1.96  # standard errors on each side of a band
_CURVES = 40  # rows drawn as single curves
_RUG = 300  # rows marked at the lower end
_LEAST = 1e-3  # share of the variance from which on a column is drawn unasked


def plot_effects(
    model: Any,
    X: Any = None,
    columns: Sequence[Any] | None = None,
    *,
    axes: Any = None,
    max_columns: int = 9,
    rows: bool = False,
) -> Any:
    """Draw how the prediction depends on each column, the strongest first.

    Numbers and dates are curves with marks of the background's rows below; categories are bars, the
    most frequent first. The band is 1.96 standard errors over the background or, where models were
    fitted again, the range of their curves; the title says which.

    Parameters
    ----------
    model : Effects or fitted estimator
        Result of `kernelweave.inspection.effects`, or a model.
    X : array or data frame, optional
        The background, where a model is given.
    columns : sequence of names or positions, optional
        Which columns; the strongest by default.
    axes : sequence of matplotlib axes, optional
        Axes to draw on, one for each column; a new figure by default.
    max_columns : int
        How many columns to show at most.
    rows : bool
        Whether to draw curves of single rows behind, of one output only.

    Returns
    -------
    axes : ndarray of matplotlib axes
        One for each column shown.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import numpy as np
    >>> from kernelweave import RuleEnsembleRegressor
    >>> from kernelweave.plots import plot_effects
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = RuleEnsembleRegressor(C=10).fit(X, 2.0 * (X[:, 0] > 0))
    >>> plot_effects(model, X)[0].get_ylabel()
    'change of the prediction'
    """
    check_count("max_columns", max_columns)
    if hasattr(model, "curves"):  # effects that were computed already
        if X is not None:
            raise InputError("X: must be None where effects are given.")
        found: Effects = model
    elif X is None:
        raise InputError("X: a model needs the rows of the background; pass X.")
    else:
        found = effects(model, X, columns)
    if columns is None:
        chosen = [curve for curve in found if np.max(_shares(curve, found)) >= _LEAST]
    else:
        chosen = [found[column] for column in columns]
    chosen = (chosen or list(found[:1]))[:max_columns]
    given = axes is not None
    axes = np.ravel(axes) if given else _new_panels(len(chosen))
    if len(axes) < len(chosen):
        raise InputError(f"axes: {len(chosen)} are needed, got {len(axes)}.")
    several = len(found.output_names) > 1
    for ax, curve in zip(axes, chosen, strict=False):
        _draw(ax, curve, found, rows=rows and not several)
    for ax in axes[len(chosen) :]:
        ax.set_visible(False)
    low, high = zip(*(ax.get_ylim() for ax in axes[: len(chosen)]), strict=True)
    for k, ax in enumerate(axes[: len(chosen)]):  # one scale, so that sizes can be compared
        ax.set_ylim(min(low), max(high))
        if not given and k % _ACROSS:
            ax.tick_params(axis="y", labelleft=False)
    axes[0].set_ylabel(f"change of the {found.quantity}")
    if several and given:
        axes[0].legend(frameon=False, fontsize=8)
    if not given:
        figure = axes[0].figure
        figure.suptitle(_title(found, chosen), x=0.01, ha="left", fontsize=11)
        if several:
            lines = axes[0].get_legend_handles_labels()
            figure.legend(*lines, loc="outside right upper", frameon=False, fontsize=8)
    return axes[: len(chosen)]


def _new_panels(n: int) -> Any:
    across = min(n, _ACROSS)
    down = -(-n // across)
    size = (0.6 + 2.9 * across, 0.9 + 2.4 * down)
    return np.ravel(new_axes(size, across, down, squeeze=False))


def _title(found: Effects, chosen: list[Curve]) -> str:
    """Return what the curves add up to, and what the band means."""
    whole = len(chosen) == len(found)
    which = "The curves" if whole else f"The {len(chosen)} strongest of {len(found)} columns"
    if found.additive and whole:
        what = "The curves add up exactly to the model"
    else:
        share = np.mean(sum(_shares(curve, found) for curve in chosen))
        what = f"{which} explain {share:.0%} of the variance, each by itself"
    if found.n_refits:
        return f"{what}\nband: 5 to 95% of {count(found.n_refits, 'refit')} to other samples"
    rows = count(found.n_background, "row")
    return f"{what}\nband: 95% interval of the mean over {rows}, not of the fit"


def _draw(ax: Any, curve: Curve, found: Effects, *, rows: bool) -> None:
    """Draw one column."""
    n_outputs = len(found.output_names)
    shape = (*curve.values.shape[:1], n_outputs)
    values, errors = curve.values.reshape(shape), curve.errors.reshape(shape)
    band = np.stack([values - _WIDE * errors, values + _WIDE * errors])
    if curve.band is not None:
        band = curve.band.reshape(2, *shape)
    x: Any = curve.points if curve.kind == "date" else curve.places
    for t, output in enumerate(found.output_names):
        colour, pale = (DARK, LIGHT) if n_outputs == 1 else (f"C{t}", f"C{t}")
        if curve.kind == "category":
            width = 0.7 / n_outputs
            place = x + width * (t - 0.5 * (n_outputs - 1))
            ends = np.abs(band[:, :, t] - values[:, t])
            ax.bar(place, values[:, t], width, color=colour, label=wrap(output, 30))
            ax.errorbar(place, values[:, t], yerr=ends, fmt="none", ecolor=GREY, elinewidth=1)
            continue
        if rows:
            single = curve.ice[:: max(1, -(-len(curve.ice) // _CURVES))] - found.base
            ax.plot(x, single.T, color=GREY, alpha=0.25, linewidth=0.6)
        alpha = 0.5 if n_outputs == 1 else 0.15
        ax.fill_between(x, band[0, :, t], band[1, :, t], color=pale, alpha=alpha, linewidth=0)
        marker = "o" if len(x) == 1 else None
        ax.plot(x, values[:, t], color=colour, linewidth=2, marker=marker, label=wrap(output, 30))
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    if curve.kind == "category":
        names = ["(missing)" if level is None else wrap(level, 14) for level in curve.points]
        slanted = sum(map(len, names)) > 24
        turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
        ax.set_xticks(x, names, fontsize=8, **turn)
    else:
        _draw_rug(ax, curve)
    share = np.max(_shares(curve, found))
    ax.set_title(f"{wrap(curve.name, 60, 32)}  ({share:.0%})", loc="left", fontsize=9)
    ax.tick_params(labelsize=8)
    tidy(ax, grid="y")


def _shares(curve: Curve, found: Effects) -> Any:
    k = found.names.index(curve.name)
    whole = np.asarray(found.variance)
    return np.divide(found.first_order[k], whole, out=np.zeros(whole.shape), where=whole > 0)


def _draw_rug(ax: Any, curve: Curve) -> None:
    """Mark the rows of the background within the curve at the lower end."""
    places = curve.places
    inside = curve.rows[(curve.rows >= places.min()) & (curve.rows <= places.max())]
    inside = np.sort(inside)[:: max(1, -(-len(inside) // _RUG))]
    at: Any = inside
    if curve.kind == "date":
        at = (inside * 86_400e6).astype(np.int64).astype("datetime64[us]")
        ax.tick_params(axis="x", rotation=30)
    line = ax.get_xaxis_transform()
    ax.plot(at, np.full(len(at), 0.02), "|", color=GREY, ms=5, mew=0.5, alpha=0.6, transform=line)
