"""Predict the rows of a table with a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave._declaration import has_aspect
from kernelweave.errors import DataError, InputError
from kernelweave.io import TablePreparer
from kernelweave.kernels import Precomputed

from .problem import add_row_numbers
from .reading import Table, import_pandas, is_number, read_table

if TYPE_CHECKING:
    import pandas as pd


def last_step(model: Any) -> Any:
    """Return the estimator itself, the last step of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


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


def read_for(model: Any, path: str | Path) -> Table:
    """Read a table in the form that a model takes.

    Columns that were text when the model was fitted are read as text, columns of numbers as
    numbers; matrices with as many rows as the table need no column of row numbers.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model.
    path : str or path
        The file.

    Returns
    -------
    table : Table
        Its frame can be given to ``model.predict``.
    """
    table = read_with_targets([model], path)
    frame, known = table.frame, getattr(model, "feature_names_in_", None)
    if isinstance(model, Pipeline) and isinstance(model[0], TablePreparer):
        return table
    if known is not None:
        if lost := [name for name in known if name not in frame.columns]:
            raise DataError(f"The table in {path} lacks {', '.join(map(repr, lost))}.")
        return Table(frame[list(known)], table.notes)
    if len(frame.columns) != model.n_features_in_ or not all(map(is_number, dict(frame).values())):
        raise DataError(
            f"This model was fitted to {model.n_features_in_} columns of numbers without names, "
            f"but the table in {path} is not that."
        )
    return Table(frame.set_axis(range(len(frame.columns)), axis=1), table.notes)


def read_with_targets(
    models: Sequence[Any], path: str | Path, targets: Sequence[str] = ()
) -> Table:
    """Read all columns of a table, those of the models in the types that they take.

    Parameters
    ----------
    models : sequence of estimators or Pipelines
        Fitted models; what is text for one of them is read as text.
    path : str or path
        The file.
    targets : sequence of str
        Columns that are read as text if the classes of a model are text: "01" stays "01".

    Returns
    -------
    table : Table
        With the row numbers of Gram matrices that the models hold.
    """
    words: set[str] = set()
    numbers: set[str] = set()
    prepared = True
    for model in models:
        estimator = last_step(model)
        classes = getattr(estimator, "classes_", None)
        if classes is not None and classes.dtype.kind in "OU":
            words |= set(targets)
        if isinstance(model, Pipeline) and isinstance(model[0], TablePreparer):
            names, dates = model[0].feature_names_in_, set(model[0].dates or ())
            own = set(names[model[0].numeric_]) - dates
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
    model: Any, frame: pd.DataFrame, *, decision: bool = False, probabilities: bool = False
) -> pd.DataFrame:
    """Return predictions as a table, under the name of the target.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted classifier or regressor.
    frame : pandas.DataFrame
        Rows; see `read_for`.
    decision : bool
        Whether to add the values of the decision function, one column per class.
    probabilities : bool
        Whether to add the probability of every class.

    Returns
    -------
    predictions : pandas.DataFrame
        One row per row.
    """
    pandas, estimator = import_pandas(), last_step(model)
    refuse_other_models(estimator)
    if decision and not hasattr(estimator, "classes_"):
        raise InputError("--decision: this model is a regressor, its predictions are all it has.")
    if probabilities and not hasattr(estimator, "predict_proba"):
        raise InputError(
            "--proba: this model has no probabilities; a classifier that kernelweave fit chooses "
            "by itself has them."
        )
    named = isinstance(model, Pipeline) or hasattr(estimator, "feature_names_in_")
    rows = frame if named else frame.to_numpy(dtype=np.float64)
    target = (model[0].target_ if isinstance(model, Pipeline) else None) or "prediction"
    predictions = np.asarray(model.predict(rows))
    if predictions.ndim == 1:
        columns = {target: predictions}
    else:
        columns = {f"{target} {i}": column for i, column in enumerate(predictions.T)}
    if decision:
        values = np.asarray(model.decision_function(rows))
        parts = values.reshape(len(values), -1).T
        labels = estimator.classes_[-len(parts) :]
        columns |= {f"decision {label}": v for label, v in zip(labels, parts, strict=True)}
    if probabilities:
        shares = np.asarray(model.predict_proba(rows)).T
        columns |= {
            f"probability {label}": v for label, v in zip(estimator.classes_, shares, strict=True)
        }
    predicted: pd.DataFrame = pandas.DataFrame(columns)
    return predicted


def predict_pairs_table(model: Any, frame: pd.DataFrame, pairs: Any) -> pd.DataFrame:
    """Predict for pairs of rows whether they belong together.

    Parameters
    ----------
    model : estimator or Pipeline
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
    rows = model[0].transform(frame) if isinstance(model, Pipeline) else frame
    scores = estimator.score_pairs(rows, pairs)
    columns = {"first": pairs[:, 0], "second": pairs[:, 1], "score": scores}
    predicted: pd.DataFrame = pandas.DataFrame(columns | {"same": scores >= estimator.threshold_})
    return predicted
