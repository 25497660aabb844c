"""How well a model predicts rows that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import type_of_target

from kernelweave._summary import count
from kernelweave._text import clip
from kernelweave._types import Floats
from kernelweave.errors import InputError

from .charts import intervals, linear
from .held_out import HeldOut
from .html import Cell, Column, Section, figure, join, note, paragraph, percent, table

if TYPE_CHECKING:
    from .subject import Subject

_LEVEL = 0.95
_MOST_FOLDS = 10  # that have columns of their own
_MOST_WARNINGS = 3
_PAIRS = "area under the ROC curve of pairs"
_R2 = "R\u00b2"
_SHARES = {"accuracy", "balanced accuracy", "area under the ROC curve", _PAIRS}
# What a score cannot be below and above; Student's t knows nothing of it.
_LIMITS = {
    **dict.fromkeys(_SHARES, (0.0, 1.0)),
    _R2: (-np.inf, 1.0),
    "mean absolute error": (0.0, np.inf),
}
_SCORERS = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "area under the ROC curve": "roc_auc",
    _R2: "r2",
    "mean absolute error": "neg_mean_absolute_error",
}


@dataclass(frozen=True)
class Score:
    """One measure of quality on every fold.

    Parameters
    ----------
    name : str
        What was measured.
    folds : ndarray of shape (n_folds,)
        Its values.
    low, high : float
        Ends of the interval for its mean; NaN where all folds are equal, which says that they are
        too few or too small to tell, and not that the mean is known.
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
        """Return a value of this score as it is written."""
        if np.isnan(value):
            return "\u2013"
        if self.name == _R2:
            return f"{value:.3f}"
        return percent(value) if self.name in _SHARES else f"{value:.4g}"

    @property
    def spread(self) -> str:
        """How far the mean can be trusted, in words."""
        if np.isnan(self.low):
            return f"the same in all {len(self.folds)} folds"
        return f"95% interval {self.show(self.low)} to {self.show(self.high)}"


@dataclass(frozen=True)
class Performance:
    """Scores by cross-validation.

    Parameters
    ----------
    scores : tuple of Score
        The first is the one to quote.
    n_rows : int
        Rows in all folds.
    models : list
        The estimators fitted on the way, without what stands before them.
    stopped : int
        How many of these did not reach their tolerance.
    reference : str
        What a model that learns nothing reaches, in a sentence.
    warnings : tuple of str
        What the fits warned of, each once; not that they stopped early.
    """

    scores: tuple[Score, ...]
    n_rows: int
    models: list[Any]
    stopped: int
    reference: str
    warnings: tuple[str, ...]


def measure(model: Any, estimator: Any, X: Any, y: Any, cv: Any, scoring: Any) -> Performance | str:
    """Cross-validate, or say why that cannot be done."""
    if reason := _refuse(estimator, X, y, cv):
        return reason
    y = np.asarray(y) if not hasattr(y, "iloc") else y
    splitter = _splitter(cv, y, is_classifier(estimator))
    if isinstance(splitter, str):
        return splitter
    scorers = _scorers(model, estimator, y) if scoring is None else _given(model, scoring)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # what folds write_message of belongs into the report
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
    return Performance(
        tuple(_score(name, found[f"test_{name}"], ratio) for name in scorers),
        sum(tests),
        models,
        sum(not getattr(one, "converged_", True) for one in models),
        _reference(estimator, y) if scoring is None else "",
        tuple(
            dict.fromkeys(str(w.message) for w in caught if w.category is not ConvergenceWarning)
        ),
    )


