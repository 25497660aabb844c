"""Several related outputs: the problem of the kernel ``B(t, t') k(x, x')``.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, equation (11).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._linalg import solve_positive
from kernelweave._types import Floats, Indices
from kernelweave.banks import Features, KernelOperator
from kernelweave.losses.base import DualBox, Loss

from .feature_newton import solve_related
from .interior_point import factor
from .solution import Solution, unsolved
from .solve import solve_inner


@dataclass(frozen=True)
class MultitaskOptions:
    """Tunable numbers of `solve_multitask`, chosen by hand."""

    max_sweeps: int = 1000
    patience: int = 50  # sweeps that must halve the gap
    slow: float = 0.3  # of the gap left after a sweep from which on outputs are moved together
    max_jumps: int = 20  # joint steps in a row
    max_free: int = 1000  # coefficients above which such steps cost more than they save
    slow_sweeps: int = 3  # sweeps before all outputs are solved together on features
    max_together: int = 2000  # coefficients of which that costs less than going on
    finest: float = 1e-10  # least precision of one output


_OPTIONS = MultitaskOptions()


@dataclass(frozen=True)
class _Shifted(Loss):
    """A loss whose targets were shifted; its boxes belong to the original targets."""

    loss: Loss
    original: Floats
    fit_intercept: bool

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.loss.bounded

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        return self.loss.box(self.original, cost)


def solve_multitask(
    loss: Loss,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    relation: Floats | None,
    *,
    tol: float,
    start: Floats | None = None,
) -> Solution:
    """Solve for all outputs together: at once on features, else by block coordinate descent.

    Parameters
    ----------
    loss, K, Y, cost
        As in `solve_inner`.
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
        begin = None if start is None else unsolved(start, K @ start)
        return solve_inner(loss, K, Y, cost, tol=tol, start=begin)
    features = K.features()
    if features is not None:
        return solve_related(loss, features, Y, cost, relation, tol=tol, start=start)
    n_outputs = Y.shape[1]
    dual_coef = np.zeros_like(Y) if start is None else start.copy()
    multiples = {factor: K.scaled(factor) for factor in relation.diagonal().tolist()}
    own = [multiples[factor] for factor in relation.diagonal().tolist()]
    products = K @ dual_coef
    joint = _Joint(loss, K, Y, cost, relation)
    work, precision, last = 0, 0.3 * tol, np.inf
    mark = np.inf  # the gap some sweeps ago
    for sweep in range(_OPTIONS.max_sweeps):
        for t in range(n_outputs):
            others = products @ relation[:, t] - relation[t, t] * products[:, t]
            column = slice(t, t + 1)
            moved = Y[:, column] - others[:, None]
            shifted = loss
            if loss.is_piecewise:
                shifted = _Shifted(loss, Y[:, column], loss.fit_intercept)
            begin = unsolved(dual_coef[:, column], relation[t, t] * products[:, column])
            part = solve_inner(shifted, own[t], moved, cost[:, column], tol=precision, start=begin)
            dual_coef[:, t] = part.dual_coef[:, 0]
            products[:, t] = (K @ part.dual_coef)[:, 0]
            work += part.work
        solution = joint.evaluate(dual_coef, products, work)
        if solution.gap > max(tol * abs(solution.primal), _OPTIONS.slow * last):
            # Descent over outputs is slow where they are closely related.
            dual_coef = joint.improve(dual_coef, products)
            products = K @ dual_coef
            solution = joint.evaluate(dual_coef, products, work)
        if sweep == _OPTIONS.slow_sweeps and Y.size <= _OPTIONS.max_together:
            solution = joint.solve_together(solution, tol)
            dual_coef, products = solution.dual_coef.copy(), K @ solution.dual_coef
        if solution.gap <= tol * abs(solution.primal):
            break
        if solution.gap > 0.9 * last:  # the parts, not their order, may hold it up
            precision = max(_OPTIONS.finest, 0.3 * precision)
        last = solution.gap
        if sweep % _OPTIONS.patience == 0:
            if not last <= 0.5 * mark:
                break
            mark = last
    return solution


