"""The square loss on one kernel: a linear system, or conjugate gradients on a large one."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from kernelweave._linalg import factor_upper, restore_upper
from kernelweave._types import Floats
from kernelweave.banks import KernelOperator
from kernelweave.banks.kernel_sum import gram_product
from kernelweave.losses.base import Loss

from .solution import Solution
from .systems import make_system, rough_product

_MOST_ROUNDS = 50  # of conjugate gradients, which stop at a twentieth of the residual
_VISIBLE = 0.5  # gap of a round, relative to that before, that shows progress


def solve_ridge(
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
    """Solve for one kernel; see `solve_inner`. Of stored kernels the solution is exact."""
    if K.workspace is not None:
        return _solve_by_iterations(loss, K, Y, cost, tol, floor, start)
    gram = K.dense()
    dual_coef = np.zeros_like(Y)
    for o in range(Y.shape[1]):
        rows = np.flatnonzero(cost[:, o] > 0)
        if not len(rows):
            continue
        system = gram.astype(np.float64) if len(rows) == len(gram) else K.block(rows, rows)
        system[np.diag_indices_from(system)] += 1.0 / cost[rows, o]
        sides = np.column_stack([Y[rows, o], np.ones(len(rows))])
        solved = _solve(system, sides)
        if loss.fit_intercept:
            bias = solved[:, 0].sum() / solved[:, 1].sum()
            solved[:, 0] -= bias * solved[:, 1]
            solved[:, 0] -= solved[:, 0].mean()  # rounding, so that the sum is zero
        dual_coef[rows, o] = solved[:, 0]
    # In double precision, without a copy of the matrix in it.
    single = gram.dtype != np.float64
    fitted = gram_product(gram, dual_coef) if single else np.asarray(gram @ dual_coef)
    return _evaluated(loss, Y, cost, dual_coef, fitted)


def _evaluated(
    loss: Loss, Y: Floats, cost: Floats, dual_coef: Floats, fitted: Floats, work: int = 1
) -> Solution:
    quadratic = float(np.vdot(dual_coef, fitted))
    loss_value, intercept = loss.value(fitted, Y, cost)
    ridge = loss.ridge_term(dual_coef, Y, cost)
    dual = loss.linear(dual_coef, Y, cost) - 0.5 * (quadratic + ridge)
    return Solution(dual_coef, intercept, fitted, 0.5 * quadratic + loss_value, dual, work)


def _solve_by_iterations(
    loss: Loss,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    tol: float,
    floor: float,
    start: Solution | None,
) -> Solution:
    """Solve by conjugate gradients, again and again for what they left of the residual."""
    system = make_system(K, cost, False, loss.fit_intercept)
    if start is None:
        best = _evaluated(loss, Y, cost, np.zeros_like(Y), np.zeros_like(Y), 0)
    else:
        best = _evaluated(loss, Y, cost, start.dual_coef, start.fitted, 0)
    for work in range(1, _MOST_ROUNDS + 1):
        if best.gap <= max(tol * abs(best.primal), floor):
            break
        own = np.divide(best.dual_coef, cost, out=np.zeros_like(cost), where=cost > 0)
        residual = np.where(cost > 0, Y - best.fitted - best.intercept - own, 0.0)
        step = system.projected(residual[:, :, None])[:, :, 0]
        dual_coef = loss.repair(best.dual_coef + step, Y, cost)
        found = _evaluated(
            loss, Y, cost, dual_coef, rough_product(K, dual_coef, single=False), work
        )
        if not found.gap < _VISIBLE * best.gap:  # the rest is rounding
            best = found if found.gap < best.gap else best
            break
        best = found
    return best


def _solve(system: Floats, sides: Floats) -> Floats:
    """Solve with a matrix, which is overwritten."""
    diagonal = system.diagonal().copy()
    try:
        factor = factor_upper(system)
        return np.asarray(scipy.linalg.cho_solve(factor, sides, check_finite=False))
    except np.linalg.LinAlgError:  # a huge C on a singular Gram: the smallest-norm solution
        restore_upper(system, diagonal)
        return np.asarray(scipy.linalg.lstsq(system, sides, check_finite=False)[0])
