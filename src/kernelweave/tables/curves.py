"""Curves and tables of predictions on new rows: ROC, calibration, coverage, classes, residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from kernelweave._types import Bools, Floats, Indices

from .measures import Classes, Values
from .resampling import LEVEL, share_interval

_POINTS = 400  # of a curve
_BINS, _ROWS_PER_BIN = 10, 15
_SIMULATIONS = 400


@dataclass(frozen=True)
class Curve:
    """A curve over the thresholds of a score.

    Attributes
    ----------
    label : object
        The class that is compared with the rest.
    x, y : ndarray
        False and true positive rate; or recall and precision.
    thresholds : ndarray
        Of the score, decreasing; the first one is infinite, where no row is chosen.
    area : float
        Area under the ROC curve, or average precision.
    base : float
        Share of the class, which is the precision of a random choice.
    """

    label: Any
    x: Floats
    y: Floats
    thresholds: Floats
    area: float
    base: float


@dataclass(frozen=True)
class Reliability:
    """Predicted probabilities beside observed shares, in bins of about equal size."""

    # The class whose probability it is; None: that of the most probable class of every row, and
    # observed is whether it is the true one.
    label: Any
    # predicted, observed (n_bins,): means of the probabilities, and shares of the rows
    predicted: Floats
    observed: Floats
    # low, high (n_bins,): exact 95% intervals of the shares
    low: Floats
    high: Floats
    counts: Indices  # (n_bins,): rows in each bin
    error: float  # expected calibration error: the mean of ``|predicted - observed|`` over rows
    tolerated: float  # what 95% of samples of this size stay below if all probabilities are right
    # Mean probability of the most probable class less the share of rows where it is the true one:
    # positive where the model is too sure.
    excess: float


@dataclass(frozen=True)
class Coverage:
    """Share of rows whose interval or set holds the truth."""

    # {"interval", "set", "quantile"}: what was predicted; the truth should be below a quantile.
    kind: str
    asked: float  # the coverage that was asked for
    reached: float  # that of the rows
    # low, high: exact 95% interval of it
    low: float
    high: float
    # Mean width of the intervals, infinite where some have no end; mean number of classes in a set.
    size: float
    # Width of the constant interval with this coverage of the rows; number of classes. NaN for
    # quantiles, as is their size.
    beside: float
    empty: float = 0.0  # share of the rows with an empty set


@dataclass(frozen=True)
class ClassScore:
    """Precision and recall of one class, with exact 95% intervals; NaN where they are undefined."""

    label: Any
    n_rows: int
    n_predicted: int
    recall: float
    recall_interval: tuple[float, float] | None
    precision: float
    precision_interval: tuple[float, float] | None
    auc: float


@dataclass(frozen=True)
class Residuals:
    """True and predicted numbers of the rows."""

    rows: Indices  # numbers of the rows in the table, from 0
    # actual, predicted: values
    actual: Floats
    predicted: Floats
    mean: float  # mean of actual minus predicted
    quantiles: dict[float, float]  # of actual minus predicted, by their level

    def largest(self, n: int = 5) -> Indices:
        """Return positions of the rows with the largest errors."""
        return np.argsort(-np.abs(self.actual - self.predicted), kind="stable")[:n]


def roc_curves(found: Classes, weight: Floats) -> tuple[Curve, ...]:
    """Return a ROC curve for each class that has rows, and rows of others."""

    def curve(k: int, own: Bools, scores: Floats) -> Curve:
        x, y, at = roc_curve(own, scores, sample_weight=weight)
        area = float(np.trapezoid(y, x))
        return Curve(found.classes[k], *_thinned(x, y, at), area, _share(own, weight))

    return _curves(found, curve)


def precision_recall_curves(found: Classes, weight: Floats) -> tuple[Curve, ...]:
    """Return a curve of recall and precision for each class that has rows, and rows of others."""

    def curve(k: int, own: Bools, scores: Floats) -> Curve:
        precision, recall, at = precision_recall_curve(own, scores, sample_weight=weight)
        precision, recall = precision[::-1], recall[::-1]
        at = np.append(np.inf, at[::-1])
        area = float(np.sum(np.diff(recall) * precision[1:]))
        return Curve(found.classes[k], *_thinned(recall, precision, at), area, _share(own, weight))

    return _curves(found, curve)


def _curves(found: Classes, make: Any) -> tuple[Curve, ...]:
    if found.scores is None:
        return ()
    out = []
    for k in found.ranked:
        own = found.y == k
        if own.any() and not own.all():
            out.append(make(k, own, found.scores[:, k]))
    return tuple(out)


def _share(own: Bools, weight: Floats) -> float:
    return float(weight[own].sum() / weight.sum())


def _thinned(x: Floats, y: Floats, at: Floats) -> tuple[Floats, Floats, Floats]:
    """Return at most some hundred points, evenly along the curve, both ends among them."""
    if len(x) <= _POINTS:
        return x, y, at
    length = np.append(0.0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y))))
    kept = np.unique(np.searchsorted(length, np.linspace(0.0, length[-1], _POINTS)))
    kept = np.unique(np.append(kept[kept < len(x)], [0, len(x) - 1]))
    return x[kept], y[kept], at[kept]


def reliability(found: Classes, weight: Floats, seed: int) -> Reliability | None:
    """Return bins of the probability of the positive class, or of the most probable class."""
    if found.proba is None:
        return None
    right = found.proba.argmax(axis=1) == found.y
    p, hit, label = found.proba.max(axis=1), right, None
    if len(found.classes) == 2:
        p, hit = found.proba[:, found.positive], found.y == found.positive
        label = found.classes[found.positive]
    bins = _bins(p, int(np.clip(len(p) // _ROWS_PER_BIN, 1, _BINS)))
    n_bins = int(bins.max()) + 1
    counts = np.bincount(bins, minlength=n_bins)
    total = np.bincount(bins, weights=weight, minlength=n_bins)
    predicted = np.bincount(bins, weights=weight * p, minlength=n_bins) / total
    observed = np.bincount(bins, weights=weight * hit, minlength=n_bins) / total
    ends = [share_interval(hit[bins == k], weight[bins == k])[1] for k in range(n_bins)]
    random = np.random.default_rng(seed)
    drawn = random.random((_SIMULATIONS, len(p))) < p  # labels for which all p are right
    kinds = np.eye(n_bins)[bins] * weight[:, None]
    gaps = np.abs(drawn @ kinds - total * predicted).sum(axis=1) / weight.sum()
    return Reliability(
        label,
        predicted,
        observed,
        np.array([low for low, _ in ends]),
        np.array([high for _, high in ends]),
        counts,
        float(total @ np.abs(predicted - observed) / weight.sum()),
        float(np.quantile(gaps, LEVEL)),
        float(np.average(found.proba.max(axis=1) - right, weights=weight)),
    )


def _bins(p: Floats, n_bins: int) -> Indices:
    """Return bins of about equal size; equal values are in one bin."""
    edges = np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)[1:-1]))
    found = np.searchsorted(edges, p, side="right")
    return np.unique(found, return_inverse=True)[1].ravel()


def interval_coverage(kind: str, y: Floats, ends: Floats, asked: float, weight: Floats) -> Coverage:
    """Return the coverage of intervals of shape (n_rows, 2)."""
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    tails = np.quantile(y, [0.5 - 0.5 * asked, 0.5 + 0.5 * asked])
    size = float(np.average(ends[:, 1] - ends[:, 0], weights=weight))
    return _coverage(kind, asked, inside, size, float(np.diff(tails)[0]), weight)


def quantile_coverage(y: Floats, predicted: Floats, level: float, weight: Floats) -> Coverage:
    """Return the share of rows that are not above a predicted quantile."""
    return _coverage("quantile", level, y <= predicted, np.nan, np.nan, weight)


def set_coverage(y: Indices, sets: Bools, asked: float, weight: Floats) -> Coverage:
    """Return the coverage of sets of classes."""
    inside, sizes = sets[np.arange(len(y)), y], sets.sum(axis=1)
    size, empty = (float(np.average(v, weights=weight)) for v in (sizes, sizes == 0))
    return _coverage("set", asked, inside, size, float(sets.shape[1]), weight, empty)


def _coverage(
    kind: str,
    asked: float,
    inside: Bools,
    size: float,
    beside: float,
    weight: Floats,
    empty: float = 0.0,
) -> Coverage:
    reached, ends = share_interval(inside, weight)
    return Coverage(kind, asked, reached, *ends, size, beside, empty)


def confusion(found: Classes, weight: Floats) -> Floats:
    """Return the weights of rows by true class, down, and predicted class, across."""
    labels = np.arange(len(found.classes))
    matrix = confusion_matrix(found.y, found.predicted, labels=labels, sample_weight=weight)
    return np.asarray(matrix, dtype=np.float64)


def class_scores(
    found: Classes, areas: tuple[Curve, ...], weight: Floats | None = None
) -> tuple[ClassScore, ...]:
    """Return recall and precision of every class."""
    weight = np.ones(len(found)) if weight is None else weight
    known = {curve.label: curve.area for curve in areas}
    out = []
    for k, label in enumerate(found.classes):
        own, said = found.y == k, found.predicted == k
        (recall, found_in), (precision, right_in) = (
            share_interval((own & said)[rows], weight[rows]) if rows.any() else (np.nan, None)
            for rows in (own, said)
        )
        n, m, area = int(own.sum()), int(said.sum()), known.get(label, np.nan)
        out.append(ClassScore(label, n, m, recall, found_in, precision, right_in, area))
    return tuple(out)


def residuals(found: Values, rows: Indices, weight: Floats) -> Residuals:
    """Return the residuals and their quantiles."""
    errors = found.y - found.predicted
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    quantiles = dict(zip(levels, np.quantile(errors, levels).tolist(), strict=True))
    mean = float(np.average(errors, weights=weight))
    return Residuals(rows, found.y, found.predicted, mean, quantiles)
