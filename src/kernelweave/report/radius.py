"""Radius and scale of a learned kernel, and the widths of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import column_names

from .html import Column, Markup, Section, facts, join, meter, note, number, paragraph, table
from .subject import Subject

_MOST = 200


def section(subject: Subject) -> Section | None:
    """Return the ball around the rows, and the learned widths where there are any."""
    model = subject.estimator
    if not hasattr(model, "squared_radius_"):
        return None
    squared = float(model.squared_radius_)
    lines: list[tuple[str, Any]] = [
        ("Radius of the ball around the rows", f"{np.sqrt(squared):.5g}"),
        ("Its square", f"{squared:.5g}"),
    ]
    if np.isfinite(getattr(model, "lower_bound_", np.nan)):
        lines.append(("Lower bound of the criterion over all weights", f"{model.lower_bound_:.6g}"))
    if hasattr(model, "criterion"):
        lines.append(("Criterion", model.criterion))
    if hasattr(model, "kernel_"):
        lines.append(("Learned kernel", str(model.kernel_)))
    words = paragraph(
        "The model compares the margin between classes with the radius of the smallest ball around "
        "the training rows, so that the scale of a kernel cannot matter. Decision values belong to "
        "the kernel divided by the squared radius."
    )
    return Section("radius", "Radius and scale", join([words, facts(lines), _widths(model)]))


def _widths(model: Any) -> Markup | None:
    widths = getattr(getattr(model, "kernel_", None), "widths", None)
    if widths is None:
        return None
    values = np.array(widths, dtype=np.float64)
    relevance = 1.0 / values
    top = float(relevance.max()) or 1.0
    names = column_names(model, len(values))
    order = np.argsort(-relevance, kind="stable")[:_MOST]
    rows = [
        [names[j], number(values[j]), meter(relevance[j] / top, f"{relevance[j] / top:.2f}")]
        for j in order
    ]
    columns = [
        Column("column", number=False),
        Column("width"),
        Column("matters", sorted="descending"),
    ]
    return join(
        [
            Markup("<h3>Widths of the columns</h3>"),
            table("columns by width", columns, rows, n_all=len(values)),
            note("How much a column matters is one over its width, relative to the largest."),
        ]
    )
