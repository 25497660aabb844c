"""What was learned from pairs of rows: weights, diagnostics and a map."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave.pairs import read_pairs
from kernelweave.pairs.cluster import embed, group_points

from .charts import Plot, linear
from .clusters import draw_map
from .html import (
    Cell,
    Column,
    Markup,
    Section,
    facts,
    figure,
    join,
    note,
    paragraph,
    percent,
    table,
)
from .subject import Subject

_BINS = 30
_MOST_ROWS = 5000  # of a map
_MOST_SETTINGS = 60

_WORDS = {
    "impossible_share": "Kernels with an impossible corrected mean",
    "noise_condition": "Condition of the noise matrix (1: labels are trusted)",
    "error_constant": "Constant of the published error bound",
    "own_error_constant": "Constant of the sharper error bound",
    "lam": "Strength of the penalty",
    "repeated_pairs": "Pairs that had been given before",
}


def section(subject: Subject) -> Section | None:
    """Return how pairs are told apart."""
    model = subject.estimator
    if not hasattr(model, "score_pairs"):
        return None
    body = [
        paragraph(
            f"Two rows are called \u201csame\u201d where their learned similarity is "
            f"{model.threshold_:.4g} or more."
        ),
        _scores(subject, model),
        _facts(model),
        _map(subject, model),
        _settings(model),
    ]
    return Section("pairs", "Pairs", join(body))


def _facts(model: Any) -> Markup:
    lines: list[tuple[str, Any]] = []
    if model.rates_ is not None:
        up, down = model.rates_.reliability
        lines += [
            ("Pairs labelled same that are the same", percent(up)),
            ("Pairs labelled different that are different", percent(down)),
            ("Share of truly same pairs", percent(model.rates_.prior)),
        ]
    for name, value in model.diagnostics_.items():
        shown = percent(value) if name == "impossible_share" else f"{value:.4g}"
        lines.append((_WORDS.get(name, name), shown))
    lines.append(("Bias", f"{model.intercept_:.4g}"))
    if model.setting_ is not None:
        options = asdict(model.setting_).items()
        lines.append(("Options in use", ", ".join(f"{name} {value}" for name, value in options)))
    return facts(lines)


def _scores(subject: Subject, model: Any) -> Markup | None:
    """Return the similarities of pairs drawn from the classes, where these are known."""
    if subject.rows is None or subject.y is None:
        return note(
            "With rows and their classes, this part also shows how well pairs are told apart."
        )
    n = subject.rows.shape[0]
    pairs, labels = read_pairs(
        None, None, subject.y, n, n_pairs=min(10 * n, 20_000), random_state=0
    )
    scores = model.score_pairs(subject.rows, pairs)
    low, high = np.quantile(scores, [0.002, 0.998])
    x = linear(float(min(low, model.threshold_)), float(max(high, model.threshold_)))
    plot, edges = Plot(x, height=220.0), np.linspace(x.low, x.high, _BINS + 1)
    inside = np.clip(scores, x.low, x.high)
    counts = [np.histogram(inside[labels == sign], edges)[0] for sign in (-1, 1)]
    top = float(max(c.max() for c in counts))
    marks = [
        plot.columns(edges, counts[0], top, "warm"),
        plot.columns(edges, counts[1], top, "main"),
        plot.upright(model.threshold_, "same from here on"),
    ]
    right = np.mean((scores >= model.threshold_) == (labels > 0))
    label = f"Similarities of {len(pairs):,} pairs."
    return figure(
        plot.render("learned similarity", marks, label),
        f"Learned similarity of {len(pairs):,} pairs drawn from the classes given, as many same "
        f"(blue) as different (orange); {percent(float(right))} fall on the right side. These may "
        "be pairs that the model was fitted to.",
    )


def _map(subject: Subject, model: Any) -> Markup | None:
    if subject.rows is None or not model.weights_.any() or subject.rows.shape[0] > _MOST_ROWS:
        return None
    n_groups = model.n_clusters or (
        len(np.unique(np.asarray(subject.y))) if subject.y is not None else 2
    )
    found = embed(model.operator(subject.rows), min(max(n_groups, 2), subject.rows.shape[0]))
    if subject.y is not None:
        names, codes = np.unique(np.asarray(subject.y), return_inverse=True)
        words = (
            "Rows that are near each other are similar; colours and names are the classes given."
        )
    else:
        codes = group_points(found, n_groups, 10, 0)
        names = np.unique(codes)
        words = f"Rows that are near each other are similar; colours are {n_groups} clusters."
    title = Markup("<h3>Map of the rows</h3>")
    return join([title, draw_map(found.points, codes, [str(name) for name in names], words)])


def _settings(model: Any) -> Markup | None:
    if not model.selection_:
        return None
    columns = [Column("shape", number=False), *map(Column, ("gamma", "alpha", "rho", "steps"))]
    columns.append(Column("score", sorted="descending"))
    rows = []
    for judged in model.selection_[:_MOST_SETTINGS]:
        s = judged.setting
        values = [s.gamma, s.alpha, s.rho, s.steps, judged.score]
        rows.append([s.shape, *(Cell(f"{v:.4g}", float(v)) for v in values)])
    return join(
        [
            Markup("<h3>Options that were compared</h3>"),
            table("options compared", columns, rows, n_all=len(model.selection_)),
            note(
                "The score is the share of held-out same pairs within one cluster, less that of "
                f"other pairs, over {count(model.n_splits, 'split')}."
            ),
        ]
    )
