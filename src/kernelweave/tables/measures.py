"""Scores of predictions as functions of row weights, and their bootstrap intervals.

A resample of the rows is a vector of counts. Every score is evaluated for a block of such vectors
at once, so that the score itself, its resamples, groups of rows and paired differences of models
share one implementation.

References
----------
C. Clopper and E. Pearson (1934), The use of confidence or fiducial limits, Biometrika 26.
B. Efron and R. Tibshirani (1993), An introduction to the bootstrap, chapter 13 (percentiles).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

from kernelweave._types import Bools, Floats, Indices

LEVEL = 0.95
_RESAMPLES, _LEAST_RESAMPLES = 1000, 100
_WORK = 4e7  # rows times outputs of all resamples, some seconds
_BLOCK = 2e6  # counts held at a time
_LEAST = 0.5  # share of the resamples that must have a score, such as the AUC with both classes

Evaluator: TypeAlias = Callable[[Floats], Floats]
"""From weights of shape (n_resamples, n_rows) to scores of shape (n_resamples,), NaN: undefined."""


@dataclass(frozen=True)
class Measure:
    """A score.

    Parameters
    ----------
    name : str
        In JSON and in Python.
    title : str
        For people.
    smaller : bool
        Whether smaller values are better.
    by_class : bool
        Whether it is defined within classes, so that resamples keep their sizes.
    share : bool
        Whether it is a share of the rows, whose interval is exact.
    percent : bool
        Whether it is shown in per cent.
    """

    name: str
    title: str
    smaller: bool = False
    by_class: bool = False
    share: bool = False
    percent: bool = False

    def show(self, value: float | None) -> str:
        """Return a value as text."""
        if value is None or not np.isfinite(value):
            return "-"
        if self.percent:
            return f"{value:.1%}"
        return f"{value:.4g}" if self.name in _UNITS else f"{value:z.3f}"


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
    """True and predicted classes of rows, as positions in ``classes``.

    Parameters
    ----------
    y, predicted : ndarray of int of shape (n_rows,)
        What is true, and what the model predicts.
    classes : tuple
        Labels.
    positive : int
        Position of the class that precision and recall refer to, of two classes.
    scores : ndarray of shape (n_rows, n_classes), or None
        Values that rank rows for each class.
    proba : ndarray of shape (n_rows, n_classes), or None
        Probabilities.
    """

    y: Indices
    predicted: Indices
    classes: tuple[Any, ...]
    positive: int = 1
    scores: Floats | None = None
    proba: Floats | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def strata(self) -> Indices | None:
        """Groups of rows that class-wise scores keep together."""
        return self.y

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
        return lambda weights: _mean_known([part(weights) for part in parts])

    def _hits(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return for every class the weights of hits, of its rows and of its predictions."""
        own, said = np.eye(len(self.classes))[self.y], np.eye(len(self.classes))[self.predicted]
        return weights @ (own * said), weights @ own, weights @ said

    def _balanced_accuracy(self, weights: Floats) -> Floats:
        hits, own, _ = self._hits(weights)
        return _mean_known(list(_ratio(hits, own).T))

    def _f1(self, weights: Floats) -> Floats:
        """Return F1 of the positive class of two, else the mean over the classes that occur."""
        hits, own, said = self._hits(weights)
        values = _ratio(2.0 * hits, own + said)
        if len(self.classes) == 2:  # zero where the class is neither there nor predicted
            return np.nan_to_num(values[:, self.positive])
        return _mean_known(list(values.T))


@dataclass(frozen=True)
class Values:
    """True and predicted numbers of rows.

    Parameters
    ----------
    y, predicted : ndarray of shape (n_rows,)
        What is true, and what the model predicts.
    level : float or None
        The quantile that is predicted; None: the mean.
    """

    y: Floats
    predicted: Floats
    level: float | None = None

    def __len__(self) -> int:
        return len(self.y)

    strata = None

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


def _mean_known(parts: list[Floats]) -> Floats:
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


def exact_interval(hits: float, n: float) -> tuple[float, float]:
    """Return the 95% interval of a share by Clopper and Pearson; counts may be effective ones."""
    tail = 0.5 - 0.5 * LEVEL
    low = stats.beta.ppf(tail, hits, n - hits + 1) if hits > 0 else 0.0
    high = stats.beta.ppf(1 - tail, hits + 1, n - hits) if hits < n else 1.0
    return float(low), float(high)


