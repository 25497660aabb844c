"""Losses with box constraints in the dual (hinge, epsilon-insensitive, Huber), solved by SMO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.banks import CombinedKernel

from .base import MAX_FREE, DualShape, Machine, Solution, column, free_rows, solve_positive
from .interior import solve_inside
from .linear import FeatureKernel, solve_linear

_CONVERGED, _PAUSED, _NEEDS_ROWS = 0, 1, 2  # what run_smo answers
_ENTRIES_AT_A_TIME = 5e7  # row entries touched between two chances to interrupt: about 0.1 s
_MAX_JUMPS = 200  # rounds of pair updates and exact solves
_CRAWLING = 10  # such rounds before an interior point method, and after it
_MOST_INSIDE = 1000  # rows of which that costs less than going on
_BATCH = 64  # rows fetched together, so that they are a matrix product


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
        enough: float = np.inf,
    ) -> Solution:
        if isinstance(K, FeatureKernel):
            return solve_linear(self, K, Y, cost, tol=tol, floor=floor, start=start)
        n, n_outputs = Y.shape
        enough = enough if n_outputs == 1 else np.inf
        if start is None:
            K.dense()  # a cold start visits most rows, and all together they are cheaper
        solvers = self._solvers(K, Y, cost, start)
        lent, jumps, most = 0, 0, _MAX_JUMPS
        inside: list[tuple[float, Floats, Floats]] = []  # what an interior point method ended at
        updates = at_a_time = int(min(20 * n + 1000, max(1000, _ENTRIES_AT_A_TIME / n)))
        while True:
            for index, block in K.blocks[lent:]:
                for solver in solvers:
                    solver.lend(index, block)
            lent = len(K.blocks)
            states = _core.run_smo(solvers, tol, floor / n_outputs, updates, enough)
            if not updates:
                inside = [(s.primal - s.dual, s.beta, s.fitted) for s in solvers]
            updates = at_a_time
            if _NEEDS_ROWS in states:
                waiting = [
                    s for s, state in zip(solvers, states, strict=True) if state == _NEEDS_ROWS
                ]
                wanted = [s.wanted(_BATCH) for s in waiting]
                if not K.blocks:  # the rows inside their box are sure to be visited too
                    shape = self.shape(Y, cost)
                    wanted += [free_rows(s.beta, shape, o) for o, s in enumerate(solvers)]
                K.fetch(np.unique(np.concatenate(wanted)))
                continue
            slow = [o for o, state in enumerate(states) if state != _CONVERGED]
            if not slow or jumps >= most:
                break
            # Pair updates crawl on badly conditioned kernels; the free rows have a linear system.
            improved = [self._jump(K, solvers[o], Y, cost, o) for o in slow]
            jumps += 1
            stuck = not any(improved) and _PAUSED not in states
            if most == _MAX_JUMPS and n <= _MOST_INSIDE and (stuck or jumps == _CRAWLING):
                improved = [self._go_inside(K, solvers[o], Y, cost, o) for o in slow]
                stuck, most = stuck and not any(improved), jumps + _CRAWLING
                updates = 0  # this may be it
            if stuck:
                break
        for solver, (gap, beta, fitted) in zip(solvers, inside, strict=False):
            if solver.primal - solver.dual > gap:  # rounds raise the dual value, at any price
                solver.start(beta, fitted)
                _core.run_smo([solver], tol, 0.0, 0, np.inf)
        return Solution(
            dual_coef=np.column_stack([s.beta for s in solvers]),
            intercept=np.array([s.bias for s in solvers]),
            fitted=np.column_stack([s.fitted for s in solvers]),
            primal=sum(s.primal for s in solvers),
            dual=sum(s.dual for s in solvers),
            work=sum(s.updates for s in solvers),
        )

    def _jump(self, K: CombinedKernel, solver: Any, Y: Floats, cost: Floats, o: int) -> bool:
        """Solve for the free coefficients exactly; keep the answer if its dual value is better."""
        shape = self.shape(Y, cost)
        beta, fitted = solver.beta, solver.fitted
        free = free_rows(beta, shape, o)
        if not 2 <= len(free) <= MAX_FREE:
            return False
        M = K.block(free, free)
        M[np.diag_indices_from(M)] += shape.ridge[free, o] + 1e-13 * np.trace(M) / len(free)
        residual = Y[free, o] - fitted[free] - shape.ridge[free, o] * beta[free]
        residual -= shape.dead_zone * np.sign(beta[free])
        solved = solve_positive(M, np.column_stack([residual, np.ones(len(free))]))
        step = solved[:, 0]
        if self.fit_intercept:
            step = step - solved[:, 1] * (step.sum() / solved[:, 1].sum())
        target = np.zeros((len(beta), Y.shape[1]))
        target[:, o] = beta
        target[free, o] += step
        return self._move(K, solver, target, Y, cost, o)

    def _go_inside(self, K: CombinedKernel, solver: Any, Y: Floats, cost: Floats, o: int) -> bool:
        """Solve by an interior point method; keep the answer if its dual value is better."""
        shape = self.shape(Y, cost)
        there = np.flatnonzero(shape.upper[:, o] > shape.lower[:, o])
        if len(there) < 2:
            return False
        target = np.zeros((len(Y), Y.shape[1]))
        target[there, o] = solve_inside(
            K.block(there, there),
            Y[there, o],
            shape.lower[there, o],
            shape.upper[there, o],
            shape.ridge[there, o],
            shape.dead_zone,
            intercept=self.fit_intercept,
        )
        return self._move(K, solver, target, Y, cost, o)

    def _move(
        self, K: CombinedKernel, solver: Any, target: Floats, Y: Floats, cost: Floats, o: int
    ) -> bool:
        """Let pair updates go on from elsewhere if the dual value is better there."""
        beta, fitted = solver.beta, solver.fitted
        target = self.repair(target, Y, cost)
        change = np.zeros((len(beta), 1))
        change[:, 0] = target[:, o] - beta
        moved = fitted + (K @ change)[:, 0]
        shape = self.shape(Y, cost)
        if not self._gain(beta, fitted, target[:, o], moved, Y, shape, o) > 0:
            return False
        solver.start(column(target, o), np.ascontiguousarray(moved))
        return True

    @staticmethod
    def _gain(
        beta: Floats,
        fitted: Floats,
        target: Floats,
        moved: Floats,
        Y: Floats,
        shape: DualShape,
        o: int,
    ) -> float:
        """Return by how much the dual value grows from ``beta`` to ``target``."""

        def value(b: Floats, f: Floats) -> float:
            curved = 0.5 * (b @ f + (shape.ridge[:, o] * b) @ b)
            return float(Y[:, o] @ b - shape.dead_zone * np.abs(b).sum() - curved)

        return value(target, moved) - value(beta, fitted)

    def _solvers(
        self, K: CombinedKernel, Y: Floats, cost: Floats, start: Solution | None
    ) -> list[Any]:
        shape = self.shape(Y, cost)
        kind = _core.SmoDouble if K.bank.dtype == np.float64 else _core.SmoFloat
        diagonal = K.diag()
        solvers = []
        for o in range(Y.shape[1]):
            y, lower, upper, ridge = shape.columns(Y, o)
            solver = kind(y, lower, upper, ridge, diagonal, shape.dead_zone, self.fit_intercept)
            if start is not None:
                solver.start(column(start.dual_coef, o), column(start.fitted, o))
            solvers.append(solver)
        return solvers


@dataclass(frozen=True)
class Hinge(SupportMachine):
    """The loss ``cost * max(0, 1 - y f)`` of support vector classification; targets are +-1.

    Parameters
    ----------
    fit_intercept : bool
        Whether to add a bias to every output.
    """

    fit_intercept: bool = True

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        zero = np.zeros_like(cost)
        return DualShape(np.where(Y > 0, zero, -cost), np.where(Y > 0, cost, zero), zero)


@dataclass(frozen=True)
class SquaredHinge(SupportMachine):
    """The loss ``cost / 2 * max(0, 1 - y f)^2``; targets are +-1.

    Its coefficients have no upper bound. None exceeds the box used here, because the objective at
    the solution is at most that of the zero function, ``sum(cost) / 2``.

    Parameters
    ----------
    fit_intercept : bool
        Whether to add a bias to every output.
    """

    fit_intercept: bool = True
    bounded = False

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        zero = np.zeros_like(cost)
        box = 1.1 * np.sqrt(cost * cost.sum(axis=0))
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0)
        return DualShape(np.where(Y > 0, zero, -box), np.where(Y > 0, box, zero), ridge)


@dataclass(frozen=True)
class EpsilonInsensitive(SupportMachine):
    """The loss ``cost * max(0, |y - f| - epsilon)`` of support vector regression.

    Parameters
    ----------
    epsilon : float
        Residuals up to this cost nothing.
    fit_intercept : bool
        Whether to add a bias to every output.
    """

    epsilon: float = 0.1
    fit_intercept: bool = True

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        return DualShape(-cost, cost, np.zeros_like(cost), self.epsilon)

    def linear(self, dual_coef: Floats, Y: Floats) -> float:
        return float(np.vdot(Y, dual_coef) - self.epsilon * np.abs(dual_coef).sum())


@dataclass(frozen=True)
class Huber(SupportMachine):
    """Half the squared residual up to a threshold, straight beyond, times ``cost``.

    Parameters
    ----------
    threshold : float
        Residual at which the loss goes straight.
    fit_intercept : bool
        Whether to add a bias to every output.
    """

    threshold: float = 0.1
    fit_intercept: bool = True

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        box = self.threshold * cost
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0)
        return DualShape(-box, box, ridge)
