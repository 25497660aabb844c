"""Probabilities, sets and intervals of the model that is written."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernelweave.errors import InputError

from .problem import Problem

_LEAST = 5  # rows of the smallest class, one for each fold


@dataclass(frozen=True)
class SureFit:
    """A fitted model, and the seconds that its probabilities, sets or intervals took."""

    model: Any
    seconds: float


def fit_surely(estimator: Any, problem: Problem, fit: Callable[[], Any]) -> SureFit:
    """Fit a model so that it has probabilities and sets, or intervals, where it can.

    The options of the estimator are set; its weights, decisions and predictions do not depend on
    them. ``fit`` fits and returns the model that the estimator is a part of.
    """
    if problem.regression:
        options = {"intervals": "auto"}
    else:
        enough = problem.y.value_counts().min() >= _LEAST
        options = {"calibration": "auto"} if enough else {}
    known = estimator.get_params(deep=False)
    estimator.set_params(**{name: value for name, value in options.items() if name in known})
    spent: list[float] = []
    try:
        with _timed(estimator, spent), warnings.catch_warnings():
            # That the model is no better than chance is said beside its score.
            warnings.filterwarnings("ignore", "calibration: decisions of held-out rows")
            return SureFit(fit(), sum(spent))
    except InputError as error:  # rows that are copies of each other may all be in one fold
        if not str(error).startswith("calibration"):
            raise
        estimator.set_params(calibration=None)
        return SureFit(fit(), 0.0)


@contextmanager
def _timed(estimator: Any, spent: list[float]) -> Iterator[None]:
    """Add to ``spent`` the seconds of leaving folds out within a fit."""
    leave_out = getattr(estimator, "_leave_out", None)
    if leave_out is None:
        yield
        return

    def measured(*arguments: Any) -> None:
        began = time.perf_counter()
        leave_out(*arguments)
        spent.append(time.perf_counter() - began)

    estimator._leave_out = measured
    try:
        yield
    finally:
        vars(estimator).pop("_leave_out", None)


def offers(model: Any) -> list[str]:
    """Return what the last step of a model has: "probabilities", "sets", "intervals"."""
    methods = {
        "probabilities": "predict_proba",
        "sets": "predict_set",
        "intervals": "predict_interval",
    }
    return [name for name, method in methods.items() if hasattr(model[-1], method)]
