"""Machines with finite boxes: hinge, epsilon-insensitive and Huber losses, by pair updates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.banks import CombinedKernel
from .base import DualShape, Machine, Solution

_PAUSED = 1
_UPDATES_AT_A_TIME = 2e7  # row entries touched between two chances to interrupt: about 0.1 s


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
        shape = self.shape(Y, cost)
        gram = K.dense()
        n, n_outputs = Y.shape
        diagonal = np.ascontiguousarray(gram.diagonal(), dtype=np.float64)
        everything = np.arange(n)
        solver_type = _core.SmoDouble if gram.dtype == np.float64 else _core.SmoFloat
        solvers = []
        for o in range(n_outputs):
            columns = [
                np.ascontiguousarray(part[:, o])
                for part in (Y, shape.lower, shape.upper, shape.ridge)
            ]
            solver = solver_type(*columns, diagonal, shape.dead_zone, self.fit_intercept)
            solver.lend(everything, gram)
            if start is not None:
                solver.start(
                    np.ascontiguousarray(start.coef[:, o]), np.ascontiguousarray(start.fitted[:, o])
                )
            solvers.append(solver)
        at_a_time = int(max(1000, _UPDATES_AT_A_TIME / n))
        limit = 100 * n + 1_000_000  # a problem that needs more is at the limit of the arithmetic
        while True:
            states = _core.run_smo(solvers, tol, floor / n_outputs, at_a_time)
            if _PAUSED not in states or max(s.updates for s in solvers) > limit:
                break
        return Solution(
            coef=np.column_stack([s.beta for s in solvers]),
            intercept=np.array([s.bias for s in solvers]),
            fitted=np.column_stack([s.fitted for s in solvers]),
            primal=sum(s.primal for s in solvers),
            dual=sum(s.dual for s in solvers),
            work=sum(s.updates for s in solvers),
        )


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
