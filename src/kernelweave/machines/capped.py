"""The conditional value at risk of the hinge loss: the mean of its largest values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats, Indices, Stored
from kernelweave.banks import CombinedKernel, KernelBank

from .base import DualShape, Machine, Solution
from .support import Hinge

_INNER = Hinge(fit_intercept=True)
_ACTIVE = 1e-9  # how near the cap the coefficients count as held by it, relatively


@dataclass(frozen=True)
class Ambiguity:
    """What is known of the weights of losses: ``0 <= alpha_i <= free_i + room_i``, with a cap.

    The cap is on ``sum_i max(0, alpha_i - free_i)``.

    Parameters
    ----------
    room : ndarray of shape (n_samples,)
        How far each weight may go beyond its free part.
    total : float
        The largest sum of what is beyond the free parts.
    free : ndarray of shape (n_samples,) or float
        What the cap does not count.
    """

    room: Floats
    total: float
    free: Floats | float = 0.0

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
        last = max(int(np.searchsorted(-left, 0.0)) - 1, 0)  # the last row that gets anything
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
        # The sum is piecewise linear in the amount, with kinks where an entry leaves a bound.
        kinks = np.unique(np.concatenate([beyond, beyond - self.room]))
        low, high = 0, len(kinks) - 1  # the sum is above the cap at low, not above it at high
        while high - low > 1:
            middle = (low + high) // 2
            if np.clip(beyond - kinks[middle], 0.0, self.room).sum() > self.total:
                low = middle
            else:
                high = middle
        centre = 0.5 * (kinks[low] + kinks[high])
        moving = (beyond - self.room < centre) & (beyond > centre)
        full = beyond - self.room >= centre
        amount = kinks[high]  # where nothing moves, all amounts in between give the same
        if moving.any():
            spare = beyond[moving].sum() + self.room[full].sum() - self.total
            amount = min(max(spare / moving.sum(), kinks[low]), kinks[high])
        inside = np.clip(beyond - amount, 0.0, self.room)
        excess = inside.sum() > self.total  # by rounding
        return np.asarray(inside * (self.total / inside.sum()) if excess else inside)


@dataclass(frozen=True)
class CappedHinge(Machine):
    """The largest ``sum alpha_i (1 - y_i f_i)`` over weights ``alpha <= cost`` with a capped sum.

    The cap is a share of the summed cost of an output, so that with equal costs and a share k the
    loss is that of the fraction k of the rows that fit worst. There is no intercept: the multiplier
    of the cap takes its place, and is what the loss of the other rows does not exceed.

    Parameters
    ----------
    shares : tuple of float
        One per output, in (0, 1]; 1 is no cap.
    free : float
        Share of each cost that the cap does not count. With any, the machine values functions but
        cannot be solved: first-order methods serve.
    """

    shares: tuple[float, ...]
    free: float = 0.0
    fit_intercept = False
    by_rows = False

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        return _INNER.shape(Y, cost)

    def sets(self, cost: Floats) -> list[Ambiguity]:
        """Return where the weights of losses live, output by output."""
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

    def loss(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        return sum(value for value, _ in self._worst(fitted, Y, cost)), np.zeros(Y.shape[1])

    def constant(self, fitted: Floats, Y: Floats, cost: Floats) -> float:
        totals = np.array([known.total for known in self.sets(cost)])
        return float(self.thresholds(fitted, Y, cost) @ totals)

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        return self.loss(np.zeros_like(Y), Y, cost)[0]

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        out = np.empty_like(dual_coef)
        for o in range(Y.shape[1]):
            target, room = self._extended(Y, cost, o)
            start = _extend(Y[:, o] * dual_coef[:, o], -np.abs(dual_coef[:, o]).sum())
            out[:, o] = Y[:, o] * _INNER.repair(start, target, room)[:-1, 0]
        return out

    def solve(
        self,
        K: CombinedKernel,
        Y: Floats,
        cost: Floats,
        *,
        tol: float,
        floor: float = 0.0,
        start: Solution | None = None,
        enough: float = np.inf,
    ) -> Solution:
        """Solve one output after the other, so that one signed copy of the kernel is held."""
        assert self.free == 0.0, "pair updates know one cap on all coefficients only"
        n_outputs = Y.shape[1]
        if start is None:
            K.dense()
        parts = []
        for o in range(n_outputs):
            target, room = self._extended(Y, cost, o)
            begin = None
            if start is not None:
                alpha = Y[:, o] * start.dual_coef[:, o]
                begin = Solution(
                    _extend(alpha, -float(alpha.sum())),
                    np.zeros(1),
                    _extend(Y[:, o] * start.fitted[:, o], 0.0),
                    np.inf,
                    -np.inf,
                )
            parts.append(
                _INNER.solve(
                    SignedKernel(K, Y[:, o]),  # type: ignore[arg-type]
                    target,
                    room,
                    tol=tol,
                    floor=floor / n_outputs,
                    start=begin,
                    enough=enough if n_outputs == 1 else np.inf,
                )
            )
        return Solution(
            dual_coef=np.column_stack([Y[:, o] * p.dual_coef[:-1, 0] for o, p in enumerate(parts)]),
            intercept=np.zeros(n_outputs),
            fitted=np.column_stack([Y[:, o] * p.fitted[:-1, 0] for o, p in enumerate(parts)]),
            primal=sum(p.primal for p in parts),
            dual=sum(p.dual for p in parts),
            work=sum(p.work for p in parts),
        )

    def normal(self, dual_coef: Floats, Y: Floats, cost: Floats, o: int) -> Floats | None:
        total = self.sets(cost)[o].total
        if self.shares[o] < 1.0 and float(np.abs(dual_coef[:, o]).sum()) >= (1 - _ACTIVE) * total:
            return Y[:, o]
        return None

    def _extended(self, Y: Floats, cost: Floats, o: int) -> tuple[Floats, Floats]:
        """Return targets and costs of the problem in ``alpha = y * dual_coef`` with a slack row.

        ``sum alpha <= total`` is ``sum alpha - s = 0`` with ``s`` in ``[0, total]``: the slack is a
        row of target zero that no kernel sees, and the multiplier of the cap a bias.
        """
        target = _extend(np.ones(len(Y)), 0.0)
        return target, _extend(cost[:, o], self.sets(cost)[o].total)


class SignedKernel:
    """``y_i y_k K_ik`` with a last row and column of zeros, computed on demand.

    Stands in for a `CombinedKernel` where support machines read one.

    Parameters
    ----------
    kernel : CombinedKernel
        What is signed.
    signs : ndarray of shape (n_samples,)
        Minus or plus one.
    """

    def __init__(self, kernel: CombinedKernel, signs: Floats) -> None:
        self.kernel = kernel
        self.signs = signs
        self._blocks: list[tuple[Indices, Stored]] = []
        self._copied = 0

    @property
    def bank(self) -> KernelBank:
        """Where the kernels are."""
        return self.kernel.bank

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        """The rows computed so far, as (row numbers, rows)."""
        for index, rows in self.kernel.blocks[self._copied :]:
            n = len(self.signs)
            signed = np.zeros((len(index), n + 1), dtype=rows.dtype)
            np.multiply(rows, self.signs.astype(rows.dtype), out=signed[:, :n])
            signed *= self.signs[index, None].astype(rows.dtype)
            self._blocks.append((index, signed))
            self._copied += 1
        return self._blocks

    def dense(self) -> None:
        """Compute all rows."""
        self.fetch(np.arange(len(self.signs) + 1))

    def fetch(self, index: Indices) -> None:
        """Compute those of the rows that are not there yet."""
        n = len(self.signs)
        if len(index) and index[-1] == n:  # callers give increasing rows
            slack = np.zeros((1, n + 1), dtype=self.bank.dtype)
            self._blocks.append((np.array([n]), slack))
            index = index[:-1]
        if len(index) == n:
            self.kernel.dense()
        elif len(index):
            self.kernel.fetch(index)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the matrix; callers ask for the same rows and columns."""
        n = len(self.signs)
        inside = rows[rows < n]
        signs = self.signs[inside]
        block = self.kernel.block(inside, inside)
        block *= signs[:, None]
        block *= signs
        if len(inside) == len(rows):
            return block
        out = np.zeros((len(rows), len(rows)))
        out[: len(inside), : len(inside)] = block
        return out

    def diag(self) -> Floats:
        """Return the diagonal."""
        return np.append(self.kernel.diag(), 0.0)

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply a matrix whose last row belongs to the slack."""
        signs = self.signs[:, None]
        return np.vstack([signs * (self.kernel @ (signs * V[:-1])), np.zeros((1, V.shape[1]))])


def _extend(values: Floats, last: float) -> Floats:
    return np.append(values, last)[:, None]
