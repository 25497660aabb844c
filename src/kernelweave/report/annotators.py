"""Section on annotators: their accuracy, their confusions, and answers that look wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._text import clip

from .rendering import Section
from .subject import Subject
from .tables import Column, Table, meter, number, percent, share, text_column

_MOST = 300  # suspects and annotators shown at most
_MOST_CLASSES = 20  # of a table of confusions
_MULTIPLES, _PICTURE = 24, 96.0  # small pictures of confusions, and their pixels
_VISIBLE = 0.03  # share from which on a cell is drawn


def section(subject: Subject) -> Section:
    """Return the assessment of the annotators."""
    model = subject.estimator
    found = model.suspects()
    answered = np.bincount(model._answer_rows, minlength=len(model.truth_))
    facts = [
        ("Annotators", f"{len(model.annotators_):,}"),
        ("Answers", f"{len(model.answer_quality_):,}, {answered.mean():.2g} a row"),
        ("Rows without answers", f"{int((answered == 0).sum()):,}"),
        ("Expected share of wrong answers", percent(model.noise_level_)),
        ("Rows on which all answers agree", percent(_agreement(model, answered))),
    ]
    values = {
        "found": found,
        "facts": facts,
        "annotators": _annotators(model),
        "confusion": _confusion(model),
        "multiples": _multiples(model),
        "suspects": _suspects(found) if len(found) else None,
    }
    return Section("annotators", "Annotators", values)


def _agreement(model: Any, answered: Any) -> float:
    """Return the share of rows with two answers or more whose answers are all alike."""
    rows, given = model._answer_rows, model._given
    least = np.full(len(answered), len(model.classes_))
    most = np.full(len(answered), -1)
    np.minimum.at(least, rows, given)
    np.maximum.at(most, rows, given)
    several = answered > 1
    return float((least == most)[several].mean()) if several.any() else 1.0


def _annotators(model: Any) -> Table:
    frame = model.to_frame()
    columns = [
        text_column("annotator"),
        Column("answers"),
        Column("expected accuracy", sorted="ascending"),
        text_column("most frequent mistake"),
    ]
    order = np.argsort(model.annotator_accuracy_, kind="stable")
    rows = [
        [clip(name, 40), number(n, "d"), meter(float(value), f"{value:.1%}"), _mistake(model, j)]
        for j, name, n, value in zip(
            order[:_MOST], frame["annotator"], frame["n_answers"], frame["accuracy"], strict=False
        )
    ]
    return Table("annotators, the least accurate first", columns, rows, len(order))


def _mistake(model: Any, annotator: int) -> str:
    """Return the largest entry beside the diagonal of a confusion, in words."""
    beside = model.confusions_[annotator] * (1.0 - np.eye(len(model.classes_)))
    true, said = np.unravel_index(int(beside.argmax()), beside.shape)
    names = [clip(model.classes_[k], 24) for k in (true, said)]
    return f"{names[0]} called {names[1]}: {beside.max():.0%}"


def _confusion(model: Any) -> Table | None:
    """Return the confusion of all annotators together, weighted by their answers."""
    if len(model.classes_) > _MOST_CLASSES:
        return None
    classes = [clip(label, 24) for label in model.classes_]
    matrix = np.average(model.confusions_, axis=0, weights=model.n_answers_)
    columns = [text_column("true class"), *(Column(f"answered {c}") for c in classes)]
    rows = [[name, *map(share, row)] for name, row in zip(classes, matrix, strict=True)]
    return Table("confusion of all annotators", columns, rows)


@dataclass(frozen=True)
class Multiple:
    """The confusion of one annotator as a small picture, in pixels."""

    name: str
    about: str
    side: float
    step: float
    cells: list[tuple[float, float, float, bool]]  # left, top, share, whether the answer is right


def _multiples(model: Any) -> list[Multiple]:
    """Return the confusions of the annotators with most answers, the least accurate first."""
    n_classes = len(model.classes_)
    if n_classes > _MOST_CLASSES:
        return []
    busy = np.argsort(-model.n_answers_, kind="stable")[:_MULTIPLES]
    order = busy[np.argsort(model.annotator_accuracy_[busy], kind="stable")]
    step = max(_PICTURE / n_classes, 4.0)
    out = []
    for j in order:
        shares = model.confusions_[j]
        cells = [
            (step * said, step * true, float(shares[true, said]), true == said)
            for true, said in zip(*np.nonzero(shares >= _VISIBLE), strict=True)
        ]
        about = f"{model.annotator_accuracy_[j]:.0%} right, {int(model.n_answers_[j]):,} answers"
        name = clip(model.annotators_[j], 24)
        out.append(Multiple(name, about, step * n_classes, step, cells))
    return out


def _suspects(found: Any) -> Table:
    columns = [
        *map(text_column, ("row", "annotator", "answer", "suggested")),
        Column("answer quality", sorted="ascending"),
    ]
    rows = [
        [
            number(found.index[k], "d"),
            clip(found.annotator[k], 40),
            found.given[k],
            found.suggested[k],
            meter(float(found.quality[k]), f"{found.quality[k]:.3f}"),
        ]
        for k in range(min(len(found), _MOST))
    ]
    return Table("answers that look wrong", columns, rows, len(found))
