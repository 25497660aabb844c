"""The table that the model works on: its columns, and what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier

from kernelweave._summary import count, listed
from kernelweave._text import clip
from kernelweave._types import Floats
from kernelweave._validation import is_frame

from .html import Cell, Column, Markup, Section, facts, join, meter, note, paragraph, percent, table
from .subject import Subject

_MOST = 200  # columns that a page has room for
_MOST_CLASSES = 40


@dataclass(frozen=True)
class Described:
    """A column: its type, how many values are missing and distinct, and the range of the rest."""

    name: str
    kind: str
    missing: int
    distinct: int
    values: str


def section(subject: Subject) -> Section | None:
    """Return what is known of the data."""
    target = _target(subject)
    if subject.X is None:
        body = [paragraph(_known(subject)), _prepared(subject), target]
        return Section("data", "Data", join(body))
    shape = subject.X.shape if hasattr(subject.X, "shape") else np.asarray(subject.X).shape
    words = f"{count(int(shape[0]), 'row')} and {count(int(shape[1]), 'column')} were given."
    if subject.n_rows is not None and subject.n_rows != shape[0]:
        words += f" The model was fitted to {count(subject.n_rows, 'row')}."
    return Section("data", "Data", join([paragraph(words), _columns(subject), target]))


def _known(subject: Subject) -> str:
    fitted = "" if subject.n_rows is None else f" to {count(subject.n_rows, 'row')}"
    if subject.columns is None:
        return f"The model was fitted{fitted} of a ready kernel."
    n = count(len(subject.columns), "column")
    names = getattr(subject.preparer or subject.estimator, "feature_names_in_", None)
    which = "" if names is None else f": {listed(names, 24)}"
    return f"The model was fitted{fitted} with {n}{which}. The data themselves were not given."


def _prepared(subject: Subject) -> Markup | None:
    """Return what the first step of a pipeline knows of each column."""
    known = subject.preparer
    if known is None:
        return None
    rows: list[list[Any]] = []
    for name, numeric, mean, scale in zip(
        known.feature_names_in_, known.numeric_, known.means_, known.scales_, strict=True
    ):
        numbers = numeric and known.standardize
        shown = [Cell(f"{v:.4g}" if numbers else "", float(v)) for v in (mean, scale)]
        rows.append([str(name), "number" if numeric else "text", *shown])
    columns = [Column("column", number=False), Column("type", number=False)]
    columns += [Column("mean"), Column("deviation")]
    return table("columns", columns, rows[:_MOST], n_all=len(rows))


def _columns(subject: Subject) -> Markup:
    described = describe_columns(subject.X, subject.columns)
    if described is None:
        X = subject.X
        share = X.nnz / max(1, X.shape[0] * X.shape[1])
        return note(f"The table is sparse: {share:.2%} of its entries are not zero.")
    if not described:
        return note("The columns are those of a ready kernel.")
    n_columns = subject.X.shape[1] if hasattr(subject.X, "shape") else len(described)
    rows = [
        [
            one.name,
            one.kind,
            Cell(f"{one.missing:,}", float(one.missing)),
            Cell(f"{one.distinct:,}", float(one.distinct)),
            one.values,
        ]
        for one in described
    ]
    columns = [
        Column("column", number=False),
        Column("type", number=False),
        Column("missing"),
        Column("distinct"),
        Column("values", number=False),
    ]
    return table("columns", columns, rows, n_all=n_columns)


def describe_columns(X: Any, names: Sequence[str] | None) -> list[Described] | None:
    """Return a description of each column; None for a sparse table."""
    if hasattr(X, "tocsr"):
        return None
    if names is None:
        return []
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        return [_column(name, frame[name]) for name in frame.columns[:_MOST]]
    columns = np.asarray(X).T[:_MOST]
    named = names if len(names) == np.shape(X)[1] else [f"column {j}" for j in range(len(columns))]
    return [_values(name, column) for name, column in zip(named, columns, strict=False)]


def _column(name: str, column: nw.Series[Any]) -> Described:
    if column.dtype.is_numeric():
        return _numbers(name, np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64))
    return _objects(name, column.to_list())


def _values(name: str, values: Any) -> Described:
    if values.dtype.kind in "iuf":
        return _numbers(name, values.astype(np.float64))
    return _objects(name, values.tolist())


def _numbers(name: str, values: Floats) -> Described:
    there = values[~np.isnan(values)]
    missing = len(values) - len(there)
    if not len(there):
        return Described(name, "number", missing, 0, "")
    text = f"{there.min():.4g} to {there.max():.4g}, median {np.median(there):.4g}"
    return Described(name, "number", missing, len(np.unique(there)), text)


def _objects(name: str, values: list[Any]) -> Described:
    there = [v for v in values if not _is_missing(v)]
    missing = len(values) - len(there)
    if not there:
        return Described(name, "empty", missing, 0, "")
    if all(isinstance(v, bool | np.bool_) for v in there):
        share = percent(sum(map(bool, there)) / len(there))
        return Described(name, "true or false", missing, len(set(there)), f"true in {share}")
    if all(isinstance(v, Real) for v in there):
        return _numbers(name, np.array([np.nan if _is_missing(v) else v for v in values], float))
    words, counts = np.unique([str(v) for v in there], return_counts=True)
    most = f"mostly {clip(words[counts.argmax()], 40)} ({percent(counts.max() / len(there))})"
    return Described(name, "text", missing, len(words), most)


def _is_missing(value: Any) -> bool:
    # Missing values of every library are not equal to themselves, or are None; pandas.NA is
    # neither true nor false where it is compared.
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _target(subject: Subject) -> Markup | None:
    model, y = subject.estimator, subject.y
    named = "" if subject.target is None else f" \u201c{clip(subject.target)}\u201d"
    if y is None:
        classes = getattr(model, "classes_", None)
        if classes is None:
            return None
        return facts([(f"Classes{named}", listed(classes, 24))])
    values = np.asarray(y)
    if values.ndim != 1:
        return facts([("Outputs", f"{values.shape[1]:,}")])
    title = Markup("<h3>Target</h3>")
    if not is_classifier(model) and values.dtype.kind == "f":
        low, middle, high = np.quantile(values, [0, 0.5, 1])
        text = f"{low:.5g} to {high:.5g}, median {middle:.5g}, mean {values.mean():.5g}"
        return join([title, facts([(f"Quantity{named}", text)])])
    labels, counts = np.unique(values.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    rows = [
        [
            str(labels[k]),
            meter(counts[k] / counts.max(), f"{counts[k]:,}"),
            Cell(percent(counts[k] / counts.sum()), float(counts[k])),
        ]
        for k in order
    ]
    columns = [
        Column(f"class{named}", number=False),
        Column("rows", sorted="descending"),
        Column("share"),
    ]
    return join([title, table("classes", columns, rows, n_all=len(labels))])
