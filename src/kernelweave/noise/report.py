"""Label quality by leave-one-out ridge regression on a bank of kernels."""

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
    TAIL,
    Range,
    Transition,
    margin_quality,
    margins,
    two_class_matrix,
    two_class_quality,
)


@dataclass(frozen=True)
class LabelReport:
    """What is known of the labels of training examples.

    Attributes
    ----------
    label_quality : ndarray of shape (n_samples,)
        Between 0 and 1, increasing in the margin of the label among examples that were left out;
        below one half the label is not the suggested one.
    wrong_label_probability : ndarray of shape (n_samples,)
        Estimated probability that the label is wrong.
    noise_level : float
        Its mean: the share of labels that disagree with what the kernels can learn.
    rates : ndarray of shape (n_classes, n_classes)
        Row c: probabilities of the observed labels of examples whose true class is c.
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Leave-one-out scores; two classes: of the second one.
    suggested : ndarray of shape (n_samples,)
        Code of the class that these scores speak for.
    """

    label_quality: Floats
    wrong_label_probability: Floats
    noise_level: float
    rates: Floats
    scores: Floats
    suggested: Indices


def label_targets(codes: Indices, n_classes: int) -> Floats:
    """Return what regression is fitted to: signs for two classes, else a column for each class."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.asarray(codes[:, None] == np.arange(n_classes), dtype=np.float64)


def mean_kernel_scores(bank: KernelBank, codes: Indices, n_classes: int) -> RidgeAverage:
    """Return leave-one-out values of ridge regression on the mean of a bank's kernels."""
    targets = label_targets(codes, n_classes)
    return average_ridges(bank, targets, joint=True, drop_copies=False)


def judge_labels(bank: KernelBank, codes: Indices, n_classes: int) -> LabelReport:
    """Judge labels by leave-one-out ridge regression on the mean of a bank's kernels.

    One eigendecomposition, nothing iterative. Where all kernels are constant, the shares of the
    classes are all there is to go by.

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
    >>> report = judge_labels(make_bank([RBF(1.0)], x), codes, 2)
    >>> int(report.label_quality.argmin())
    10
    """
    if not bank.centred_traces.any():
        return _nothing_known(codes, n_classes)
    average = mean_kernel_scores(bank, codes, n_classes)
    return judge_scores(average.scores, average.soft_scores, codes)


def judge_rows(kernels: Sequence[Kernel], X: Any, codes: Indices, n_classes: int) -> LabelReport:
    """Judge labels of many rows, which are read in passes; see `judge_labels`.

    Parameters
    ----------
    kernels : sequence of Kernel
        Each counts the same.
    X : array, sparse matrix, data frame or PartedTable
        The rows.
    codes : ndarray of int of shape (n_samples,)
        Labels, from 0 to ``n_classes - 1``.
    n_classes : int
        Two or more.
    """
    try:
        average = mean_row_scores(kernels, X, codes, n_classes)
    except ConstantKernelsError:
        return _nothing_known(codes, n_classes)
    return judge_scores(average.scores, average.soft_scores, codes)


def mean_row_scores(
    kernels: Sequence[Kernel], X: Any, codes: Indices, n_classes: int
) -> RidgeAverage:
    """Return leave-one-out values of ridge regression on the mean of kernels over many rows."""
    targets = label_targets(codes, n_classes)
    fitted = average_ridges_nystroem(kernels, X, targets, joint=True, drop_copies=False)
    return fitted.average


def _nothing_known(codes: Indices, n_classes: int) -> LabelReport:
    """Judge labels by the shares of their classes: all kernels are constant."""
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


def judge_scores(
    scores: Floats, soft: Floats, codes: Indices, *, shift: float = 0.5, tail: float = TAIL
) -> LabelReport:
    """Judge labels by scores of examples that were left out.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, 1) or (n_samples, n_classes)
        Rank labels.
    soft : ndarray of the same shape
        Give rates and probabilities.
    codes : ndarray of int of shape (n_samples,)
        Labels.
    shift : float
        How far the threshold of two classes moves from 0 to the middle of the range.
    tail : float
        Share of examples beyond each end of the range.
    """
    if scores.shape[1] == 1:
        signs = np.where(codes == 1, 1.0, -1.0)
        found = Range.of(scores[:, 0], tail=tail, shift=shift)
        noise = Range.of(soft[:, 0], tail=tail, shift=shift)
        wrong = noise.wrong(soft[:, 0], signs)
        return LabelReport(
            label_quality=two_class_quality(scores[:, 0], signs, found.middle, found.width),
            wrong_label_probability=wrong,
            noise_level=float(wrong.mean()),
            rates=two_class_matrix(noise.rates),
            scores=scores[:, 0],
            suggested=(scores[:, 0] > found.middle).astype(np.intp),
        )
    transition = Transition.of(soft, codes, tail=tail)
    wrong = 1.0 - transition.posterior(codes)[np.arange(len(codes)), codes]
    return LabelReport(
        label_quality=margin_quality(margins(scores, codes)),
        wrong_label_probability=wrong,
        noise_level=float(wrong.mean()),
        rates=transition.rates,
        scores=scores,
        suggested=scores.argmax(axis=1).astype(np.intp),
    )
