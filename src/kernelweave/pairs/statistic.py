"""Estimates of the statistic of true pair labels from noisy ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError

SINGULAR = 0.02  # |d+ + d- - 1| below this: the labels say nothing


@dataclass(frozen=True)
class Rates:
    """How far labels of pairs can be trusted.

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
        """``B``: a column for each label, with the law of the truth given it."""
        up, down = self.reliability
        return np.array([[up, 1.0 - down], [1.0 - up, down]])

    @property
    def excess(self) -> float:
        """``d+ + d- - 1``, the determinant of ``B``: zero where labels say nothing."""
        return self.reliability[0] + self.reliability[1] - 1.0


@dataclass(frozen=True)
class Statistic:
    """Means of kernel values over truly same and truly different pairs, and their contrast.

    Parameters
    ----------
    contrast : ndarray of shape (n_kernels,)
        ``p+ z+ - p- z-``, which takes the place of the mean of label times kernel value.
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

        Kernels without negative values cannot have one, so a large share tells that the labels do
        not err at random.
        """
        there = self.mean > 0
        return float((self.different[there] < 0).mean()) if there.any() else 0.0


def check_rates(reliability: Any, prior: Any, share: float, *, flipped: bool = False) -> Rates:
    """Check rates given by a user; a missing prior follows from the labels.

    Parameters
    ----------
    reliability : tuple of two floats
        Shares of right labels among +1 and among -1.
    prior : float or None
        Share of truly same pairs.
    share : float
        Share of pairs labelled +1.
    flipped : bool
        Whether labels may be wrong more often than right.
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
            f"reliability: labels with {up:g} + {down:g} right are as good as drawn by lot; the "
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

    Solves ``min |Z B - A|_F^2`` subject to ``Z p = a`` in closed form, where ``A`` holds the means
    by label, ``B`` and ``p`` the rates and ``a`` is the mean of all pairs.

    Parameters
    ----------
    same, different : ndarray of shape (n_kernels,)
        Means over the pairs labelled +1 and -1.
    share : float
        Share of pairs labelled +1.
    rates : Rates
        How far labels can be trusted.
    nonneg : bool
        Whether no mean may be negative; for kernels without negative values.
    """
    mean = share * same + (1.0 - share) * different
    A = np.column_stack([same, different])
    B = rates.matrix
    p = np.array([rates.prior, 1.0 - rates.prior])
    free = A @ np.linalg.inv(B)
    g = np.linalg.solve(B @ B.T, p)
    Z = free + np.outer(mean - free @ p, g) / (p @ g)
    up, down = Z.T
    if nonneg:
        if not 0 < rates.prior < 1:
            raise InputError(
                "prior: with correction='nonneg' the share of same pairs must lie strictly between "
                f"0 and 1, got {rates.prior!r}."
            )
        up = np.clip(up, 0.0, mean / p[0])
        down = np.maximum((mean - p[0] * up) / p[1], 0.0)  # below zero by rounding only
    return Statistic(p[0] * up - p[1] * down, up, down, mean)


def theory_constants(rates: Rates, share: float) -> tuple[float, float]:
    """Return the published constant of the error bound, and a smaller one that holds as well.

    Parameters
    ----------
    rates : Rates
        How far labels can be trusted.
    share : float
        Share of pairs labelled +1.
    """
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
    own = (abs(c) + float(np.abs(h).sum()) / np.sqrt(rare)) ** 2
    return float(published), float(own)
