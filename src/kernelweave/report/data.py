"""Section on the data: columns of the table and distribution of the target."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier

from kernelweave._summary import listed
from kernelweave._text import clip
from kernelweave._types import Floats
from kernelweave._validation import is_frame
from kernelweave.io import TablePreparer

from .gaps import find_gaps, gap_chart, pattern_table
from .rendering import Section
from .subject import Subject
from .tables import Cell, Column, Table, meter, number, percent, share, text_column

_MOST = 200  # columns shown at most
_MOST_CLASSES = 40


def section(subject: Subject) -> Section:
    """Return a summary of the data."""
    X, known = subject.X, subject.preparer or subject.estimator
    values: dict[str, Any] = {
        "shape": None if X is None else tuple(map(int, X.shape)),
        "n_rows": subject.n_rows,
        "columns": subject.columns,
        "names": getattr(known, "feature_names_in_", None),
        "table": None,
        "density": None,
        "ready": False,
        "gaps": None,
        "patterns": None,
        **_target(subject),
    }
    if X is None:
        values["table"] = None if subject.preparer is None else _prepared(subject.preparer)
    elif (described := describe_columns(X, subject.columns)) is None:
        values["density"] = X.nnz / max(1, X.shape[0] * X.shape[1])
    elif not described:
        values["ready"] = True
    else:
        values["table"] = _columns(described, X.shape[1])
        if gaps := find_gaps(X, column_names(X, subject.columns)):
            values |= {"gaps": gap_chart(gaps), "patterns": pattern_table(gaps)}
    return Section("data", "Data", values)


def _prepared(known: TablePreparer) -> Table:
    """Return types, means and deviations that the first step of a pipeline has learned."""
    rows: list[list[Any]] = []
    for name, numeric, mean, scale in zip(
        known.feature_names_in_, known.numeric_, known.means_, known.scales_, strict=True
    ):
        shown = numeric and known.standardize
        numbers = [Cell(f"{v:.4g}" if shown else "", float(v)) for v in (mean, scale)]
        rows.append([name, "number" if numeric else "text", *numbers])
    columns = [text_column("column"), text_column("type"), Column("mean"), Column("deviation")]
    return Table("columns", columns, rows[:_MOST], len(rows))


def _columns(rows: list[list[Any]], n_columns: int) -> Table:
    columns = [text_column("column"), text_column("type"), Column("missing"), Column("distinct")]
    return Table("columns", [*columns, text_column("values")], rows, n_columns)


def describe_columns(X: Any, names: Sequence[str] | None) -> list[list[Any]] | None:
    """Return a row of the table for each column; None for a sparse table."""
    if hasattr(X, "tocsr"):
        return None
    if names is None:
        return []
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        return [_column(name, frame[name]) for name in frame.columns[:_MOST]]
    columns, named = np.asarray(X).T[:_MOST], column_names(X, names)
    return [_values(name, column) for name, column in zip(named, columns, strict=False)]


def column_names(X: Any, names: Sequence[str] | None) -> Sequence[str]:
    """Return the names of the columns of a table, or their numbers."""
    if is_frame(X):
        return list(map(str, nw.from_native(X, eager_only=True).columns))
    n_columns = np.shape(X)[1]
    named = names is not None and len(names) == n_columns
    return names if named and names else [f"column {j}" for j in range(n_columns)]


def _row(name: str, kind: str, missing: int, distinct: int, values: str) -> list[Any]:
    return [name, kind, number(missing, ",d"), number(distinct, ",d"), values]


def _column(name: str, column: nw.Series[Any]) -> list[Any]:
    if column.dtype.is_numeric():
        return _numbers(name, np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64))
    return _objects(name, column.to_list())


def _values(name: str, values: Any) -> list[Any]:
    if values.dtype.kind in "iuf":
        return _numbers(name, values.astype(np.float64))
    return _objects(name, values.tolist())


def _numbers(name: str, values: Floats) -> list[Any]:
    there = values[~np.isnan(values)]
    missing = len(values) - len(there)
    if not len(there):
        return _row(name, "number", missing, 0, "")
    text = f"{there.min():.4g} to {there.max():.4g}, median {np.median(there):.4g}"
    return _row(name, "number", missing, len(np.unique(there)), text)


def _objects(name: str, values: list[Any]) -> list[Any]:
    there = [v for v in values if not _is_missing(v)]
    missing = len(values) - len(there)
    if not there:
        return _row(name, "empty", missing, 0, "")
    if all(isinstance(v, bool | np.bool_) for v in there):
        share = percent(sum(map(bool, there)) / len(there))
        return _row(name, "true or false", missing, len(set(there)), f"true in {share}")
    if all(isinstance(v, Real) for v in there):
        return _numbers(name, np.array([np.nan if _is_missing(v) else v for v in values], float))
    words, counts = np.unique([str(v) for v in there], return_counts=True)
    most = f"mostly {clip(words[counts.argmax()], 40)} ({percent(counts.max() / len(there))})"
    return _row(name, "text", missing, len(words), most)


def _is_missing(value: Any) -> bool:
    # Missing values of every library are not equal to themselves, or are None; pandas.NA is
    # neither true nor false where it is compared.
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _target(subject: Subject) -> dict[str, Any]:
    """Return the distribution of the target, or its classes where no target is given."""
    model, y = subject.estimator, subject.y
    named = "" if subject.target is None else f" \u201c{clip(subject.target)}\u201d"
    out: dict[str, Any] = {"has_target": False, "target_facts": None, "classes": None}
    if y is None:
        if "classes_" in model._declaration.saved:
            out["target_facts"] = [(f"Classes{named}", listed(model.classes_, 24))]
        return out
    values = np.asarray(y)
    if values.ndim != 1:
        return out | {"target_facts": [("Outputs", f"{values.shape[1]:,}")]}
    out["has_target"] = True
    if not is_classifier(model) and values.dtype.kind == "f":
        low, middle, high = np.quantile(values, [0, 0.5, 1])
        text = f"{low:.5g} to {high:.5g}, median {middle:.5g}, mean {values.mean():.5g}"
        return out | {"target_facts": [(f"Quantity{named}", text)]}
    labels, counts = np.unique(values.astype(str), return_counts=True)
    rows = [
        [
            labels[k],
            meter(counts[k] / counts.max(), f"{counts[k]:,}"),
            share(counts[k] / counts.sum(), counts[k]),
        ]
        for k in np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    ]
    columns = [text_column(f"class{named}"), Column("rows", sorted="descending"), Column("share")]
    return out | {"classes": Table("classes", columns, rows, len(labels))}
