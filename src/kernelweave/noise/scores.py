"""Estimates of label errors from out-of-sample scores.

With two classes a score s estimates ``E[y | x]``, y = +1 or -1 being the observed label. When a
share q_minus of the true -1 and q_plus of the true +1 carry the other label, s lies between
``-1 + 2 q_minus`` and ``1 - 2 q_plus``; both ends are reached where the classes do not overlap.
With more classes there is a column for each, which estimates the probability to observe that label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from kernelweave._types import Floats, Indices

TAIL = 0.05  # share of the examples at each end whose true class is taken to be sure
_FEW = 60  # examples below which a quantile rests on too few of them
_LEAST_RATE, _MOST_RATE = 0.02, 0.48
_LEAST_WIDTH = 0.04  # of the range of scores, below which nothing was learned


def score_range(
    scores: Floats, tail: float = TAIL, top: float | None = None
) -> tuple[float, float]:
    """Return the ends of the range of scores: quantiles, or means of three where rows are few."""
    if len(scores) < _FEW:
        ordered = np.sort(scores)
        return float(ordered[:3].mean()), float(ordered[-3:].mean())
    low, high = np.quantile(scores, [tail, 1.0 - (tail if top is None else top)])
    return float(low), float(high)


@dataclass(frozen=True)
class Range:
    """Where the scores of two classes lie, and what follows for their labels.

    Parameters
    ----------
    low, high : float
        Scores of examples whose true label is surely -1, or +1.
    rates : tuple of float
        Shares of -1 and of +1 that carry the other label.
    """

    low: float
    high: float
    rates: tuple[float, float]

    @classmethod
    def of(
        cls, scores: Floats, *, tail: float = TAIL, shift: float = 1.0, middle: float | None = None
    ) -> Range:
        """Read the range off scores.

        A ``shift`` below one moves the range towards the middle 0, which equal rates would have;
        a given ``middle`` moves it there.
        """
        low, high = score_range(scores, tail)
        centre = shift * 0.5 * (low + high) if middle is None else middle
        half = 0.5 * (high - low)
        low, high = centre - half, centre + half
        rates = np.clip([0.5 * (1.0 + low), 0.5 * (1.0 - high)], _LEAST_RATE, _MOST_RATE)
        return cls(low, high, (float(rates[0]), float(rates[1])))

    @classmethod
    def known(cls, q_minus: float, q_plus: float) -> Range:
        """Return the range that known rates give."""
        return cls(2.0 * q_minus - 1.0, 1.0 - 2.0 * q_plus, (q_minus, q_plus))

    @property
    def middle(self) -> float:
        """The score at which both true classes are equally likely."""
        return 0.5 * (self.low + self.high)

    @property
    def width(self) -> float:
        """Length of the range, never so small that dividing by it makes noise of rounding."""
        return max(self.high - self.low, _LEAST_WIDTH)

    @property
    def is_empty(self) -> bool:
        """Whether all scores are about the same."""
        return self.high - self.low < _LEAST_WIDTH

    def clean(self, scores: Floats) -> Floats:
        """Return the probability of a true +1, before the observed label is looked at."""
        return np.clip(0.5 + (scores - self.middle) / self.width, 0.02, 0.98)

    def posterior(self, scores: Floats, signs: Floats) -> Floats:
        """Return the probability of a true +1, given the observed label."""
        p = self.clean(scores)
        q_minus, q_plus = self.rates
        plus = np.where(signs > 0, 1.0 - q_plus, q_plus) * p
        minus = np.where(signs > 0, q_minus, 1.0 - q_minus) * (1.0 - p)
        return np.asarray(plus / (plus + minus))

    def wrong(self, scores: Floats, signs: Floats) -> Floats:
        """Return the probability that the observed label is wrong."""
        plus = self.posterior(scores, signs)
        return np.where(signs > 0, 1.0 - plus, plus)


@dataclass(frozen=True)
class Transition:
    """What is known of the labels of several classes.

    Parameters
    ----------
    clean : ndarray of shape (n_samples, n_classes)
        Probabilities of the true class, before the observed label is looked at.
    rates : ndarray of shape (n_classes, n_classes)
        Row c: probabilities of the observed labels of examples of class c.
    is_empty : bool
        Whether all scores are about the same.
    """

    clean: Floats
    rates: Floats
    is_empty: bool

    @classmethod
    def of(
        cls, scores: Floats, codes: Indices, *, tail: float = TAIL, rates: Floats | None = None
    ) -> Transition:
        """Read probabilities and, unless they are given, rates off scores."""
        n, n_classes = scores.shape
        shares = np.bincount(codes, minlength=n_classes) / n
        # A rare class has few sure examples: a tenth of those that carry its label.
        ends = [score_range(scores[:, c], tail, shares[c] / 10) for c in range(n_classes)]
        low, high = np.array(ends).T
        width = np.maximum(high - low, 0.5 * _LEAST_WIDTH)
        clean = np.maximum((scores - low) / width, 0.02)
        clean /= clean.sum(axis=1, keepdims=True)
        if rates is None:
            rows = []
            for c in range(n_classes):
                surest = np.argsort(-clean[:, c], kind="stable")[: max(3, int(n * shares[c] / 10))]
                rows.append(np.maximum(scores[surest].mean(axis=0), 0.001))
            rates = np.array(rows)
            rates /= rates.sum(axis=1, keepdims=True)
        return cls(clean, rates, bool((high - low < 0.5 * _LEAST_WIDTH).all()))

    def posterior(self, codes: Indices) -> Floats:
        """Return probabilities of the true class, given the observed labels."""
        joint = self.clean * np.maximum(self.rates[:, codes].T, 1e-12)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def two_class_quality(scores: Floats, signs: Floats, threshold: float, width: float) -> Floats:
    """Return a number between 0 and 1 for each label, strictly increasing in its margin."""
    return np.asarray(expit(8.0 * signs * (scores - threshold) / width))


def margins(scores: Floats, codes: Indices) -> Floats:
    """Return by how much the score of the observed label exceeds the best of the others."""
    rows = np.arange(len(codes))
    others = scores.copy()
    others[rows, codes] = -np.inf
    return np.asarray(scores[rows, codes] - others.max(axis=1))


def margin_quality(margin: Floats) -> Floats:
    """Return a number between 0 and 1 for each label, strictly increasing in its margin."""
    size = float(np.quantile(np.abs(margin), 0.95))
    return np.asarray(expit(4.0 * margin / max(size, 1e-12)))


def two_class_matrix(rates: tuple[float, float]) -> Floats:
    """Return rates as a matrix: row c holds the probabilities of observed labels of class c."""
    q_minus, q_plus = rates
    return np.array([[1.0 - q_minus, q_minus], [q_plus, 1.0 - q_plus]])


def confident_counts(probabilities: Floats, codes: Indices) -> Floats:
    """Return estimated shares of (observed, true) labels by counting confident examples.

    An example counts for class c when its probability of c is at least the mean probability of c
    among the examples labelled c; of several such classes the most probable. Rows are rescaled to
    the counts of observed labels.

    References
    ----------
    Northcutt, Jiang and Chuang (2021), Confident learning, JAIR 70, section 3.1.
    """
    n, n_classes = probabilities.shape
    counts = np.bincount(codes, minlength=n_classes)
    thresholds = np.full(n_classes, np.inf)
    for c in np.flatnonzero(counts):
        thresholds[c] = probabilities[codes == c, c].mean()
    passed = np.where(probabilities >= thresholds, probabilities, -np.inf)
    sure = np.isfinite(passed).any(axis=1)
    joint = np.zeros((n_classes, n_classes))
    np.add.at(joint, (codes[sure], passed[sure].argmax(axis=1)), 1.0)
    empty = joint.sum(axis=1) == 0
    joint[empty, empty] = 1.0  # nothing is known of such labels, so they are believed
    joint *= (counts / joint.sum(axis=1))[:, None]
    return np.asarray(joint / n)
