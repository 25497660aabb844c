"""Read a table from a file: encodings, separators and decimal commas are detected."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._types import Indices
from kernelweave.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_TEXT = (".csv", ".tsv", ".txt")
_ENDINGS = (*_TEXT, *(f"{ending}.gz" for ending in _TEXT), ".parquet")
_GAPS = ["?", "-", "--", "n.a.", "N.A.", "k.A."]  # beside those that pandas knows
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAMPLE = 1_000_000  # bytes by which separators are detected
_LABELS = dict.fromkeys(("same", "1", "1.0", "true", "yes"), 1)
_LABELS |= dict.fromkeys(("different", "-1", "-1.0", "0", "0.0", "false", "no"), -1)
_MOSTLY = 0.9  # share of numbers from which a column of text is one of numbers with mistakes


@dataclass(frozen=True)
class Table:
    """A table that was read, and notes on how it was read.

    Attributes
    ----------
    frame : pandas.DataFrame
        The table; its index counts the rows of the file from 0.
    notes : tuple of str
        A sentence for each conversion.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()


def import_pandas() -> Any:
    """Return pandas; an error that says how to install it where it is missing."""
    try:
        import pandas
    except ImportError as error:
        raise DataError(
            'Tables need pandas; install it with pip install "kernelweave[cli]".'
        ) from error
    return pandas


def read_table(
    path: str | Path, *, text: Iterable[str] = (), numbers: Iterable[str] | None = None
) -> Table:
    r"""Read a CSV or Parquet file.

    Separator (comma, semicolon, tab or bar), decimal comma and encoding (UTF-8, UTF-16, or else
    Windows-1252) of a CSV file are detected. Spaces around names of columns are dropped.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv or .txt (.gz may follow), or in .parquet.
    text : iterable of str
        Columns that are read as they are written: "01" stays "01".
    numbers : iterable of str, optional
        Columns of numbers, in which other values count as missing. None: those in which at least
        nine of ten values are numbers.

    Returns
    -------
    table : Table
        The frame, and notes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "prices.csv")
    ...     _ = file.write_text("item;price\nflour;1,29\nsalt;0,89\n")
    ...     table = read_table(file)
    >>> table.frame["price"].tolist()
    [1.29, 0.89]
    >>> table.notes
    ('columns are separated by semicolons, and decimals by commas',)
    """
    pandas = import_pandas()
    path = Path(path)
    name = path.name.lower()
    if not name.endswith(_ENDINGS):
        raise DataError(f"The file {path} must end in .csv, .tsv, .txt (or with .gz) or .parquet.")
    path.open("rb").close()  # a missing file: the message of the system
    notes: list[str] = []
    try:
        if name.endswith(".parquet"):
            frame: pd.DataFrame = pandas.read_parquet(path)
        else:
            frame = _read_text(path, list(text), notes)
    except DataError:
        raise
    except ImportError as error:
        raise DataError(
            'Parquet files need pyarrow; install it with pip install "kernelweave[io]".'
        ) from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = str(error).strip().rstrip(".")
        raise DataError(f"The file {path} cannot be read as a table: {why}.") from error
    if frame.empty:
        raise DataError(f"The table in {path} has no rows.")
    frame = frame.rename(columns=lambda column: str(column).strip()).reset_index(drop=True)
    if twice := sorted(set(frame.columns[frame.columns.duplicated()])):
        raise DataError(f"The table in {path} has two columns of the name {twice[0]!r}.")
    converted = _convert_numbers(frame, set(text), None if numbers is None else set(numbers))
    return Table(frame, (*notes, *converted))


def _read_text(path: Path, text: list[str], notes: list[str]) -> pd.DataFrame:
    pandas = import_pandas()
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    with opener(path, "rb") as stream:
        content = stream.read()
    encoding = _encoding(content)
    start = content[:_SAMPLE]
    if b"\0" in start and encoding != "utf-16":
        raise DataError(f"The file {path} cannot be read as a table: it is not a text file.")
    if encoding == "cp1252":
        notes.append("the file is not UTF-8, so it was read as Windows-1252")
    separator, comma = _separators(start.decode(encoding, errors="replace"))
    if separator != "," or comma:
        decimals = ", and decimals by commas" if comma else ""
        notes.append(f"columns are separated by {_SEPARATORS[separator]}{decimals}")
    spaced = {f: str for name in text for f in (name, f" {name}", f"{name} ", f" {name} ")}
    frame: pd.DataFrame = pandas.read_csv(
        io.BytesIO(content),
        sep=separator,
        decimal="," if comma else ".",
        encoding=encoding,
        encoding_errors="replace" if encoding == "cp1252" else "strict",
        low_memory=False,
        dtype=spaced,
        na_values=_GAPS,
        skipinitialspace=True,
    )
    return frame


