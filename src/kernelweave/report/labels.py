"""Section on training labels that look wrong, and the rates of wrong labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave._text import clip

from .charts import Chart, linear
from .rendering import Section
from .subject import Subject
from .tables import Column, Table, meter, number, percent, share, text_column

_MOST = 300  # suspects shown at most
_BINS = 24  # an even number, so that no bin has labels on both sides of one half
_MOST_CLASSES = 20  # of a table of rates


def section(subject: Subject) -> Section:
    """Return the assessment of the training labels."""
    model = subject.estimator
    found = model.suspects()
    values = {
        "found": found,
        "suspects": _suspects(subject, found) if len(found) else None,
        "histogram": _histogram(model),
        "facts": _facts(model),
        "given": _is_given(model),
        "rates": _rates(model),
    }
    return Section("labels", "Labels that look wrong", values)


def _suspects(subject: Subject, found: Any) -> Table:
    names = _row_names(subject, found.n_samples)
    titles = (
        ["row", "given", "suggested"] if names is None else ["row", "name", "given", "suggested"]
    )
    columns = [*map(text_column, titles), Column("label quality", sorted="ascending")]
    rows = []
    for i, quality, given, suggested in zip(
        found.index[:_MOST], found.quality, found.given, found.suggested, strict=False
    ):
        named = [] if names is None else [clip(names[i], 60)]
        bar = meter(float(quality), f"{quality:.3f}")
        rows.append([number(i, "d"), *named, given, suggested, bar])
    return Table("labels that look wrong", columns, rows, len(found))


def _row_names(subject: Subject, n_samples: int) -> Any:
    """Return the index of a pandas frame unless it only counts the rows."""
    index = getattr(subject.X, "index", None)
    if index is None or callable(index) or len(index) != n_samples:
        return None
    names = list(index)
    return None if names == list(range(n_samples)) else names


def _histogram(model: Any) -> Chart:
    counts, edges = np.histogram(model.label_quality_, bins=_BINS, range=(0.0, 1.0))
    below = edges[:-1] < 0.5
    return Chart(
        linear(0.0, 1.0),
        f"Quality of {count(len(model.label_quality_), 'label')} between 0 and 1.",
        "Number of training labels by their quality; near 0 the model disagrees most.",
        title="label quality",
        height=190.0,
        upright=(0.5, "one half"),
        edges=edges,
        counts={"warm": np.where(below, counts, 0), "main": np.where(below, 0, counts)},
    )


def _facts(model: Any) -> list[tuple[str, str]]:
    title = (
        "Share of wrong labels, as given" if _is_given(model) else "Estimated share of wrong labels"
    )
    lines = [(title, percent(model.noise_level_))]
    if hasattr(model, "counted_noise_level_"):
        lines.append(("The same by counts of confident rows", percent(model.counted_noise_level_)))
    titles = {"cap_": "Share of the rows that counts", "gamma_": "Gamma (1: the cap has no effect)"}
    for name, words in titles.items():
        if name in model._declaration.saved:
            shown = ", ".join(f"{value:.3g}" for value in np.ravel(getattr(model, name)))
            lines.append((words, shown))
    if "loo_error_" in model._declaration.saved:
        lines.append(("Leave-one-out squared error", f"{model.loo_error_:.4g}"))
    return lines


def _is_given(model: Any) -> bool:
    """Return whether the share of wrong labels is a parameter of the fit."""
    if "rates_" in model._declaration.saved:
        return model.rates is not None
    return not isinstance(model.noise_level, str)


def _rates(model: Any) -> Table | None:
    if "rates_" not in model._declaration.saved or len(model.classes_) > _MOST_CLASSES:
        return None
    classes = [clip(label, 24) for label in model.classes_]
    matrix = np.asarray(model.rates_)
    if matrix.ndim == 1:  # two classes: the shares with the other label
        matrix = np.array([[1 - matrix[0], matrix[0]], [matrix[1], 1 - matrix[1]]])
    columns = [text_column("true class"), *(Column(f"labelled {c}") for c in classes)]
    rows = [[name, *map(share, row)] for name, row in zip(classes, matrix, strict=True)]
    return Table("rates of labels", columns, rows)
