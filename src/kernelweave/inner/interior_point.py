"""The problem for one fixed kernel and one output by an interior point method.

Pair updates are slow, and the set of free coefficients changes too often for exact solves on it,
where costs are huge and the kernel is badly conditioned. The number of steps here hardly depends on
either, but each factorises a matrix over all rows.

References
----------
S. Mehrotra (1992), On the implementation of a primal-dual interior point method, SIAM J. Optim. 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._types import Floats


@dataclass(frozen=True)
class InteriorOptions:
    """Tunable numbers of `solve_interior`, chosen by hand."""

    max_steps: int = 80
    max_idle: int = 5  # steps without a smaller gap before giving up
    short: float = 0.995  # share of the way to the nearest bound
    rank: float = 1e-15  # pivots, relative to the largest diagonal entry, at which a factor ends


_OPTIONS = InteriorOptions()


def solve_interior(
    K: Floats,
    y: Floats,
    lower: Floats,
    upper: Floats,
    ridge: Floats,
    dead_zone: float,
    *,
    intercept: bool,
) -> Floats:
    """Return the minimiser of ``1/2 b'(K + diag d)b - y'b + e |b|_1`` over a box.

    Mehrotra's predictor and corrector steps. An absolute value splits its coefficients into a
    positive and a negative part; the system of a step is one of the scores ``L'b``, where
    ``K = L L'``, because one of the coefficients would lose those that the kernel hardly sees.

    Bounds are finite, with zero between them and not both zero. With an intercept coefficients sum
    to zero.
    """
    if intercept:  # a part that coefficients of sum zero do not see would hide the rest
        means = K.mean(axis=0)
        K = K - means - means[:, None] + means.mean()
    with np.errstate(all="ignore"):  # a gap that overflows is no gain, and ends the search
        found = _search(_State(factor(K), y, lower, upper, ridge, dead_zone, intercept))
    return np.clip(found, lower, upper)


def _search(state: _State) -> Floats:
    best, smallest, idle = np.zeros(len(state.y)), np.inf, 0
    for _ in range(_OPTIONS.max_steps):
        gap = state.measure()
        if gap < smallest:
            best, smallest, idle = state.beta, gap, 0
        else:
            idle += 1
        if idle > _OPTIONS.max_idle or not state.factorise():
            break
        zero = np.zeros(len(state.width))
        dx, _, dlow, dhigh = state.newton(zero, zero)
        part = min(1.0, state.longest(dx, dlow, dhigh))
        after = (state.low + part * dlow) @ (state.to_low + part * dx)
        after += (state.high + part * dhigh) @ (state.to_high - part * dx)
        share = max(float(after) / state.products, 0.0)
        aim = share**3 * state.products / (2 * len(zero))
        state.move(*state.newton(aim - dx * dlow, aim + dx * dhigh))
    return best


class _State:
    """Coefficients ``sign * (base + to_low)``, joined, with the multipliers of their bounds."""

    def __init__(
        self,
        L: Floats,
        y: Floats,
        lower: Floats,
        upper: Floats,
        ridge: Floats,
        dead_zone: float,
        intercept: bool,
    ) -> None:
        self.L, self.y, self.ridge = L, y, ridge
        self.dead_zone, self.intercept = dead_zone, intercept
        n = len(y)
        if dead_zone > 0.0:
            self.sign, self.base = np.repeat([1.0, -1.0], n), np.zeros(2 * n)
            self.width = np.concatenate([upper, -lower])
        else:
            self.sign, self.base, self.width = np.ones(n), lower, upper - lower
        self.size = max(float(np.abs(y).max()), dead_zone, 1e-300)
        self.bias = 0.0
        self.to_low = 0.5 * self.width
        if intercept and not dead_zone > 0.0:  # begin with a sum of zero
            above, below = upper.sum(), -lower.sum()
            least = 0.5 * min(above, below)
            self.to_low = least / above * upper + least / below * lower - lower
        self.to_high = self.width - self.to_low
        self.low = self.high = np.full(len(self.sign), self.size)
        self.measure()
        # Multipliers that leave no error, however large the first slopes are.
        self.low = self.low + np.maximum(self.error, 0.0)
        self.high = self.high - np.minimum(self.error, 0.0)

    def join(self, x: Floats) -> Floats:
        return np.asarray((self.sign * x).reshape(-1, len(self.y)).sum(axis=0))

    def split(self, v: Floats) -> Floats:
        return self.sign * np.resize(v, len(self.sign))

    def measure(self) -> float:
        """Return the duality gap, plus the errors of the equations weighted by the widths."""
        L, y = self.L, self.y
        self.beta = self.join(self.base + self.to_low)
        slope = L @ (L.T @ self.beta) + self.ridge * self.beta - y + self.bias
        self.error = self.dead_zone + self.split(slope) - self.low + self.high
        self.excess = float(self.beta.sum()) if self.intercept else 0.0
        self.products = float(self.low @ self.to_low + self.high @ self.to_high)
        errors = float(np.abs(self.error) @ self.width) + self.size * abs(self.excess)
        return self.products + errors

    def factorise(self) -> bool:
        """Prepare the systems of a step; return whether the factorisation succeeded."""
        self.barrier = self.low / self.to_low + self.high / self.to_high
        self.joined = 1.0 / (1.0 / self.barrier).reshape(-1, len(self.y)).sum(axis=0)
        self.inverse = 1.0 / (self.joined + self.ridge)
        system = self.L.T @ (self.inverse[:, None] * self.L)
        system[np.diag_indices_from(system)] += 1.0
        try:
            self.factor = scipy.linalg.cho_factor(system, lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # nothing is left but rounding
            return False
        self.across, self.across_slope = self._solve(self.sign)
        return True

    def _solve(self, side: Floats) -> tuple[Floats, Floats]:
        """Return the joined step at which slopes and barriers make up a side, and its slopes."""
        pull = self.joined * self.join(side / self.barrier)
        scores = scipy.linalg.cho_solve(
            self.factor, self.L.T @ (self.inverse * pull), check_finite=False
        )
        fitted = self.L @ scores
        step = self.inverse * (pull - fitted)
        return step, fitted + self.ridge * step

    def newton(self, low_aim: Floats, high_aim: Floats) -> tuple[Floats, float, Floats, Floats]:
        """Return the step at which products of distances and multipliers would be these."""
        low, high, to_low, to_high = self.low, self.high, self.to_low, self.to_high
        side = low_aim / to_low - high_aim / to_high - low + high - self.error
        step, rise = self._solve(side)
        change = 0.0
        if self.intercept:
            change = float((step.sum() + self.excess) / self.across.sum())
            rise = rise + change * (1.0 - self.across_slope)
        dx = (side - self.split(rise)) / self.barrier
        dlow = (low_aim - low * dx) / to_low - low
        return dx, change, dlow, (high_aim + high * dx) / to_high - high

    def longest(self, dx: Floats, dlow: Floats, dhigh: Floats) -> float:
        """Return the longest step that leaves distances and multipliers positive."""
        values = np.concatenate([self.to_low, self.to_high, self.low, self.high])
        changes = np.concatenate([dx, -dx, dlow, dhigh])
        return 1.0 / max(float((-changes / values).max()), 1e-300)

    def move(self, dx: Floats, change: float, dlow: Floats, dhigh: Floats) -> None:
        """Go along a step, nearly as far as possible."""
        part = min(1.0, _OPTIONS.short * self.longest(dx, dlow, dhigh))
        self.to_low, self.to_high = self.to_low + part * dx, self.to_high - part * dx
        self.low, self.high = self.low + part * dlow, self.high + part * dhigh
        self.bias += part * change


def factor(K: Floats) -> Floats:
    """Return ``L`` with ``L L'`` equal to a kernel, but for rounding."""
    scale = float(np.diagonal(K).max())
    packed, pivots, rank, _ = scipy.linalg.lapack.dpstrf(K, tol=_OPTIONS.rank * scale, lower=1)
    L = np.zeros((len(K), max(1, rank)))
    L[pivots - 1, :rank] = np.tril(packed)[:, :rank]
    return L
