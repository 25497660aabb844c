"""Training labels that look wrong, and how often labels of each class are."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave._text import clip

from .charts import Plot, linear
from .html import (
    Cell,
    Column,
    Markup,
    Section,
    facts,
    figure,
    join,
    meter,
    note,
    paragraph,
    percent,
    table,
    tag,
)
from .subject import Subject

_MOST = 300  # suspects that a page has room for
_BINS = 24  # an even number, so that none has labels on both sides of one half


def section(subject: Subject) -> Section | None:
    """Return what the model thinks of the labels it was given."""
    model = subject.estimator
    if not hasattr(model, "label_quality_"):
        return None
    found = model.suspects()
    looks = "label looks" if found.n_wrong == 1 else "labels look"
    words = paragraph(
        f"{found.n_wrong:,} of {found.n_samples:,} training {looks} wrong: a model of the other "
        "rows would have given another label. Look at these rows first."
    )
    body = [words, _suspects(subject, found), _histogram(model), _facts(model), _rates(model)]
    return Section("labels", "Labels that look wrong", join(body))


def _suspects(subject: Subject, found: Any) -> Markup | None:
    if not len(found):
        return None
    names = _row_names(subject, found.n_samples)
    columns = [
        Column("row", number=False),
        *([Column("name", number=False)] if names is not None else []),
    ]
    columns += [Column("given", number=False), Column("suggested", number=False)]
    columns.append(Column("label quality", sorted="ascending"))
    rows = []
    for i, quality, given, suggested in zip(
        found.index[:_MOST], found.quality, found.given, found.suggested, strict=False
    ):
        row: list[Any] = [Cell(f"{i}", float(i))]
        row += [] if names is None else [clip(names[i], 60)]
        rows.append([*row, str(given), str(suggested), meter(float(quality), f"{quality:.3f}")])
    return join(
        [
            table("labels that look wrong", columns, rows, n_all=len(found)),
            note("Rows are counted from 0, in the order in which the model was fitted to them."),
        ]
    )


def _row_names(subject: Subject, n_samples: int) -> Any:
    """Return the index of a pandas frame where it says more than the number of the row."""
    index = getattr(subject.X, "index", None)
    if index is None or callable(index) or len(index) != n_samples:
        return None
    names = list(index)
    return None if names == list(range(n_samples)) else names


def _histogram(model: Any) -> Markup:
    counts, edges = np.histogram(model.label_quality_, bins=_BINS, range=(0.0, 1.0))
    plot, top = Plot(linear(0.0, 1.0), height=190.0), float(counts.max())
    below = edges[:-1] < 0.5
    bars = [
        plot.columns(edges, np.where(below, counts, 0), top, "warm"),
        plot.columns(edges, np.where(below, 0, counts), top, "main"),
        plot.upright(0.5, "one half"),
    ]
    label = f"Quality of {count(len(model.label_quality_), 'label')} between 0 and 1."
    return figure(
        plot.render("label quality", bars, label),
        "How many training labels have which quality; near 0 the model disagrees most.",
    )


def _facts(model: Any) -> Markup:
    share = (
        "Share of wrong labels, as given" if _is_given(model) else "Estimated share of wrong labels"
    )
    lines: list[tuple[str, Any]] = [(share, percent(model.noise_level_))]
    if hasattr(model, "cap_"):
        lines.append(
            ("Share of the rows that counts", ", ".join(f"{c:.3g}" for c in np.ravel(model.cap_)))
        )
    if hasattr(model, "gamma_"):
        shown = ", ".join(f"{g:.3g}" for g in np.ravel(model.gamma_))
        lines.append(("Gamma (1: the cap does nothing)", shown))
    if hasattr(model, "loo_error_"):
        lines.append(("Leave-one-out squared error", f"{model.loo_error_:.4g}"))
    if _is_given(model):
        return facts(lines)
    hint = (
        "The share is estimated from how sure the model ever gets, not from the list above. It is "
        "too low where few labels are wrong or classes are easy to tell apart, and too high where "
        "they overlap; and a label in the list may be right."
    )
    return join([facts(lines), note(hint)])


def _is_given(model: Any) -> bool:
    """Say whether the model was told how many labels are wrong."""
    if hasattr(model, "rates"):
        return model.rates is not None
    return not isinstance(model.noise_level, str)


def _rates(model: Any) -> Markup | None:
    rates = getattr(model, "rates_", None)
    if rates is None:
        return None
    classes = [clip(label, 24) for label in model.classes_]
    matrix = np.asarray(rates)
    if matrix.ndim == 1:  # of two classes the shares that carry the other label
        matrix = np.array([[1 - matrix[0], matrix[0]], [matrix[1], 1 - matrix[1]]])
    if len(classes) > 20:
        return None
    columns = [Column("true class", number=False), *(Column(f"labelled {c}") for c in classes)]
    rows = [
        [name, *(Cell(percent(v), float(v)) for v in row)]
        for name, row in zip(classes, matrix, strict=True)
    ]
    title = "Rates as given" if _is_given(model) else "Estimated rates"
    return join([tag("h3", title), table("rates of labels", columns, rows)])
