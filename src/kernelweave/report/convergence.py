"""Section on the optimiser: convergence of the fit and its certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave._summary import APPROXIMATE, FitStatus, fit_status
from kernelweave._types import Floats

from .charts import Axis, Chart, linear, logarithmic
from .rendering import Section
from .subject import Subject

_POINTS = 300  # of a history that is drawn
_FLOOR = 1e-9  # rounding level; zero has no place on a logarithmic axis


def section(subject: Subject) -> Section:
    """Return the status of the fit in words, and its history."""
    model = subject.estimator
    status = fit_status(model)
    values = {
        "status": status,
        "chart": _chart(model, status),
        "facts": _facts(model),
    }
    return Section("convergence", "The optimiser and its certificate", values)


def _facts(model: Any) -> list[tuple[str, str]]:
    objective = getattr(model, "objective_", np.nan)
    gap = getattr(model, "duality_gap_", np.nan)
    near = getattr(model, "landmark_gap_", np.nan)
    lines = [
        ("Objective", objective, ".8g"),
        ("Lower bound", objective - gap, ".8g"),
        ("Duality gap", gap, ".3g"),
        ("Duality gap of the Nystroem problem", near, ".3g"),
        ("Tolerance", getattr(model, "tol", np.nan), "g"),
        ("Activated candidates", getattr(model, "n_nodes_", np.nan), ",d"),
    ]
    return [(name, format(value, form)) for name, value, form in lines if np.isfinite(value)]


def _chart(model: Any, status: FitStatus) -> Chart | None:
    history = list(getattr(model, "history_", ()))
    if len(history) < 2:
        return None
    if len(history) > _POINTS:
        kept = np.unique(np.linspace(0, len(history) - 1, _POINTS).astype(int))
        history = [history[k] for k in kept]
    solves = np.array([step.solves for step in history], dtype=np.float64)
    gaps = np.array([step.relative_gap for step in history])
    known = np.isfinite(gaps)
    if known.sum() >= 2:
        return _gaps(model, status, solves[known], np.maximum(gaps[known], _FLOOR))
    values = np.array([step.upper for step in history])
    finite = np.isfinite(values)
    if finite.sum() < 2 or np.ptp(values[finite]) == 0:
        return None
    solves, values = solves[finite], values[finite]
    return Chart(
        _integers(solves),
        f"The objective fell from {values[0]:.4g} to {values[-1]:.4g}.",
        "The objective over the inner solves. There is no bound to compare it with.",
        title="inner solves",
        y=linear(values.min(), values.max()),
        line=(solves, values),
    )


def _gaps(model: Any, status: FitStatus, solves: Floats, gaps: Floats) -> Chart:
    low, high = min(gaps.min(), model.tol), max(gaps.max(), model.tol)
    caption = (
        "The duality gap, as a share of the objective: an upper bound on the distance to the "
        "optimum."
    )
    if status.short == APPROXIMATE:
        caption += (
            " The last point is for the exact kernels, those before it for the Nystroem problem."
        )
    return Chart(
        _integers(solves),
        f"The duality gap went from {gaps[0]:.2g} to {gaps[-1]:.2g} of the objective.",
        caption,
        title="inner solves",
        y=logarithmic(low, high, lambda p: f"{100 * p:g}%"),
        level=(model.tol, f"tolerance {100 * model.tol:g}%"),
        line=(solves, gaps),
    )


def _integers(solves: Floats) -> Axis:
    axis = linear(float(solves.min()), float(solves.max()))
    return replace(axis, ticks=[(v, f"{v:.0f}") for v, _ in axis.ticks if v == round(v)])
