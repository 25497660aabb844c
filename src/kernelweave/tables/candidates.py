"""Models that are compared on a table, each with a few settings to choose from.

All candidates but gradient boosting can be written to a model file: the linear model and the SVM
are multiple kernel learning with one kernel on the encoded columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernelweave.estimators import (
    MetricKernelClassifier,
    MetricKernelRegressor,
    MKLClassifier,
    MKLRegressor,
)
from kernelweave.kernels import RBF, Kernel, Linear, Words
from kernelweave.kernels.encoding import TableEncoding

from .methods import EPSILON, METHODS, Settings, make_model
from .problem import Problem

_RARE = 0.25  # share of the smallest class below which hinge losses are balanced
VERY_RARE = 0.1  # below which the learned metric is, too; chosen on seven development tables
MOST_RARE = 100  # rows of the smallest class below which differences are mostly noise
_RARE_COST = 100.0  # of the linear model of a rare class
_START = (0.1, 1.0, 10.0)  # values of C that are tried first for a method that is asked for


@dataclass(frozen=True)
class Task:
    """What an estimator is made for: prepared rows and the options of the user."""

    rows: Any
    problem: Problem
    settings: Settings
    final: bool = False  # whether the model is written, so that it is fitted with more accuracy

    @property
    def options(self) -> Settings:
        """Options with the tolerance of the fit."""
        return self.settings if self.final else self.settings.loose()

    @property
    def tol(self) -> dict[str, Any]:
        """The tolerance of a fit, where it is not the default."""
        return {} if self.options.tol is None else {"tol": self.options.tol}

    @property
    def class_weight(self) -> Any:
        """Of hinge losses, whose decision values are calibrated afterwards."""
        return self.settings.class_weight or ("balanced" if self.least_share < _RARE else None)

    @property
    def least_share(self) -> float:
        """Share of the smallest class; 1 without classes."""
        if self.problem.regression:
            return 1.0
        return float(self.problem.y.value_counts(normalize=True).min())

    @cached_property
    def encoding(self) -> TableEncoding:
        """Numbers of one scale for all columns but text."""
        columns = tuple(self.problem.columns("number", "date", "category"))
        return TableEncoding.learn(self.rows, columns).standardised()


@dataclass(frozen=True)
class Candidate:
    """A kind of model."""

    name: str  # for people
    # Returns the settings to choose from for a problem.
    settings: Callable[[Problem], list[dict[str, Any]]]
    make: Callable[[dict[str, Any], Task], Any]  # returns an estimator for a setting and a `Task`
    # Returns about how long a fit to n rows with k outputs takes, by which a budget is kept.
    seconds: Callable[[int, int], float]
    max_rows: int = 50_000  # rows of fits that are compared, drawn at random where there are more
    written: bool = True  # whether the model can be written to a file; otherwise it is a reference
    form: str = "frame"  # form of the rows that it takes; see `make_preparer`
    # Whether the model is written as it is, without a scale of the target or a calibration.
    plain: bool = False
    # Returns grids of which a fitted model used these values: models of later folds choose within
    # them. The model that is written searches anew, since more rows may need other values.
    chosen: Callable[[Any], dict[str, set[float]]] = lambda model: {}


def _metric(setting: dict[str, Any], task: Task) -> Any:
    # One share of the two kernels is as accurate as a choice among three, in less time.
    options: dict[str, Any] = {"shares": (0.5,), "random_state": task.settings.seed, **setting}
    if task.problem.columns("text"):
        options["columns"] = task.problem.columns("number", "date", "category")
    if task.problem.regression:
        return MetricKernelRegressor(**options)
    rare = task.least_share < VERY_RARE
    weight = task.settings.class_weight or ("balanced" if rare else None)
    return MetricKernelClassifier(class_weight=weight, **options)


def _metric_grids(model: Any) -> dict[str, set[float]]:
    return {
        "widths": {step["width"] for step in model.steps_},
        "ridges": {step["ridge"] for step in model.steps_},
    }


def _beside_words(kernel: Callable[[TableEncoding], Kernel], task: Task) -> dict[str, Any]:
    """Return one kernel on the encoded columns, and those of texts."""
    texts = task.problem.columns("text")  # those of sources may have gaps
    words: list[Kernel] = [Words(columns=name, missing="off") for name in texts]
    if not task.problem.columns("number", "date", "category"):
        return {"kernels": words, "norm": 2.0}
    kernels = [kernel(task.encoding), *words]
    return {"kernels": kernels, "norm": 2.0 if words else "uniform"}


def _linear(setting: dict[str, Any], task: Task) -> Any:
    options = _beside_words(lambda encoding: Linear(columns=encoding), task)
    options |= {"C": setting["C"]} | task.tol
    if task.problem.regression:
        return MKLRegressor(loss="square", **options)
    # Rows are ranked better than by the hinge loss, whose decision values tie, and need no
    # calibration.
    return MKLClassifier(loss="logistic", class_weight=task.settings.class_weight, **options)


def _svm(setting: dict[str, Any], task: Task) -> Any:
    def gaussian(encoding: TableEncoding) -> Kernel:
        # The width of gamma="scale" in scikit-learn.
        spread = float(np.sqrt(encoding.encode(task.rows).var(axis=0).sum() / 2.0))
        return RBF(setting["width"] * (spread or 1.0), columns=encoding)

    options = _beside_words(gaussian, task) | {"C": setting["C"]} | task.tol
    if task.problem.regression:
        return MKLRegressor(epsilon=EPSILON, **options)
    return MKLClassifier(class_weight=task.class_weight, **options)


def _of_method(name: str, setting: dict[str, Any], task: Task) -> Any:
    model = make_model(task.problem, name, task.options, setting.get("C"))[-1]
    return model.set_params(Cs=setting["Cs"]) if "Cs" in setting else model


def _mkl(setting: dict[str, Any], task: Task) -> Any:
    settings = replace(task.settings, class_weight=task.class_weight)
    return _of_method("mkl", setting, replace(task, settings=settings))


def _boosting(setting: dict[str, Any], task: Task) -> Any:
    from .reference_models import boosting

    return boosting(task.problem, task.rows)


def method_candidate(name: str, C: float | None = None) -> Candidate:
    """Return the candidate of a method that is asked for; None: with C to choose."""
    method = METHODS[name]
    costs = _START if C is None else (C,)
    chosen = method.cost == "C" or (method.cost and C is not None)
    settings = [{"C": value} for value in costs] if chosen else [{}]
    return Candidate(
        method.title,
        lambda problem: settings,
        partial(_of_method, name),
        lambda n, k: method.seconds * (n / 1000) ** 2 * k,
        max_rows=method.compared_rows,
        form=method.form,
        plain=True,
        chosen=(lambda model: {"Cs": {model.C_}}) if method.cost == "Cs" else lambda model: {},
    )


def _costs(*values: float) -> Callable[[Problem], list[dict[str, Any]]]:
    return lambda problem: [{"C": C} for C in values]


def is_rare(problem: Problem) -> bool:
    """Tell whether one of two classes is so rare that no score says which model is better."""
    if problem.regression:
        return False
    counts = problem.y.value_counts()
    least = int(counts.min())
    return len(counts) == 2 and least < min(MOST_RARE, VERY_RARE * len(problem.y))


def _linear_settings(problem: Problem) -> list[dict[str, Any]]:
    if is_rare(problem):  # a choice would be noise
        return [{"C": _RARE_COST}]
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
    _linear_settings,
    _linear,
    lambda n, k: 0.03 + 2e-5 * n * k,
)
SVM = Candidate(
    "SVM baseline",
    _svm_settings,
    _svm,
    lambda n, k: 0.02 + 1e-7 * n**2 * k,
    max_rows=5000,
)
METRIC = Candidate("learned metric", lambda p: [{}], _metric, _metric_seconds, chosen=_metric_grids)
MKL = Candidate(
    METHODS["mkl"].title,
    _costs(0.3, 3.0),
    _mkl,
    lambda n, k: 0.05 + 3e-7 * n**2 * k,
    max_rows=5000,
)
BOOSTING = Candidate(
    "gradient boosting",
    lambda p: [{}],
    _boosting,
    lambda n, k: (0.1 + 1e-5 * n) * k,
    written=False,
)
