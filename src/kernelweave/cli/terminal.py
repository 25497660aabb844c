"""Text, tables and messages for a terminal, a pipe or a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelweave._text import clip, visible

if TYPE_CHECKING:
    import pandas as pd

NAME = 60  # letters of a name in a table, which is shortened in its middle
NUMBER = 15  # letters that a column of numbers takes with the space beside it


def shown(text: Any, most: int = 600) -> str:
    """Return text without control characters, not longer than some lines."""
    return clip(visible(text), most)


def write_message(text: str, code: int = 0) -> int:
    """Write one line to standard error, and return the code."""
    line = shown(" ".join(text.split()))
    with suppress(OSError):
        sys.stderr.write(f"kernelweave: {line}\n")
    return code


class _Terminal:
    """Standard output that is a terminal: control characters are escaped."""

    def write(self, text: str) -> None:
        sys.stdout.write(visible(text, lines=True))


def standard_output() -> Any:
    """Return where results are written: unchanged in a file or a pipe, escaped on a terminal."""
    return _Terminal() if sys.stdout.isatty() else sys.stdout


def write_json(value: Any, indent: int | None = 2) -> int:
    """Write a value to standard output as JSON, and return the exit code 0."""
    import json

    sys.stdout.write(json.dumps(value, indent=indent) + "\n")
    return 0


def write_frame(frame: pd.DataFrame, path: str | None, *, as_json: bool = False) -> None:
    """Write a table as CSV, or as a list of objects; to standard output where there is no path.

    A file appears complete or not at all.
    """
    import io
    from pathlib import Path

    from kernelweave.io.archive import replacing

    if path is None:
        _write(standard_output(), frame, as_json)
        return
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():  # a pipe or a device
        with file.open("w", encoding="utf-8", newline="") as stream:
            _write(stream, frame, as_json)
        return
    with replacing(file) as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8", newline="")
        _write(text, frame, as_json)
        text.flush()
        text.detach()


def _write(stream: Any, frame: pd.DataFrame, as_json: bool) -> None:
    import csv
    import json

    if as_json:
        json.dump(records(frame), stream, indent=2)
        stream.write("\n")
        return
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(zip(*_columns(frame), strict=True))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as a list of objects ready for JSON."""
    names = list(map(str, frame.columns))
    columns = [[_plain(value) for value in column] for column in _columns(frame)]
    return [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]


def _columns(frame: pd.DataFrame) -> list[list[Any]]:
    """Return the columns by position, because names may occur twice."""
    return [frame.iloc[:, k].tolist() for k in range(frame.shape[1])]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def require(module: str, what: str, otherwise: str = "") -> Any:
    """Return a module of the extra ``cli``; an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        from kernelweave.errors import KernelweaveError

        install = f'install it with pip install "kernelweave[cli]"{otherwise}'
        raise KernelweaveError(f"{what} needs {module.partition('.')[0]}; {install}.") from error


def open_console() -> Any:
    """Return where text is printed: plain when piped, coloured on a terminal."""
    require("rich.console", "This command", ", or use --json where it is offered")
    from rich.console import Console

    class Output(Console):
        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(shown(text), **options)  # all printed text passes here

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # handled in `main`; rich would exit

    if hasattr(sys.stdout, "reconfigure"):  # escape letters that the terminal cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    return Output(file=sys.stdout, markup=False, highlight=False, emoji=False)


def print_table(
    console: Any,
    names: list[str],
    lines: Iterable[Iterable[str]],
    texts: Collection[int] = (0,),
    *,
    most: int = NAME,
) -> None:
    """Print a table of numbers; columns ``texts`` hold text, which may be broken or shortened."""
    from rich import box
    from rich.table import Table

    rows = [[shown(text, most) for text in line] for line in lines]
    names = [shown(name, NAME) for name in names]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for k, name in enumerate(names):
        style = "cyan" if k == 0 else None
        if k in texts:
            table.add_column(name, overflow="fold", style=style)
        else:  # a number stays whole; its name may be broken
            cells = max((len(row[k]) for row in rows), default=0)
            word = max(map(len, name.split()), default=0)
            # Rich keeps to a width, but not to a minimum width, where a table is too wide.
            width = max(cells, min(word, NUMBER - 3))
            table.add_column(name, justify="right", overflow="fold", style=style, width=width)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
    console.print()


def print_facts(console: Any, facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    facts = list(facts)
    width = max(len(name) for name, _ in facts)
    console.print()
    for name, value in facts:
        console.print(f"{name:<{width}}  {value}", soft_wrap=True)


def print_notes(console: Any, notes: Iterable[str], word: str = "Note") -> None:
    """Print a sentence for everything that was done to the data, or that is doubtful."""
    for note in notes:
        console.print(f"{word}: {note}.", soft_wrap=True)
