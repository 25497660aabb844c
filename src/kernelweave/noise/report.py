"""Quality of labels by leave-one-out ridge regression on the mean of several kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.banks import KernelBank
from kernelweave.errors import ConstantKernelsError
from kernelweave.kernels import Kernel
from kernelweave.ridge import RidgeAverage, average_ridges
from kernelweave.ridge.nystroem import average_ridges_nystroem

from .scores import (
    Range,
    Transition,
    in_order_of,
    margin_quality,
    margins,
    two_class_matrix,
    two_class_quality,
)

_SHIFT = 0.5  # of the threshold of two classes, from 0 to the middle of the range of scores


@dataclass(frozen=True)
class LabelReport:
    """Quality of the labels of training examples.

    Attributes
    ----------
    label_quality : ndarray of shape (n_samples,)
        Between 0 and 1, increasing in the leave-one-out margin of the label; below one half
        another label is suggested.
    wrong_label_probability : ndarray of shape (n_samples,)
        Estimated probability that the label is wrong.
    noise_level : float
        Its mean: the estimated share of wrong labels.
    rates : ndarray of shape (n_classes, n_classes)
        Row c: probabilities of the observed labels of examples whose true class is c.
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Leave-one-out scores; two classes: of the second one.
    suggested : ndarray of shape (n_samples,)
        Code of the class that these scores suggest.
    """

    label_quality: Floats
    wrong_label_probability: Floats
    noise_level: float
    rates: Floats
    scores: Floats
    suggested: Indices


def label_targets(codes: Indices, n_classes: int) -> Floats:
    """Return targets of regression: signs for two classes, else an indicator column per class."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.asarray(codes[:, None] == np.arange(n_classes), dtype=np.float64)


def mean_kernel_scores(bank: KernelBank, codes: Indices, n_classes: int) -> RidgeAverage:
    """Return leave-one-out values of ridge regression on the mean of a bank's kernels."""
    targets = label_targets(codes, n_classes)
    return average_ridges(bank, targets, joint=True, drop_copies=False)


def assess_labels(bank: KernelBank, codes: Indices, n_classes: int) -> LabelReport:
    """Assess labels by leave-one-out ridge regression on the mean of a bank's kernels.

    The cost is one eigendecomposition. Where all kernels are constant, the shares of the classes
    are the scores.

    Parameters
    ----------
    bank : KernelBank
        Kernels over the training rows; each counts the same, whatever its scale.
    codes : ndarray of int of shape (n_samples,)
        Labels, from 0 to ``n_classes - 1``.
    n_classes : int
        Two or more.

    Returns
    -------
    report : LabelReport
        Quality and probability of every label, noise level and rates.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.banks import make_bank
    >>> from kernelweave.kernels import RBF
    >>> x = np.linspace(-3, 3, 80)[:, None]
    >>> codes = (x[:, 0] > 0).astype(int)
    >>> codes[10] = 1  # a wrong label
    >>> report = assess_labels(make_bank([RBF(1.0)], x), codes, 2)
    >>> int(report.label_quality.argmin())
    10
    """
    if not bank.centred_traces.any():
        return _shares_report(codes, n_classes)
    average = mean_kernel_scores(bank, codes, n_classes)
    return assess_scores(average.scores, average.soft_scores, codes)


def assess_rows(kernels: Sequence[Kernel], X: Any, codes: Indices, n_classes: int) -> LabelReport:
    """Assess labels by Nystroem features, for large n; see `assess_labels`."""
    try:
        average = mean_row_scores(kernels, X, codes, n_classes)
    except ConstantKernelsError:
        return _shares_report(codes, n_classes)
    return assess_scores(average.scores, average.soft_scores, codes)


def mean_row_scores(
    kernels: Sequence[Kernel], X: Any, codes: Indices, n_classes: int
) -> RidgeAverage:
    """Return leave-one-out values of ridge regression on the mean kernel by Nystroem features."""
    targets = label_targets(codes, n_classes)
    fitted = average_ridges_nystroem(kernels, X, targets, joint=True, drop_copies=False)
    return fitted.average


def _shares_report(codes: Indices, n_classes: int) -> LabelReport:
    """Assess labels by the shares of their classes; all kernels are constant."""
    shares = np.bincount(codes, minlength=n_classes) / len(codes)
    scores = np.repeat((2.0 * shares[1:] - 1.0 if n_classes == 2 else shares)[None], len(codes), 0)
    return LabelReport(
        label_quality=shares[codes],
        wrong_label_probability=1.0 - shares[codes],
        noise_level=float((1.0 - shares[codes]).mean()),
        rates=np.repeat(shares[None], n_classes, 0),
        scores=scores[:, 0] if n_classes == 2 else scores,
        suggested=np.full(len(codes), int(shares.argmax()), dtype=np.intp),
    )


def assess_scores(scores: Floats, soft: Floats, codes: Indices) -> LabelReport:
    """Assess labels by leave-one-out scores of shape (n_samples, 1) or (n_samples, n_classes).

    ``scores`` rank labels, ``soft`` scores give rates and probabilities.
    """
    if scores.shape[1] == 1:
        signs = np.where(codes == 1, 1.0, -1.0)
        found = Range.of(scores[:, 0], shift=_SHIFT)
        noise = Range.of(soft[:, 0], shift=_SHIFT)
        wrong = noise.wrong(soft[:, 0], signs)
        return LabelReport(
            label_quality=two_class_quality(scores[:, 0], signs, found.middle, found.width),
            wrong_label_probability=wrong,
            noise_level=float(wrong.mean()),
            rates=two_class_matrix(noise.rates),
            scores=scores[:, 0],
            suggested=(scores[:, 0] > found.middle).astype(np.intp),
        )
    transition = Transition.of(soft, codes)
    wrong = 1.0 - transition.posterior(codes)[np.arange(len(codes)), codes]
    quality = margin_quality(margins(scores, codes))
    return LabelReport(
        label_quality=quality,
        wrong_label_probability=in_order_of(wrong, quality),
        noise_level=float(wrong.mean()),
        rates=transition.rates,
        scores=scores,
        suggested=scores.argmax(axis=1).astype(np.intp),
    )
