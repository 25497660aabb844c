"""Models that are compared on a table, each with a few settings to choose from.

All candidates but gradient boosting can be written to a model file: the linear model and the SVM
are multiple kernel learning with one kernel on the encoded columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.selectors as ncs
import numpy as np

from kernelweave.estimators import (
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
)
from kernelweave.io import TablePreparer
from kernelweave.kernels import RBF, Kernel, Linear, Words

from .kernels import offer_kernels
from .methods import EPSILON, Settings
from .problem import Problem

_TOL = 1e-2  # relative gap of fits that are compared
_RARE = 0.25  # share of the smallest class below which hinge losses are balanced


@dataclass(frozen=True)
class Task:
    """What an estimator is made for: prepared rows, target, and the options of the user."""

    rows: Any
    y: Any
    problem: Problem
    settings: Settings
    final: bool = False  # whether the model is written, so that it is fitted with more accuracy

    @property
    def tol(self) -> dict[str, Any]:
        """The tolerance of a fit."""
        return {} if self.final else {"tol": _TOL}

    @property
    def class_weight(self) -> Any:
        """Of hinge losses, whose decision values are calibrated afterwards."""
        share = self.problem.y.value_counts(normalize=True).min()
        return self.settings.class_weight or ("balanced" if share < _RARE else None)


@dataclass(frozen=True)
class Candidate:
    """A kind of model.

    Parameters
    ----------
    name : str
        For people.
    form : str
        Form of the rows that it takes: a key of `make_preparer`.
    settings : Callable
        Returns the settings to choose from for a problem.
    make : Callable
        Returns an estimator for a setting and a `Task`.
    seconds : Callable
        Returns about how long a fit to n rows with k outputs takes, by which a budget is kept.
    max_rows : int
        Rows drawn at random where there are more.
    written : bool
        Whether the model can be written to a file; otherwise it is a reference.
    """

    name: str
    form: str
    settings: Callable[[Problem], list[dict[str, Any]]]
    make: Callable[[dict[str, Any], Task], Any]
    seconds: Callable[[int, int], float]
    max_rows: int = 50_000
    written: bool = True


def make_preparer(problem: Problem, form: str) -> TablePreparer:
    """Return the first step of a model: "frame", "numbers" or "columns"."""
    texts = tuple(problem.columns("text"))
    if form == "numbers":
        return TablePreparer(dates=problem.dates, encode=True, texts=texts)
    if form == "frame":  # for models that encode numbers, categories, dates and gaps themselves
        return TablePreparer(
            standardize=False, missing="keep", dates=problem.dates, keep_dates=True
        )
    return TablePreparer(missing="fill", dates=problem.dates, plain=tuple(problem.grams))


def _metric(setting: dict[str, Any], task: Task) -> Any:
    # One share of the two kernels is as accurate as a choice among three, in less time.
    options: dict[str, Any] = {"shares": (0.5,), "random_state": task.settings.seed}
    if task.problem.columns("text"):
        options["columns"] = task.problem.columns("number", "date", "category")
    if task.problem.regression:
        return MetricKernelRegressor(**options)
    return MetricKernelClassifier(class_weight=task.settings.class_weight, **options)


def _with_words(kernel: Callable[..., Kernel], task: Task) -> dict[str, Any]:
    texts = task.problem.columns("text")
    if not texts:
        return {"kernels": [kernel()], "norm": "uniform"}
    numbers = ncs.numeric()
    return {"kernels": [kernel(columns=numbers), *(Words(columns=t) for t in texts)], "norm": 2.0}


def _linear(setting: dict[str, Any], task: Task) -> Any:
    options = _with_words(Linear, task) | task.tol | {"C": setting["C"]}
    if task.problem.regression:
        return MKLRegressor(loss="square", **options)
    # Rows are ranked better than by the hinge loss, whose decision values tie, and need no
    # calibration.
    return MKLClassifier(loss="logistic", class_weight=task.settings.class_weight, **options)


def _svm(setting: dict[str, Any], task: Task) -> Any:
    rows = task.rows.select_dtypes("number").to_numpy()
    # The width of gamma="scale" in scikit-learn.
    width = setting["width"] * float(np.sqrt(rows.var(axis=0).sum() / 2.0) or 1.0)
    return _tube_or_hinge(_with_words(lambda **columns: RBF(width, **columns), task), setting, task)


def _mkl(setting: dict[str, Any], task: Task) -> Any:
    kernels = offer_kernels(task.problem, per_feature=task.settings.per_feature)
    norm = 1.0 if task.settings.norm is None else task.settings.norm
    return _tube_or_hinge({"kernels": kernels, "norm": norm}, setting, task)


def _tube_or_hinge(options: dict[str, Any], setting: dict[str, Any], task: Task) -> Any:
    options = options | task.tol
    if task.problem.regression:
        return MKLRegressor(C=setting["C"], epsilon=EPSILON, **options)
    return MKLClassifier(C=setting["C"], class_weight=task.class_weight, **options)


def _boosting(setting: dict[str, Any], task: Task) -> Any:
    from .reference_models import boosting

    return boosting(task.problem, task.rows)


def _costs(*values: float) -> Callable[[Problem], list[dict[str, Any]]]:
    return lambda problem: [{"C": C} for C in values]


def _linear_settings(problem: Problem) -> list[dict[str, Any]]:
    costs = (0.1, 1.0, 10.0, 100.0) if problem.regression else (0.01, 0.1, 1.0, 10.0)
    return [{"C": C} for C in costs]


def _svm_settings(problem: Problem) -> list[dict[str, Any]]:
    costs = (1.0, 10.0, 100.0) if problem.regression else (0.3, 1.0, 10.0)
    return [{"C": C, "width": 1.0} for C in costs] + [{"C": costs[1], "width": 2.0}]


def _metric_seconds(n: int, k: int) -> float:
    exact = float(0.8 * (n / 1000) ** 2.6)
    return min(exact, 3.5 + 2e-4 * n) if n > 2000 else exact


LINEAR = Candidate(
    "linear model",
    "numbers",
    _linear_settings,
    _linear,
    lambda n, k: 0.03 + 2e-5 * n * k,
)
SVM = Candidate(
    "SVM baseline",
    "numbers",
    _svm_settings,
    _svm,
    lambda n, k: 0.02 + 1e-7 * n**2 * k,
    max_rows=5000,
)
METRIC = Candidate("learned metric", "frame", lambda p: [{}], _metric, _metric_seconds)
MKL = Candidate(
    "multiple kernels",
    "columns",
    _costs(0.3, 3.0),
    _mkl,
    lambda n, k: 0.05 + 3e-7 * n**2 * k,
    max_rows=5000,
)
BOOSTING = Candidate(
    "gradient boosting",
    "frame",
    lambda p: [{}],
    _boosting,
    lambda n, k: (0.1 + 1e-5 * n) * k,
    written=False,
)
