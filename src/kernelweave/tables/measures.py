"""Scores of predictions as functions of row weights.

A resample of the rows is a vector of counts. Every score is evaluated for a block of such vectors
at once, so that the score itself, its resamples, groups of rows and paired differences of models
share one implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from kernelweave._summary import show_number
from kernelweave._types import Bools, Floats, Indices

Evaluator: TypeAlias = Callable[[Floats], Floats]
"""From weights of shape (n_resamples, n_rows) to scores of shape (n_resamples,), NaN: undefined."""


@dataclass(frozen=True)
class Measure:
    """A score."""

    name: str  # in JSON and in Python
    title: str  # for people
    smaller: bool = False  # whether smaller values are better
    # Whether it is defined within classes, so that resamples keep their sizes.
    by_class: bool = False
    share: bool = False  # whether it is a share of the rows, whose interval is exact
    percent: bool = False  # whether it is shown in per cent

    def show(self, value: float | None) -> str:
        """Return a value as text."""
        if value is None or not np.isfinite(value):
            return "-"
        if self.percent:
            return f"{value:.1%}"
        return show_number(value) if self.name in _UNITS else f"{value:z.3f}"


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("log_loss", "log-loss", smaller=True),
        Measure("roc_auc", "AUC", by_class=True),
        Measure("average_precision", "average precision"),
        Measure("accuracy", "accuracy", share=True, percent=True),
        Measure("balanced_accuracy", "balanced accuracy", by_class=True, percent=True),
        Measure("f1", "F1"),
        Measure("brier", "Brier score", smaller=True),
        Measure("r2", "R2"),
        Measure("rmse", "root mean squared error", smaller=True),
        Measure("mean_absolute_error", "mean absolute error", smaller=True),
        Measure("median_absolute_error", "median absolute error", smaller=True),
        Measure("pinball_loss", "pinball loss", smaller=True),
    )
}
# In units of the target.
_UNITS = {"rmse", "mean_absolute_error", "median_absolute_error", "pinball_loss"}


@dataclass(frozen=True)
class Classes:
    """True and predicted classes of rows, as positions in ``classes``."""

    # y, predicted (n_rows,): what is true, and what the model predicts
    y: Indices
    predicted: Indices
    classes: tuple[Any, ...]  # labels
    positive: int = 1  # position of the class that precision and recall refer to, of two classes
    scores: Floats | None = None  # (n_rows, n_classes): values that rank rows for each class
    proba: Floats | None = None  # (n_rows, n_classes): probabilities

    def __len__(self) -> int:
        return len(self.y)

    @property
    def strata(self) -> Indices | None:
        """Groups of rows that class-wise scores keep together."""
        return self.y

    @property
    def outputs(self) -> tuple[Classes]:
        """The single output, as `Several` has several."""
        return (self,)

    @property
    def main(self) -> str:
        """The score to quote: of two classes the AUC, of several the accuracy."""
        two = len(self.classes) == 2 and self.scores is not None
        return "roc_auc" if two else "accuracy"

    @property
    def n_ranked(self) -> int:
        """How often rows are ranked."""
        return len(self.ranked)

    kind, plural = "classes", "labels"

    def title(self, name: str) -> str:
        """Return a score in words: which class it refers to, or what it is a mean of."""
        title, n = MEASURES[name].title, len(self.classes)
        if n == 2 and name in ("f1", "average_precision"):
            return f"{title} of {self.classes[self.positive]}"
        if n > 2 and name in ("f1", "average_precision", "roc_auc"):
            return f"{title}, mean of classes"
        return title

    @property
    def ranked(self) -> tuple[int, ...]:
        """Classes that rows are ranked for: the positive one of two, else all."""
        return (self.positive,) if len(self.classes) == 2 else tuple(range(len(self.classes)))

    def take(self, rows: Any) -> Classes:
        """Return some of the rows."""
        return replace(
            self,
            y=self.y[rows],
            predicted=self.predicted[rows],
            scores=None if self.scores is None else self.scores[rows],
            proba=None if self.proba is None else self.proba[rows],
        )

    def constant(self, weight: Floats) -> dict[str, Classes]:
        """Return the best constant prediction for these rows: their shares of the classes."""
        shares = np.bincount(self.y, weights=weight, minlength=len(self.classes)) / weight.sum()
        same = np.tile(shares, (len(self), 1))
        best = np.full(len(self), int(shares.argmax()))
        made = replace(self, predicted=best, scores=same, proba=same)
        return dict.fromkeys(self.evaluators(), made)

    def evaluators(self) -> dict[str, Evaluator]:
        """Return the scores that these predictions have."""
        hits = (self.y == self.predicted).astype(np.float64)
        out: dict[str, Evaluator] = {}
        if self.proba is not None:
            out["log_loss"] = _mean_of(self._log_losses(self.proba))
        if self.scores is not None:
            out["roc_auc"] = self._over_classes(_area)
            out["average_precision"] = self._over_classes(_average_precision)
        out["accuracy"] = _mean_of(hits)
        out["balanced_accuracy"] = self._balanced_accuracy
        out["f1"] = self._f1
        if self.proba is not None:
            out["brier"] = _mean_of(self._squares(self.proba))
        return out

    def _log_losses(self, proba: Floats) -> Floats:
        least = np.finfo(np.float64).eps  # as in scikit-learn
        own = np.clip(proba[np.arange(len(self)), self.y], least, 1.0 - least)
        return np.asarray(-np.log(own))

    def _squares(self, proba: Floats) -> Floats:
        """Return squared errors; of two classes those of one of them."""
        errors = (proba - np.eye(len(self.classes))[self.y]) ** 2
        return np.asarray(errors[:, 1] if len(self.classes) == 2 else errors.sum(axis=1))

    def _over_classes(self, make: Callable[[Bools, Floats], Evaluator]) -> Evaluator:
        """Return the mean of each class against the rest, of classes with and without rows."""
        assert self.scores is not None
        parts = [make(self.y == k, self.scores[:, k]) for k in self.ranked]
        if len(parts) == 1:
            return parts[0]
        return lambda weights: mean_known([part(weights) for part in parts])

    def _hits(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return for every class the weights of hits, of its rows and of its predictions."""
        own, said = np.eye(len(self.classes))[self.y], np.eye(len(self.classes))[self.predicted]
        return weights @ (own * said), weights @ own, weights @ said

    def _balanced_accuracy(self, weights: Floats) -> Floats:
        hits, own, _ = self._hits(weights)
        return mean_known(list(_ratio(hits, own).T))

    def _f1(self, weights: Floats) -> Floats:
        """Return F1 of the positive class of two, else the mean over the classes that occur."""
        hits, own, said = self._hits(weights)
        values = _ratio(2.0 * hits, own + said)
        if len(self.classes) == 2:  # zero where the class is neither there nor predicted
            return np.nan_to_num(values[:, self.positive])
        return mean_known(list(values.T))


