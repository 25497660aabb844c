"""The conditional value at risk of the hinge loss: the mean of its largest values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats

from .base import DualBox, InnerSolver, Loss
from .hinge import Hinge

_HINGE = Hinge(fit_intercept=True)
_ACTIVE = 1e-9  # relative distance from the cap at which it counts as active


@dataclass(frozen=True)
class Ambiguity:
    """The set of weights of losses: ``0 <= alpha_i <= free_i + room_i``, with a cap.

    The cap is on ``sum_i max(0, alpha_i - free_i)``. The largest weighted sum of losses over the
    set is a conditional value at risk (Rockafellar and Uryasev 2000).
    """

    room: Floats  # (n_samples,): how far each weight may go beyond its free part
    total: float  # the largest sum of what is beyond the free parts
    free: Floats | float = 0.0  # (n_samples,): what the cap does not count

    def worst(self, slack: Floats) -> tuple[float, float]:
        """Return the largest ``sum alpha_i slack_i``, and the multiplier of the cap there."""
        loss = np.maximum(slack, 0.0)
        base = float((self.free * loss).sum())
        if self.total >= self.room.sum():
            return base + float(self.room @ loss), 0.0
        order = np.argsort(-loss, kind="stable")
        room = self.room[order]
        left = self.total - (np.cumsum(room) - room)
        taken = np.clip(left, 0.0, room)
        last = max(int(np.searchsorted(-left, 0.0)) - 1, 0)  # the last row with a weight
        return base + float(taken @ loss[order]), float(loss[order[last]])

    def project(self, values: Floats) -> Floats:
        """Return the nearest point of the set."""
        beyond = values - self.free
        inside = np.clip(beyond, 0.0, self.room)
        if inside.sum() > self.total:
            inside = self._lowered(beyond)
        return np.where(beyond > 0, self.free + inside, np.maximum(values, 0.0))

    def _lowered(self, beyond: Floats) -> Floats:
        """Lower everything alike, by an amount found exactly, until the cap holds."""
        # The sum is piecewise linear in the amount, with breakpoints where an entry leaves a bound.
        breaks = np.unique(np.concatenate([beyond, beyond - self.room]))
        low, high = 0, len(breaks) - 1  # the sum is above the cap at low, not above it at high
        while high - low > 1:
            middle = (low + high) // 2
            if np.clip(beyond - breaks[middle], 0.0, self.room).sum() > self.total:
                low = middle
            else:
                high = middle
        centre = 0.5 * (breaks[low] + breaks[high])
        moving = (beyond - self.room < centre) & (beyond > centre)
        full = beyond - self.room >= centre
        amount = breaks[high]  # where nothing moves, all amounts in between give the same
        if moving.any():
            spare = beyond[moving].sum() + self.room[full].sum() - self.total
            amount = min(max(spare / moving.sum(), breaks[low]), breaks[high])
        inside = np.clip(beyond - amount, 0.0, self.room)
        excess = inside.sum() > self.total  # by rounding
        return np.asarray(inside * (self.total / inside.sum()) if excess else inside)


@dataclass(frozen=True)
class CVaRHinge(Loss):
    """The largest ``sum alpha_i (1 - y_i f_i)`` over weights ``alpha <= cost`` with a capped sum.

    The cap is a share of the summed cost of an output, so that with equal costs and a share k the
    loss is that of the fraction k of the rows that fit worst: its conditional value at risk. There
    is no intercept: the multiplier of the cap takes its place, and bounds the loss of other rows.
    """

    shares: tuple[float, ...]  # one per output, in (0, 1]; 1 is no cap
    # Share of each cost that the cap does not count. With any, no inner solver fits, and
    # first-order methods serve.
    free: float = 0.0
    fit_intercept = False
    inner_solver = InnerSolver.CVAR
    is_sum = False

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        return _HINGE.box(Y, cost)

    def sets(self, cost: Floats) -> list[Ambiguity]:
        """Return the set of weights of every output."""
        free, room = self.free * cost, (1.0 - self.free) * cost
        return [
            Ambiguity(room[:, o], share * float(room[:, o].sum()), free[:, o])
            for o, share in enumerate(self.shares)
        ]

    def _worst(self, fitted: Floats, Y: Floats, cost: Floats) -> list[tuple[float, float]]:
        slack = 1.0 - Y * fitted
        return [known.worst(slack[:, o]) for o, known in enumerate(self.sets(cost))]

    def thresholds(self, fitted: Floats, Y: Floats, cost: Floats) -> Floats:
        """Return the multiplier of every cap: zero where it does not bind."""
        return np.array([multiplier for _, multiplier in self._worst(fitted, Y, cost)])

    def value(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        return sum(value for value, _ in self._worst(fitted, Y, cost)), np.zeros(Y.shape[1])

    def constant(self, fitted: Floats, Y: Floats, cost: Floats) -> float:
        totals = np.array([known.total for known in self.sets(cost)])
        return float(self.thresholds(fitted, Y, cost) @ totals)

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        return self.value(np.zeros_like(Y), Y, cost)[0]

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        out = np.empty_like(dual_coef)
        for o in range(Y.shape[1]):
            target, room = self.with_slack(Y, cost, o)
            start = append_row(Y[:, o] * dual_coef[:, o], -np.abs(dual_coef[:, o]).sum())
            out[:, o] = Y[:, o] * _HINGE.repair(start, target, room)[:-1, 0]
        return out

    def normal(self, dual_coef: Floats, Y: Floats, cost: Floats, o: int) -> Floats | None:
        total = self.sets(cost)[o].total
        if self.shares[o] < 1.0 and float(np.abs(dual_coef[:, o]).sum()) >= (1 - _ACTIVE) * total:
            return Y[:, o]
        return None

    def with_slack(self, Y: Floats, cost: Floats, o: int) -> tuple[Floats, Floats]:
        """Return targets and costs of the hinge problem in ``alpha = y * dual_coef`` with a slack.

        ``sum alpha <= total`` is ``sum alpha - s = 0`` with ``s`` in ``[0, total]``: the slack is a
        row of target zero that no kernel sees, and the multiplier of the cap a bias.
        """
        target = append_row(np.ones(len(Y)), 0.0)
        return target, append_row(cost[:, o], self.sets(cost)[o].total)


def append_row(values: Floats, last: float) -> Floats:
    """Return values and one more as a column."""
    return np.append(values, last)[:, None]
