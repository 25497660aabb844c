"""Geometry of a confusion matrix; the template ``charts.html`` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._text import clip

_WIDE, _NARROW = 64.0, 21.0  # pixels of a cell of few and of many classes
_FEW = 8  # classes whose names stand above the columns
_LETTERS = 18  # of the name of a row
_HEAD = 9  # of the name of a column
_LETTER = 6.8  # pixels


@dataclass(frozen=True)
class CellOfMatrix:
    """Place, share of the true class, count as text, and whether it is on the diagonal."""

    x: float
    y: float
    share: float
    text: str
    right: bool


@dataclass(frozen=True)
class Matrix:
    """A square of cells with names of rows and columns, in pixels."""

    cells: list[CellOfMatrix]
    heads: list[tuple[float, float, str]]
    names: list[tuple[float, str]]
    left: float
    top: float
    step: float
    side: float
    label: str
    caption: str
    heading: str
    small: bool

    @property
    def width(self) -> float:
        """Width of the picture."""
        return self.left + self.side + 2

    @property
    def height(self) -> float:
        """Height of the picture."""
        return self.top + self.side + 2


def confusion_chart(counts: Any, classes: Sequence[Any]) -> Matrix:
    """Return the matrix of counts, true classes in rows; many classes are numbered."""
    counts = np.asarray(counts)
    n, few = len(classes), len(classes) <= _FEW
    step = _WIDE if few else _NARROW
    names = [clip(str(label), _LETTERS) for label in classes]
    rows = names if few else [f"{name} \u00b7 {k + 1}" for k, name in enumerate(names)]
    left = 14 + _LETTER * max(map(len, rows))
    top = 36.0
    totals = np.maximum(counts.sum(axis=1), 1)
    cells = [
        CellOfMatrix(
            left + 1 + step * k,
            top + 1 + step * j,
            max(float(counts[j, k] / totals[j]), 0.06),
            f"{counts[j, k]:,}" if few or counts[j, k] < 1000 else "",
            j == k,
        )
        for j, k in zip(*np.nonzero(counts), strict=True)
    ]
    heads = [
        (
            left + step * (k + 0.5),
            top - 6,
            clip(str(classes[k]), _HEAD) if few else f"{k + 1}",
        )
        for k in range(n)
    ]
    right = int(np.trace(counts))
    caption = (
        "Rows are the true classes, columns the predicted ones; the fuller the colour, the larger "
        "the share of its row. Blue is right, orange is wrong."
    )
    return Matrix(
        cells,
        heads,
        [(top + step * (j + 0.5) + 4, text) for j, text in enumerate(rows)],
        left,
        top,
        step,
        step * n,
        f"Confusion matrix of {n} classes: {right:,} of {int(counts.sum()):,} rows are right.",
        caption,
        "Confusion matrix",
        not few,
    )
