"""Predict the rows of a table with a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._declaration import has_aspect
from kernelweave.errors import DataError, InputError
from kernelweave.io import TablePreparer
from kernelweave.kernels import Precomputed

from .problem import add_row_numbers, check_column
from .reading import Table, import_pandas, is_number, read_table

if TYPE_CHECKING:
    import pandas as pd


def _steps(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or of a list of names and steps; a model is its only one."""
    if isinstance(model, list):
        return [step for _, step in model]
    # `steps` alone is a parameter of some estimators, too.
    return [step for _, step in model.steps] if hasattr(model, "named_steps") else [model]


def _is_prepared(model: Any) -> bool:
    """Return whether a model begins with the preparation step of the command line."""
    return isinstance(_steps(model)[0], TablePreparer)


def last_step(model: Any) -> Any:
    """Return the estimator itself, the last step of a pipeline."""
    return _steps(model)[-1]


def refuse_other_models(estimator: Any) -> None:
    """Refuse models that do not predict single rows of a table."""
    if has_aspect(estimator, "pairs"):
        raise InputError(
            "This model was learned from pairs and scores pairs: give them with --pairs, or group "
            "the rows with kernelweave cluster --model."
        )
    if has_aspect(estimator, "clusters"):
        raise InputError(
            f"A {type(estimator).__name__} holds the clusters of the rows it was fitted to, and "
            "predicts none of others; group a table with kernelweave cluster."
        )
    if hasattr(estimator, "tasks_"):
        raise InputError(
            "This model was fitted with tasks, which the command line does not support; use "
            "kernelweave.io.load and predict(X, task) in Python."
        )


def read_for(model: Any, path: str | Path, beside: Sequence[str] = ()) -> Table:
    """Read a table in the form that a model takes.

    Columns that were text when the model was fitted are read as text, columns of numbers as
    numbers; matrices with as many rows as the table need no column of row numbers.

    Parameters
    ----------
    model : estimator, Pipeline, or list of names and steps
        A fitted model.
    path : str or path
        The file.
    beside : sequence of str
        Columns that are none of the model's, where it was fitted to columns without names.

    Returns
    -------
    table : Table
        Its frame can be given to ``model.predict``.
    """
    table = read_with_targets([model], path)
    if _is_prepared(model):
        return table
    frame, first = table.frame, _steps(model)[0]
    known = getattr(first, "feature_names_in_", None)
    if known is not None:
        if lost := [name for name in known if name not in frame.columns]:
            raise DataError(f"The table in {path} lacks {', '.join(map(repr, lost))}.")
        return Table(frame[list(known)], table.notes)
    frame = frame.drop(columns=[name for name in beside if name in frame.columns])
    if len(frame.columns) != first.n_features_in_ or not all(map(is_number, dict(frame).values())):
        raise DataError(
            f"This model was fitted to {first.n_features_in_} columns of numbers without names, "
            f"but the table in {path} is not that."
        )
    return Table(frame.set_axis(range(len(frame.columns)), axis=1), table.notes)


def read_with_targets(
    models: Sequence[Any], path: str | Path, targets: Sequence[str] = ()
) -> Table:
    """Read all columns of a table, those of the models in the types that they take.

    What is text for one of the models is read as text, and so are the targets if the classes of a
    model are text: "01" stays "01". The table has the row numbers of Gram matrices that the models
    hold.
    """
    words: set[str] = set()
    numbers: set[str] = set()
    prepared = True
    for model in models:
        estimator = last_step(model)
        classes = getattr(estimator, "classes_", None)
        if classes is not None and classes.dtype.kind in "OU":
            words |= set(targets)
        if _is_prepared(model):
            preparer = _steps(model)[0]
            names, dates = preparer.feature_names_in_, set(preparer.dates or ())
            own = set(names[preparer.numeric_]) - dates
            words |= set(names) - own
            numbers |= own
        else:
            prepared = False
            # Text in fit must be read as text, or "01" would be the number 1.
            known = getattr(estimator, "propositions_", ())
            words |= {p.feature for p in known if isinstance(p.value, str)}
    numbers -= words
    table = read_table(path, text=words, numbers=numbers | set(targets) if prepared else None)
    frame = table.frame
    for model in models:
        frame = add_row_numbers(frame, _grams(model))
    empty = [name for name in frame.columns if name in numbers and frame[name].isna().all()]
    return Table(frame.assign(**dict.fromkeys(empty, np.nan)), table.notes)


def _grams(model: Any) -> dict[str, Any]:
    kernels = getattr(last_step(model), "kernels_", None) or ()
    ready = [kernel for kernel in kernels if isinstance(kernel, Precomputed)]
    return {kernel.columns: kernel.gram for kernel in ready if isinstance(kernel.columns, str)}


