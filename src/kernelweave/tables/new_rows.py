"""New rows of a table with their target, and what a fitted model predicts for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline

from kernelweave._types import Floats, Indices
from kernelweave.errors import DataError, InputError

from .curves import Coverage, interval_coverage, quantile_coverage, set_coverage
from .measures import Classes, Predicted, Values
from .predicting import last_step, refuse_other_models
from .problem import check_column
from .reading import is_number
from .resampling import Several

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 8  # classes that are listed in a message


@dataclass(frozen=True)
class NewRows:
    """Rows that a model is evaluated on."""

    frame: pd.DataFrame  # all columns of the rows that have a target
    targets: tuple[str, ...]  # columns to predict
    weight: Floats  # (n_rows,): how much each row counts
    numbers: Indices  # (n_rows,): row numbers in the table, from 0
    others: tuple[str, ...]  # columns that are not the model's: targets and weights
    by: str | None  # the column of groups, which the model may use
    notes: tuple[str, ...]  # sentences on rows that were left out

    def __len__(self) -> int:
        return len(self.frame)


def unwrap(model: Any) -> Any:
    """Return the model that a search has chosen."""
    return getattr(model, "best_estimator_", model)


def target_names(model: Any, target: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns to predict: those named, or the one that the model was fitted to."""
    if target is not None and len(target):
        named = (target,) if isinstance(target, str) else tuple(target)
        first = model[0] if isinstance(model, Pipeline) else model
        if used := set(named) & set(getattr(first, "feature_names_in_", ())):
            raise InputError(f"--target: {min(used)!r} is a column that the model predicts from.")
        return named
    known = getattr(model[0], "target_", None) if isinstance(model, Pipeline) else None
    if known is None:
        raise InputError(
            "--target: this model does not know the name of its target; name the column."
        )
    return (known,)


def take_rows(
    model: Any,
    frame: pd.DataFrame,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    by: str | None = None,
) -> NewRows:
    """Return the rows of a table that have a target and a weight."""
    targets = target_names(model, target)
    for column in (*targets, weight, by):
        if column is not None:
            check_column(frame, column)
    if not len(frame):
        raise DataError("The table has no rows.")
    notes = []
    known = frame[list(targets)].notna().all(axis=1).to_numpy()
    if not known.any():
        raise DataError(f"The column {targets[0]!r} has no values.")
    if not known.all():
        listed = ", ".join(map(repr, targets))
        notes.append(f"{(~known).sum()} row(s) without a value of {listed} are left out")
    counts = np.ones(len(frame))
    if weight is not None:
        counts = _weights(frame[weight][known], weight, len(frame), known)
        if (none := int((known & (counts == 0)).sum())) > 0:
            notes.append(f"{none} row(s) of weight 0 are left out")
        known = known & (counts > 0)
    numbers = np.flatnonzero(known)
    rows = frame.iloc[numbers].reset_index(drop=True)
    others = targets if weight is None else (*targets, weight)
    return NewRows(rows, targets, counts[known], numbers, others, by, tuple(notes))


def _weights(column: pd.Series[Any], name: str, n: int, known: Any) -> Floats:
    values = (
        column.to_numpy(dtype=np.float64) if is_number(column) else np.full(len(column), np.nan)
    )
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong) or not values.any():
        came = "all are 0"
        if len(wrong):
            came = f"row {column.index[wrong[0]]} has {column.iloc[wrong[0]]}"
        raise DataError(
            f"--weight: {name!r} must hold numbers that are not negative, not all 0, without gaps, "
            f"but {came}."
        )
    out = np.zeros(n)
    out[known] = values
    return out


