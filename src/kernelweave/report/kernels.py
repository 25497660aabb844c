"""Section on the weights of kernels, paths or columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count, shares, weight_names, weight_noun

from .rendering import Section
from .subject import Subject
from .tables import Cell, Column, Table, meter, number, percent, share, text_column

_MOST = 400  # kernels shown at most
_SAME = 0.002  # weights and contributions that differ by less are one column


def section(subject: Subject) -> Section | None:
    """Return a table of kernels with bars for their weights."""
    model = subject.estimator
    if not len(model.weights_):
        return None
    names, weights, word = weight_names(model), shares(model), weight_noun(model)
    used = int(np.count_nonzero(weights))
    shown = np.argsort(-weights, kind="stable")[: min(_MOST, used)]
    extra = _columns(subject, weights)
    columns = [text_column(word), Column("weight", sorted="descending"), *map(Column, extra)]
    top = float(weights.max()) or 1.0
    rows = [
        [
            names[j],
            meter(float(weights[j]) / top, percent(float(weights[j]))),
            *(cells(int(j)) for cells in extra.values()),
        ]
        for j in shown
    ]
    values = {
        "summary": in_words(word, used, len(weights), weights),
        "weights": Table(f"{word}s", columns, rows, used) if used else None,
        "normalized": getattr(model, "normalize", None) is not None,
        "by_column": model._declaration.learns == "pairs" and model.kernels_ is None,
        "by_gradient": model._declaration.learns == "metric",
        "extra": list(extra),
    }
    noun = "metric" if values["by_gradient"] else word
    return Section("kernels", f"{noun.capitalize()} weights", values)


def in_words(word: str, used: int, offered: int, weights: Any) -> str:
    """Return how many kernels there are, and how many of them carry most of the weight."""
    if not used:
        return f"None of the {count(offered, word)} has a weight."
    kept = f"{used:,} of {count(offered, word)} {'is' if used == 1 else 'are'} in use"
    if used == offered:
        every = f"Both {word}s" if used == 2 else f"All {count(offered, word)}"
        kept = f"{every} are in use" if used > 1 else f"There is one {word}"
    few = int(np.searchsorted(np.cumsum(np.sort(weights)[::-1]), 0.8)) + 1
    if used > 3 and few == 1:
        return f"{kept}; the heaviest carries {np.max(weights):.0%} of the weight."
    if used > 3 and few < used:
        return f"{kept}; the {few} heaviest carry 80% of the weight."
    return f"{kept}."


def _columns(subject: Subject, weights: Any) -> dict[str, Any]:
    """Return titles and cells of what else is known of each weight."""
    model, out = subject.estimator, {}
    saved = model._declaration.saved
    if "contributions_" in saved and np.abs(model.contributions_ - weights).max() > _SAME:
        out["contribution"] = lambda j: share(model.contributions_[j])
    if "block_norms_" in saved:
        out["norm"] = lambda j: number(model.block_norms_[j], ".3g")
    if "lower_bound_" in saved:
        out["scale"] = lambda j: number(model.scales_[j], ".3g")
    folds = [one.weights_ for one in subject.folds.models]
    if folds and "active_nodes_" not in saved:
        if all(len(own) == len(weights) for own in folds):
            kept = np.count_nonzero(folds, axis=0)
            out["in folds"] = lambda j: Cell(f"{kept[j]} of {len(folds)}", float(kept[j]))
    return out
