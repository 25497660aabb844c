"""Error rates of pair labels, estimated from a few pairs whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave.errors import InputError

from .statistic import Rates


def estimate_pair_rates(
    labels: Any, truth: Any, *, share: float | None = None, literal: bool = False
) -> Rates:
    """Estimate how reliable labels of pairs are from a sample with known truth.

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
        that the two agree.

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
