"""Pieces of the pages that experiments write."""

from __future__ import annotations

from collections.abc import Sequence


def make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])
