"""Tables of results: on the screen, as Markdown, as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable


@dataclass
class Table:
    """Rows of text under a title, with notes that say what was measured."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        """Add a row; what is missing is left blank."""
        texts = ["" if cell is None else str(cell) for cell in cells]
        self.rows.append(texts + [""] * (len(self.columns) - len(texts)))

    def show(self, console: Console) -> None:
        """Print for people."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold")
        for k, column in enumerate(self.columns):
            table.add_column(column, justify="right" if k else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", highlight=False)
        console.print()

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [f"### {self.title}", "", _line(self.columns)]
        lines.append(_line("---" if k == 0 else "---:" for k in range(len(self.columns))))
        lines += [_line(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return asdict(self)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def seconds(value: float) -> str:
    """Write a time in seconds with about three digits."""
    return _digits(value)


def megabytes(value: float) -> str:
    """Write a number of bytes in MB."""
    return "" if math.isnan(value) else f"{value / 1e6:.0f}"


def number(value: float | None, form: str = ".6g") -> str:
    """Write a number, or nothing."""
    return "" if value is None or math.isnan(value) else format(value, form)


def power(points: Sequence[tuple[float, float]]) -> str:
    """Return the exponent of a power law through (size, cost), by least squares of logarithms."""
    from statistics import linear_regression

    kept = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(kept) < 2:
        return ""
    return f"{linear_regression(*zip(*kept, strict=True)).slope:.2f}"


def _digits(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.4f}" if value < 0.1 else f"{value:.3f}" if value < 10 else f"{value:.1f}"
