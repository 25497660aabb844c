"""Scores on rows that were held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline

from .problem import Problem
from .reference_models import plain_svm
from .search import sample_rows

_SVM_ROWS = 5000  # that the plain SVM is fitted to at most; it is there for comparison only
_LEVEL = 0.95
_RESAMPLES = 499


def judge_model(
    model: Pipeline, name: str, learn: Problem, judge: Problem, C: float, seed: int
) -> dict[str, Any]:
    """Score a model and a plain SVM on rows that neither has seen.

    Parameters
    ----------
    model : Pipeline
        Fitted.
    name : str
        Of its method.
    learn, judge : Problem
        Rows that it was fitted to, and rows that it was not.
    C : float
        For the SVM.
    seed : int
        For everything drawn.

    Returns
    -------
    held_out : dict
        As in `TableFit`.
    """
    plain, few = None, learn.take(sample_rows(learn, _SVM_ROWS, seed))
    if name != "pairs" and learn.columns("number", "date", "category"):
        svm = plain_svm(few, C).fit(few.X, few.y)
        plain = float(svm.score(judge.X, judge.y))
    return {
        "rows": len(judge.y),
        **_score(model, name, judge, seed),
        "plain_svm": plain,
        "plain_svm_rows": None if plain is None else len(few.y),
        "guess": _guess(name, learn, judge),
    }


def _score(model: Pipeline, name: str, judge: Problem, seed: int) -> dict[str, Any]:
    """Return the score with its interval: Wilson's for a share, by the bootstrap for R squared."""
    if name == "pairs":  # pairs share rows, so that they are not independent
        score, measure = float(model.score(judge.X, judge.y)), "area under the ROC curve of pairs"
        return {"measure": measure, "score": score, "interval": None}
    y, predicted = judge.y.to_numpy(), np.asarray(model.predict(judge.X))
    if judge.regression:
        ends = _bootstrap(y, predicted, seed) if len(y) > 1 else None
        return {"measure": "R2", "score": float(r2_score(y, predicted)), "interval": ends}
    right = int((y == predicted).sum())
    low, high = stats.binomtest(right, len(y)).proportion_ci(_LEVEL, method="wilson")
    return {"measure": "accuracy", "score": right / len(y), "interval": (float(low), float(high))}


def _bootstrap(y: Any, predicted: Any, seed: int) -> tuple[float, float] | None:
    random, n = np.random.default_rng(seed), len(y)
    scores = []
    for _ in range(_RESAMPLES):
        rows = random.integers(n, size=n)
        if y[rows].std() > 0:
            scores.append(r2_score(y[rows], predicted[rows]))
    if len(scores) < _RESAMPLES / 2:  # the target hardly varies
        return None
    low, high = np.quantile(scores, [0.5 - 0.5 * _LEVEL, 0.5 + 0.5 * _LEVEL])
    return float(low), float(high)


def _guess(name: str, learn: Problem, judge: Problem) -> float:
    """Return the score of one answer for all rows."""
    if name == "pairs":
        return 0.5
    if judge.regression:
        return 0.0
    return float((judge.y == learn.y.mode().iloc[0]).mean())
