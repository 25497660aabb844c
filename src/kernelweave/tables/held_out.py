"""Hold rows out, and score a model on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from .problem import Problem
from .reference_models import svm_baseline
from .search import sample_rows

_SVM_ROWS = 5000  # maximum number of rows that the SVM baseline is fitted to
_LEVEL = 0.95
_RESAMPLES = 499


def hold_out(problem: Problem, share: float, seed: int) -> tuple[Problem, Problem]:
    """Return the rows to fit to and those held out, with all classes in both where possible."""
    counts = problem.y.value_counts()
    n_test = share * len(problem.y)
    both = not problem.regression and counts.min() > 1 and n_test >= len(counts)
    train, test = train_test_split(
        range(len(problem.y)),
        test_size=share,
        random_state=seed,
        stratify=problem.y if both else None,
    )
    return problem.take(sorted(train)), problem.take(sorted(test))


def evaluate_model(
    model: Pipeline, name: str, train: Problem, test: Problem, C: float, seed: int
) -> dict[str, Any]:
    """Score a fitted model, an SVM and a constant on held-out rows; returns `TableFit.held_out`."""
    svm, some = None, train.take(sample_rows(train, _SVM_ROWS, seed))
    if name != "pairs" and train.columns("number", "date", "category"):
        svm = float(svm_baseline(some, C).fit(some.X, some.y).score(test.X, test.y))
    return {
        "rows": len(test.y),
        **_score(model, name, test, seed),
        "svm_baseline": svm,
        "svm_baseline_rows": None if svm is None else len(some.y),
        "constant_prediction": _score_constant(name, train, test),
    }


def _score(model: Pipeline, name: str, test: Problem, seed: int) -> dict[str, Any]:
    """Return the score and its interval: Wilson's for an accuracy, bootstrap for R squared."""
    if name == "pairs":  # pairs share rows, so they are not independent: no interval
        score, measure = float(model.score(test.X, test.y)), "area under the ROC curve of pairs"
        return {"measure": measure, "score": score, "interval": None}
    y, predicted = test.y.to_numpy(), np.asarray(model.predict(test.X))
    if test.regression:
        ends = _bootstrap(y, predicted, seed) if len(y) > 1 else None
        return {"measure": "R2", "score": float(r2_score(y, predicted)), "interval": ends}
    right = int((y == predicted).sum())
    low, high = stats.binomtest(right, len(y)).proportion_ci(_LEVEL, method="wilson")
    return {"measure": "accuracy", "score": right / len(y), "interval": (float(low), float(high))}


def _bootstrap(y: Any, predicted: Any, seed: int) -> tuple[float, float] | None:
    """Return the percentile interval of R squared; None where the target hardly varies."""
    random, n = np.random.default_rng(seed), len(y)
    scores = []
    for _ in range(_RESAMPLES):
        rows = random.integers(n, size=n)
        if y[rows].std() > 0:
            scores.append(r2_score(y[rows], predicted[rows]))
    if len(scores) < _RESAMPLES / 2:
        return None
    low, high = np.quantile(scores, [0.5 - 0.5 * _LEVEL, 0.5 + 0.5 * _LEVEL])
    return float(low), float(high)


def _score_constant(name: str, train: Problem, test: Problem) -> float:
    if name == "pairs":
        return 0.5
    if test.regression:
        return 0.0
    return float((test.y == train.y.mode().iloc[0]).mean())
