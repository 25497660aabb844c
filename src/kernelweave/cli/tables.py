"""Read a table from a file, and see what can be learned from it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave.errors import DataError, InputError

if TYPE_CHECKING:
    import pandas as pd

_MANY = 20  # a target of more different numbers than this is taken as a quantity


@dataclass(frozen=True)
class Problem:
    """What to learn from, and what to learn."""

    X: pd.DataFrame
    y: pd.Series[Any]
    regression: bool
    notes: tuple[str, ...]  # what was left out, for the user


def import_pandas() -> Any:
    """Return pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise DataError(
            'Tables need pandas; install it with pip install "kernelweave[cli]".'
        ) from error
    return pandas


def read_table(path: str | Path, text: Iterable[str] = ()) -> pd.DataFrame:
    """Read a CSV or Parquet file; the columns in ``text`` are read as they are written."""
    pandas = import_pandas()
    path = Path(path)
    name = path.name.lower()
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise DataError(f"The file {path} must end in .csv, .csv.gz or .parquet.")
    path.open("rb").close()  # what the system says about a missing file is clear enough
    try:
        if name.endswith(".parquet"):
            frame: pd.DataFrame = pandas.read_parquet(path)
        else:
            as_text = dict.fromkeys(text, str)
            frame = pandas.read_csv(path, low_memory=False, dtype=as_text)
    except ImportError as error:
        raise DataError(
            'Parquet files need pyarrow; install it with pip install "kernelweave[io]".'
        ) from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = str(error).strip().rstrip(".")
        raise DataError(f"The file {path} cannot be read as a table: {why}.") from error
    if frame.empty:
        raise DataError(f"The table in {path} has no rows.")
    return frame.rename(columns=str).reset_index(drop=True)


def read_problem(file: str, target: str, ignore: list[str], method: str) -> Problem:
    """Read a table and split it into columns to learn from and a target."""
    frame = read_table(file)
    for column in (target, *ignore):
        if column not in frame.columns:
            raise DataError(missing_column(file, column, list(frame.columns)))
    notes = []
    missing = frame[target].isna()
    if missing.any():
        frame = frame[~missing]
        notes.append(f"{missing.sum()} rows without a value of {target!r} are left out")
    if not len(frame):
        raise DataError(f"The column {target!r} of {file} has no values.")
    X, y = frame.drop(columns=[target, *ignore]), frame[target]
    useless = {column: why for column in X.columns if (why := _useless(X[column]))}
    notes += [f"the column {column!r} is left out: {why}" for column, why in useless.items()]
    X = X.drop(columns=list(useless))
    if not len(X.columns):
        why = f" ({'; '.join(notes)})" if notes else ""
        raise DataError(f"No column of {file} is left to learn from{why}.")
    y, regression = _typed_target(y, method)
    return Problem(X.reset_index(drop=True), y.reset_index(drop=True), regression, tuple(notes))


def missing_column(file: str, column: str, names: list[str]) -> str:
    """Say that a table lacks a column, with the names that are near."""
    if near := get_close_matches(column, names, n=3):
        return f"{file} has no column {column!r}; did you mean {' or '.join(map(repr, near))}?"
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"{file} has no column {column!r}; its columns are: {listed}"


def _useless(column: pd.Series[Any]) -> str | None:
    """Say why nothing can be learned from a column."""
    n_values = column.nunique()
    if n_values + column.hasnans < 2:
        return "it has one value only" if n_values else "it is empty"
    if is_number(column):
        counted = any((column == column.index + start).all() for start in (0, 1))
        return "it counts the rows" if counted and len(column) > 2 else None
    if n_values > 0.5 * len(column):
        return "most of its values are different, as of names"
    return None


def is_number(column: pd.Series[Any]) -> bool:
    """Tell columns of numbers and booleans from the rest."""
    from pandas.api.types import is_numeric_dtype

    return bool(is_numeric_dtype(column.dtype))


def _typed_target(y: pd.Series[Any], method: str) -> tuple[pd.Series[Any], bool]:
    """Return the target in the type that its method needs, and whether that is regression."""
    number = is_number(y)
    if number:
        y = y.astype(bool) if y.dtype.kind == "b" else y.astype(y.to_numpy().dtype)
    whole = not number or bool((y == np.floor(y)).all())
    regression = method == "regressor"
    if method in ("auto", "radius"):
        regression = number and (not whole or y.nunique() > _MANY)
    if regression and method == "radius":
        what = f"more than {_MANY} different numbers" if whole else "numbers with decimals"
        raise InputError(
            f"--method radius: it learns classes, but the target {y.name!r} holds {what}, a "
            "quantity; use --method regressor" + (", or write classes as text." if whole else ".")
        )
    if regression:
        if not number:
            raise InputError(
                f"--method regressor: the target {y.name!r} must hold numbers, but has "
                f"{y.iloc[0]!r}."
            )
        y = y.astype(float)
        if not np.isfinite(y).all() or y.std() == 0:
            raise InputError(f"The target {y.name!r} must have finite and different values.")
        return y, True
    if not whole:
        raise InputError(
            f"--method classifier: the target {y.name!r} holds numbers with decimals, which are "
            "no classes."
        )
    if y.nunique() < 2:
        raise InputError(f"The target {y.name!r} has one class only: {y.iloc[0]!r}.")
    if number:
        return (y if y.dtype.kind == "b" else y.astype(np.int64)), False
    return y.astype(object).map(str), False
