"""Estimates of label errors from leave-one-out or cross-validated scores.

With two classes a score s estimates ``E[y | x]``, y = +1 or -1 being the observed label. When a
share q_minus of the true -1 and q_plus of the true +1 carry the other label, s lies between
``-1 + 2 q_minus`` and ``1 - 2 q_plus``; both ends are reached where the classes do not overlap.
With more classes there is a column for each, which estimates the probability to observe that label.

References
----------
Natarajan, Dhillon, Ravikumar and Tewari (2013), Learning with noisy labels, NIPS 26: for the square
loss their unbiased estimator, Lemma 1, only shifts and rescales the scores.
Northcutt, Jiang and Chuang (2021), Confident learning: estimating uncertainty in dataset labels,
JAIR 70: `confident_counts`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from kernelweave._types import Floats, Indices


@dataclass(frozen=True)
class NoiseOptions:
    """Constants of the estimates, as in the runs of docs/experiments/noisy-labels.md."""

    tail: float = 0.05  # share of the examples at each end whose true class is taken as certain
    few: int = 60  # examples below which a tail of 5 % holds fewer than three
    rates: tuple[float, float] = (0.02, 0.48)  # smallest and largest rate of wrong labels
    least_width: float = 0.04  # of the range of scores, below which nothing was learned
    probabilities: tuple[float, float] = (0.02, 0.98)  # ends of the probability of a true class
    sure_part: int = 10  # of several classes, one example in this many is taken as certain
    least_gain: float = 8.0  # twice the log likelihood ratio beyond chance; chosen by hand


OPTIONS = NoiseOptions()
TAIL = OPTIONS.tail


def score_range(
    scores: Floats, tail: float = TAIL, top: float | None = None
) -> tuple[float, float]:
    """Return the ends of the range of scores: quantiles, or means of three of few examples."""
    if len(scores) < OPTIONS.few:
        ordered = np.sort(scores)
        return float(ordered[:3].mean()), float(ordered[-3:].mean())
    low, high = np.quantile(scores, [tail, 1.0 - (tail if top is None else top)])
    return float(low), float(high)


@dataclass(frozen=True)
class Range:
    """The range of the scores of two classes, with the rates and probabilities it implies."""

    low: float  # score of examples whose true label is certainly -1
    high: float  # likewise +1
    rates: tuple[float, float]  # shares of -1 and of +1 that carry the other label

    @classmethod
    def of(
        cls, scores: Floats, *, tail: float = TAIL, shift: float = 1.0, middle: float | None = None
    ) -> Range:
        """Estimate the range from scores.

        A ``shift`` below one moves its middle towards 0, the middle for equal rates; a given
        ``middle`` moves it there.
        """
        low, high = score_range(scores, tail)
        centre = shift * 0.5 * (low + high) if middle is None else middle
        half = 0.5 * (high - low)
        low, high = centre - half, centre + half
        rates = np.clip([0.5 * (1.0 + low), 0.5 * (1.0 - high)], *OPTIONS.rates)
        return cls(low, high, (float(rates[0]), float(rates[1])))

    @classmethod
    def known(cls, q_minus: float, q_plus: float) -> Range:
        """Return the range that follows from known rates."""
        return cls(2.0 * q_minus - 1.0, 1.0 - 2.0 * q_plus, (q_minus, q_plus))

    @property
    def middle(self) -> float:
        """The score at which both true classes are equally likely."""
        return 0.5 * (self.low + self.high)

    @property
    def width(self) -> float:
        """Length of the range, bounded below so that division does not amplify rounding error."""
        return max(self.high - self.low, OPTIONS.least_width)

    @property
    def is_empty(self) -> bool:
        """Whether all scores are about the same."""
        return self.high - self.low < OPTIONS.least_width

    def clean(self, scores: Floats) -> Floats:
        """Return the probability of a true +1, regardless of the observed label."""
        return np.clip(0.5 + (scores - self.middle) / self.width, *OPTIONS.probabilities)

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
    """Probabilities of the true class and rates of wrong labels of several classes."""

    clean: Floats  # (n_samples, n_classes): of the true class, regardless of the observed label
    rates: Floats  # row c: probabilities of the observed labels of examples of class c
    is_empty: bool  # whether all scores are about the same

    @classmethod
    def of(
        cls, scores: Floats, codes: Indices, *, tail: float = TAIL, rates: Floats | None = None
    ) -> Transition:
        """Estimate probabilities and, unless they are given, rates from scores."""
        n, n_classes = scores.shape
        shares = np.bincount(codes, minlength=n_classes) / n
        # A rare class has few certain examples: a tenth of those that carry its label.
        top = shares / OPTIONS.sure_part
        ends = [score_range(scores[:, c], tail, top[c]) for c in range(n_classes)]
        low, high = np.array(ends).T
        width = np.maximum(high - low, 0.5 * OPTIONS.least_width)
        clean = np.maximum((scores - low) / width, OPTIONS.probabilities[0])
        clean /= clean.sum(axis=1, keepdims=True)
        if rates is None:
            rows = []
            for c in range(n_classes):
                surest = np.argsort(-clean[:, c], kind="stable")[
                    : max(3, int(n * shares[c] / OPTIONS.sure_part))
                ]
                rows.append(np.maximum(scores[surest].mean(axis=0), 0.001))
            rates = np.array(rows)
            rates /= rates.sum(axis=1, keepdims=True)
        return cls(clean, rates, bool((high - low < 0.5 * OPTIONS.least_width).all()))

    def posterior(self, codes: Indices) -> Floats:
        """Return probabilities of the true class, given the observed labels."""
        joint = self.clean * np.maximum(self.rates[:, codes].T, 1e-12)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def two_class_quality(scores: Floats, signs: Floats, threshold: float, width: float) -> Floats:
    """Return the quality of every label, between 0 and 1, strictly increasing in its margin."""
    # 1 / (1 + exp(-4 u)), where the margin u is 1 at the certain end of the range.
    return np.asarray(expit(8.0 * signs * (scores - threshold) / width))


def margins(scores: Floats, codes: Indices) -> Floats:
    """Return by how much the score of the observed label exceeds the best of the others."""
    rows = np.arange(len(codes))
    others = scores.copy()
    others[rows, codes] = -np.inf
    return np.asarray(scores[rows, codes] - others.max(axis=1))


def margin_quality(margin: Floats) -> Floats:
    """Return the quality of every label, between 0 and 1, strictly increasing in its margin."""
    size = float(np.quantile(np.abs(margin), 0.95))
    return np.asarray(expit(4.0 * margin / max(size, 1e-12)))


def in_order_of(values: Floats, quality: Floats) -> Floats:
    """Return the same values, the largest for the label of the lowest quality.

    Of more than two classes, probabilities from the estimated rates fit the share of wrong labels,
    but rank single labels up to 13 points of AUC worse than their margins (images of eight scenes,
    labelled by people).
    """
    out = np.empty_like(values)
    out[np.argsort(quality, kind="stable")] = np.sort(values)[::-1]
    return out


def two_class_matrix(rates: tuple[float, float]) -> Floats:
    """Return rates as a matrix: row c holds the probabilities of observed labels of class c."""
    q_minus, q_plus = rates
    return np.array([[1.0 - q_minus, q_minus], [q_plus, 1.0 - q_plus]])


def confident_counts(probabilities: Floats, codes: Indices) -> Floats:
    """Return estimated shares of (observed, true) labels by counting confident examples.

    An example counts for class c when its probability of c is at least the mean probability of c
    among the examples labelled c; of several such classes the most probable. Rows are rescaled to
    the counts of observed labels.
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
    joint[empty, empty] = 1.0  # without confident examples the labels are taken as right
    joint *= (counts / joint.sum(axis=1))[:, None]
    return np.asarray(joint / n)