def model_rows(model: Any, rows: NewRows) -> Any:
    """Return what the last step of a model takes."""
    frame, names = rows.frame, getattr(model, "feature_names_in_", None)
    if names is not None:
        if lost := [name for name in names if name not in frame.columns]:
            more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            raise DataError(
                f"The table lacks the column{'s' if len(lost) > 1 else ''} "
                f"{', '.join(map(repr, lost[:_SHOWN]))}{more} that the model needs."
            )
        X: Any = frame[list(names)]
    else:
        used = frame.drop(columns=[name for name in rows.others if name in frame.columns])
        n = model.n_features_in_
        if len(used.columns) == n + 1 and rows.by in used.columns:
            used = used.drop(columns=rows.by)
        numbers = all(is_number(used[name]) for name in used.columns)
        if len(used.columns) != n or not numbers:
            raise DataError(
                f"This model was fitted to {n} columns of numbers without names, but the table has "
                f"{len(used.columns)} beside {', '.join(map(repr, rows.others))}"
                f"{'' if numbers else ', some with text'}."
            )
        X = used.to_numpy(dtype=np.float64)
    return model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X


@dataclass(frozen=True)
class Outcome:
    """What a model predicts for rows whose target is known."""

    predicted: Predicted | Several  # predictions beside the truth
    # {"classes", "labels", "values", "targets", "quantiles"}: what is predicted: one or several of
    # them.
    kind: str
    # For each output, of the intervals or sets that the model offers.
    coverage: tuple[tuple[Coverage, ...], ...]
    notes: tuple[str, ...] = ()  # warnings of the predictions

    @property
    def outputs(self) -> tuple[Predicted, ...]:
        """The predictions one by one."""
        return self.predicted.outputs


