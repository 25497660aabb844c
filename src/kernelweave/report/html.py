"""Markup in which everything that is not markup already is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from kernelweave._text import clip, visible

_LONGEST = 240  # letters of one cell
_FOLDED = 15  # rows that a long table shows before it is asked for more
_WORDY = 24  # letters from which on a cell is not squeezed into a narrow column
_SEARCHED = 12  # rows from which on a table has a box to search in


class Markup(str):
    """Text that is written into the page as it is."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Return an element; ``class_`` and ``data_value`` stand for ``class`` and ``data-value``."""
    head = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inside = join(children)
    if not inside and name in ("circle", "line", "rect", "polyline", "input", "meta", "wbr"):
        return Markup(f"<{name}{head}/>")
    return Markup(f"<{name}{head}>{inside}</{name}>")


def join(children: Iterable[Any]) -> Markup:
    """Return pieces one after the other: text is escaped, lists are opened, None is left out."""
    return Markup("".join(_render(child) for child in children))


def _render(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, list | tuple):
        return join(child)
    return _text(child)


def _text(value: Any) -> str:
    # A page is UTF-8 and may hold neither halves of pairs nor control characters.
    return escape(visible(value, lines=True))


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Parameters
    ----------
    name : str
        For links.
    title : str
        Its heading.
    body : Markup
        What it says.
    """

    name: str
    title: str
    body: Markup

    def render(self) -> Markup:
        """Return the part with its heading."""
        heading = tag("h2", self.title, id=f"{self.name}-title")
        return tag(
            "section", heading, self.body, id=self.name, aria_labelledby=f"{self.name}-title"
        )


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, whether it holds numbers, and how it is sorted at first."""

    title: str
    number: bool = True
    sorted: str | None = None


@dataclass(frozen=True)
class Cell:
    """What a table shows, and what it is sorted by."""

    shown: Any
    value: float | str


def paragraph(*children: Any) -> Markup:
    """Return a paragraph."""
    return tag("p", *children)


def note(*children: Any) -> Markup:
    """Return a paragraph of what is good to know."""
    return tag("p", *children, class_="note")


def meter(share: float, shown: Any, *, negative: bool = False) -> Cell:
    """Return a number with a bar of a length between zero and one beside it."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    bar = tag("rect", width=width, height="100%", rx=2)
    kind = "bar less" if negative else "bar"
    picture = tag("svg", bar, class_=kind, aria_hidden="true", focusable="false")
    value = -share if negative else share
    return Cell(tag("span", tag("span", shown), picture, class_="meter"), value)


def table(
    label: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Any]],
    *,
    n_all: int | None = None,
) -> Markup:
    """Return a table whose columns sort; a long one is folded, and can be searched.

    Parameters
    ----------
    label : str
        What the rows are, for the search box and for those who do not see the page.
    columns : sequence of Column
        Titles.
    rows : sequence of sequence
        Text or `Cell` for every column.
    n_all : int, optional
        How many rows there are, where the page has no room for all.
    """
    head = [
        tag(
            "th",
            tag("button", column.title, type="button"),
            scope="col",
            class_="number" if column.number else None,
            aria_sort=column.sorted or "none",
        )
        for column in columns
    ]
    lines = [tag("tr", [_cell(c, v) for c, v in zip(columns, row, strict=True)]) for row in rows]
    whole = tag(
        "table",
        tag("caption", label, class_="unseen"),
        tag("thead", tag("tr", head)),
        tag("tbody", lines),
        data_folded=_FOLDED if len(rows) > _FOLDED + 3 else None,
    )
    parts = [tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=label)]
    if len(rows) > _SEARCHED:
        box = tag(
            "input", type="search", placeholder=f"Search {label}", aria_label=f"Search {label}"
        )
        parts.insert(
            0, tag("div", box, tag("span", class_="found", role="status"), class_="search")
        )
    if n_all is not None and n_all > len(rows):
        parts.append(note(f"The first {len(rows):,} of {n_all:,} are shown."))
    return tag("div", parts, class_="sortable")


def _cell(column: Column, value: Any) -> Markup:
    cell = value if isinstance(value, Cell) else Cell(value, str(value))
    shown = cell.shown if isinstance(cell.shown, Markup) else clip(cell.shown, _LONGEST)
    key = f"{cell.value:.17g}" if isinstance(cell.value, float | int) else None
    wordy = not column.number and isinstance(cell.value, str) and len(cell.value) > _WORDY
    kind = "number" if column.number else "words" if wordy else "short" if key else None
    return tag("td", shown, class_=kind, data_value=key)


def facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Return names and values, one pair in a line."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs])


def figure(chart: Markup, caption: Any) -> Markup:
    """Return a picture with the words below it."""
    return tag("figure", chart, tag("figcaption", caption))


def number(value: float) -> Cell:
    """Return a number with four digits that count."""
    return Cell(f"{value:.4g}", float(value))


def percent(value: float) -> str:
    """Return a share in per cent."""
    return f"{100 * value:.1f}%"