def _encoding(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _separators(text: str) -> tuple[str, bool]:
    """Return the separator of columns, and whether decimals are written with a comma.

    The separator is the one that splits the header into most columns, of equal ones the first.
    `csv.Sniffer` looks at the rows, where a decimal comma is as frequent as the separator.
    """
    lines = [line for line in text.splitlines()[:200] if line.strip()]
    if not lines:
        return ",", False
    if len(lines) > 1 and len(text) >= _SAMPLE // 2:
        lines.pop()  # it may be cut off
    separator = max(_SEPARATORS, key=lambda s: len(next(csv.reader(lines[:1], delimiter=s))))
    if separator == ",":
        return separator, False
    cells = [cell for row in csv.reader(lines[1:], delimiter=separator) for cell in row]
    commas = sum(_is_number(c.replace(",", ".")) for c in cells if c.count(",") == 1)
    points = sum(_is_number(cell) for cell in cells if "." in cell)
    return separator, commas > points


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_number(column: pd.Series[Any]) -> bool:
    """Tell columns of numbers and booleans from the rest."""
    from pandas.api.types import is_numeric_dtype

    return bool(is_numeric_dtype(column.dtype))


def _convert_numbers(frame: pd.DataFrame, text: set[str], numbers: set[str] | None) -> list[str]:
    """Convert columns of text that hold mostly numbers, in place; return notes."""
    pandas = import_pandas()
    notes = []
    for name in frame.columns:
        column = frame[name]
        wanted = numbers is not None and name in numbers
        if name in text or (numbers is not None and not wanted) or column.dtype.kind not in "OTU":
            continue
        values = pandas.to_numeric(column, errors="coerce")
        known, wrong = int(column.notna().sum()), values.isna() & column.notna()
        if known and (wanted or 1 - wrong.sum() / known >= _MOSTLY) and wrong.sum() < known:
            frame[name] = values.astype(np.float64)
            if wrong.any():
                first = column[wrong].iloc[0]
                notes.append(
                    f"{wrong.sum()} value(s) of {name!r} are no numbers (such as {first!r}) and "
                    "count as missing"
                )
    return notes


def read_pairs_table(path: str | Path, *, labelled: bool = True) -> tuple[Indices, Indices]:
    """Read pairs of rows from a file.

    Parameters
    ----------
    path : str or path
        A table whose first two columns are row numbers, from 0, and whose third is "same" or
        "different" (or 1 and -1, 1 and 0, true and false, yes and no).
    labelled : bool
        Whether the third column is required.

    Returns
    -------
    pairs, labels : ndarray of shape (n_pairs, 2), ndarray of shape (n_pairs,)
        Labels are +1 and -1; all 0 where they are not required.
    """
    frame = read_table(path).frame
    if len(frame.columns) < 2 + labelled:
        raise DataError(
            f"The table in {path} must have two columns of row numbers"
            f"{' and one that says same or different' if labelled else ''}."
        )
    try:
        pairs = frame.iloc[:, :2].to_numpy().astype(np.float64)
    except (TypeError, ValueError):
        pairs = np.full((1, 2), np.nan)
    if not (pairs == np.floor(pairs)).all():
        raise DataError(f"The first two columns of {path} must be row numbers, counted from 0.")
    if not labelled:
        return pairs.astype(np.intp), np.zeros(len(pairs), dtype=np.intp)
    words = frame.iloc[:, 2].map(lambda value: str(value).strip().lower())
    if unknown := [word for word in words.unique() if word not in _LABELS]:
        raise DataError(
            f"The third column of {path} must say same or different, but has {unknown[0]!r}."
        )
    labels = np.array([_LABELS[word] for word in words], dtype=np.intp)
    return pairs.astype(np.intp), labels
