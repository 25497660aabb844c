"""Tables of a report: columns that sort, cells with bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelweave._text import clip

_LONGEST = 240  # characters of one cell
_FOLDED = 15  # rows that a long table shows at first
_WORDY = 24  # characters from which on a cell is not squeezed into a narrow column
_SEARCHED = 12  # rows from which on a table has a search box


@dataclass(frozen=True)
class Column:
    """Title, whether the column holds numbers, and how it is sorted at first."""

    title: str
    number: bool = True
    sorted: str = "none"


@dataclass(frozen=True)
class Cell:
    """Text, the number it is sorted by, and the length of a bar between zero and one."""

    text: str
    value: float | None = None
    bar: float | None = None

    @property
    def wordy(self) -> bool:
        """Whether the text needs a wide column."""
        return self.value is None and len(self.text) > _WORDY


@dataclass(frozen=True)
class Table:
    """Rows of a table; values that are not a `Cell` become one.

    ``label`` names the rows for the search box and for screen readers; ``n_all`` counts all rows
    where the page shows fewer.
    """

    label: str
    columns: Sequence[Column]
    values: Sequence[Sequence[Any]]
    n_all: int = 0

    @property
    def rows(self) -> list[list[tuple[Column, Cell]]]:
        """Pairs of column and cell."""
        return [
            [
                (column, v if isinstance(v, Cell) else Cell(clip(v, _LONGEST)))
                for column, v in zip(self.columns, row, strict=True)
            ]
            for row in self.values
        ]

    @property
    def folded(self) -> int:
        """Rows shown at first, zero for all."""
        return _FOLDED if len(self.values) > _FOLDED + 3 else 0

    @property
    def searched(self) -> bool:
        """Whether there is a search box."""
        return len(self.values) > _SEARCHED


def text_column(title: str, sorted: str = "none") -> Column:
    """Return a column of text."""
    return Column(title, number=False, sorted=sorted)


def meter(share: float, text: str, *, negative: bool = False) -> Cell:
    """Return a number with a bar; it is sorted by the share."""
    return Cell(text, -share if negative else share, min(max(share, 0.0), 1.0))


def number(value: float, form: str = ".4g") -> Cell:
    """Return a formatted number that is sorted by its value."""
    return Cell(format(value, form), float(value))


def share(value: float, key: float | None = None) -> Cell:
    """Return a share in per cent."""
    return Cell(percent(value), float(value if key is None else key))


def percent(value: float) -> str:
    """Return a share in per cent with one decimal."""
    return f"{100 * value:.1f}%"
