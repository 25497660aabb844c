"""Find labels that are likely to be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave._declaration import has_aspect
from kernelweave.errors import InputError
from kernelweave.noise import suspects

from .predicting import last_step
from .problem import make_problem

if TYPE_CHECKING:
    import pandas as pd


def find_suspects(
    model: Any,
    frame: pd.DataFrame | None = None,
    *,
    limit: int | None = None,
    decisions: Any = None,
) -> pd.DataFrame:
    """Return the rows whose label looks wrong, the most suspicious first.

    A model of the method "noisy" has scored its training labels, one of the method "annotators" its
    answers. Any other classifier is fitted to folds of the rows it was learned from, and scores the
    labels of the rest.

    Parameters
    ----------
    model : Pipeline or estimator
        A fitted classifier.
    frame : pandas.DataFrame, optional
        The table it was learned from; required unless the model has scored its labels. Its columns
        are added to the result.
    limit : int, optional
        Maximum number of rows.
    decisions : str, path, data frame or list, optional
        Decisions of a person, which change labels before they are scored by folds.

    Returns
    -------
    suspects : pandas.DataFrame
        ``row`` (of the table, from 0), ``quality`` (0 to 1), ``given`` and ``suggested`` label;
        with answers of several also ``annotator``.
    """
    estimator = last_step(model)
    if not hasattr(estimator, "classes_"):
        raise InputError("This model is not a classifier, so it has no labels to suspect.")
    rows = getattr(model[0], "rows_", None) if isinstance(model, Pipeline) else None
    if has_aspect(estimator, "labels") or has_aspect(estimator, "annotators"):
        found = suspects(model, limit=limit).to_frame()
    elif frame is None or not isinstance(model, Pipeline):
        raise InputError(
            f"This {type(estimator).__name__} has not scored its labels; give the table it was "
            "learned from with --data, or fit again with --method noisy."
        )
    else:
        if rows is None:
            rows = np.arange(model[0].n_samples_seen_)
        _refuse_another(rows.max() >= len(frame))
        problem = make_problem(frame, model[0].target_ or "", task="classification")
        if decisions is not None:
            problem = problem.decide(decisions)
        _refuse_another(not np.isin(rows, problem.y.index).all())
        found = suspects(model, frame.loc[rows], problem.y.loc[rows], limit=limit).to_frame()
    found = found.rename(columns={"index": "row"})
    if rows is not None:
        found["row"] = rows[found["row"].to_numpy()]
    if frame is not None:
        _refuse_another(len(found) > 0 and found["row"].max() >= len(frame))
        own = frame.loc[found["row"]].reset_index(drop=True)
        found = found.join(own.drop(columns=[c for c in own if c in found.columns]))
    return found


def _refuse_another(differs: Any) -> None:
    if differs:
        raise InputError("--data: this is not the table that the model was learned from.")
