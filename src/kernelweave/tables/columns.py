"""Detect the kinds of the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from kernelweave._summary import count
from kernelweave.io.dates import find_format

from .reading import is_number

if TYPE_CHECKING:
    import pandas as pd

Kind: TypeAlias = Literal["number", "category", "text", "date", "none"]

_LOOKED_AT = 2000  # values by which the kind of a column of text is decided
_SENTENCE = 2.5  # mean number of words from which values are sentences
_MANY_LEVELS = 100  # values of a category from which on a note says so
_NAMES = 0.5  # share of different values from which categories are names
_FEW = 20  # rows below which a share of different values is not significant
_KEY = re.compile(r"(?i:(^|[\W_])(id|uuid|guid|key)([\W_](str|num|nr|no|code))?$)|[a-z]I[dD]$")
_ID = re.compile(r"(?i:(^|[\W_])(id|uuid|guid|key|nr|no|number|index|row)$)|[a-z]I[dD]$")


@dataclass(frozen=True)
class ColumnKind:
    """The kind of a column.

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "category", "text", "date", "none"}
        "none": it carries no information.
    why : str
        For "none": the reason.
    missing : int
        Values that are missing or infinite.
    format : str
        For dates that are written as text: how, as in ``datetime.strptime``.
    levels : int
        For categories: how many values there are.
    """

    name: str
    kind: Kind
    why: str = ""
    missing: int = 0
    format: str = ""
    levels: int = 0


def describe_columns(frame: pd.DataFrame) -> list[ColumnKind]:
    """Return the kind of every column of a table.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns to learn from.

    Returns
    -------
    kinds : list of ColumnKind
        One per column.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 55, 47], "town": ["Ulm", "Bonn", "Ulm"], "unit": "kg"})
    >>> [column.kind for column in describe_columns(frame)]
    ['number', 'category', 'none']
    """
    return [_describe(str(name), frame[name]) for name in frame.columns]


def _describe(name: str, column: pd.Series[Any]) -> ColumnKind:
    missing = column.isna()
    if column.dtype.kind == "f":
        missing = missing | ~np.isfinite(column.to_numpy(dtype=float))
    n_missing, known = int(missing.sum()), column[~missing]
    n_values = known.nunique()
    if n_values < 2 and not (n_values and n_missing and not is_number(column)):
        return ColumnKind(name, "none", "it has one value only" if n_values else "it is empty")
    if is_number(column):
        why = "" if n_missing else _numbers_rows(name, column, n_values)
        why = why or _holds_keys(name, known, n_values)
        return ColumnKind(name, "none" if why else "number", why, n_missing)
    if column.dtype.kind == "M":
        return ColumnKind(name, "date", missing=n_missing)
    texts = [str(value) for value in known.iloc[:_LOOKED_AT]]
    if find_format(texts[:20]) and (form := find_format(set(known.map(str)))):
        return ColumnKind(name, "date", missing=n_missing, format=form)
    if n_values > _NAMES * len(known) and len(known) >= _FEW:
        if np.mean([len(text.split()) for text in texts]) >= _SENTENCE:
            return ColumnKind(name, "text", missing=n_missing)
        what = "its values are all" if n_values == len(known) else "most of its values are"
        return ColumnKind(name, "none", f"{what} different, as of names")
    return ColumnKind(name, "category", missing=n_missing, levels=n_values)


def _numbers_rows(name: str, column: pd.Series[Any], n_values: int) -> str:
    """Return why a column of numbers is a row number or an identifier; empty if it is not."""
    n = len(column)
    values = column.to_numpy(dtype=float)
    if n_values < n or n < 3 or (values != np.floor(values)).any():
        return ""
    if len(set((values - np.asarray(column.index)).tolist())) == 1:
        return "it counts the rows"
    if n < _FEW:
        return ""
    # Consecutive identifiers fill the range between the smallest and the largest.
    dense = n > 0.5 * (values.max() - values.min() + 1)
    named = bool(_ID.search(name.strip()))
    return "its values are all different, as of identifiers" if dense or named else ""


def _holds_keys(name: str, known: pd.Series[Any], n_values: int) -> str:
    """Return why a column of whole numbers is a key by its name; empty if it is not."""
    if len(known) < _FEW or n_values <= _NAMES * len(known) or not _KEY.search(name.strip()):
        return ""
    values = known.to_numpy(dtype=float)
    whole = (values == np.floor(values)).all()
    return "most of its values are different, as of identifiers" if whole else ""


def note_columns(
    kinds: Sequence[ColumnKind], *, kept: bool = False, encoded: bool = False
) -> list[str]:
    """Return a sentence for each column that is left out, converted, or has missing values.

    ``kept``: the method handles missing values itself. ``encoded``: dates and missing values get
    columns of their own.
    """
    notes = [f"the column {c.name!r} is left out: {c.why}" for c in kinds if c.kind == "none"]
    parts = "years with decimals"
    if encoded:
        parts = "a number and places in the year, the week and the day"
    for kind, how in (
        ("date", f"hold dates, which become {parts}"),
        ("text", "hold text, which is compared by its words"),
    ):
        if names := [repr(c.name) for c in kinds if c.kind == kind]:
            notes.append(
                f"{_listed(names)} {how if len(names) > 1 else how.replace('hold', 'holds', 1)}"
            )
    if many := [f"{c.name!r} ({c.levels})" for c in kinds if c.levels > _MANY_LEVELS]:
        notes.append(f"categories with many values: {_listed(many)}; rare ones say little")
    fills = {"number": "filled with the median", "category": "a value of their own"}
    if encoded:
        fills["number"] += ", and marked"
    fills |= {"date": fills["number"], "text": fills["category"]}
    for fill in ["kept as such"] if kept else dict.fromkeys(fills.values()):
        gaps = [c for c in kinds if c.missing and (kept or fills.get(c.kind) == fill)]
        if gaps:
            listed = _listed([f"{c.name!r} ({count(c.missing, 'row')})" for c in gaps])
            notes.append(f"missing values in {listed} are {fill}")
    return notes


def _listed(names: Sequence[str], limit: int = 8) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
