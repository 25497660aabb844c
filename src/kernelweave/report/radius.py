"""Section on the radius of the enclosing ball and on learned widths."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import column_names

from .rendering import Section
from .subject import Subject
from .tables import Column, Table, meter, number, text_column

_MOST = 200


def section(subject: Subject) -> Section:
    """Return the ball around the rows, and the learned widths where there are any."""
    model = subject.estimator
    squared = float(model.squared_radius_)
    lines = [
        ("Radius of the ball around the rows", f"{np.sqrt(squared):.5g}"),
        ("Its square", f"{squared:.5g}"),
    ]
    if model._declaration.learns == "widths":
        lines.append(("Learned kernel", str(model.kernel_)))
        widths = getattr(model.kernel_, "widths", None)  # one for each column, or none
    else:
        widths = None
        if np.isfinite(model.lower_bound_):
            bound = f"{model.lower_bound_:.6g}"
            lines.append(("Lower bound of the criterion over all weights", bound))
        lines.append(("Criterion", model.criterion))
    table = None if widths is None else _widths(model, np.array(widths, dtype=np.float64))
    return Section("radius", "Radius and scale", {"facts": lines, "widths": table})


def _widths(model: Any, widths: Any) -> Table:
    relevance = widths.min() / widths
    names = column_names(model, len(widths))
    order = np.argsort(-relevance, kind="stable")[:_MOST]
    rows = [
        [names[j], number(widths[j]), meter(relevance[j], f"{relevance[j]:.2f}")] for j in order
    ]
    columns = [text_column("column"), Column("width"), Column("relevance", sorted="descending")]
    return Table("columns by width", columns, rows, len(widths))
