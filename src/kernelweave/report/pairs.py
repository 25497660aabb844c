"""Section on a kernel learned from pairs: diagnostics, similarities and a map."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from kernelweave.pairs import read_pairs
from kernelweave.pairs.cluster import embed, group_points

from .charts import Chart, Map, linear
from .clusters import draw_map
from .rendering import Section
from .subject import Subject
from .tables import Column, Table, number, percent, text_column

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


def section(subject: Subject) -> Section:
    """Return how pairs are classified."""
    model = subject.estimator
    values = {
        "threshold": model.threshold_,
        "scores": _scores(subject, model),
        "facts": _facts(model),
        "map": _map(subject, model),
        "settings": _settings(model) if model.selection_ else None,
        "n_splits": model.n_splits,
    }
    return Section("pairs", "Pairs", values)


def _facts(model: Any) -> list[tuple[str, str]]:
    lines = []
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
    return lines


def _scores(subject: Subject, model: Any) -> Chart | None:
    """Return the similarities of pairs drawn from the classes, where these are known."""
    if subject.rows is None or subject.y is None:
        return None
    n = subject.rows.shape[0]
    pairs, labels = read_pairs(
        None, None, subject.y, n, n_pairs=min(10 * n, 20_000), random_state=0
    )
    scores = model.score_pairs(subject.rows, pairs)
    low, high = np.quantile(scores, [0.002, 0.998])
    x = linear(float(min(low, model.threshold_)), float(max(high, model.threshold_)))
    edges = np.linspace(x.low, x.high, _BINS + 1)
    inside = np.clip(scores, x.low, x.high)
    right = np.mean((scores >= model.threshold_) == (labels > 0))
    return Chart(
        x,
        f"Similarities of {len(pairs):,} pairs.",
        f"Learned similarity of {len(pairs):,} pairs drawn from the classes given, as many same "
        f"(blue) as different (orange); {percent(float(right))} fall on the right side. These may "
        "be pairs that the model was fitted to.",
        title="learned similarity",
        height=220.0,
        upright=(model.threshold_, "same from here on"),
        edges=edges,
        counts={
            colour: np.histogram(inside[labels == sign], edges)[0]
            for colour, sign in (("warm", -1), ("main", 1))
        },
    )


def _map(subject: Subject, model: Any) -> Map | None:
    rows, y = subject.rows, subject.y
    if rows is None or not model.weights_.any() or rows.shape[0] > _MOST_ROWS:
        return None
    n_groups = model.n_clusters or (2 if y is None else len(np.unique(np.asarray(y))))
    found = embed(model.operator(rows), min(max(n_groups, 2), rows.shape[0]))
    if y is not None:
        names, codes = np.unique(np.asarray(y), return_inverse=True)
        colours = "colours and names are the classes given"
    else:
        codes = group_points(found, n_groups, 10, 0)
        names = np.unique(codes)
        colours = f"colours are {n_groups} clusters"
    words = f"Rows near each other are similar; {colours}."
    return draw_map(found.points, codes, [str(name) for name in names], words)


def _settings(model: Any) -> Table:
    columns = [text_column("shape"), *map(Column, ("gamma", "alpha", "rho", "steps"))]
    columns.append(Column("score", sorted="descending"))
    rows = []
    for tried in model.selection_[:_MOST_SETTINGS]:
        s = tried.setting
        values = [s.gamma, s.alpha, s.rho, s.steps, tried.score]
        rows.append([s.shape, *map(number, values)])
    return Table("options compared", columns, rows, len(model.selection_))