def _refuse(estimator: Any, X: Any, y: Any, cv: Any) -> str:
    """Say why nothing can be measured, if so."""
    if X is None or y is None:
        return "no data were given with the model"
    if cv is None:
        return "cross-validation was left out (cv=None)"
    if hasattr(estimator, "labels_"):
        return "clusters are of the rows they were found in, so there is nothing to hold out"
    if hasattr(estimator, "tasks_"):
        return "the model was fitted with tasks, which cross-validation cannot hand on"
    if getattr(getattr(estimator, "setting_", None), "shape", None) == "graph":
        return "links are part of this kernel, so it knows only the rows it was fitted to"
    return ""


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
    return {name: _SCORERS[name] for name in names}


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
    half = float(stats.t.ppf(0.5 + 0.5 * _LEVEL, k - 1)) * spread
    if np.ptp(folds) == 0:
        return Score(name, folds, np.nan, np.nan)
    least, most = _LIMITS.get(name, (-np.inf, np.inf))
    low, high = float(folds.mean()) - half, float(folds.mean()) + half
    return Score(name, folds, max(low, least), min(high, most))


def _reference(estimator: Any, y: Any) -> str:
    if is_regressor(estimator):
        return "Always predicting the mean has an R\u00b2 of about 0."
    if not is_classifier(estimator) or np.ndim(y) != 1:
        return ""
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    most = clip(labels[counts.argmax()], 40)
    return f"Always saying {most} would have an accuracy of {percent(counts.max() / counts.sum())}."


def section(subject: Subject) -> Section:
    """Return the scores, or why there are none."""
    found = subject.performance
    if isinstance(found, HeldOut):
        return found.section()
    if isinstance(found, str):
        text = paragraph(f"Not measured: {found}.")
        hint = note(
            "A report with data, as in report.write(model, path, X, y) or kernelweave report "
            "MODEL --data FILE --target COLUMN, measures it by cross-validation."
        )
        missing = subject.X is None or subject.y is None
        return Section("performance", "Performance", join([text, hint if missing else None]))
    first, k = found.scores[0], len(found.scores[0].folds)
    text = paragraph(
        f"On rows it has not seen, the model reaches {first.name} ",
        f"{first.show(first.mean)} ({first.spread}). {found.reference}",
    )
    early = f" {count(found.stopped, 'fold')} stopped before the tolerance was met."
    meaning = note(
        f"The mean of {k} folds of {count(found.n_rows, 'row')}: each was predicted by a model "
        "fitted to the others. The interval is Student\u2019s t over the folds, widened because "
        f"folds share training rows (Nadeau and Bengio, 2003).{early if found.stopped else ''}"
    )
    doubts = [note(f"A fold warned: {text}") for text in found.warnings[:_MOST_WARNINGS]]
    shares = [score for score in found.scores if score.name in _SHARES]
    return Section(
        "performance",
        "Performance",
        join([text, _picture(shares or list(found.scores[:1])), _folds(found), meaning, doubts]),
    )


def _picture(scores: list[Score]) -> Any:
    rows = [(s.name, s.mean, s.low, s.high, s.folds) for s in scores]
    low = min(np.fmin(s.low, s.folds.min()) for s in scores)
    high = max(np.fmax(s.high, s.folds.max()) for s in scores)
    share = scores[0].name in _SHARES
    if share and low == high:
        low, high = max(low - 0.1, 0.0), min(high + 0.1, 1.0)
    axis = linear(low, high)
    if share:
        axis = replace(axis, ticks=[(v, f"{100 * v:g}%") for v, _ in axis.ticks])
    return figure(
        intervals(rows, axis),
        "Large dots are means, lines are 95% intervals, small dots are the folds.",
    )


def _folds(found: Performance) -> Any:
    columns = [Column("measure", number=False), Column("mean"), Column("from"), Column("to")]
    n_folds = len(found.scores[0].folds)
    shown = n_folds if n_folds <= _MOST_FOLDS else 0
    columns += [Column(f"fold {k + 1}") for k in range(shown)]
    rows = []
    for score in found.scores:
        values = [score.mean, score.low, score.high, *score.folds[:shown]]
        # What is not known is sorted as the mean.
        keys = np.where(np.isnan(values), score.mean, values)
        cells = (Cell(score.show(v), float(k)) for v, k in zip(values, keys, strict=True))
        rows.append([score.name, *cells])
    return table("scores by fold", columns, rows)
