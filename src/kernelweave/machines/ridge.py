"""The square loss: its problem for one kernel is a linear system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._linalg import factor_upper
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Stored
from kernelweave.banks import CombinedKernel

from .base import DualShape, Machine, Solution, restore_upper
from .linear import FeatureKernel, solve_linear

_PANEL = 256  # rows of a product; fixed, so that sums do not depend on the thread count


@dataclass(frozen=True)
class Square(Machine):
    """The loss ``cost / 2 * (y - f)^2`` of kernel ridge regression.

    Parameters
    ----------
    fit_intercept : bool
        Whether to add a bias to every output.
    """

    fit_intercept: bool = True
    bounded = False

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        present = cost > 0
        box = np.where(present, np.inf, 0.0)
        ridge = np.divide(1.0, cost, out=np.zeros_like(cost), where=present)
        return DualShape(-box, box, ridge)

    def loss(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        residual = Y - fitted
        bias = np.zeros(Y.shape[1])
        if self.fit_intercept:
            weight = cost.sum(axis=0)
            np.divide((cost * residual).sum(axis=0), weight, out=bias, where=weight > 0)
        return float(0.5 * (cost * (residual - bias) ** 2).sum()), bias

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        return float(0.5 * (cost * Y**2).sum())

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        present = cost > 0
        dual_coef = np.where(present, dual_coef, 0.0)
        if self.fit_intercept:
            counts = np.maximum(present.sum(axis=0), 1)
            dual_coef -= np.where(present, dual_coef.sum(axis=0) / counts, 0.0)
        return dual_coef

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
        """Solve exactly; tolerances and the start are not needed."""
        if isinstance(K, FeatureKernel):
            return solve_linear(self, K, Y, cost, tol=max(tol, 1e-12), floor=floor, start=start)
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
            if self.fit_intercept:
                bias = solved[:, 0].sum() / solved[:, 1].sum()
                solved[:, 0] -= bias * solved[:, 1]
                solved[:, 0] -= solved[:, 0].mean()  # rounding, so that the sum is zero
            dual_coef[rows, o] = solved[:, 0]
        fitted = _times(gram, dual_coef)
        quadratic = float(np.vdot(dual_coef, fitted))
        loss, intercept = self.loss(fitted, Y, cost)
        dual = self.linear(dual_coef, Y) - 0.5 * (quadratic + self.ridge_term(dual_coef, cost, Y))
        return Solution(dual_coef, intercept, fitted, 0.5 * quadratic + loss, dual, 1)


def _times(gram: Stored, dual_coef: Floats) -> Floats:
    """Multiply in double precision without a copy of the matrix in it."""
    if gram.dtype == np.float64:
        return np.asarray(gram @ dual_coef)
    return np.concatenate(run_blocks(lambda rows: gram[rows] @ dual_coef, len(gram), _PANEL))


def _solve(system: Floats, sides: Floats) -> Floats:
    """Solve with a matrix, which is overwritten."""
    diagonal = system.diagonal().copy()
    try:
        factor = factor_upper(system)
        return np.asarray(scipy.linalg.cho_solve(factor, sides, check_finite=False))
    except np.linalg.LinAlgError:  # a huge C on a singular Gram: the smallest-norm solution
        restore_upper(system, diagonal)
        return np.asarray(scipy.linalg.lstsq(system, sides, check_finite=False)[0])
