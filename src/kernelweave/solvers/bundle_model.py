"""The small quadratic program of a bundle step: weights that minimise a model of the objective."""

from __future__ import annotations

import numpy as np

from kernelweave import _core
from kernelweave._types import Bools, Floats


def minimise_model(cuts: Floats, slopes: Floats, M: Floats, centre: Floats) -> Floats:
    """Minimise ``max_k(cuts_k + slopes_k . x) + (x - centre)' M (x - centre) / 2`` on the simplex.

    A primal-dual interior point method, then one exact solve on the support it finds: without that
    the outer method stalls at the accuracy of the interior point.

    Parameters
    ----------
    cuts : ndarray of shape (n_cuts,)
        Constants of the linear pieces.
    slopes : ndarray of shape (n_cuts, n_weights)
        Their slopes.
    M : ndarray of shape (n_weights, n_weights)
        Positive definite.
    centre : ndarray of shape (n_weights,)
        A point of the simplex.

    Returns
    -------
    x : ndarray of shape (n_weights,)
        Non-negative, sum one, small entries exactly zero.
    """
    size = max(float(np.abs(slopes).max(initial=0.0)), 1e-300)
    cuts, slopes = (cuts - cuts.max()) / size, np.ascontiguousarray(slopes / size)
    M = np.ascontiguousarray(M / size)
    x, reduced, slack, multipliers = _core.solve_bundle_model(cuts, slopes, M, centre)
    # Near the solution one of each complementary pair is far larger than the other.
    guesses = [(x > reduced, multipliers > slack)]
    guesses += [(x > small, multipliers > small) for small in (1e-6, 1e-8, 1e-4)]
    for support, active in guesses:
        polished = _polish(cuts, slopes, M, centre, support, active)
        if polished is not None:
            x = polished
            break
    # What a weight does is its product with a slope: a tiny weight of a huge kernel is not small.
    effect = x * np.abs(slopes).max(axis=0)
    x = np.where((x < 1e-8) & (effect < 1e-10 * effect.sum()), 0.0, x)
    return np.asarray(x / x.sum())


def _polish(
    cuts: Floats,
    slopes: Floats,
    M: Floats,
    centre: Floats,
    in_support: Bools,
    is_active: Bools,
) -> Floats | None:
    """Solve the optimality conditions on the support exactly; None if the guess was wrong."""
    support, active = np.flatnonzero(in_support), np.flatnonzero(is_active)
    if not len(support) or not len(active):
        return None
    s, a = len(support), len(active)
    # Unknown: x on the support, multipliers of the active cuts, t, nu.
    system = np.zeros((s + a + 2, s + a + 2))
    side = np.zeros(s + a + 2)
    rows = M[support]
    system[:s, :s] = rows[:, support]
    system[:s, s : s + a] = slopes[np.ix_(active, support)].T
    system[:s, -1] = 1.0
    side[:s] = rows @ centre
    system[s : s + a, :s] = slopes[np.ix_(active, support)]
    system[s : s + a, -2] = -1.0
    side[s : s + a] = -cuts[active]
    system[-2, s : s + a] = 1.0
    side[-2] = 1.0
    system[-1, :s] = 1.0
    side[-1] = 1.0
    solved = np.linalg.lstsq(system, side, rcond=1e-14)[0]
    out = np.zeros(len(centre))
    out[support] = solved[:s]
    lam = np.zeros(len(cuts))
    lam[active] = solved[s : s + a]
    if out.min() < 0 or lam.min() < -1e-9 or np.abs(system @ solved - side).max() > 1e-9:
        return None
    reduced = M @ (out - centre) + lam @ slopes + solved[-1]
    values = cuts + slopes @ out
    if reduced.min() < -1e-7 or values.max() > solved[-2] + 1e-9:
        return None
    return out
