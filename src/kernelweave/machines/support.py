"""Machines with finite boxes: hinge, epsilon-insensitive and Huber losses, by pair updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats, Indices
from kernelweave.banks import CombinedKernel
from .base import DualShape, Machine, Solution, column

_PAUSED, _NEEDS_ROWS = 1, 2  # what run_smo answers
_ENTRIES_AT_A_TIME = 5e7  # row entries touched between two chances to interrupt: about 0.1 s
_BATCH = 64  # rows fetched together, so that they are a matrix product
_MOST_ROWS = 0.4  # share of rows above which computing all is the cheaper way


class SupportMachine(Machine):
    """A machine whose coefficients have finite boxes, solved by sequential minimal optimisation."""

    def solve(
        self,
        K: CombinedKernel,
        Y: Floats,
        cost: Floats,
        *,
        tol: float,
        floor: float = 0.0,
        start: Solution | None = None,
    ) -> Solution:
        n, n_outputs = Y.shape
        if start is None:
            K.dense()  # a cold start visits most rows, and all together they are cheaper
        else:
            K.fetch(self._moving(start.coef, Y, cost))
        solvers = self._solvers(K, Y, cost, start)
        lent = 0
        at_a_time = int(max(1000, _ENTRIES_AT_A_TIME / n))
        limit = 100 * n + 1_000_000  # a problem that needs more is at the limit of the arithmetic
        while True:
            for index, block in K.blocks[lent:]:
                for solver in solvers:
                    solver.lend(index, block)
            lent = len(K.blocks)
            states = _core.run_smo(solvers, tol, floor / n_outputs, at_a_time)
            if _NEEDS_ROWS in states:
                if K.share_ready > _MOST_ROWS:
                    K.dense()
                    continue
                wanted = [s.wanted(_BATCH) for s, state in zip(solvers, states, strict=True) if state == _NEEDS_ROWS]
                K.fetch(np.unique(np.concatenate(wanted)))
            elif _PAUSED not in states or max(s.updates for s in solvers) > limit:
                break
        return Solution(
            coef=np.column_stack([s.beta for s in solvers]),
            intercept=np.array([s.bias for s in solvers]),
            fitted=np.column_stack([s.fitted for s in solvers]),
            primal=sum(s.primal for s in solvers),
            dual=sum(s.dual for s in solvers),
            work=sum(s.updates for s in solvers),
        )

    def _moving(self, coef: Floats, Y: Floats, cost: Floats) -> Indices:
        """Return the rows that are sure to be visited: those inside their box."""
        shape = self.shape(Y, cost)
        inside = (coef > shape.lower) & (coef < shape.upper) & (coef != 0)
        return np.flatnonzero(inside.any(axis=1))

    def _solvers(self, K: CombinedKernel, Y: Floats, cost: Floats, start: Solution | None) -> list[Any]:
        shape = self.shape(Y, cost)
        kind = _core.SmoDouble if K.bank.dtype == np.float64 else _core.SmoFloat
        diagonal = K.diag()
        solvers = []
        for o in range(Y.shape[1]):
            columns = (column(part, o) for part in (Y, shape.lower, shape.upper, shape.ridge))
            solver = kind(*columns, diagonal, shape.dead_zone, self.fit_intercept)
            if start is not None:
                solver.start(column(start.coef, o), column(start.fitted, o))
            solvers.append(solver)
        return solvers


@dataclass(frozen=True)
class Hinge(SupportMachine):
    """The loss ``cost * max(0, 1 - y f)`` of support vector classification; targets are +-1."""

    fit_intercept: bool = True

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        zero = np.zeros_like(cost)
        return DualShape(np.where(Y > 0, zero, -cost), np.where(Y > 0, cost, zero), zero)


@dataclass(frozen=True)
class EpsilonInsensitive(SupportMachine):
    """The loss ``cost * max(0, |y - f| - epsilon)`` of support vector regression."""

    epsilon: float = 0.1
    fit_intercept: bool = True

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        return DualShape(-cost, cost, np.zeros_like(cost), self.epsilon)

    def linear(self, coef: Floats, Y: Floats) -> float:
        return float(np.vdot(Y, coef) - self.epsilon * np.abs(coef).sum())


@dataclass(frozen=True)
class Huber(SupportMachine):
    """Half the squared residual up to a threshold, straight beyond, times ``cost``."""

    threshold: float = 0.1
    fit_intercept: bool = True

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        box = self.threshold * cost
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0)
        return DualShape(-box, box, ridge)