@dataclass(frozen=True)
class _Joint:
    """The problem of all outputs together."""

    loss: Loss
    K: KernelOperator
    Y: Floats
    cost: Floats
    relation: Floats

    def evaluate(self, dual_coef: Floats, products: Floats, work: int) -> Solution:
        """Return coefficients with their bounds."""
        fitted = products @ self.relation
        quadratic = float(np.vdot(dual_coef, fitted))
        loss_value, intercept = self.loss.value(fitted, self.Y, self.cost)
        dual, primal = self._dual(dual_coef, quadratic), 0.5 * quadratic + loss_value
        return Solution(dual_coef, intercept, fitted, primal, dual, work)

    def _dual(self, dual_coef: Floats, quadratic: float) -> float:
        ridge = self.loss.ridge_term(dual_coef, self.Y, self.cost)
        return self.loss.linear(dual_coef, self.Y, self.cost) - 0.5 * (quadratic + ridge)

    def solve_together(self, solution: Solution, tol: float) -> Solution:
        """Return the solution by Newton's method on features of the kernel, if it is better."""
        everything = np.arange(len(self.Y))
        features = _Features(factor(self.K.block(everything, everything)))
        found = solve_related(
            self.loss,
            features,
            self.Y,
            self.cost,
            self.relation,
            tol=tol,
            start=solution.dual_coef,
        )
        dual_coef = self.loss.repair(found.dual_coef, self.Y, self.cost)
        together = self.evaluate(dual_coef, self.K @ dual_coef, solution.work + found.work)
        return together if together.gap < solution.gap else solution

    def improve(self, dual_coef: Floats, products: Floats) -> Floats:
        """Return better coefficients, from exact steps in all that are inside their boxes."""
        box = self.loss.box(self.Y, self.cost)
        value = self._dual(dual_coef, float(np.vdot(dual_coef, products @ self.relation)))
        for _ in range(_OPTIONS.max_jumps):
            step = self._step(dual_coef, products, box)
            if step is None:
                break
            for share in (1.0, _room(dual_coef, step, box)):
                target = self.loss.repair(dual_coef + share * step, self.Y, self.cost)
                moved = self.K @ target
                reached = self._dual(target, float(np.vdot(target, moved @ self.relation)))
                if reached > value + 1e-12 * abs(value):
                    dual_coef, products, value = target, moved, reached
                    break
            else:
                break
        return dual_coef

    def _step(self, dual_coef: Floats, products: Floats, box: DualBox) -> Floats | None:
        """Return the step to the best values of all free coefficients without their boxes."""
        n_outputs = dual_coef.shape[1]
        free = [box.free_rows(dual_coef[:, t], t) for t in range(n_outputs)]
        task = np.repeat(np.arange(n_outputs), [len(rows) for rows in free])
        if not 2 <= len(task) <= _OPTIONS.max_free:
            return None
        rows = np.concatenate(free)
        used, place = np.unique(rows, return_inverse=True)
        M = self.K.block(used, used)[np.ix_(place, place)] * self.relation[np.ix_(task, task)]
        ridge = box.ridge[rows, task]
        M[np.diag_indices_from(M)] += ridge + 1e-13 * np.trace(M) / len(M)
        here = dual_coef[rows, task]
        residual = self.Y[rows, task] - (products @ self.relation)[rows, task] - ridge * here
        residual -= box.dead_zone * np.sign(here)
        sums = (task[:, None] == np.unique(task)).astype(np.float64)
        solved = solve_positive(M, np.column_stack([residual, sums]))
        found = solved[:, 0]
        if self.loss.fit_intercept:
            across = sums.T @ solved[:, 1:]
            found = found - solved[:, 1:] @ np.linalg.lstsq(across, sums.T @ found)[0]
        step = np.zeros_like(dual_coef)
        step[rows, task] = found
        return step if np.isfinite(found).all() else None


class _Features(Features):
    """Few features, held as a matrix."""

    def __init__(self, Z: Floats) -> None:
        self.Z, self.n_samples = Z, len(Z)

    @property
    def n_features(self) -> int:
        return int(self.Z.shape[1])

    def times(self, w: Floats) -> Floats:
        return self.Z @ w

    def sums(self, V: Floats) -> Floats:
        return self.Z.T @ V

    def rows(self, index: Indices) -> Floats:
        return self.Z[index]

    def gram(self, q: Floats) -> tuple[Floats, Floats]:
        return (self.Z.T * q) @ self.Z, self.Z.T @ q


def _room(dual_coef: Floats, step: Floats, box: DualBox) -> float:
    """Return the largest share of a step inside the boxes; with a dead zone, signs stay."""
    up, down = step > 0, step < 0
    high, low = box.upper, box.lower
    if box.dead_zone > 0:
        high, low = np.where(dual_coef < 0, 0.0, high), np.where(dual_coef > 0, 0.0, low)
    shares = np.concatenate(
        [(high - dual_coef)[up] / step[up], (low - dual_coef)[down] / step[down]]
    )
    return float(min(1.0, shares.min(initial=1.0)))
