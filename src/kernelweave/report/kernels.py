"""Which kernels the model uses, and how much each matters."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._summary import count, shares, weight_names

from .html import Cell, Column, Section, join, meter, note, paragraph, percent, table
from .performance import Performance
from .subject import Subject

_MOST = 400  # kernels that a page has room for
_SAME = 0.002  # weights and contributions that differ by less are the same column


def section(subject: Subject) -> Section | None:
    """Return a table of kernels with bars for their weights."""
    model = subject.estimator
    if not np.size(getattr(model, "weights_", ())):
        return None
    names, weights = weight_names(model), shares(model)
    word = noun(model)
    used = int(np.count_nonzero(weights))
    order = np.argsort(-weights, kind="stable")
    shown = order[: min(_MOST, used)]
    extra = _columns(subject, weights)
    columns = [Column(word, number=False), Column("weight", sorted="descending")]
    columns += [Column(title) for title, _ in extra]
    top = float(weights.max()) or 1.0
    rows = [
        [
            names[j],
            meter(float(weights[j]) / top, percent(float(weights[j]))),
            *(cells(int(j)) for _, cells in extra),
        ]
        for j in shown
    ]
    body = [
        paragraph(in_words(word, used, len(weights), weights)),
        table(f"{word}s", columns, rows, n_all=used) if used else None,
        note(_meaning(model, [title for title, _ in extra])),
    ]
    return Section("kernels", f"{word.capitalize()} weights", join(body))


def noun(model: Any) -> str:
    """Return what the weights of a model belong to."""
    if hasattr(model, "network_"):
        return "path"
    return "column" if model.kernels_ is None else "kernel"


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


def _columns(subject: Subject, weights: Any) -> list[tuple[str, Any]]:
    """Return titles and cells of what else is known of each weight."""
    model, out = subject.estimator, []
    parts = getattr(model, "contributions_", None)
    if parts is not None and np.abs(parts - weights).max() > _SAME:
        out.append(("contribution", lambda j: Cell(percent(parts[j]), float(parts[j]))))
    norms = getattr(model, "block_norms_", None)
    if norms is not None:
        out.append(("norm", lambda j: Cell(f"{norms[j]:.3g}", float(norms[j]))))
    if hasattr(model, "squared_radius_") and hasattr(model, "criterion"):
        scales = model.scales_
        out.append(("scale", lambda j: Cell(f"{scales[j]:.3g}", float(scales[j]))))
    found = subject.performance
    if isinstance(found, Performance) and not hasattr(model, "active_nodes_"):
        folds = [one.weights_ for one in found.models]
        if all(len(own) == len(weights) for own in folds):
            kept = np.count_nonzero(folds, axis=0)
            out.append(("in folds", lambda j: Cell(f"{kept[j]} of {len(folds)}", float(kept[j]))))
    return out


def _meaning(model: Any, extra: list[str]) -> str:
    words = ["Weights are shares of their sum."]
    if hasattr(model, "scales_") and getattr(model, "normalize", None) is not None:
        words.append(
            "They belong to kernels that were first brought to one size, so that they can be "
            "compared."
        )
    elif model.kernels_ is None:
        words.append("They depend on the unit of each column.")
    if "contribution" in extra:
        words.append(
            "A contribution is the share of a kernel in the size of the decision function, which "
            "does not depend on how the kernel is scaled."
        )
    if "norm" in extra:
        words.append("The norm is what the function of a kernel counts in the objective.")
    if "scale" in extra:
        words.append("The scale is what a kernel was multiplied by before weights were learned.")
    if "in folds" in extra:
        words.append(
            "\u201cIn folds\u201d counts the models of the cross-validation in which a weight is "
            "not zero: a kernel that few of them keep may be there by chance."
        )
    return " ".join(words)
