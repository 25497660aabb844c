"""Sequential minimal optimisation for losses whose dual coefficients have finite boxes.

Pair updates (second-order working set selection) run in the core. Where they are slow, the free
coefficients are solved for exactly, and small problems end with an interior point method.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin (2005), Working set selection using second order information for
training support vector machines, JMLR 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._linalg import solve_positive
from kernelweave._types import Floats
from kernelweave.banks import KernelOperator
from kernelweave.losses.base import DualBox, Loss, column

from .interior_point import solve_interior
from .solution import Solution

_CONVERGED, _PAUSED, _NEEDS_ROWS = 0, 1, 2  # states that run_smo returns
MAX_FREE = 3000  # free coefficients above which systems in them cost more than they save


@dataclass(frozen=True)
class SmoOptions:
    """Tunable numbers of `solve_smo`, chosen by hand."""

    entries_at_a_time: float = 5e7  # row entries between two chances to interrupt: about 0.1 s
    max_jumps: int = 200  # rounds of pair updates and exact solves
    slow_jumps: int = 10  # such rounds before an interior point method, and after it
    max_interior: int = 1000  # rows up to which an interior point method costs less than going on
    batch: int = 64  # rows fetched together, so that they are a matrix product


_OPTIONS = SmoOptions()


def solve_smo(
    loss: Loss,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
    enough: float = np.inf,
) -> Solution:
    """Solve for one kernel; see `solve_inner`."""
    if start is None:
        K.dense()  # a cold start visits most rows, and all together they are cheaper
    problem = BoxProblem(loss, K, Y, cost)
    solvers = problem.make_solvers(start)
    run_solvers(problem, solvers, tol=tol, floor=floor, enough=enough)
    return Solution(
        dual_coef=np.column_stack([s.beta for s in solvers]),
        intercept=np.array([s.bias for s in solvers]),
        fitted=np.column_stack([s.fitted for s in solvers]),
        primal=sum(s.primal for s in solvers),
        dual=sum(s.dual for s in solvers),
        work=sum(s.updates for s in solvers),
    )


def run_solvers(
    problem: BoxProblem, solvers: list[Any], *, tol: float, floor: float, enough: float = np.inf
) -> None:
    """Run the solvers of all outputs to the tolerance, or as far as they get; see `solve_inner`."""
    K, (n, n_outputs) = problem.K, problem.Y.shape
    enough = enough if n_outputs == 1 else np.inf
    lent, jumps, max_jumps = 0, 0, _OPTIONS.max_jumps
    useless, next_try = [0] * n_outputs, [0] * n_outputs  # exact solves in a row without a gain
    interior: list[tuple[float, Floats, Floats]] = []  # gaps and points of interior point methods
    updates = at_a_time = int(min(20 * n + 1000, max(1000, _OPTIONS.entries_at_a_time / n)))
    while True:
        for index, block in K.blocks[lent:]:
            for solver in solvers:
                solver.lend(index, block)
        lent = len(K.blocks)
        states = _core.run_smo(solvers, tol, floor / n_outputs, updates, enough)
        if not updates:
            interior = [(s.primal - s.dual, s.beta, s.fitted) for s in solvers]
        updates = at_a_time
        if _NEEDS_ROWS in states:
            waiting = [s for s, state in zip(solvers, states, strict=True) if state == _NEEDS_ROWS]
            wanted = [s.wanted(_OPTIONS.batch) for s in waiting]
            if not K.blocks:  # the rows inside their box are sure to be visited too
                wanted += [problem.box.free_rows(s.beta, o) for o, s in enumerate(solvers)]
            K.fetch(np.unique(np.concatenate(wanted)))
            continue
        slow = [o for o, state in enumerate(states) if state != _CONVERGED]
        if not slow or jumps >= max_jumps:
            break
        # Pair updates are slow on badly conditioned kernels; the free rows have a linear system.
        # While pair updates go on, each system in a row that was no use doubles the wait.
        due = [o for o in slow if states[o] != _PAUSED or jumps >= next_try[o]]
        improved = [problem.solve_free(solvers[o], o) for o in due]
        for o, useful in zip(due, improved, strict=True):
            useless[o] = 0 if useful else useless[o] + 1
            next_try[o] = jumps + 2 ** useless[o]
        jumps += 1
        stuck = not any(improved) and _PAUSED not in states
        slow_now = stuck or jumps == _OPTIONS.slow_jumps
        if max_jumps == _OPTIONS.max_jumps and n <= _OPTIONS.max_interior and slow_now:
            improved = [problem.solve_interior(solvers[o], o) for o in slow]
            stuck, max_jumps = stuck and not any(improved), jumps + _OPTIONS.slow_jumps
            updates = 0  # only evaluate the bounds: they may suffice
        if stuck:
            break
    for solver, (gap, beta, fitted) in zip(solvers, interior, strict=False):
        if solver.primal - solver.dual > gap:  # updates raise the dual value only
            solver.start(beta, fitted)
            _core.run_smo([solver], tol, 0.0, 0, np.inf)


class BoxProblem:
    """The dual problem, with steps that pair updates are slow to find."""

    def __init__(self, loss: Loss, K: KernelOperator, Y: Floats, cost: Floats) -> None:
        self.loss, self.K, self.Y, self.cost = loss, K, Y, cost
        self.box: DualBox = loss.box(Y, cost)

    def make_solvers(self, start: Solution | None) -> list[Any]:
        """Return one solver of the core per output."""
        kind = _core.SmoDouble if self.K.dtype == np.float64 else _core.SmoFloat
        diagonal, dead_zone = self.K.diag(), self.box.dead_zone
        solvers = []
        for o in range(self.Y.shape[1]):
            columns = self.box.columns(self.Y, o)
            solver = kind(*columns, diagonal, dead_zone, self.loss.fit_intercept)
            if start is not None:
                solver.start(column(start.dual_coef, o), column(start.fitted, o))
            solvers.append(solver)
        return solvers

    def solve_free(self, solver: Any, o: int) -> bool:
        """Solve for the free coefficients exactly; keep the answer if its dual value is better."""
        beta, fitted = solver.beta, solver.fitted
        free = self.box.free_rows(beta, o)
        if not 2 <= len(free) <= MAX_FREE:
            return False
        ridge = self.box.ridge[free, o]
        M = self.K.block(free, free)
        M[np.diag_indices_from(M)] += ridge + 1e-13 * np.trace(M) / len(free)
        residual = self.Y[free, o] - fitted[free] - ridge * beta[free]
        residual -= self.box.dead_zone * np.sign(beta[free])
        solved = solve_positive(M, np.column_stack([residual, np.ones(len(free))]))
        step = solved[:, 0]
        if self.loss.fit_intercept:
            step = step - solved[:, 1] * (step.sum() / solved[:, 1].sum())
        target = np.zeros_like(self.Y)
        target[:, o] = beta
        target[free, o] += step
        return self._move(solver, target, o)

    def solve_interior(self, solver: Any, o: int) -> bool:
        """Solve by an interior point method; keep the answer if its dual value is better."""
        box = self.box
        present = np.flatnonzero(box.upper[:, o] > box.lower[:, o])
        if len(present) < 2:
            return False
        target = np.zeros_like(self.Y)
        target[present, o] = solve_interior(
            self.K.block(present, present),
            self.Y[present, o],
            box.lower[present, o],
            box.upper[present, o],
            box.ridge[present, o],
            box.dead_zone,
            intercept=self.loss.fit_intercept,
        )
        return self._move(solver, target, o)

    def _move(self, solver: Any, target: Floats, o: int) -> bool:
        """Continue pair updates from a target if its dual value is better."""
        beta, fitted = solver.beta, solver.fitted
        target = self._feasible(target, o)
        change = np.zeros((len(beta), 1))
        change[:, 0] = target[:, o] - beta
        moved = fitted + (self.K @ change)[:, 0]
        if not self._gain(beta, fitted, column(target, o), moved, o) > 0:
            return False
        solver.start(column(target, o), np.ascontiguousarray(moved))
        return True

    def _feasible(self, target: Floats, o: int) -> Floats:
        """Return feasible coefficients near a target, of which column ``o`` matters."""
        return self.loss.repair(target, self.Y, self.cost)

    def _gain(self, beta: Floats, fitted: Floats, target: Floats, moved: Floats, o: int) -> float:
        """Return how much higher the dual value of a target is, whose fitted values are moved."""
        return self._dual_value(target, moved, o) - self._dual_value(beta, fitted, o)

    def _dual_value(self, beta: Floats, fitted: Floats, o: int) -> float:
        curved = 0.5 * (beta @ fitted + (self.box.ridge[:, o] * beta) @ beta)
        return float(self.Y[:, o] @ beta - self.box.dead_zone * np.abs(beta).sum() - curved)
