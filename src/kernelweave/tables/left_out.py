"""Predictions for rows that a model was not fitted to, beside the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .choosing import encode_target
from .measures import Classes, Values
from .new_rows import predict_rows, take_rows

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from .choosing import Choice
    from .problem import Problem


def chosen_predictions(choice: Choice, problem: Problem) -> Classes | Values:
    """Return the predictions by which a model was chosen."""
    y, predicted = encode_target(problem)[choice.rows], choice.predicted
    if problem.regression:
        return Values(y, predicted)
    classes = tuple(np.unique(problem.y).tolist())
    said = predicted.argmax(axis=1)
    return Classes(y, said, classes, len(classes) - 1, scores=predicted, proba=predicted)


def held_out_predictions(model: Pipeline, test: Problem) -> Any:
    """Return the predictions of a model for rows that were held out."""
    rows = take_rows(model, test.X.assign(**{str(test.y.name): test.y}))
    return predict_rows(model, rows).predicted
