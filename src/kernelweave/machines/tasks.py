"""Several related outputs: the problem of the kernel ``B(t, t') k(x, x')``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices

from .base import DualShape, Machine, Solution, free_rows, solve_positive
from .interior import factor
from .linear import FeatureKernel, solve_related
from .support import SupportMachine

_SWEEPS = 1000
_PATIENCE = 50  # sweeps that must halve the gap
_SLOW = 0.3  # of the gap left after a sweep from which on outputs are moved together
_JUMPS = 20
_MAX_FREE = 1000  # coefficients above which such steps cost more than they save
_CRAWLING = 3  # sweeps before all outputs are solved together on features
_MOST_TOGETHER = 2000  # coefficients of which that costs less than going on
_FINEST = 1e-10  # least precision of one output


@dataclass(frozen=True)
class _Shifted(SupportMachine):
    """A machine whose targets were moved; its boxes belong to the targets as they were."""

    machine: Machine
    given: Floats
    fit_intercept: bool

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.machine.bounded

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        return self.machine.shape(self.given, cost)


def solve_tasks(
    machine: Machine,
    K: Any,
    Y: Floats,
    cost: Floats,
    relation: Floats | None,
    *,
    tol: float,
    start: Floats | None = None,
) -> Solution:
    """Solve for all outputs together: at once on features, else one after the other in turn.

    Parameters
    ----------
    machine : Machine
        The loss.
    K : kernel with ``@`` and ``scaled``
        The kernel of the inputs.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets and costs.
    relation : ndarray of shape (n_outputs, n_outputs) or None
        ``B``, positive semi-definite with a positive diagonal; None for unrelated outputs.
    tol : float
        Relative gap to stop at.
    start : ndarray of shape (n_samples, n_outputs), optional
        Coefficients to begin with.

    Returns
    -------
    solution : Solution
        ``fitted`` belongs to ``K B``.
    """
    if relation is None:
        begin = None if start is None else Solution(start, np.zeros(0), K @ start, np.inf, -np.inf)
        return machine.solve(K, Y, cost, tol=tol, start=begin)
    if isinstance(K, FeatureKernel):
        return solve_related(machine, K, Y, cost, relation, tol=tol, start=start)
    n_outputs = Y.shape[1]
    dual_coef = np.zeros_like(Y) if start is None else start.copy()
    multiples = {factor: K.scaled(factor) for factor in relation.diagonal().tolist()}
    own = [multiples[factor] for factor in relation.diagonal().tolist()]
    products = K @ dual_coef
    joint = _Joint(machine, K, Y, cost, relation)
    work, precision, last = 0, 0.3 * tol, np.inf
    mark = np.inf  # the gap some sweeps ago
    for sweep in range(_SWEEPS):
        for t in range(n_outputs):
            others = products @ relation[:, t] - relation[t, t] * products[:, t]
            column = slice(t, t + 1)
            moved = Y[:, column] - others[:, None]
            inner = machine
            if isinstance(machine, SupportMachine):
                inner = _Shifted(machine, Y[:, column], machine.fit_intercept)
            begin = Solution(
                dual_coef[:, column],
                np.zeros(1),
                relation[t, t] * products[:, column],
                np.inf,
                -np.inf,
            )
            part = inner.solve(own[t], moved, cost[:, column], tol=precision, start=begin)
            dual_coef[:, t] = part.dual_coef[:, 0]
            products[:, t] = (K @ part.dual_coef)[:, 0]
            work += part.work
        solution = joint.evaluate(dual_coef, products, work)
        if solution.gap > max(tol * abs(solution.primal), _SLOW * last):
            # One output after the other crawls where they are closely related.
            dual_coef = joint.improve(dual_coef, products)
            products = K @ dual_coef
            solution = joint.evaluate(dual_coef, products, work)
        if sweep == _CRAWLING and len(Y) * n_outputs <= _MOST_TOGETHER:
            solution = joint.solve_together(solution, tol)
            dual_coef, products = solution.dual_coef.copy(), K @ solution.dual_coef
        if solution.gap <= tol * abs(solution.primal):
            break
        if solution.gap > 0.9 * last:  # the parts, not their order, may hold it up
            precision = max(_FINEST, 0.3 * precision)
        last = solution.gap
        if sweep % _PATIENCE == 0:
            if not last <= 0.5 * mark:
                break
            mark = last
    return solution


@dataclass(frozen=True)
class _Joint:
    """The problem of all outputs together."""

    machine: Machine
    K: Any
    Y: Floats
    cost: Floats
    relation: Floats

    def evaluate(self, dual_coef: Floats, products: Floats, work: int) -> Solution:
        """Return coefficients with their bounds."""
        machine, fitted = self.machine, products @ self.relation
        quadratic = float(np.vdot(dual_coef, fitted))
        loss, intercept = machine.loss(fitted, self.Y, self.cost)
        ridge = machine.ridge_term(dual_coef, self.cost, self.Y)
        dual = machine.linear(dual_coef, self.Y) - 0.5 * (quadratic + ridge)
        return Solution(dual_coef, intercept, fitted, 0.5 * quadratic + loss, dual, work)

    def _dual(self, dual_coef: Floats, products: Floats) -> float:
        curved = float(np.vdot(dual_coef, products @ self.relation))
        ridge = self.machine.ridge_term(dual_coef, self.cost, self.Y)
        return self.machine.linear(dual_coef, self.Y) - 0.5 * (curved + ridge)

    def solve_together(self, solution: Solution, tol: float) -> Solution:
        """Return what Newton's method on the features of the kernel makes of it, if better."""
        everything = np.arange(len(self.Y))
        features = _Features(factor(self.K.block(everything, everything)))
        found = solve_related(
            self.machine,
            features,
            self.Y,
            self.cost,
            self.relation,
            tol=tol,
            start=solution.dual_coef,
        )
        dual_coef = self.machine.repair(found.dual_coef, self.Y, self.cost)
        together = self.evaluate(dual_coef, self.K @ dual_coef, solution.work + found.work)
        return together if together.gap < solution.gap else solution

    def improve(self, dual_coef: Floats, products: Floats) -> Floats:
        """Return better coefficients, from exact steps in all that are inside their boxes."""
        shape = self.machine.shape(self.Y, self.cost)
        value = self._dual(dual_coef, products)
        for _ in range(_JUMPS):
            step = self._step(dual_coef, products, shape)
            if step is None:
                break
            for share in (1.0, _room(dual_coef, step, shape)):
                target = self.machine.repair(dual_coef + share * step, self.Y, self.cost)
                moved = self.K @ target
                reached = self._dual(target, moved)
                if reached > value + 1e-12 * abs(value):
                    dual_coef, products, value = target, moved, reached
                    break
            else:
                break
        return dual_coef

    def _step(self, dual_coef: Floats, products: Floats, shape: DualShape) -> Floats | None:
        """Return the way to the best values of all free coefficients, were there no boxes."""
        n_outputs = dual_coef.shape[1]
        free = [free_rows(dual_coef[:, t], shape, t) for t in range(n_outputs)]
        task = np.repeat(np.arange(n_outputs), [len(rows) for rows in free])
        if not 2 <= len(task) <= _MAX_FREE:
            return None
        rows = np.concatenate(free)
        used, place = np.unique(rows, return_inverse=True)
        M = self.K.block(used, used)[np.ix_(place, place)] * self.relation[np.ix_(task, task)]
        ridge = shape.ridge[rows, task]
        M[np.diag_indices_from(M)] += ridge + 1e-13 * np.trace(M) / len(M)
        here = dual_coef[rows, task]
        residual = self.Y[rows, task] - (products @ self.relation)[rows, task] - ridge * here
        residual -= shape.dead_zone * np.sign(here)
        sums = (task[:, None] == np.unique(task)).astype(np.float64)
        solved = solve_positive(M, np.column_stack([residual, sums]))
        found = solved[:, 0]
        if self.machine.fit_intercept:
            across = sums.T @ solved[:, 1:]
            found = found - solved[:, 1:] @ np.linalg.lstsq(across, sums.T @ found)[0]
        step = np.zeros_like(dual_coef)
        step[rows, task] = found
        return step if np.isfinite(found).all() else None


class _Features:
    """A kernel given by few features, held as a matrix."""

    def __init__(self, Z: Floats) -> None:
        self.Z = Z
        self.n_samples, self.n_features = Z.shape

    def times(self, w: Floats) -> Floats:
        return self.Z @ w

    def sums(self, V: Floats) -> Floats:
        return self.Z.T @ V

    def rows(self, index: Indices) -> Floats:
        return self.Z[index]

    def gram(self, q: Floats) -> tuple[Floats, Floats]:
        return (self.Z.T * q) @ self.Z, self.Z.T @ q


def _room(dual_coef: Floats, step: Floats, shape: DualShape) -> float:
    """Return the largest share of a step that stays inside the boxes and off the kink at zero."""
    up, down = step > 0, step < 0
    high, low = shape.upper, shape.lower
    if shape.dead_zone > 0:
        high, low = np.where(dual_coef < 0, 0.0, high), np.where(dual_coef > 0, 0.0, low)
    shares = np.concatenate(
        [(high - dual_coef)[up] / step[up], (low - dual_coef)[down] / step[down]]
    )
    return float(min(1.0, shares.min(initial=1.0)))
