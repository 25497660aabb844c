"""Section on clusters, with a map of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave.plots.rows import in_plane

from .charts import Map, scatter
from .rendering import Section
from .subject import Subject
from .tables import Cell, Column, Table, meter, share, text_column

_MOST = 2000  # points drawn at most


def section(subject: Subject) -> Section:
    """Return a map of the clusters and their sizes."""
    model = subject.estimator
    clusters, codes, sizes = np.unique(model.labels_, return_inverse=True, return_counts=True)
    names = [str(c) for c in clusters]
    rows = [
        [Cell(name, float(c)), meter(n / sizes.max(), f"{n:,}"), share(n / sizes.sum(), n)]
        for c, name, n in zip(clusters, names, sizes, strict=True)
    ]
    columns = [text_column("cluster", sorted="ascending"), Column("rows"), Column("share")]
    values = {
        "n_rows": len(model.labels_),
        "n_empty": int(model.n_empty_),
        "sizes": Table("clusters", columns, rows),
        "map": draw_map(model.embedding_, codes, names, "Rows near each other are similar."),
        "facts": _facts(subject, model),
    }
    return Section("clusters", "Clusters", values)


def _facts(subject: Subject, model: Any) -> list[tuple[str, str]]:
    kind = "divided by the roots of its row sums" if model.normalized_ else "as it is"
    values = ", ".join(f"{v:.4g}" for v in model.eigenvalues_[:12])
    lines = [("Kernel decomposed", kind), ("Leading eigenvalues", values)]
    if subject.y is not None and np.ndim(subject.y) == 1 and len(subject.y) == len(model.labels_):
        agreement = adjusted_rand_score(np.asarray(subject.y), model.labels_)
        lines.append(("Agreement with the classes given (adjusted Rand index)", f"{agreement:.3f}"))
    return lines


def draw_map(points: Any, codes: Any, names: list[str], caption: str) -> Map:
    """Return a map of rows by their first two principal components."""
    flat, shown = in_plane(np.asarray(points)), ""
    if len(flat) > _MOST:
        kept = np.sort(np.random.default_rng(0).choice(len(flat), _MOST, replace=False))
        shown = f" {_MOST:,} of {count(len(flat), 'row')} are drawn."
        flat, codes = flat[kept], codes[kept]
    label = f"A map of {count(len(flat), 'row')} in {count(len(names), 'group')}."
    return scatter(flat, codes, [clip(n, 16) for n in names], label, caption + shown)
