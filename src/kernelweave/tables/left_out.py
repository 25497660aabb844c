"""Predictions for rows that a model was not fitted to, beside the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .choosing import encode_target
from .measures import Classes, Values

if TYPE_CHECKING:
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
