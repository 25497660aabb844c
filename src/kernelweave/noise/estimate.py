"""Estimates of the share of wrong labels, and of the rates between classes.

"range" takes the rates from the ends of the range of leave-one-out scores, "counts" is confident
learning (see `scores`); intervals are by the bootstrap of scores and labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kernelweave._threads import threads
from kernelweave._types import Floats, Indices
from kernelweave.banks import make_bank
from kernelweave.errors import InputError
from kernelweave.kernels import complete_ladder, expand_kernels
from kernelweave.kernels.base import is_number
from kernelweave.ridge.nystroem import uses_nystroem

from .ranking import read_labels
from .report import mean_kernel_scores, mean_row_scores
from .scores import Range, Transition, confident_counts, score_range, two_class_matrix

_MOST = 0.49  # largest level reported: labels wrong more often carry no information
_METHODS = ("range", "counts")


@dataclass(frozen=True, repr=False)
class NoiseEstimate:
    """An estimated share of wrong labels.

    Attributes
    ----------
    level : float
        The share, between 0 and 0.49.
    interval : tuple of float
        Bootstrap interval.
    confidence : float
        Share of the resampled estimates in the interval.
    method : str
        Method of the estimate.
    other : dict
        The estimates of the other methods, by name.
    rates : ndarray of shape (n_classes, n_classes)
        Row c: probabilities of the observed labels of examples whose true class is c.
    classes : ndarray of shape (n_classes,)
        Class labels.
    """

    level: float
    interval: tuple[float, float]
    confidence: float
    method: str
    other: dict[str, float]
    rates: Floats
    classes: NDArray[Any]

    def __repr__(self) -> str:
        low, high = self.interval
        others = ", ".join(f"{name} says {level:.1%}" for name, level in self.other.items())
        return (
            f"about {self.level:.1%} of the labels look wrong by {self.method} "
            f"({self.confidence:.0%} interval {low:.1%} to {high:.1%}; {others})"
        )


@dataclass(frozen=True, repr=False)
class RateEstimate:
    """Estimated shares of wrong labels, class by class.

    Attributes
    ----------
    rates : ndarray of shape (n_classes, n_classes)
        Row c: probabilities of the observed labels of examples whose true class is c.
    lower, upper : ndarray of shape (n_classes, n_classes)
        Bootstrap intervals.
    confidence : float
        Share of the resampled estimates in an interval.
    method : str
        Method of the estimate.
    classes : ndarray of shape (n_classes,)
        Class labels.
    """

    rates: Floats
    lower: Floats
    upper: Floats
    confidence: float
    method: str
    classes: NDArray[Any]

    def __repr__(self) -> str:
        lines = [
            f"observed labels by true class, by {self.method} ({self.confidence:.0%} interval)"
        ]
        for c, true in enumerate(self.classes):
            cells = [
                f"{seen} {self.rates[c, b]:.1%} ({self.lower[c, b]:.1%} to {self.upper[c, b]:.1%})"
                for b, seen in enumerate(self.classes)
            ]
            lines.append(f"  {true}: " + ", ".join(cells))
        return "\n".join(lines)


def estimate_noise(
    X: Any,
    y: Any,
    kernels: Any = None,
    *,
    method: str = "range",
    n_bootstrap: int = 200,
    confidence: float = 0.9,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> NoiseEstimate:
    """Estimate the share of wrong labels.

    Scores are leave-one-out values of ridge regression on the mean of the kernels. Noise and
    overlap of the classes are not identifiable from data alone: the estimate assumes that every
    class has a region where it is nearly certain, and is too high otherwise. Where classes are well
    separated, "range" may be up to half too low, and "counts" is nearer. Put scikit-learn's
    `StandardScaler` in front, as for the estimators.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Training rows.
    y : array of shape (n_samples,)
        Labels.
    kernels : Kernel, KernelFamily, list of both, or None
        Kernels of the scores; None: `complete_ladder`.
    method : {"range", "counts"}
        By the ends of the range of scores (slightly low for few wrong labels), or by counting
        examples that are confidently of another class (slightly high). The other is in ``other``.
    n_bootstrap : int
        Number of bootstrap samples for the interval.
    confidence : float
        Share of the resampled estimates in the interval.
    random_state : int, RandomState or None
        Seed of the bootstrap.
    n_jobs : int or None
        Threads; None: all that the process may use.

    Returns
    -------
    estimate : NoiseEstimate
        With `level`, `interval`, `other` and `rates`. The interval covers the sampling of examples,
        not the overlap of classes.

    References
    ----------
    Northcutt, Jiang and Chuang (2021), Confident learning, JAIR 70.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 2)) + 4 * y[:, None]
    >>> flipped = rng.random(300) < 0.2
    >>> estimate = estimate_noise(X, np.where(flipped, 1 - y, y), random_state=0)
    >>> bool(abs(estimate.level - 0.2) < 0.1)
    True
    """
    scores, codes, classes = _score(X, y, kernels, method, n_bootstrap, confidence, n_jobs)
    level, drawn = _resample(
        lambda s, c: np.array(level_of_scores(s, c, method)),
        scores,
        codes,
        n_bootstrap,
        random_state,
    )
    low, high = np.quantile(drawn, _ends(confidence))
    others = {name: level_of_scores(scores, codes, name) for name in _METHODS if name != method}
    rates = _rates(scores, codes, method)[0]
    return NoiseEstimate(
        float(level), (float(low), float(high)), float(confidence), method, others, rates, classes
    )


def estimate_rates(
    X: Any,
    y: Any,
    kernels: Any = None,
    *,
    method: str = "range",
    n_bootstrap: int = 200,
    confidence: float = 0.9,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> RateEstimate:
    """Estimate the rates at which each class carries each label.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_samples, n_features)
        Training rows.
    y : array of shape (n_samples,)
        Labels.
    kernels : Kernel, KernelFamily, list of both, or None
        Kernels of the scores; None: `complete_ladder`.
    method : {"range", "counts"}
        As in `estimate_noise`.
    n_bootstrap : int
        Number of bootstrap samples for the intervals.
    confidence : float
        Share of the resampled estimates in each interval.
    random_state : int, RandomState or None
        Seed of the bootstrap.
    n_jobs : int or None
        Threads; None: all that the process may use.

    Returns
    -------
    estimate : RateEstimate
        With `rates`, `lower` and `upper`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 300)
    >>> X = rng.normal(size=(300, 2)) + 4 * y[:, None]
    >>> flipped = rng.random(300) < np.where(y == 1, 0.3, 0.0)
    >>> rates = estimate_rates(X, np.where(flipped, 0, y), random_state=0).rates
    >>> bool(rates[0, 1] < 0.05), bool(abs(rates[1, 0] - 0.3) < 0.1)
    (True, True)
    """
    scores, codes, classes = _score(X, y, kernels, method, n_bootstrap, confidence, n_jobs)
    rates, drawn = _resample(
        lambda s, c: _rates(s, c, method)[0], scores, codes, n_bootstrap, random_state
    )
    lower, upper = np.quantile(drawn, _ends(confidence), axis=0)
    return RateEstimate(rates, lower, upper, float(confidence), method, classes)


def _score(
    X: Any,
    y: Any,
    kernels: Any,
    method: str,
    n_bootstrap: int,
    confidence: float,
    n_jobs: int | None,
) -> tuple[Floats, Indices, NDArray[Any]]:
    if method not in _METHODS:
        raise InputError(f"method: must be 'range' or 'counts', got {method!r}.")
    if not is_number(n_bootstrap, Integral) or n_bootstrap < 1:
        raise InputError(f"n_bootstrap: must be a whole number >= 1, got {n_bootstrap!r}.")
    if not is_number(confidence) or not 0 < confidence < 1:
        raise InputError(f"confidence: must lie between 0 and 1, got {confidence!r}.")
    if not (n_jobs is None or is_number(n_jobs, Integral)) or n_jobs == 0:
        raise InputError(f"n_jobs: must be None or a whole number other than 0, got {n_jobs!r}.")
    if y is None:
        raise InputError("y: labels are needed, got None.")
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    codes, classes = read_labels(X, y)
    with threads(n_jobs):
        expanded = expand_kernels([complete_ladder()] if kernels is None else kernels, X)
        grams = any(kernel.is_precomputed for kernel in expanded)
        if uses_nystroem(1, len(codes), np.inf) and not grams:
            average = mean_row_scores(expanded, X, codes, len(classes))
        else:
            average = mean_kernel_scores(make_bank(expanded, X), codes, len(classes))
    return average.soft_scores, codes, classes


def _ends(confidence: float) -> list[float]:
    return [0.5 * (1.0 - confidence), 0.5 * (1.0 + confidence)]


def _resample(
    estimate: Callable[[Floats, Indices], Floats],
    scores: Floats,
    codes: Indices,
    n_bootstrap: int,
    random_state: Any,
) -> tuple[Floats, Floats]:
    """Return an estimate, and the same from bootstrap samples."""
    random = check_random_state(random_state)
    drawn = []
    for _ in range(n_bootstrap):
        rows = random.randint(0, len(codes), len(codes))
        drawn.append(estimate(scores[rows], codes[rows]))
    return estimate(scores, codes), np.array(drawn)


def level_of_scores(scores: Floats, codes: Indices, method: str) -> float:
    """Return the share of wrong labels from leave-one-out scores of power one."""
    rates, shares = _rates(scores, codes, method)
    return float(np.clip(shares @ (1.0 - rates.diagonal()), 0.0, _MOST))


def _rates(scores: Floats, codes: Indices, method: str) -> tuple[Floats, Floats]:
    """Return rates and shares of the true classes."""
    if method == "counts":
        joint = confident_counts(_probabilities(scores), codes)
        shares = joint.sum(axis=0)
        own = np.eye(len(joint))
        rates = np.divide(joint.T, shares[:, None], out=own, where=shares[:, None] > 0)
        return rates, shares
    if scores.shape[1] > 1:
        transition = Transition.of(scores, codes)
        return transition.rates, transition.clean.mean(axis=0)
    low, high = score_range(scores[:, 0])
    q_minus, q_plus = np.clip([0.5 * (1.0 + low), 0.5 * (1.0 - high)], 0.0, _MOST)
    plus = float(Range(low, high, (q_minus, q_plus)).clean(scores[:, 0]).mean())
    return two_class_matrix((q_minus, q_plus)), np.array([1.0 - plus, plus])


def _probabilities(scores: Floats) -> Floats:
    if scores.shape[1] == 1:
        plus = np.clip(0.5 * (scores[:, 0] + 1.0), 0.0, 1.0)
        return np.column_stack([1.0 - plus, plus])
    positive = np.maximum(scores, 1e-12)
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))
