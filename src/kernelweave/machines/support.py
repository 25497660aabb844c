"""Machines with finite boxes: hinge, epsilon-insensitive, Huber and so on, by pair updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.banks import CombinedKernel

from .base import MAX_FREE, DualShape, Machine, Solution, column, free_rows, solve_positive
from .interior import solve_interior
from .linear import FeatureKernel, solve_linear

_CONVERGED, _PAUSED, _NEEDS_ROWS = 0, 1, 2  # what run_smo answers
_ENTRIES_AT_A_TIME = 5e7  # row entries touched between two chances to interrupt: about 0.1 s
_MAX_JUMPS = 200  # rounds of pair updates and exact solves
_CRAWL = 8  # rounds after which an interior point method is asked, and after it at most
_FLAT = 1e-13  # relative difference of dual values that is rounding
_FEW = 1000  # rows up to which its factorisations cost less than further rounds
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
        lent, jumps = 0, 0
        at_a_time = int(min(20 * n + 1000, max(1000, _ENTRIES_AT_A_TIME / n)))
        while True:
            for index, block in K.blocks[lent:]:
                for solver in solvers:
                    solver.lend(index, block)
            lent = len(K.blocks)
            states = _core.run_smo(solvers, tol, floor / n_outputs, at_a_time, enough)
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
            if not slow or jumps >= (2 * _CRAWL if n <= _FEW else _MAX_JUMPS):
                break
            # Pair updates crawl on badly conditioned kernels; the free rows have a linear system.
            jumps += 1
            find = self._interior if jumps == _CRAWL and n <= _FEW else self._solve_free
            improved = [self._jump(K, solvers[o], Y, cost, o, find) for o in slow]
            if not any(improved) and _PAUSED not in states:
                break
        return Solution(
            coef=np.column_stack([s.beta for s in solvers]),
            intercept=np.array([s.bias for s in solvers]),
            fitted=np.column_stack([s.fitted for s in solvers]),
            primal=sum(s.primal for s in solvers),
            dual=sum(s.dual for s in solvers),
            work=sum(s.updates for s in solvers),
        )

    def _jump(
        self,
        K: CombinedKernel,
        solver: Any,
        Y: Floats,
        cost: Floats,
        o: int,
        find: Callable[..., Floats | None],
    ) -> bool:
        """Look for better coefficients; keep them if their dual value or their gap is better."""
        shape = self.shape(Y, cost)
        beta, fitted = solver.beta, solver.fitted
        found = find(K, beta, fitted, Y, shape, o)
        if found is None:
            return False
        target = np.zeros((len(beta), Y.shape[1]))
        target[:, o] = found
        target = self.repair(target, Y, cost)
        change = np.zeros((len(beta), 1))
        change[:, 0] = target[:, o] - beta
        moved = fitted + (K @ change)[:, 0]
        before = self._dual(beta, fitted, Y, shape, o)
        dual = self._dual(target[:, o], moved, Y, shape, o)
        if not dual > before:
            # Where the dual value is flat to rounding, its coefficients still differ in their gap.
            loss, _ = self.loss(moved[:, None], Y[:, [o]], cost[:, [o]])
            primal = 0.5 * float(target[:, o] @ moved) + loss
            if not primal - dual < solver.primal - before or dual < before - _FLAT * abs(before):
                return False
        solver.start(column(target, o), np.ascontiguousarray(moved))
        return True

    def _solve_free(
        self, K: CombinedKernel, beta: Floats, fitted: Floats, Y: Floats, shape: DualShape, o: int
    ) -> Floats | None:
        """Solve for the free coefficients exactly."""
        free = free_rows(beta, shape, o)
        if not 2 <= len(free) <= MAX_FREE:
            return None
        M = K.block(free, free)
        M[np.diag_indices_from(M)] += shape.ridge[free, o] + 1e-13 * np.trace(M) / len(free)
        residual = Y[free, o] - fitted[free] - shape.ridge[free, o] * beta[free]
        residual -= shape.dead_zone * np.sign(beta[free])
        solved = solve_positive(M, np.column_stack([residual, np.ones(len(free))]))
        step = solved[:, 0]
        if self.fit_intercept:
            step = step - solved[:, 1] * (step.sum() / solved[:, 1].sum())
        target = beta.copy()
        target[free] += step
        return target

    def _interior(
        self, K: CombinedKernel, beta: Floats, fitted: Floats, Y: Floats, shape: DualShape, o: int
    ) -> Floats:
        """Solve for all coefficients, whatever the conditioning."""
        everything = np.arange(len(beta))
        Q = K.block(everything, everything)
        Q[np.diag_indices_from(Q)] += shape.ridge[:, o]
        y, lower, upper, _ = shape.columns(Y, o)
        return solve_interior(Q, y, lower, upper, shape.dead_zone, self.fit_intercept, beta)

    @staticmethod
    def _dual(beta: Floats, fitted: Floats, Y: Floats, shape: DualShape, o: int) -> float:
        """Return the dual value of the coefficients of one output."""
        curved = 0.5 * (beta @ fitted + (shape.ridge[:, o] * beta) @ beta)
        return float(Y[:, o] @ beta - shape.dead_zone * np.abs(beta).sum() - curved)

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
                solver.start(column(start.coef, o), column(start.fitted, o))
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

    def linear(self, coef: Floats, Y: Floats) -> float:
        return float(np.vdot(Y, coef) - self.epsilon * np.abs(coef).sum())


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
