"""Pieces of the pages that experiments write."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from .store import Record

PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn")


def make_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])


def describe_run(command: str, protocol: str, records: Iterable[Record]) -> str:
    """Return the last section of a page: how to repeat the run.

    Parameters
    ----------
    command : str
        The command that runs everything.
    protocol : str
        Seeds and divisions, as a sentence without its stop.
    records : iterable of dict
        All results; their entries ``seconds`` are added.
    """
    minutes = sum(record.get("seconds") or 0.0 for record in records) / 60.0
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"\n## The run\n\n- Command: `{command}`.\n- Seeds and divisions: {protocol}.\n"
        f"- Processor time of all results together: {minutes:.1f} minutes.\n"
        f"- Versions when the page was written: {versions}, Python {platform.python_version()}.\n"
    )