@dataclass(frozen=True)
class Values:
    """True and predicted numbers of rows."""

    # y, predicted (n_rows,): what is true, and what the model predicts
    y: Floats
    predicted: Floats
    level: float | None = None  # the quantile that is predicted; None: the mean

    def __len__(self) -> int:
        return len(self.y)

    strata, kind, n_ranked = None, "values", 1

    @property
    def outputs(self) -> tuple[Values]:
        """The single output, as `Several` has several."""
        return (self,)

    @property
    def main(self) -> str:
        """The score to quote: R2, or the loss of a quantile."""
        return "r2" if self.level is None else "pinball_loss"

    @property
    def plural(self) -> str:
        """What several of these are."""
        return "targets" if self.level is None else "quantiles"

    def title(self, name: str) -> str:
        """Return a score in words."""
        return MEASURES[name].title

    def take(self, rows: Any) -> Values:
        """Return some of the rows."""
        return replace(self, y=self.y[rows], predicted=self.predicted[rows])

    def constant(self, weight: Floats) -> dict[str, Values]:
        """Return the best constant for these rows: the mean, the median or the quantile."""

        def same(value: float) -> Values:
            return replace(self, predicted=np.full(len(self), value))

        middle = same(float(np.average(self.y, weights=weight)))
        median = same(float(_weighted_quantile(self.y)(weight[None])[0]))
        level = 0.5 if self.level is None else self.level
        at_level = same(float(_weighted_quantile(self.y, level)(weight[None])[0]))
        known = {"r2": middle, "rmse": middle, "pinball_loss": at_level}
        return {name: known.get(name, median) for name in self.evaluators()}

    def evaluators(self) -> dict[str, Evaluator]:
        """Return the scores that these predictions have."""
        errors = self.y - self.predicted
        out: dict[str, Evaluator] = {}
        if self.level is not None:
            losses = np.maximum(self.level * errors, (self.level - 1.0) * errors)
            out["pinball_loss"] = _mean_of(losses)
            if self.level != 0.5:  # other quantiles are no guess of the value
                return out
        squares = _mean_of(errors**2)
        out["r2"] = self._r2
        out["rmse"] = lambda weights: np.sqrt(squares(weights))
        out["mean_absolute_error"] = _mean_of(np.abs(errors))
        out["median_absolute_error"] = _weighted_quantile(np.abs(errors))
        return out

    def _r2(self, weights: Floats) -> Floats:
        total = weights.sum(axis=1)
        # Shifted by a constant, so that the variance loses no digits.
        y = self.y - self.y.mean()
        mean = weights @ y / total
        spread = weights @ y**2 / total - mean**2
        errors = weights @ (self.y - self.predicted) ** 2 / total
        least = 1e-14 * float((y**2).mean())
        return 1.0 - _ratio(errors, np.where(spread > least, spread, 0.0))