def predict_rows(
    model: Any, rows: NewRows, coverages: Sequence[float] = (), positive: Any = None
) -> Outcome:
    """Predict rows, with intervals or sets of some coverages where the model has them."""
    estimator = last_step(model)
    refuse_other_models(estimator)
    if positive is not None and not is_classifier(estimator):
        raise InputError("--positive: is for two classes, but the model predicts numbers.")
    X = model_rows(model, rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_classifier(estimator):
            out = _classes(estimator, X, rows, coverages, positive)
        elif is_regressor(estimator):
            out = _values(estimator, X, rows, coverages)
        else:
            raise InputError(
                f"A {type(estimator).__name__} predicts neither classes nor numbers, so that it "
                "cannot be evaluated."
            )
    said = tuple(dict.fromkeys(str(w.message).rstrip(".") for w in caught))
    return Outcome(out.predicted, out.kind, out.coverage, said)


def predict_changed(model: Any, rows: NewRows, positive: Any) -> Predicted | Several:
    """Return the predictions alone, for rows some of whose values were changed."""
    estimator, X = last_step(model), model_rows(model, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the rows as they are were shown
        if is_classifier(estimator):
            return _classes(estimator, X, rows, (), positive).predicted
        return _values(estimator, X, rows, ()).predicted


def _classes(
    estimator: Any, X: Any, rows: NewRows, coverages: Sequence[float], positive: Any
) -> Outcome:
    predicted = np.asarray(estimator.predict(X))
    proba = scores = None
    if hasattr(estimator, "predict_proba"):
        proba = scores = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    elif hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if predicted.ndim == 2:
        return _labels(predicted, proba, scores, rows)
    _count_targets(rows, 1)
    classes = tuple(estimator.classes_.tolist())
    y = class_codes(rows.frame[rows.targets[0]], classes)
    if scores is not None and scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    found = Classes(
        y,
        class_codes_of(predicted, classes),
        classes,
        _positive(classes, positive),
        scores,
        proba,
    )
    coverage = []
    if hasattr(estimator, "predict_set"):
        for asked in coverages:
            sets = np.asarray(estimator.predict_set(X, asked))
            coverage.append(set_coverage(y, sets, asked, rows.weight))
    return Outcome(found, "classes", (tuple(coverage),))


def _positive(classes: tuple[Any, ...], positive: Any) -> int:
    if positive is None:
        return len(classes) - 1
    listed = ", ".join(map(str, classes[:_SHOWN]))
    if len(classes) != 2:
        raise InputError(f"--positive: is for two classes, but the model has {len(classes)}.")
    for k, label in enumerate(classes):
        if str(label) == str(positive):
            return k
    raise InputError(f"--positive: must be a class of the model ({listed}), got {positive!r}.")


def _labels(predicted: Any, proba: Any, scores: Any, rows: NewRows) -> Outcome:
    n_labels = predicted.shape[1]
    _count_targets(rows, n_labels)
    if scores is not None:
        scores = scores.reshape(len(predicted), n_labels)
    outputs = []
    for k, name in enumerate(rows.targets):
        y = class_codes(rows.frame[name], (0, 1))
        own = None if proba is None else np.column_stack([1.0 - proba[:, k], proba[:, k]])
        ranks = None if scores is None else np.column_stack([-scores[:, k], scores[:, k]])
        said = predicted[:, k].astype(np.intp)
        outputs.append(Classes(y, said, (0, 1), 1, ranks if own is None else own, own))
    return Outcome(Several(tuple(outputs)), "labels", ((),) * n_labels)


def _values(estimator: Any, X: Any, rows: NewRows, coverages: Sequence[float]) -> Outcome:
    predicted = np.asarray(estimator.predict(X), dtype=np.float64)
    levels: tuple[float, ...] = ()
    if getattr(estimator, "loss", None) == "quantile":
        levels = tuple(np.atleast_1d(estimator.quantile).astype(float).tolist())
    columns = predicted.reshape(len(predicted), -1)
    _count_targets(rows, 1 if levels else columns.shape[1])
    Y = np.column_stack([_numbers(rows.frame[name]) for name in rows.targets])
    ends = {}
    if hasattr(estimator, "predict_interval"):
        ends = {c: np.asarray(estimator.predict_interval(X, c)) for c in coverages}
    coverage = tuple(
        tuple(
            interval_coverage(
                "interval", y, found if found.ndim == 2 else found[:, k], asked, rows.weight
            )
            for asked, found in ends.items()
        )
        for k, y in enumerate(Y.T)
    )
    if not levels:
        outputs = tuple(Values(y, f) for y, f in zip(Y.T, columns.T, strict=True))
        if len(outputs) == 1:
            return Outcome(outputs[0], "values", coverage)
        return Outcome(Several(outputs), "targets", coverage)
    y, pairs = Y[:, 0], list(zip(levels, columns.T, strict=True))
    below = tuple(quantile_coverage(y, f, level, rows.weight) for level, f in pairs)
    outputs = tuple(Values(y, f, level) for level, f in pairs)
    found = outputs[0] if len(outputs) == 1 else Several(outputs)
    return Outcome(found, "quantiles", ((*below, *coverage[0]),))


def _count_targets(rows: NewRows, n: int) -> None:
    if len(rows.targets) != n:
        many = f"{n} targets" if n > 1 else "one target"
        raise InputError(
            f"--target: the model predicts {many}, but {len(rows.targets)} column(s) are named; "
            "name them in the order of the fit."
        )


def _numbers(column: pd.Series[Any]) -> Floats:
    if not is_number(column):
        raise DataError(f"--target: {column.name!r} must hold numbers, but has {column.iloc[0]!r}.")
    values = column.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"--target: {column.name!r} must have finite values.")
    return values


def class_codes(column: pd.Series[Any], classes: tuple[Any, ...]) -> Indices:
    """Return positions of the classes of rows; an error names a class that is not in the model."""
    values = column.tolist()
    if all(isinstance(label, str) for label in classes):
        values = [value if isinstance(value, str) else str(value) for value in values]
    places = {label: k for k, label in enumerate(classes)}
    codes = np.array([places.get(value, -1) for value in values], dtype=np.intp)
    if (codes < 0).any():
        first = values[int((codes < 0).argmax())]
        listed = ", ".join(map(str, classes[:_SHOWN])) + (", ..." if len(classes) > _SHOWN else "")
        raise DataError(
            f"--target: {column.name!r} has the value {first!r} in {(codes < 0).sum()} row(s), "
            f"which is no class of the model; these are: {listed}. Leave out rows of other classes."
        )
    return codes


def class_codes_of(labels: Any, classes: tuple[Any, ...]) -> Indices:
    """Return positions of predicted classes."""
    places = {label: k for k, label in enumerate(classes)}
    return np.array([places[label] for label in labels.tolist()], dtype=np.intp)
