"""Clusters and a map of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave.plots.clusters import in_plane

from .charts import scatter
from .html import (
    Cell,
    Column,
    Markup,
    Section,
    facts,
    figure,
    join,
    meter,
    paragraph,
    percent,
    table,
)
from .subject import Subject

_MOST = 2000  # points that a page has room for


def section(subject: Subject) -> Section | None:
    """Return a map of the clusters and their sizes."""
    model = subject.estimator
    if not hasattr(model, "embedding_"):
        return None
    clusters, codes, sizes = np.unique(model.labels_, return_inverse=True, return_counts=True)
    names = [str(c) for c in clusters]
    rows = [
        [
            Cell(name, float(c)),
            meter(n / sizes.max(), f"{n:,}"),
            Cell(percent(n / sizes.sum()), float(n)),
        ]
        for c, name, n in zip(clusters, names, sizes, strict=True)
    ]
    columns = [Column("cluster", number=False, sorted="ascending"), Column("rows"), Column("share")]
    body = [
        paragraph(_words(model, sizes)),
        draw_map(model.embedding_, codes, names, "Rows that are near each other are similar."),
        table("clusters", columns, rows),
        _facts(subject, model),
    ]
    return Section("clusters", "Clusters", join(body))


def _words(model: Any, sizes: Any) -> str:
    text = f"{count(len(model.labels_), 'row')} fall into {count(len(sizes), 'cluster')}."
    if model.n_empty_:
        text += (
            f" {count(model.n_empty_, 'row')} are similar to none, so their cluster means nothing."
        )
    return text


def _facts(subject: Subject, model: Any) -> Markup:
    kind = "divided by the roots of its row sums" if model.normalized_ else "as it is"
    values = ", ".join(f"{v:.4g}" for v in model.eigenvalues_[:12])
    lines = [("Kernel decomposed", kind), ("Leading eigenvalues", values)]
    if subject.y is not None and np.ndim(subject.y) == 1 and len(subject.y) == len(model.labels_):
        agreement = adjusted_rand_score(np.asarray(subject.y), model.labels_)
        lines.append(("Agreement with the classes given (adjusted Rand index)", f"{agreement:.3f}"))
    return facts(lines)


def draw_map(points: Any, codes: Any, names: list[str], caption: str) -> Markup:
    """Return a map of rows in the plane in which they differ most."""
    flat, shown = in_plane(np.asarray(points)), ""
    if len(flat) > _MOST:
        kept = np.sort(np.random.default_rng(0).choice(len(flat), _MOST, replace=False))
        shown = f" {_MOST:,} of {count(len(flat), 'row')} are drawn."
        flat, codes = flat[kept], codes[kept]
    label = f"A map of {count(len(flat), 'row')} in {count(len(names), 'group')}."
    return figure(scatter(flat, codes, [clip(n, 16) for n in names], label), caption + shown)