def share_interval(hits: Any, weight: Floats) -> tuple[float, tuple[float, float]]:
    """Return the share of rows that are hits, and its interval.

    Rows of different weights count as many as their effective number ``(sum w)^2 / sum w^2`` (Kish
    1965), which is that of the rows where weights are equal.
    """
    total = float(weight.sum())
    share, n = float(weight[hits].sum()) / total, total**2 / float(weight @ weight)
    whole = round(share * n)
    near = abs(share * n - whole) < 1e-9 * n  # counts stay whole
    return share, exact_interval(whole if near else share * n, round(n) if near else n)


def percentiles(values: Floats, *, equal: bool = False) -> tuple[float, float] | None:
    """Return the ends of the middle 95% of resamples.

    None where most resamples have no value, or (unless ``equal``) all have the same one: then the
    rows are too few to tell how it varies.
    """
    known = values[np.isfinite(values)]
    if len(known) < max(_LEAST * len(values), 2):
        return None
    low, high = np.quantile(known, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL])
    return None if low == high and not equal else (float(low), float(high))


def resamples(n: int, n_outputs: int, strata: Indices | None, seed: int) -> Iterator[Floats]:
    """Yield blocks of counts of rows drawn with replacement, within strata where they are given."""
    random = np.random.default_rng(seed)
    left = int(np.clip(_WORK / (n * n_outputs), _LEAST_RESAMPLES, _RESAMPLES))
    size = max(1, int(_BLOCK / n))
    strata = np.zeros(n, dtype=np.intp) if strata is None else strata
    order = np.argsort(strata, kind="stable")
    _, starts, sizes = np.unique(strata[order], return_index=True, return_counts=True)
    first, many = np.repeat(starts, sizes), np.repeat(sizes, sizes)
    while left > 0:
        block = min(size, left)
        left -= block
        drawn = first + (random.random((block, n)) * many).astype(np.intp)
        flat = order[drawn] + n * np.arange(block)[:, None]
        yield np.bincount(flat.ravel(), minlength=block * n).reshape(block, n).astype(np.float64)


@dataclass(frozen=True)
class Several:
    """Predictions of several targets, labels or quantiles, whose scores are averaged.

    Parameters
    ----------
    outputs : tuple of Classes or Values
        One for each; scores that only some have, such as those of the median, are averaged over
        these.
    """

    outputs: tuple[Predicted, ...]

    def __len__(self) -> int:
        return len(self.outputs[0])

    @property
    def strata(self) -> Indices | None:
        """Combinations of labels."""
        if any(output.strata is None for output in self.outputs):
            return None
        table = np.column_stack([output.y for output in self.outputs])
        return np.unique(table, axis=0, return_inverse=True)[1].ravel()

    def take(self, rows: Any) -> Several:
        """Return some of the rows."""
        return Several(tuple(output.take(rows) for output in self.outputs))

    def constant(self, weight: Floats) -> dict[str, Any]:
        """Return the best constant prediction of every output, by score."""
        known: list[dict[str, Any]] = [output.constant(weight) for output in self.outputs]
        return {
            name: Several(tuple(constants[name] for constants in known if name in constants))
            for name in self.evaluators()
        }

    def evaluators(self) -> dict[str, Evaluator]:
        """Return the means of the scores that these predictions have."""
        parts: dict[str, list[Evaluator]] = {}
        for output in self.outputs:
            for name, evaluator in output.evaluators().items():
                parts.setdefault(name, []).append(evaluator)

        def mean_of(several: list[Evaluator]) -> Evaluator:
            return lambda weights: _mean_known([one(weights) for one in several])

        return {name: mean_of(several) for name, several in parts.items()}


@dataclass(frozen=True)
class Draws:
    """A score and its values on resamples of the rows."""

    value: float
    resampled: Floats


def draw(
    evaluators: dict[Any, tuple[Measure, Evaluator]],
    n_outputs: int,
    strata: Indices | None,
    weight: Floats,
    seed: int,
) -> dict[Any, Draws]:
    """Evaluate scores on the rows, and all of them on the same resamples.

    Scores that are defined within classes keep the sizes of the classes; the others depend on the
    shares of the classes, so that these vary too.
    """
    n, out = len(weight), {}
    for by_class in (False, True):
        wanted = {key: item for key, item in evaluators.items() if item[0].by_class == by_class}
        values: dict[Any, list[Floats]] = {key: [] for key in wanted}
        if wanted and n > 1:
            for counts in resamples(n, n_outputs, strata if by_class else None, seed):
                counts *= weight
                for key, (_, evaluate) in wanted.items():
                    values[key].append(evaluate(counts))
        for key, (_, evaluate) in wanted.items():
            resampled = np.concatenate(values[key]) if values[key] else np.empty(0)
            out[key] = Draws(float(evaluate(weight[None])[0]), resampled)
    return out
