"""A primal-dual interior point method for the one-kernel problem.

Its number of steps hardly depends on how badly the kernel is conditioned or how large the cost is,
where pair updates would take millions. Each step factors a matrix with as many rows as the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._types import Floats, Indices

_STEPS = 80
_EXACT = 1e-14  # gap at which to stop, relative to the objective
_INSIDE = 0.1  # distance of the first point from its bounds, relative to the mean coefficient
_PATIENCE = 5  # steps that do not lower the gap by a tenth before stopping
_BACK = 0.995  # part of the way to the nearest bound


def solve_interior(
    Q: Floats,
    y: Floats,
    lower: Floats,
    upper: Floats,
    dead_zone: float,
    intercept: bool,
    beta: Floats,
) -> Floats:
    """Minimise ``1/2 beta'Q beta - y'beta + dead_zone |beta|_1`` within boxes.

    Parameters
    ----------
    Q : ndarray of shape (n_samples, n_samples)
        Positive semi-definite.
    y, lower, upper : ndarray of shape (n_samples,)
        Targets and bounds, with zero between the bounds.
    dead_zone : float
        Not negative.
    intercept : bool
        Whether the coefficients must sum to zero.
    beta : ndarray of shape (n_samples,)
        Coefficients to begin near.

    Returns
    -------
    beta : ndarray of shape (n_samples,)
        Coefficients, those next to a bound or to zero exactly there.
    """
    # Unknown u with 0 <= u <= w: positive and negative parts of the coefficients, as far as the
    # boxes allow any.
    rows = np.concatenate([np.flatnonzero(upper > 0), np.flatnonzero(lower < 0)])
    sign = np.where(np.arange(len(rows)) < np.count_nonzero(upper > 0), 1.0, -1.0)
    w = np.where(sign > 0, upper[rows], -lower[rows])
    used, where = np.unique(rows, return_inverse=True)
    Q, n = Q[np.ix_(used, used)], len(used)
    linear = dead_zone - sign * y[rows]

    def collect(values: Floats) -> Floats:
        return _by_row(where, sign * values, n)

    inside = np.minimum(_INSIDE * (float(np.abs(beta).mean()) or np.inf), 0.25 * w)
    u = np.clip(sign * beta[rows], inside, w - inside)
    room = w - u  # kept apart: next to its bound u has no digits left for it
    Qb, nu = Q @ collect(u), 0.0
    slope = sign * Qb[where] + linear
    if intercept:
        nu = -float(np.median(sign * slope))
        slope += sign * nu
    mu = float(np.abs(slope * np.minimum(u, room)).mean()) or 1e-300
    below, above = np.maximum(slope, 0.0) + mu / u, np.maximum(-slope, 0.0) + mu / room
    # Of two unknowns of a row the freer follows from the other, whose step has no cancellation.
    partner = _partners(where, len(rows), n)
    damping = 1e-13 * float(np.trace(Q)) / n  # Q is singular in general, and not exact
    best, least, waited = (u, room, below, above), np.inf, 0
    for _ in range(_STEPS):
        slope = sign * (Qb + nu)[where] + linear
        excess = float(collect(u).sum())
        # That of the pair (u, nu) itself, whatever the multipliers are.
        gap = float(u @ np.maximum(slope, 0.0) + room @ np.maximum(-slope, 0.0))
        gap += abs(excess * nu) if intercept else 0.0
        if gap < 0.9 * least:
            best, least, waited = (u, room, below, above), gap, 0
        elif (waited := waited + 1) >= _PATIENCE:
            break
        if not gap > _EXACT * abs(0.5 * float(collect(u) @ Qb) + float(linear @ u)):
            break
        D = below / u + above / room
        spread = 1.0 / np.bincount(where, weights=1.0 / D, minlength=n)
        M = Q.copy()
        M[np.diag_indices_from(M)] += spread + damping
        try:
            factor = scipy.linalg.cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            damping *= 10.0
            continue
        newton = _Newton(
            Q,
            factor,
            spread,
            D,
            sign,
            where,
            partner,
            slope,
            excess,
            intercept,
            u,
            room,
            below,
            above,
        )
        products = float(below @ u + above @ room)
        nothing = np.zeros_like(u)
        du, dbelow, dabove, _ = newton.step(nothing, nothing)
        part = _longest((u, room, below, above), (du, -du, dbelow, dabove))
        ahead = float(
            (below + part * dbelow) @ (u + part * du) + (above + part * dabove) @ (room - part * du)
        )
        centre = products / (2 * len(u)) * min(1.0, max(ahead / products, 1e-6)) ** 3
        du, dbelow, dabove, dnu = newton.step(centre - dbelow * du, centre + dabove * du)
        part = _BACK * _longest((u, room, below, above), (du, -du, dbelow, dabove))
        u, room = u + part * du, room - part * du
        below, above = below + part * dbelow, above + part * dabove
        nu += part * dnu
        Qb = Q @ collect(u)
    u, room, below, above = best
    # At a bound is what changes no slope by as much as its multiplier when it is moved there.
    reach = n * float(np.diag(Q).max())
    u = np.where(reach * u < below, 0.0, np.where(reach * room < above, w, u))
    out = np.zeros(len(y))
    out[used] = collect(u)
    return out


@dataclass(frozen=True)
class _Newton:
    """Newton's system at one point, factored."""

    Q: Floats
    factor: tuple[Floats, bool]  # of Q plus `spread` on its diagonal
    spread: Floats
    D: Floats
    sign: Floats
    where: Indices
    partner: Indices
    slope: Floats
    excess: float
    intercept: bool
    u: Floats
    room: Floats
    below: Floats
    above: Floats

    def step(self, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Return the step towards ``u * below = low``, ``room * above = high``."""
        u, room, below, above, n = self.u, self.room, self.below, self.above, len(self.Q)
        side = -self.slope + low / u - high / room
        pull = self.spread * _by_row(self.where, self.sign * side / self.D, n)
        solved = scipy.linalg.cho_solve(
            self.factor, np.column_stack([pull, np.ones(n)]), check_finite=False
        )
        db, dnu = solved[:, 0], 0.0
        if self.intercept:
            dnu = (float(db.sum()) + self.excess) / float(solved[:, 1].sum())
            db = db - dnu * solved[:, 1]
        du = (side - self.sign * (self.Q @ db + dnu)[self.where]) / self.D
        alone = self.partner < 0
        freer = alone | (self.D <= self.D[self.partner])
        other = np.where(alone, 0.0, du[self.partner])
        du = np.where(freer, self.sign * db[self.where] + other, du)
        dbelow, dabove = (low - below * du) / u - below, (high + above * du) / room - above
        return du, dbelow, dabove, dnu


def _by_row(where: Indices, values: Floats, n: int) -> Floats:
    """Sum the values of the unknowns of each row."""
    return np.asarray(np.bincount(where, weights=values, minlength=n), dtype=np.float64)


def _partners(where: Indices, n_unknowns: int, n_rows: int) -> Indices:
    """Return the other unknown of the same row, -1 where there is none."""
    first = np.full(n_rows, -1)
    first[where[::-1]] = np.arange(n_unknowns)[::-1]
    last = np.full(n_rows, -1)
    last[where] = np.arange(n_unknowns)
    other = first[where] + last[where] - np.arange(n_unknowns)
    return np.where(first[where] == last[where], -1, other)


def _longest(values: tuple[Floats, ...], steps: tuple[Floats, ...]) -> float:
    """Return the part of a step, at most one, at which the first value becomes zero."""
    at, towards = np.concatenate(values), np.concatenate(steps)
    falls = towards < 0
    return float(min(1.0, (at[falls] / -towards[falls]).min(initial=np.inf)))