def predict_table(
    model: Any,
    frame: pd.DataFrame,
    *,
    decision: bool = False,
    probabilities: bool = False,
    interval: float | None = None,
    sets: float | None = None,
    keep: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return predictions as a table, under the name of the target.

    Parameters
    ----------
    model : estimator, Pipeline, or list of names and steps
        A fitted classifier or regressor.
    frame : pandas.DataFrame
        Rows; see `read_for`.
    decision : bool
        Whether to add the values of the decision function, one column per class.
    probabilities : bool
        Whether to add the probability of every class.
    interval : float, optional
        Share of new rows whose interval should hold their target: adds the columns ``lower`` and
        ``upper``.
    sets : float, optional
        Share of new rows whose set should hold their class: adds the column ``set`` with the
        classes joined by ``|``, the most probable one first where there are probabilities; empty
        where no class fits.
    keep : pandas.DataFrame, optional
        Columns of the same rows, such as names, that are put before the predictions. Predictions
        whose name they have are renamed: ``predicted price`` beside ``price``.

    Returns
    -------
    predictions : pandas.DataFrame
        One row per row.
    """
    pandas, estimator = import_pandas(), last_step(model)
    refuse_other_models(estimator)
    _check_offers(estimator, decision, probabilities, interval, sets)
    rows = _rows_of(model, frame)
    target = getattr(_steps(model)[0], "target_", None) or "prediction"
    predictions = np.asarray(estimator.predict(rows))
    columns = _by_output(target, predictions)
    if decision:
        values = np.asarray(estimator.decision_function(rows))
        parts = values.reshape(len(values), -1).T
        labels = estimator.classes_[-len(parts) :]
        columns |= {f"decision {label}": v for label, v in zip(labels, parts, strict=True)}
    shares = None
    if probabilities:
        shares = np.asarray(estimator.predict_proba(rows))
        columns |= {
            f"probability {label}": v for label, v in zip(estimator.classes_, shares.T, strict=True)
        }
    if interval is not None:
        ends = np.asarray(estimator.predict_interval(rows, interval))
        columns |= _by_output("lower", ends[..., 0]) | _by_output("upper", ends[..., 1])
    if sets is not None:
        if shares is None and hasattr(estimator, "predict_proba"):
            shares = np.asarray(estimator.predict_proba(rows))
        included = np.asarray(estimator.predict_set(rows, sets))
        columns["set"] = _joined(included, shares, [str(label) for label in estimator.classes_])
    predicted: pd.DataFrame = pandas.DataFrame(columns)
    if keep is None:
        return predicted
    named = {name: f"predicted {name}" for name in predicted.columns if name in keep.columns}
    beside = [keep.reset_index(drop=True), predicted.rename(columns=named)]
    joined: pd.DataFrame = pandas.concat(beside, axis=1)
    return joined


def read_kept(path: str | Path, names: Sequence[str]) -> pd.DataFrame | None:
    """Read columns as they are written, to be copied; names may be joined by commas."""
    if not names:
        return None
    known = read_table(path).frame
    split = [name if name in known.columns else name.split(",") for name in names]
    listed = [part for item in split for part in ([item] if isinstance(item, str) else item)]
    wanted = list(dict.fromkeys(name.strip() for name in listed))
    for name in wanted:
        check_column(known, name)
    kept = read_table(path, text=wanted).frame[wanted].astype(object)
    found: pd.DataFrame = kept.where(kept.notna(), None)
    return found


def _rows_of(model: Any, frame: pd.DataFrame) -> Any:
    """Return what the last step of a model takes."""
    *before, last = _steps(model)
    if before:
        rows: Any = frame
        for step in before:
            rows = step.transform(rows)
        return rows
    names = getattr(last, "feature_names_in_", None)
    if names is not None:
        return frame[list(names)]
    return frame.iloc[:, : last.n_features_in_].to_numpy(dtype=np.float64)


def _by_output(name: str, values: Any) -> dict[str, Any]:
    """Return a column, or one for each output with its number."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name} {i}": column for i, column in enumerate(values.T)}


def _joined(included: Any, shares: Any, labels: list[str]) -> list[str]:
    """Return the classes of every set as text, the most probable one first."""
    order = np.tile(np.arange(len(labels)), (len(included), 1))
    if shares is not None:
        order = np.argsort(-shares, axis=1, kind="stable")
    return [
        "|".join(labels[k] for k in line if inside[k])
        for line, inside in zip(order, included, strict=True)
    ]


def _check_offers(
    estimator: Any,
    decision: bool,
    probabilities: bool,
    interval: float | None,
    sets: float | None,
) -> None:
    """Refuse what a model does not have, and say how to get it."""
    classifier = hasattr(estimator, "classes_")
    if decision and not classifier:
        raise InputError("--decision: this model is a regressor, its predictions are all it has.")
    if probabilities and not hasattr(estimator, "predict_proba"):
        how = "fit again with kernelweave fit, or calibration='auto' in Python"
        raise InputError(
            f"--proba: this model {'has no probabilities; ' + how if classifier else _NUMBERS}."
        )
    if interval is not None and not hasattr(estimator, "predict_interval"):
        how = "fit again with kernelweave fit, or intervals='auto' in Python"
        raise InputError(
            f"--interval: this model {_CLASSES if classifier else 'has no intervals; ' + how}."
        )
    if sets is not None and not hasattr(estimator, "predict_set"):
        how = "fit again with kernelweave fit, or calibration='auto' in Python"
        raise InputError(
            f"--set: this model {'has no sets of classes; ' + how if classifier else _NUMBERS}."
        )


_NUMBERS = "predicts numbers, for which there are intervals: use --interval"
_CLASSES = "predicts classes, for which there are sets: use --set"


def predict_pairs_table(model: Any, frame: pd.DataFrame, pairs: Any) -> pd.DataFrame:
    """Predict for pairs of rows whether they belong together.

    Parameters
    ----------
    model : estimator, Pipeline, or list of names and steps
        Learned from pairs.
    frame : pandas.DataFrame
        Rows; see `read_for`.
    pairs : array of shape (n_pairs, 2)
        Row numbers, from 0.

    Returns
    -------
    predictions : pandas.DataFrame
        ``first``, ``second``, ``score`` and ``same``.
    """
    pandas, estimator = import_pandas(), last_step(model)
    if not has_aspect(estimator, "pairs"):
        raise InputError("--pairs: this model was not learned from pairs and predicts rows.")
    *before, _ = _steps(model)
    rows = before[0].transform(frame) if before else frame
    scores = estimator.score_pairs(rows, pairs)
    columns = {"first": pairs[:, 0], "second": pairs[:, 1], "score": scores}
    predicted: pd.DataFrame = pandas.DataFrame(columns | {"same": scores >= estimator.threshold_})
    return predicted
