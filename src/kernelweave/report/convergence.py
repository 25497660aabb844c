"""How close to the best possible model the fit has come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave._summary import APPROXIMATE, FitStatus, fit_status
from kernelweave._types import Floats

from .charts import Axis, Plot, linear, logarithmic
from .html import Markup, Section, facts, figure, join, paragraph, tag
from .subject import Subject

_POINTS = 300  # of a history that is drawn
_FLOOR = 1e-9  # where rounding takes over; zero has no place on a logarithmic axis


def section(subject: Subject) -> Section:
    """Return the verdict in words, and how the bounds met."""
    model = subject.estimator
    end = fit_status(model)
    body = [paragraph(badge(end), " ", end.text), _picture(model), _facts(model)]
    return Section("convergence", "Convergence and certificate", join(body))


def badge(end: FitStatus) -> Markup:
    """Return a word that says how the search for the optimum ended."""
    word = end.short.capitalize() if not end.short.endswith("%") else "Optimum certified"
    if not end.good:
        word = "Not converged"
    return tag("span", word, class_="badge good" if end.good else "badge")


def _facts(model: Any) -> Markup | None:
    lines_: list[tuple[str, Any]] = []
    objective = getattr(model, "objective_", np.nan)
    if np.isfinite(objective):
        lines_.append(("Objective", f"{objective:.8g}"))
    gap = getattr(model, "duality_gap_", np.nan)
    if np.isfinite(gap):
        lines_ += [("Lower bound", f"{objective - gap:.8g}"), ("Duality gap", f"{gap:.3g}")]
    near = getattr(model, "landmark_gap_", np.nan)
    if np.isfinite(near):
        lines_.append(("Duality gap of the Nystroem problem", f"{near:.3g}"))
    if hasattr(model, "tol"):
        lines_.append(("Tolerance", f"{model.tol:g}"))
    if hasattr(model, "n_nodes_"):
        lines_.append(("Activated candidates", f"{model.n_nodes_:,}"))
    return facts(lines_) if lines_ else None


def _picture(model: Any) -> Markup | None:
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
        return _gaps(model, solves[known], np.maximum(gaps[known], _FLOOR))
    return _values(solves, np.array([step.upper for step in history]))


def _gaps(model: Any, solves: Floats, gaps: Floats) -> Markup:
    low, high = min(gaps.min(), model.tol), max(gaps.max(), model.tol)
    plot = Plot(_steps(solves), logarithmic(low, high, lambda p: f"{100 * p:g}%"))
    marks = [plot.level(model.tol, f"tolerance {100 * model.tol:g}%"), plot.line(solves, gaps)]
    label = f"The duality gap went from {gaps[0]:.2g} to {gaps[-1]:.2g} of the objective."
    caption = (
        "The duality gap, as a share of the objective: how far from the optimum of its problem the "
        "fit was at most."
    )
    if fit_status(model).short == APPROXIMATE:
        caption += (
            " The last point is for the exact kernels, those before it for the Nystroem problem."
        )
    return figure(plot.render("inner solves", marks, label), caption)


def _values(solves: Floats, values: Floats) -> Markup | None:
    there = np.isfinite(values)
    if there.sum() < 2 or np.ptp(values[there]) == 0:
        return None
    solves, values = solves[there], values[there]
    plot = Plot(_steps(solves), linear(values.min(), values.max()))
    label = f"The objective fell from {values[0]:.4g} to {values[-1]:.4g}."
    return figure(
        plot.render("inner solves", plot.line(solves, values), label),
        "The objective as the search went on. There is no bound to compare it with.",
    )


def _steps(solves: Floats) -> Axis:
    axis = linear(float(solves.min()), float(solves.max()))
    return replace(axis, ticks=[(v, f"{v:.0f}") for v, _ in axis.ticks if v == round(v)])
