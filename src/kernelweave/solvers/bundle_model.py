"""The small quadratic program of a bundle step: weights that minimise a model of the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

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
    cuts, slopes, M = (cuts - cuts.max()) / size, slopes / size, M / size
    with np.errstate(all="ignore"):  # it stops where numbers end
        x, reduced, slack, multipliers = _interior_point(cuts, slopes, M, centre)
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


def _interior_point(
    cuts: Floats, slopes: Floats, M: Floats, centre: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return x, its reduced costs, slacks and multipliers of the cuts (Mehrotra's method)."""
    k, c = len(centre), len(cuts)
    A = np.column_stack([-slopes, np.ones(c)])  # slack of each cut = A [x, t] - cuts
    x = 0.9 * centre + 0.1 / k
    t = float((cuts + slopes @ x).max()) + 1.0
    slack = t - cuts - slopes @ x
    z, multipliers, nu = np.ones(k), np.full(c, 1.0 / c), 0.0
    best = x, z, slack, multipliers
    for _ in range(50):
        best = x, z, slack, multipliers
        off = t - cuts - slopes @ x - slack
        gradient = np.append(M @ (x - centre) - z + nu, 1.0) - A.T @ multipliers
        balance = x.sum() - 1.0
        mu = (x @ z + slack @ multipliers) / (k + c)
        if mu < 1e-14 and np.abs(gradient).max() < 1e-11 and abs(balance) < 1e-13:
            break
        system = _NewtonSystem.build(A, M, x, z, slack, multipliers, gradient, off, balance)
        if system is None:
            break  # as far as the arithmetic goes; the polish does the rest
        step, _, step_s, step_z, step_m = system.direction(np.zeros(k), np.zeros(c))
        ahead = min(_room(x, step[:k]), _room(slack, step_s))
        back = min(_room(z, step_z), _room(multipliers, step_m))
        mu_after = (x + ahead * step[:k]) @ (z + back * step_z)
        mu_after += (slack + ahead * step_s) @ (multipliers + back * step_m)
        target = mu * (mu_after / ((k + c) * mu)) ** 3
        step, step_nu, step_s, step_z, step_m = system.direction(
            target - step[:k] * step_z, target - step_s * step_m
        )
        ahead = 0.995 * min(_room(x, step[:k]), _room(slack, step_s))
        back = 0.995 * min(_room(z, step_z), _room(multipliers, step_m))
        x, t, slack = x + ahead * step[:k], t + ahead * float(step[k]), slack + ahead * step_s
        z, multipliers, nu = z + back * step_z, multipliers + back * step_m, nu + back * step_nu
    return best


@dataclass(frozen=True)
class _NewtonSystem:
    """The linearised optimality conditions at one iterate, factored once for two right sides."""

    A: Floats
    x: Floats
    z: Floats
    slack: Floats
    multipliers: Floats
    gradient: Floats
    off: Floats
    balance: float
    factor: Floats
    border: Floats

    @classmethod
    def build(
        cls,
        A: Floats,
        M: Floats,
        x: Floats,
        z: Floats,
        slack: Floats,
        multipliers: Floats,
        gradient: Floats,
        off: Floats,
        balance: float,
    ) -> _NewtonSystem | None:
        k = len(x)
        barrier = A.T @ ((multipliers / slack)[:, None] * A)
        barrier[:k, :k] += M
        barrier[np.arange(k), np.arange(k)] += z / x
        if not np.isfinite(barrier).all():
            return None
        # LAPACK itself: at this size its wrappers cost more than the work.
        factor, failed = dpotrf(barrier, lower=1)
        if failed:
            return None
        ones = np.ones(k + 1)
        ones[k] = 0.0
        border = dpotrs(factor, ones, lower=1)[0]
        return cls(A, x, z, slack, multipliers, gradient, off, balance, factor, border)

    def direction(
        self, target_x: Floats, target_s: Floats
    ) -> tuple[Floats, float, Floats, Floats, Floats]:
        """Return steps of [x, t], nu, slack, z and multipliers towards given products."""
        k, ratio = len(self.x), self.multipliers / self.slack
        side = -self.gradient
        side[:k] += target_x / self.x - self.z
        side += self.A.T @ (target_s / self.slack - self.multipliers - ratio * self.off)
        base = dpotrs(self.factor, side, lower=1)[0]
        step_nu = float((base[:k].sum() + self.balance) / self.border[:k].sum())
        step = base - step_nu * self.border
        step_s = self.A @ step + self.off
        step_z = target_x / self.x - self.z - self.z / self.x * step[:k]
        step_m = target_s / self.slack - self.multipliers - ratio * step_s
        return step, step_nu, step_s, step_z, step_m


def _room(values: Floats, step: Floats) -> float:
    """Return how far a step may go before a value reaches zero, at most one."""
    falling = step < 0
    return float(min(1.0, (-values[falling] / step[falling]).min(initial=np.inf)))


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
