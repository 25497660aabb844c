"""``kernelweave predict``: predictions for the rows of a table, as CSV."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave.errors import DataError, InputError
from kernelweave.io import load

from .tables import is_number, read_table


def run(args: argparse.Namespace) -> int:
    """Load, predict and write."""
    model = load(args.model)
    estimator = model[-1] if isinstance(model, Pipeline) else model
    if args.decision and not hasattr(estimator, "classes_"):
        raise InputError("--decision: this model is a regressor, its predictions are all it has.")
    if hasattr(estimator, "tasks_"):
        raise InputError(
            "This model was fitted with tasks, which a table cannot name here; use "
            "kernelweave.io.load and predict(X, task) in Python."
        )
    rows = read_rows(model, args.file)
    columns = _name_outputs(model, model.predict(rows))
    if args.decision:
        decision = np.asarray(model.decision_function(rows))
        parts = decision.reshape(len(decision), -1).T
        labels = estimator.classes_[-len(parts) :]
        columns |= {f"decision {label}": v for label, v in zip(labels, parts, strict=True)}
    lines = zip(*(values.tolist() for values in columns.values()), strict=True)
    if args.out is None:
        _write(sys.stdout, columns, lines)
    else:
        with open(args.out, "w", encoding="utf-8", newline="") as stream:
            _write(stream, columns, lines)
    return 0


def read_rows(model: Any, file: str) -> Any:
    """Return the table in the form the model was fitted to."""
    if isinstance(model, Pipeline):
        prepared = model[0]
        return read_table(file, text=prepared.feature_names_in_[~prepared.numeric_])
    # What was text in fit must be read as text, or "01" would be the number 1.
    words = {p.feature for p in getattr(model, "propositions_", ()) if isinstance(p.value, str)}
    table = read_table(file, text=words)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        if lost := [name for name in names if name not in table.columns]:
            raise DataError(f"The table in {file} lacks {', '.join(map(repr, lost))}.")
        return table[list(names)]
    if len(table.columns) != model.n_features_in_ or not all(map(is_number, dict(table).values())):
        raise DataError(
            f"This model was fitted to {model.n_features_in_} columns of numbers without names, "
            f"but the table in {file} is not that."
        )
    return table.to_numpy(dtype=np.float64)


def _name_outputs(model: Any, predictions: Any) -> dict[str, Any]:
    target = (model[0].target_ if isinstance(model, Pipeline) else None) or "prediction"
    if predictions.ndim == 1:
        return {target: predictions}
    return {f"{target} {i}": column for i, column in enumerate(predictions.T)}


def _write(stream: Any, header: Iterable[str], lines: Iterable[Any]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
