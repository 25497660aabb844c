"""Tables as CSV or JSON, to a file or to standard output."""

from __future__ import annotations

import csv
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from kernelweave._text import visible

if TYPE_CHECKING:
    import pandas as pd


def write_frame(frame: pd.DataFrame, path: str | None, *, as_json: bool = False) -> None:
    """Write a table as CSV, or as a list of objects; to standard output where there is no path."""
    if path is None:
        _write(standard_output(), frame, as_json)
        return
    with open(path, "w", encoding="utf-8", newline="") as stream:
        _write(stream, frame, as_json)


class _Terminal:
    """Standard output that is a terminal: control characters are written out."""

    def write(self, text: str) -> None:
        sys.stdout.write(visible(text, lines=True))


def standard_output() -> Any:
    """Return where results are written as they are: a file, a pipe; only a terminal is spared."""
    return _Terminal() if sys.stdout.isatty() else sys.stdout


def _write(stream: Any, frame: pd.DataFrame, as_json: bool) -> None:
    lines = list(zip(*(frame[name].tolist() for name in frame.columns), strict=True))
    if as_json:
        json.dump(records(frame), stream, indent=2)
        stream.write("\n")
        return
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(lines)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as a list of objects ready for JSON."""
    names = list(map(str, frame.columns))
    columns = [[_plain(value) for value in frame[name].tolist()] for name in frame.columns]
    return [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)
