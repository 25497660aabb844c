"""Which values are missing, and where: a strip for the columns that are missing together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave._types import Bools
from kernelweave.kernels.table import read_table

from .tables import Column, Table, number, percent, share, text_column

_BINS = 120  # groups of neighbouring rows in a strip, at most
_SHADES = 8  # of a group of rows of which some lack the values
_MOST, _MOST_PATTERNS = 30, 10  # strips, and combinations of them
_NAMES = 3  # columns of a strip that are named
_LETTERS, _LETTER = 22, 6.8  # of the name of a strip, and pixels of one
_WIDTH, _STEP = 420.0, 22.0  # pixels of a strip, and from one to the next


@dataclass(frozen=True)
class Gaps:
    """Columns that are missing in the same rows."""

    columns: tuple[str, ...]
    rows: Bools  # which rows lack them

    @property
    def name(self) -> str:
        """The columns; the first of many, and their number."""
        names = [clip(name, _LETTERS) for name in self.columns]
        if len(names) <= _NAMES:
            return ", ".join(names)
        return f"{names[0]}, \u2026, {names[-1]} ({len(names)} columns)"


def find_gaps(X: Any, names: Sequence[str]) -> list[Gaps]:
    """Return the columns that have gaps, those with the same ones together, in their order."""
    known = read_table(X, "X").known(None, "X")
    groups: dict[bytes, list[int]] = {}
    for j in np.flatnonzero(~known.all(axis=0)).tolist():
        groups.setdefault(np.packbits(known[:, j]).tobytes(), []).append(j)
    return [Gaps(tuple(names[j] for j in own), ~known[:, own[0]]) for own in groups.values()]


def summarize_gaps(gaps: Sequence[Gaps]) -> str:
    """Return columns with gaps and their shares in one line."""
    most = sorted(gaps, key=lambda group: -group.rows.sum())[:_NAMES]
    listed = "; ".join(f"{group.name}: {percent(group.rows.mean())}" for group in most)
    left = sum(len(group.columns) for group in gaps) - sum(len(g.columns) for g in most)
    return listed + (f"; and {count(left, 'column')} more" if left else "")


@dataclass(frozen=True)
class Strip:
    """A row of the picture: its name, what stands behind it, and pieces of equal shade."""

    name: str
    text: str
    y: float
    pieces: list[tuple[float, float, float]]  # left, width, opacity


@dataclass(frozen=True)
class GapChart:
    """Strips one below the other, in pixels."""

    strips: list[Strip]
    left: float
    label: str
    caption: str
    strip_width: float = _WIDTH
    strip_height: float = _STEP - 5

    @property
    def width(self) -> float:
        """Width of the picture."""
        return self.left + _WIDTH + 64

    @property
    def height(self) -> float:
        """Height of the picture."""
        return _STEP * len(self.strips) + 2


def gap_chart(gaps: Sequence[Gaps]) -> GapChart:
    """Return the picture of what is missing where."""
    n, shown = len(gaps[0].rows), gaps[:_MOST]
    names = [group.name for group in shown]
    left = 14 + _LETTER * max(map(len, names))
    strips = [
        Strip(name, percent(group.rows.mean()), 1 + _STEP * j, _pieces(group.rows, left))
        for j, (name, group) in enumerate(zip(names, shown, strict=True))
    ]
    n_columns = sum(len(group.columns) for group in gaps)
    caption = (
        "From left to right the rows in the order of the table; filled where values are missing, "
        "the fuller the larger their share among neighbouring rows."
    )
    if len(gaps) > _MOST:
        caption += f" The first {_MOST} of {len(gaps)} sets of columns are shown."
    label = f"{count(n_columns, 'column')} with missing values in {count(n, 'row')}."
    return GapChart(strips, left, label, caption)


def _pieces(rows: Bools, left: float) -> list[tuple[float, float, float]]:
    """Return the filled parts of a strip; neighbours of one shade are joined."""
    ends = np.linspace(0, len(rows), min(_BINS, len(rows)) + 1).round().astype(int)
    shares = np.add.reduceat(rows.astype(float), ends[:-1]) / np.diff(ends)
    shades = np.ceil(_SHADES * shares - 1e-9) / _SHADES
    changes = np.flatnonzero(np.diff(shades, prepend=np.nan, append=np.nan) != 0)
    scale = _WIDTH / len(rows)
    return [
        (left + scale * ends[a], scale * (ends[b] - ends[a]), float(shades[a]))
        for a, b in pairwise(changes.tolist())
        if shades[a] > 0
    ]


def pattern_table(gaps: Sequence[Gaps]) -> Table | None:
    """Return how often which columns are missing together; None where one set has all gaps."""
    if len(gaps) < 2:
        return None
    lacking = np.column_stack([group.rows for group in gaps])
    patterns, counts = np.unique(lacking, axis=0, return_counts=True)
    rows = []
    for k in np.argsort(-counts, kind="stable")[:_MOST_PATTERNS]:
        absent = [gaps[j].name for j in np.flatnonzero(patterns[k]).tolist()]
        text = "; ".join(absent[:4]) + (f"; and {len(absent) - 4} more" if absent[4:] else "")
        rows.append(
            [
                text or "nothing",
                number(int(counts[k]), ",d"),
                share(counts[k] / len(lacking), counts[k]),
            ]
        )
    columns = [text_column("missing"), Column("rows", sorted="descending"), Column("share")]
    return Table("patterns of missing values", columns, rows, len(patterns))
