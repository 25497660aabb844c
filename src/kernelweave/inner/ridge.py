"""The square loss on one kernel: a linear system."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from kernelweave._linalg import factor_upper, restore_upper
from kernelweave._types import Floats
from kernelweave.banks import KernelOperator
from kernelweave.banks.kernel_sum import gram_product
from kernelweave.losses.base import Loss

from .solution import Solution


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
    """Solve exactly; see `solve_inner`. Tolerances and the start are not needed."""
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
    quadratic = float(np.vdot(dual_coef, fitted))
    loss_value, intercept = loss.value(fitted, Y, cost)
    ridge = loss.ridge_term(dual_coef, Y, cost)
    dual = loss.linear(dual_coef, Y, cost) - 0.5 * (quadratic + ridge)
    return Solution(dual_coef, intercept, fitted, 0.5 * quadratic + loss_value, dual, 1)


def _solve(system: Floats, sides: Floats) -> Floats:
    """Solve with a matrix, which is overwritten."""
    diagonal = system.diagonal().copy()
    try:
        factor = factor_upper(system)
        return np.asarray(scipy.linalg.cho_solve(factor, sides, check_finite=False))
    except np.linalg.LinAlgError:  # a huge C on a singular Gram: the smallest-norm solution
        restore_upper(system, diagonal)
        return np.asarray(scipy.linalg.lstsq(system, sides, check_finite=False)[0])
