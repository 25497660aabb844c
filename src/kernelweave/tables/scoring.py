"""Scores of predictions for rows that were left out, row by row and in total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._summary import SMALLER
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError

CLASS_SCORES = ("log_loss", "roc_auc", "accuracy", "balanced_accuracy")
VALUE_SCORES = ("r2", "absolute_error")
_LEAST = 1e-6  # probability below which all count alike
_UNEQUAL = 0.5  # share of a class, relative to equal shares, from which classes are unequal


@dataclass(frozen=True)
class Scoring:
    """How candidates are compared on one table."""

    chooses: str  # the score that decides: of `CLASS_SCORES` or `VALUE_SCORES`
    shows: tuple[str, ...]  # the scores that are reported, the most telling first
    # Weights of the rows: those of balanced classes, or None where all count alike.
    weights: Floats | None = None

    def losses(self, y: Any, predicted: Floats, rows: Indices, parts: Indices) -> Floats:
        """Return the loss of each row, whose mean is smaller for better predictions.

        ``parts`` are the folds of the rows: ranks of different models are not compared.
        """
        values = row_losses(self.chooses, y, predicted, parts)
        return values if self.weights is None else values * self.weights[rows]


def choose_scoring(y: Any, regression: bool, name: str, balanced: bool) -> Scoring:
    """Return the scoring of a target; ``name`` is "auto" or the score that decides.

    ``y`` holds numbers, or positions of classes.
    """
    known = VALUE_SCORES if regression else CLASS_SCORES
    if name not in ("auto", *known):
        raise InputError(f"scoring: must be one of auto, {', '.join(known)}, got {name!r}.")
    if regression:
        return Scoring("r2" if name == "auto" else name, ("r2", "absolute_error"))
    counts = np.bincount(y)
    unequal = counts.min() * len(counts) < _UNEQUAL * len(y)
    shows = ["roc_auc"] if len(counts) == 2 else ["accuracy"]
    shows += ["log_loss", *(["balanced_accuracy"] if unequal else ["accuracy"])]
    weights = (len(y) / len(counts) / counts)[y] if balanced else None
    usual = "roc_auc" if len(counts) == 2 and not balanced else "log_loss"
    chooses = usual if name == "auto" else name
    return Scoring(chooses, tuple(dict.fromkeys([*shows, chooses])), weights)


def row_losses(name: str, y: Any, predicted: Floats, parts: Indices | None = None) -> Floats:
    """Return losses of rows whose mean orders predictions as the score ``name`` does."""
    if name == "r2":
        return np.asarray((y - predicted) ** 2)
    if name == "absolute_error":
        return np.asarray(np.abs(y - predicted))
    rows = np.arange(len(y))
    if name == "log_loss":
        return np.asarray(-np.log(np.maximum(predicted[rows, y], _LEAST)))
    if name == "roc_auc":
        if parts is None:
            return _placements(y, predicted)
        out = np.empty(len(y))
        for part in np.unique(parts):
            own = parts == part
            out[own] = _placements(y[own], predicted[own])
        return out
    wrong = (predicted.argmax(axis=1) != y).astype(float)
    if name == "accuracy":
        return np.asarray(wrong)
    counts = np.bincount(y, minlength=predicted.shape[1])
    return np.asarray(wrong * (len(y) / np.count_nonzero(counts) / np.maximum(counts, 1))[y])


def _placements(y: Any, predicted: Floats) -> Floats:
    """Return values of rows whose mean is one minus the area under the ROC curve.

    Several classes: the mean of each class against the rest. The values are the placements of
    DeLong, DeLong and Clarke-Pearson (1988), the share of rows of the other class on the right side
    of a row, scaled so that their spread gives the standard error of the area.
    """
    n, n_classes = predicted.shape
    classes = range(1, 2) if n_classes == 2 else range(n_classes)
    out, used = np.zeros(n), 0
    for k in classes:
        own = y == k
        n_own, n_rest = int(own.sum()), int((~own).sum())
        if not n_own or not n_rest:
            continue
        used += 1
        scores = predicted[:, k]
        overall = _ranks(scores)
        above = np.empty(n)
        # Rows of the rest below a row of the class, and of the class above a row of the rest.
        above[own] = (overall[own] - _ranks(scores[own])) / n_rest
        above[~own] = 1.0 - (overall[~own] - _ranks(scores[~own])) / n_own
        loss = 1.0 - float(above[own].mean())
        weight = np.where(own, n / n_own, n / n_rest)
        # Their mean is the loss, and their standard error that of DeLong et al.
        out += loss + weight * (1.0 - above - loss)
    return out / max(used, 1)


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1, the mean of their places for ties; scipy.stats takes long to import."""
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray(0.5 * (below + upto + 1))


def total_score(name: str, y: Any, predicted: Floats, parts: Indices | None = None) -> float:
    """Return the score, such as R squared or the area under the ROC curve."""
    loss = float(row_losses(name, y, predicted, parts).mean())
    if name == "r2":
        return 1.0 - loss / float(np.var(y))
    return loss if name in SMALLER else 1.0 - loss


def score_interval(
    name: str, y: Any, predicted: Floats, parts: Indices | None = None
) -> tuple[float, float] | None:
    """Return the 95% interval of a score, by its standard error over rows; None for few rows."""
    n = len(y)
    if n < 10:
        return None
    losses = row_losses(name, y, predicted, parts)
    if name == "r2":
        # The delta method for the ratio of two means over rows.
        spread = (y - y.mean()) ** 2
        ratio = losses.mean() / spread.mean()
        error = float(np.std(losses - ratio * spread) / spread.mean() / np.sqrt(n))
    else:
        error = float(np.std(losses) / np.sqrt(n))
    middle = total_score(name, y, predicted, parts)
    low, high = middle - 1.96 * error, middle + 1.96 * error
    if name in ("roc_auc", "accuracy", "balanced_accuracy"):
        low, high = max(low, 0.0), min(high, 1.0)
    return low, min(high, 1.0) if name == "r2" else high


def paired_difference(one: Floats, other: Floats) -> tuple[float, float]:
    """Return the mean of ``other - one`` over rows, and its standard error."""
    differences = other - one
    error = float(np.std(differences) / np.sqrt(max(len(differences), 1)))
    return float(differences.mean()), error


def constant_score(name: str, y: Any) -> float:
    """Return the score of the best constant prediction.

    ``y`` holds numbers for "r2" and "absolute_error", positions of classes for the others.
    """
    if name == "absolute_error":
        return float(np.abs(y - np.median(y)).mean())
    if name in ("r2", "roc_auc"):
        return 0.0 if name == "r2" else 0.5
    shares = np.bincount(y) / len(y)
    shares = shares[shares > 0]
    if name == "log_loss":
        return float(-(shares * np.log(shares)).sum())
    return float(shares.max()) if name == "accuracy" else 1.0 / len(shares)
