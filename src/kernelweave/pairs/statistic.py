"""LKCnpc's statistic of the true pair labels, estimated from noisy labels.

Labels enter logistic regression on pairs only through the contrast ``mean(t k)`` of true label and
kernel values. If the observed label s is independent of the kernel values given the true label t,
the contrast follows from the means by observed label and the rates of right labels.

References
----------
Yang, Jin and Jain (2012), Learning kernel combination from noisy pairwise constraints, IEEE SSP:
problem (2), estimate (6), Theorem 2. The print of (6) has ``A B`` where ``A B'`` is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError

SINGULAR = 0.02  # |d+ + d- - 1| below this: labels carry no information; chosen by hand


@dataclass(frozen=True)
class Rates:
    """Rates of right pair labels.

    Parameters
    ----------
    reliability : tuple of float
        Share of truly same pairs among those labelled +1, and of truly different ones among those
        labelled -1.
    prior : float
        Share of truly same pairs among all.
    """

    reliability: tuple[float, float]
    prior: float

    @property
    def matrix(self) -> Floats:
        """``B``: column y is the distribution of the true label given the observed label y."""
        up, down = self.reliability
        return np.array([[up, 1.0 - down], [1.0 - up, down]])

    @property
    def excess(self) -> float:
        """``d+ + d- - 1``, the determinant of ``B``; zero for labels without information."""
        return self.reliability[0] + self.reliability[1] - 1.0


@dataclass(frozen=True)
class Statistic:
    """Means of kernel values over truly same and truly different pairs, and their contrast.

    Parameters
    ----------
    contrast : ndarray of shape (n_kernels,)
        ``p+ z+ - p- z-``, the estimate of the mean of true label times kernel value.
    same, different : ndarray of shape (n_kernels,)
        ``z+`` and ``z-``.
    mean : ndarray of shape (n_kernels,)
        Mean over all pairs.
    """

    contrast: Floats
    same: Floats
    different: Floats
    mean: Floats

    @property
    def impossible(self) -> float:
        """Share of kernels, among those that occur, with a negative mean for different pairs.

        For kernels without negative values such a mean is impossible, so a large share shows that
        label errors depend on the kernel values.
        """
        there = self.mean > 0
        return float((self.different[there] < 0).mean()) if there.any() else 0.0


def check_rates(reliability: Any, prior: Any, share: float, *, flipped: bool = False) -> Rates:
    """Return checked rates; a missing prior is ``B q`` with q the shares of the labels.

    ``share`` is the share of pairs labelled +1; ``flipped`` allows labels that are wrong more often
    than right.
    """
    try:
        up, down = (float(d) for d in reliability)
    except (TypeError, ValueError):
        raise InputError(
            "reliability: must be two numbers, the shares of right labels among +1 and among -1, "
            f"got {reliability!r}."
        ) from None
    if not (0 <= up <= 1 and 0 <= down <= 1):
        raise InputError(f"reliability: both shares must lie in [0, 1], got {reliability!r}.")
    excess = up + down - 1.0
    if abs(excess) < SINGULAR:
        raise InputError(
            f"reliability: labels with {up:g} + {down:g} right are no better than random; the "
            f"sum must differ from 1 by {SINGULAR} at least."
        )
    if excess < 0 and not flipped:
        raise InputError(
            f"reliability: with {up:g} + {down:g} < 1 the labels are wrong more often than right. "
            "Hint: change their signs, and give (1 - d_minus, 1 - d_plus)."
        )
    if prior is None:
        prior = up * share + (1.0 - down) * (1.0 - share)
    prior = float(prior)
    if not 0 <= prior <= 1:
        raise InputError(f"prior: the share of same pairs must lie in [0, 1], got {prior!r}.")
    return Rates((up, down), prior)


def correct_statistic(
    same: Floats, different: Floats, share: float, rates: Rates, *, nonneg: bool = False
) -> Statistic:
    """Estimate the means over truly same and different pairs from those over labelled ones.

    Solves ``min |Z B - A|_F^2`` subject to ``Z p = a`` in closed form, equation (6) corrected,
    where ``A`` holds the means by label, ``B`` and ``p`` the rates and ``a`` the mean of all pairs.

    ``same`` and ``different`` are the means over the pairs labelled +1 and -1, ``share`` the share
    of pairs labelled +1. ``nonneg`` adds ``Z >= 0``, for kernels without negative values.
    """
    mean = share * same + (1.0 - share) * different
    A = np.column_stack([same, different])
    B = rates.matrix
    p = np.array([rates.prior, 1.0 - rates.prior])
    free = A @ np.linalg.inv(B)  # the minimiser without the constraint
    g = np.linalg.solve(B @ B.T, p)
    Z = free + np.outer(mean - free @ p, g) / (p @ g)
    up, down = Z.T
    if nonneg:
        if not 0 < rates.prior < 1:
            raise InputError(
                "prior: with correction='nonneg' the share of same pairs must lie strictly between "
                f"0 and 1, got {rates.prior!r}."
            )
        # On Z p = a each row has one degree of freedom and a convex objective: clipping is exact.
        up = np.clip(up, 0.0, mean / p[0])
        down = np.maximum((mean - p[0] * up) / p[1], 0.0)  # below zero by rounding only
    return Statistic(p[0] * up - p[1] * down, up, down, mean)


def theory_constants(rates: Rates, share: float) -> tuple[float, float]:
    """Return the constant C of Theorem 2, and a smaller one that holds as well."""
    e = rates.excess
    f = 1.0 + abs(rates.reliability[0] - rates.reliability[1])
    rare = min(share, 1.0 - share)
    p = np.array([rates.prior, 1.0 - rates.prior])
    published = 4 * f**4 / (p @ p * e**4) + 32 * (e**6 * f + f**7) / (rare**2 * e**8)
    B = rates.matrix
    g = np.linalg.solve(B @ B.T, p)
    signed = np.array([p[0], -p[1]])
    c = float(g @ signed) / float(p @ g)
    h = np.linalg.solve(B, signed - c * p)
    # b - E b is c (a - E a) plus h times the deviations of the means by label.
    own = (abs(c) + float(np.abs(h).sum()) / np.sqrt(rare)) ** 2
    return float(published), float(own)


def estimate_pair_rates(
    labels: Any, truth: Any, *, share: float | None = None, literal: bool = False
) -> Rates:
    """Estimate the rates of right pair labels from a sample with known truth.

    Parameters
    ----------
    labels : array of shape (n_pairs,)
        The unreliable labels of the sample, +1 or -1; best half of each.
    truth : array of shape (n_pairs,)
        The true ones.
    share : float, optional
        Share of +1 among all labelled pairs, the sample's by default.
    literal : bool, default=False
        Use plain shares and the sample's own share of same pairs, as published. Otherwise one pair
        of each kind is added to every count, and the share of same pairs follows from `share`, so
        that the two are consistent.

    Returns
    -------
    rates : Rates
        ``reliability`` and ``prior``.

    Examples
    --------
    >>> from kernelweave import estimate_pair_rates
    >>> rates = estimate_pair_rates([1, 1, 1, 1, -1, -1], [1, 1, 1, -1, -1, -1], literal=True)
    >>> rates.reliability, rates.prior
    ((0.75, 1.0), 0.5)
    """
    s, t = np.asarray(labels), np.asarray(truth)
    known = all(a.ndim == 1 and a.dtype.kind in "iuf" and (abs(a) == 1).all() for a in (s, t))
    if s.shape != t.shape or not known:
        raise InputError(
            "labels and truth: must be +1 or -1 for the same pairs, got arrays of shape "
            f"{s.shape} and {t.shape}."
        )
    for sign, word in ((1.0, "+1"), (-1.0, "-1")):
        if not (s == sign).any():
            raise InputError(
                f"labels: the sample has no pair labelled {word}. Hint: sample the same number of "
                "pairs of either label."
            )
    extra = 0 if literal else 1
    d = [
        (float(((s == sign) & (t == sign)).sum()) + extra) / (float((s == sign).sum()) + 2 * extra)
        for sign in (1.0, -1.0)
    ]
    if literal:
        return Rates((d[0], d[1]), float((t > 0).mean()))
    q = float((s > 0).mean()) if share is None else float(share)
    if not 0 < q < 1:
        raise InputError(f"share: must lie strictly between 0 and 1, got {share!r}.")
    return Rates((d[0], d[1]), d[0] * q + (1.0 - d[1]) * (1.0 - q))