Predicted: TypeAlias = Classes | Values


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return a quotient, NaN where it is undefined."""
    out = np.full(np.shape(above), np.nan)
    return np.asarray(np.divide(above, below, out=out, where=below > 0))


def mean_known(parts: list[Floats]) -> Floats:
    """Return the mean of the parts that are defined, NaN where none is."""
    stack = np.stack(parts)
    known = np.isfinite(stack)
    return _ratio(np.where(known, stack, 0.0).sum(axis=0), known.sum(axis=0).astype(np.float64))


def _mean_of(losses: Floats) -> Evaluator:
    return lambda weights: weights @ losses / weights.sum(axis=1)


def _weighted_quantile(values: Floats, level: float = 0.5) -> Evaluator:
    """Return the quantile of values; the mean of both neighbours where it lies between them."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def evaluate(weights: Floats) -> Floats:
        sums = np.cumsum(weights[:, order], axis=1)
        at = level * sums[:, -1:]
        slack = 1e-12 * sums[:, -1:]  # sums of weights that are no integers are rounded
        low = (sums >= at - slack).argmax(axis=1)
        high = (sums > at + slack).argmax(axis=1)
        return np.asarray(0.5 * (ordered[low] + ordered[high]))

    return evaluate


def _tied(scores: Floats) -> tuple[Indices, Indices]:
    """Return the order of rows by increasing score, and where new values start in it."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(scores[order]) != 0))
    return order, starts


def _area(own: Bools, scores: Floats) -> Evaluator:
    """Return the area under the ROC curve; ties count one half."""
    order, starts = _tied(scores)
    positive = own[order].astype(np.float64)

    def evaluate(weights: Floats) -> Floats:
        ordered = weights[:, order]
        ones = np.add.reduceat(ordered * positive, starts, axis=1)
        rest = np.add.reduceat(ordered * (1.0 - positive), starts, axis=1)
        below = np.cumsum(rest, axis=1) - 0.5 * rest
        pairs = ones.sum(axis=1) * rest.sum(axis=1)
        return _ratio((ones * below).sum(axis=1), pairs)

    return evaluate


def _average_precision(own: Bools, scores: Floats) -> Evaluator:
    """Return the mean of the precisions at all thresholds, weighted by what each adds to recall."""
    order, starts = _tied(-scores)
    positive = own[order].astype(np.float64)

    def evaluate(weights: Floats) -> Floats:
        ordered = weights[:, order]
        ones = np.add.reduceat(ordered * positive, starts, axis=1)
        every = np.add.reduceat(ordered, starts, axis=1)
        precision = np.nan_to_num(_ratio(np.cumsum(ones, axis=1), np.cumsum(every, axis=1)))
        return _ratio((ones * precision).sum(axis=1), ones.sum(axis=1))

    return evaluate
