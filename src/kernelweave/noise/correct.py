"""Correction of a ridge classifier for wrong labels, from its leave-one-out values.

For the square loss, the unbiased loss of Natarajan et al. equals a shift of the threshold to the
middle of the range of scores. A refurbishing pass fits once more, to expected true labels.

References
----------
Natarajan, Dhillon, Ravikumar and Tewari (2013), Learning with noisy labels, NIPS 26, Lemma 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from scipy.special import log_softmax

from kernelweave._types import Bools, Floats, Indices
from kernelweave.ridge import RidgeAverage

from .annotators import Vote
from .report import label_targets
from .scores import (
    OPTIONS,
    TAIL,
    Range,
    Transition,
    in_order_of,
    margin_quality,
    margins,
    score_range,
    two_class_quality,
)

_RARE = 0.25  # share of the labels below which a class may be too rare to see its rate
# The score of the surest rows of a rare class below which its rate, above 0.35, is not believed.
# Of 0, 0.1, 0.2, 0.3 and 0.5 on 240 simulated tables: with 10 % of all labels flipped one table in
# nine fell below the larger class with 0, one in 25 with 0.2, none from 0.3 on.
_SURE = 0.3


@dataclass(frozen=True)
class Correction:
    """A corrected classifier made of an average of ridge models.

    The decision function is the average fitted to `targets`, plus `intercept`, minus `threshold`.
    """

    targets: Floats  # (n_samples, n_outputs), centred
    intercept: Floats  # (n_outputs,): the means removed by centring
    threshold: float  # score above which the second of two classes is predicted; 0 for more
    slope: float  # factor of decision values in the argument of probabilities
    scores: Floats  # (n_samples, n_outputs): leave-one-out values before the threshold
    posterior: Floats  # (n_samples, n_outputs): of the true class (the second of two) given labels
    label_quality: Floats  # as in `LabelReport`
    wrong_label_probability: Floats  # as in `LabelReport`
    rates: Floats  # (q_minus, q_plus) of two classes, else a matrix with rows of probabilities
    suggested: Indices  # the class that the scores suggest
    learned: bool  # whether the scores predict the labels better than chance
    # Of two classes: the share of the correction that was made because of a rare class of which no
    # row is surely (0), or few are; None where it is seen well.
    doubted: float | None = None

    @classmethod
    def of_labels(cls, codes: Indices, certain: Bools | None, **values: Any) -> Correction:
        """Return a correction in which labels that were checked count as right."""
        found = cls(**values)
        if certain is None:
            return found
        return replace(
            found,
            label_quality=np.where(certain, 1.0, found.label_quality),
            wrong_label_probability=np.where(certain, 0.0, found.wrong_label_probability),
            suggested=np.where(certain, codes, found.suggested),
        )


def correct_two(
    average: RidgeAverage,
    codes: Indices,
    *,
    shift: float,
    refurbish: bool,
    cautious: float = 0.0,
    tail: float = TAIL,
    rates: tuple[float, float] | None = None,
    prior: float | None = None,
    certain: Bools | None = None,
) -> Correction:
    """Correct a classifier of two classes, fitted to labels -1 and +1, for wrong labels.

    ``shift`` places the threshold between 0 (at 0) and the middle of the range of scores (at 1),
    unless it follows from known ``rates`` (q_minus, q_plus) or a known ``prior`` of class 1. With
    ``refurbish``, which fits once more, it is ``cautious`` where a rare class is hardly seen.
    ``certain`` marks rows whose label was checked.
    """
    y = label_targets(codes, 2)[:, 0]
    s, soft = average.scores[:, 0], average.soft_scores[:, 0]

    def find(scores: Floats) -> Range:
        if rates is not None:
            return Range.known(*rates)
        middle = None if prior is None else float(np.quantile(scores, 1.0 - prior))
        return Range.of(scores, tail=tail, shift=shift, middle=middle)

    whole = Range.of(s, tail=tail)
    empty = whole.is_empty
    doubted = None
    if refurbish and rates is None and prior is None and not empty:
        doubted = _doubted(whole, y, cautious)
    if doubted is not None:
        shift, refurbish = doubted, False
    found, noise = find(s), find(soft)
    posterior = found.posterior(s, y)
    if certain is not None:
        posterior = np.where(certain, y > 0, posterior)
    z, targets, intercept = s, y - y.mean(), y.mean()
    threshold, width = found.middle, found.width
    if refurbish and not empty:
        z, targets, intercept, first = _refurbish(average, s, y, 2.0 * posterior - 1.0, 0.5)
        low, high = score_range(z, tail)
        width = max(high - low, 1e-12)
        threshold = 0.5 * (low + high)
        if rates is not None:
            threshold = first * found.middle  # expected true labels need no correction
        elif prior is not None:
            threshold = float(np.quantile(z, 1.0 - prior))
    return Correction.of_labels(
        codes,
        certain,
        targets=targets[:, None],
        intercept=np.array([intercept]),
        threshold=threshold,
        slope=2.0 / width,
        scores=z[:, None],
        posterior=posterior[:, None],
        label_quality=two_class_quality(z, y, threshold, width),
        wrong_label_probability=noise.wrong(soft, y),
        rates=np.array(noise.rates),
        suggested=(z > threshold).astype(np.intp),
        doubted=doubted,
        learned=not empty and _gain(average, y[:, None]) > OPTIONS.least_gain,
    )


def _doubted(found: Range, y: Floats, cautious: float) -> float | None:
    """Return the shift where the rate of a rare class is doubtful, else None.

    If even its surest rows carry the other label more often than not, its rate would exceed one
    half: the range shows how rare the class is, not the noise. Of classes that are about as
    frequent as each other, weak kernels alone have this effect.
    """
    if min(np.mean(y > 0), np.mean(y < 0)) >= _RARE:
        return None
    if found.high < 0.0 or found.low > 0.0:
        return 0.0
    sure = found.high if np.mean(y > 0) < 0.5 else -found.low
    return cautious if sure < _SURE else None


def correct_many(
    average: RidgeAverage,
    codes: Indices,
    n_classes: int,
    *,
    refurbish: bool,
    balance: bool = False,
    tail: float = TAIL,
    rates: Floats | None = None,
    certain: Bools | None = None,
) -> Correction:
    """Correct a classifier of three or more classes for wrong labels.

    Estimated rates are used by the refurbishing pass only: correcting decisions by them costs
    accuracy. ``rates`` of shape (n_classes, n_classes) are known rates. With ``balance``, scores
    are calibrated, and probabilities divided by the shares of the labels, so that classes which
    are labelled too rarely are predicted more often.
    """
    Y = label_targets(codes, n_classes)
    S = average.scores
    noise = Transition.of(average.soft_scores, codes, tail=tail, rates=rates)
    found = Transition.of(S, codes, tail=tail, rates=rates)
    posterior = found.posterior(codes)
    if certain is not None:
        posterior = np.where(certain[:, None], Y, posterior)
    Z, targets, intercept = S, Y - Y.mean(axis=0), Y.mean(axis=0)
    if refurbish and not found.is_empty:
        Z, targets, intercept, _ = _refurbish(average, S, Y, posterior, 1.0)
    wrong = 1.0 - noise.posterior(codes)[np.arange(len(codes)), codes]
    slope = _sharpness(Z, posterior)
    if balance and not found.is_empty:
        # Calibration is linear in the scores, and so in the targets of the ridge models.
        vote, shares = Vote.fit(Z, Y), Y.mean(axis=0)
        offsets = vote.offsets - np.log(shares)
        Z, targets = Z @ vote.slopes + offsets, targets @ vote.slopes
        intercept, slope = intercept @ vote.slopes + offsets, 1.0
    quality = margin_quality(margins(Z, codes))
    return Correction.of_labels(
        codes,
        certain,
        targets=targets,
        intercept=intercept,
        threshold=0.0,
        slope=slope,
        scores=Z,
        posterior=posterior,
        label_quality=quality,
        wrong_label_probability=in_order_of(wrong, quality),
        rates=noise.rates,
        suggested=Z.argmax(axis=1).astype(np.intp),
        learned=not found.is_empty and _gain(average, Y) > OPTIONS.least_gain * (n_classes - 1),
    )


def _refurbish(
    average: RidgeAverage, scores: Floats, targets: Floats, expected: Floats, share: float
) -> tuple[Floats, Floats, Floats, float]:
    """Add a fit to expected true labels to that to the given ones, both scaled to one deviation.

    Returns scores, centred targets and their means, and the factor of the fit to given labels.
    """
    again = average.loo(expected.reshape(len(expected), -1)).reshape(scores.shape)
    first, second = share / scores.std(), share / max(float(again.std()), 1e-12)
    means = targets.mean(axis=0), expected.mean(axis=0)
    centred = first * (targets - means[0]) + second * (expected - means[1])
    return (
        first * scores + second * again,
        centred,
        first * means[0] + second * means[1],
        float(first),
    )


def _gain(average: RidgeAverage, Y: Floats) -> float:
    """Return twice the log likelihood ratio of the best model to the constant prediction."""
    n = len(Y)
    alone = float(Y.var(axis=0).sum()) * (n / (n - 1.0)) ** 2  # leave-one-out error of the mean
    return n * float(np.log(alone / max(float(average.errors.min()), 1e-300)))


def _sharpness(Z: Floats, posterior: Floats) -> float:
    """Return the factor of scores whose softmax fits expected true labels best."""

    def loss(log_factor: float) -> float:
        return -float((posterior * log_softmax(np.exp(log_factor) * Z, axis=1)).sum())

    size = max(float(Z.std()), 1e-12)
    found = scipy.optimize.minimize_scalar(loss, bounds=(np.log(0.01 / size), np.log(100.0 / size)))
    return float(np.exp(found.x))
