"""Scores by cross-validation with intervals: of the method, since models are fitted again."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import type_of_target

from kernelweave._declaration import has_aspect
from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave._types import Floats
from kernelweave.errors import InputError

from .charts import Chart, Interval, interval_chart, linear
from .tables import Cell, Column, Table, text_column

_LEVEL = 0.95
_MOST_FOLDS = 10  # that have columns of their own
_MOST_WARNINGS = 3
_PAIRS = "area under the ROC curve of pairs"
_R2 = "R\u00b2"
# Scorer of scikit-learn, range (to which intervals of Student's t are clipped), and format.
_MEASURES: dict[str, tuple[str | None, float, float, str]] = {
    "accuracy": ("accuracy", 0.0, 1.0, ".1%"),
    "balanced accuracy": ("balanced_accuracy", 0.0, 1.0, ".1%"),
    "area under the ROC curve": ("roc_auc", 0.0, 1.0, ".1%"),
    _PAIRS: (None, 0.0, 1.0, ".1%"),
    _R2: ("r2", -np.inf, 1.0, ".3f"),
    "mean absolute error": ("neg_mean_absolute_error", 0.0, np.inf, ".4g"),
}
_OTHER = (None, -np.inf, np.inf, ".4g")  # a score that the caller has named


@dataclass(frozen=True)
class Score:
    """One score on every fold.

    ``low`` and ``high`` are the ends of the interval for its mean; NaN where all folds are equal,
    because then they are too few or too small to estimate a spread.
    """

    name: str
    folds: Floats
    low: float
    high: float

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return float(self.folds.mean())

    def show(self, value: float) -> str:
        """Return a value of this score as text."""
        form = _MEASURES.get(self.name, _OTHER)[3]
        return "\u2013" if np.isnan(value) else format(value, form)

    @property
    def is_share(self) -> bool:
        """Whether the score is shown in per cent."""
        return self.name in _MEASURES and _MEASURES[self.name][3].endswith("%")

    @property
    def spread(self) -> str:
        """The interval of the mean in words."""
        if np.isnan(self.low):
            return f"the same in all {len(self.folds)} folds"
        return f"95% interval {self.show(self.low)} to {self.show(self.high)}"


@dataclass(frozen=True)
class CrossValidation:
    """Scores by cross-validation; the first is the one to quote."""

    scores: tuple[Score, ...]
    n_rows: int
    models: list[Any]  # estimators of the folds, without preceding steps of a pipeline
    stopped: int  # folds that did not reach their tolerance
    constant: float | None  # the first score of a constant prediction
    warnings: tuple[str, ...]  # of the fits, each once; without early stopping

    reason = ""

    @property
    def first(self) -> Score:
        """The score to quote."""
        return self.scores[0]

    @property
    def where(self) -> str:
        """What was measured."""
        n_folds = len(self.first.folds)
        return f"on {count(self.n_rows, 'row')}, each predicted without it in {n_folds} folds"

    def values(self) -> dict[str, Any]:
        """Return the values of the template."""
        shares = [score for score in self.scores if score.is_share]
        return {
            "found": self,
            "chart": _chart(shares or list(self.scores[:1])),
            "scores": _folds(self),
            "warnings": self.warnings[:_MOST_WARNINGS],
        }


@dataclass(frozen=True)
class NotMeasured:
    """The reason why there are no scores."""

    reason: str

    models = ()

    def values(self) -> None:
        """Return no values of the template."""


def measure(
    model: Any, estimator: Any, X: Any, y: Any, cv: Any, scoring: Any
) -> CrossValidation | NotMeasured:
    """Return cross-validated scores, or the reason why there are none."""
    if reason := _refuse(estimator, X, y, cv):
        return NotMeasured(reason)
    y = np.asarray(y) if not hasattr(y, "iloc") else y
    splitter = _splitter(cv, y, is_classifier(estimator))
    if isinstance(splitter, str):
        return NotMeasured(splitter)
    scorers = _scorers(model, estimator, y) if scoring is None else _given(model, scoring)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # warnings of folds belong into the report
        found = cross_validate(
            model,
            X,
            y,
            cv=splitter,
            scoring=scorers,
            return_estimator=True,
            return_indices=True,
            error_score="raise",
        )
    tests = [len(rows) for rows in found["indices"]["test"]]
    ratio = float(np.mean([len(t) / len(r) for r, t in _pairs(found["indices"])]))
    models = [_last(one) for one in found["estimator"]]
    return CrossValidation(
        tuple(_score(name, found[f"test_{name}"], ratio) for name in scorers),
        sum(tests),
        models,
        sum(not getattr(one, "converged_", True) for one in models),
        _constant(estimator, y) if scoring is None else None,
        tuple(
            dict.fromkeys(str(w.message) for w in caught if w.category is not ConvergenceWarning)
        ),
    )


def _refuse(estimator: Any, X: Any, y: Any, cv: Any) -> str:
    """Return the reason why nothing can be measured; empty if it can."""
    if X is not None and has_aspect(estimator, "annotators"):
        return "the answers of annotators are no truth to score against"
    if X is None or y is None:
        return "no data were given with the model" if X is None else "no target was given"
    if cv is None:
        return "cross-validation was left out (cv=None)"
    if estimator._declaration.learns == "clusters":
        return "clusters belong to the rows they were found in, so there is nothing to hold out"
    if hasattr(estimator, "tasks_"):
        return "the model was fitted with tasks, which cross-validation cannot pass on"
    if estimator._declaration.learns == "pairs" and _is_graph(estimator.setting_):
        return "links are part of this kernel, so it is defined on its training rows only"
    return ""


def _is_graph(setting: Any) -> bool:
    return setting is not None and setting.shape == "graph"


def _splitter(cv: Any, y: Any, classes: bool) -> Any:
    """Return folds in random order that are the same in every call."""
    if not isinstance(cv, Integral):
        return check_cv(cv, y, classifier=classes)
    if cv < 2:
        raise InputError(f"cv: must be 2 folds or more, a splitter, or None, got {cv!r}.")
    if not classes or type_of_target(y).startswith("multilabel"):
        return KFold(min(int(cv), len(y)), shuffle=True, random_state=0)
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        return f"the class {clip(labels[counts.argmin()], 40)} has one row only"
    return StratifiedKFold(min(int(cv), int(counts.min())), shuffle=True, random_state=0)


def _scorers(model: Any, estimator: Any, y: Any) -> dict[str, Any]:
    if is_regressor(estimator):
        names = [_R2, "mean absolute error"]
    elif not is_classifier(estimator):
        return {_PAIRS: check_scoring(model)}
    else:
        kind = type_of_target(y)
        names = ["accuracy"]
        if not kind.startswith("multilabel"):
            names += ["balanced accuracy"]
        if kind == "binary":
            names += ["area under the ROC curve"]
    return {name: _MEASURES[name][0] for name in names}


def _given(model: Any, scoring: Any) -> dict[str, Any]:
    if isinstance(scoring, Mapping):
        return dict(scoring)
    names = [scoring] if isinstance(scoring, str) or callable(scoring) else list(scoring)
    return {getattr(name, "__name__", str(name)): check_scoring(model, name) for name in names}


def _pairs(indices: Any) -> Any:
    return zip(indices["train"], indices["test"], strict=True)


def _last(model: Any) -> Any:
    model = getattr(model, "best_estimator_", model)
    return model[-1] if isinstance(model, Pipeline) else model


def _score(name: str, folds: Floats, ratio: float) -> Score:
    """Return a score with its interval.

    Folds share training rows, so their scores vary together; Nadeau and Bengio (2003), Inference
    for the generalization error, Machine Learning 52, add the ratio of test to training rows.
    """
    if name == "mean absolute error":
        folds = -folds
    k = len(folds)
    spread = float(folds.std(ddof=1)) * np.sqrt(1.0 / k + ratio)
    half = float(stdtrit(k - 1, 0.5 + 0.5 * _LEVEL)) * spread
    if np.ptp(folds) == 0:
        return Score(name, folds, np.nan, np.nan)
    _, least, most, _ = _MEASURES.get(name, _OTHER)
    low, high = float(folds.mean()) - half, float(folds.mean()) + half
    return Score(name, folds, max(low, least), min(high, most))


def _constant(estimator: Any, y: Any) -> float | None:
    """Return the first score of a constant prediction; None for several outputs."""
    if is_regressor(estimator):
        return 0.0
    if not is_classifier(estimator):
        return 0.5
    if np.ndim(y) != 1:
        return None
    counts = np.unique(np.asarray(y), return_counts=True)[1]
    return float(counts.max() / counts.sum())


def _chart(scores: list[Score]) -> Chart:
    rows = [Interval(s.name, s.mean, s.low, s.high, s.folds) for s in scores]
    low = min(np.fmin(s.low, s.folds.min()) for s in scores)
    high = max(np.fmax(s.high, s.folds.max()) for s in scores)
    share = scores[0].is_share
    if share and low == high:
        low, high = max(low - 0.1, 0.0), min(high + 0.1, 1.0)
    axis = linear(low, high)
    if share:
        axis = replace(axis, ticks=[(v, f"{100 * v:g}%") for v, _ in axis.ticks])
    caption = "Large dots are means, lines are 95% intervals, small dots are the folds."
    return interval_chart(rows, axis, caption)


def _folds(found: CrossValidation) -> Table:
    n_folds = len(found.scores[0].folds)
    shown = n_folds if n_folds <= _MOST_FOLDS else 0
    columns = [text_column("measure"), Column("mean"), Column("from"), Column("to")]
    columns += [Column(f"fold {k + 1}") for k in range(shown)]
    rows = []
    for score in found.scores:
        values = [score.mean, score.low, score.high, *score.folds[:shown]]
        keys = np.where(np.isnan(values), score.mean, values)  # unknown ends sort as the mean
        cells = (Cell(score.show(v), float(k)) for v, k in zip(values, keys, strict=True))
        rows.append([score.name, *cells])
    return Table("scores by fold", columns, rows)
