"""Kernel ridge regression without some rows, in closed form from one inverse.

With ``M = (K + diag(1/cost))^-1`` and, for an intercept, ``P = M - M 1 1'M / (1'M1)`` and
``e = M1 / (1'M1)``, the coefficients are ``a = P y`` and the bias ``e'y``. Without the rows F the
residuals there are ``r_F = P_FF^-1 a_F``, the coefficients ``a - P[:, F] r_F`` and the bias
``e'y - e_F'r_F``. All are exact, with any costs.

References
----------
S. An, W. Liu, S. Venkatesh (2007), Fast cross-validation algorithms for least squares support
vector machine and kernel ridge regression, Pattern Recognition 40.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from kernelweave._types import Floats, Indices, Stored

_LEAST = 1e-12  # diagonal of P, relative to the largest: a row that resembles no other at any cost


@dataclass(frozen=True)
class RidgeWithout:
    """Models that left out some rows.

    Parameters
    ----------
    dual_coef : ndarray of shape (n_samples, n_models, n_outputs)
        Dual coefficients of every model, zero where rows were left out.
    intercept : ndarray of shape (n_models, n_outputs)
        Biases.
    residual : ndarray of shape (n_samples, n_outputs)
        Target less prediction of the model that left the row out; NaN where none did.
    """

    dual_coef: Floats
    intercept: Floats
    residual: Floats


@dataclass(frozen=True)
class RidgeInverse:
    """Kernel ridge regression on all rows, ready to leave some out.

    Parameters
    ----------
    K : ndarray of shape (n_samples, n_samples)
        The kernel.
    Y : ndarray of shape (n_samples, n_outputs)
        Targets.
    cost : ndarray of shape (n_samples,)
        Cost of each row, positive.
    fit_intercept : bool
        Whether there is a bias.
    """

    K: Stored
    Y: Floats
    cost: Floats
    fit_intercept: bool

    @cached_property
    def _parts(self) -> tuple[Floats, Floats]:
        """``P`` and ``e``."""
        system = np.array(self.K, dtype=np.float64)
        system[np.diag_indices_from(system)] += 1.0 / self.cost
        try:
            factor = scipy.linalg.cho_factor(system, lower=True, check_finite=False)
            M = scipy.linalg.cho_solve(factor, np.eye(len(system)), check_finite=False)
        except np.linalg.LinAlgError:  # a huge cost on a singular kernel
            M = np.asarray(np.linalg.pinv(system, hermitian=True), dtype=np.float64)
        M = 0.5 * (M + M.T)
        if not self.fit_intercept:
            return M, np.zeros(len(M))
        ones = M.sum(axis=1)
        e = ones / ones.sum()
        return M - np.outer(ones, e), e

    def without_folds(self, folds: Sequence[Indices]) -> RidgeWithout:
        """Return a model without each of some sets of rows."""
        P, e = self._parts
        a, bias = P @ self.Y, e @ self.Y
        n, n_outputs = self.Y.shape
        dual_coef = np.empty((n, len(folds), n_outputs))
        intercept = np.empty((len(folds), n_outputs))
        residual = np.full((n, n_outputs), np.nan)
        for k, rows in enumerate(folds):
            r = _solve(P[np.ix_(rows, rows)], a[rows])
            dual_coef[:, k] = a - P[:, rows] @ r
            dual_coef[rows, k] = 0.0
            intercept[k], residual[rows] = bias - e[rows] @ r, r
        return RidgeWithout(dual_coef, intercept, residual)

    def without_rows(self, left: Floats) -> RidgeWithout:
        """Return for each row a model in which its cost is lower, or zero.

        Parameters
        ----------
        left : ndarray of shape (n_samples,)
            Cost that each row keeps in its own model: zero, or that of the remaining copies of a
            row that was given several times.
        """
        P, e = self._parts
        a, bias = P @ self.Y, e @ self.Y
        diagonal = np.maximum(P.diagonal(), _LEAST * P.diagonal().max())[:, None]
        gone = left <= 0
        kept = np.where(gone, 1.0, left)[:, None]
        # A rank-one change of the inverse: 1/cost of the row grows by delta.
        delta = 1.0 / kept - 1.0 / self.cost[:, None]
        moved = np.where(gone[:, None], a / diagonal, delta * a / (1.0 + delta * diagonal))
        residual = np.where(gone[:, None], a / diagonal, a / kept / (1.0 + delta * diagonal))
        dual_coef = a[:, None, :] - P[:, :, None] * moved
        rows = np.flatnonzero(gone)
        dual_coef[rows, rows] = 0.0
        return RidgeWithout(dual_coef, bias - e[:, None] * moved, residual)


def _solve(P: Floats, a: Floats) -> Floats:
    try:
        return np.asarray(np.linalg.solve(P, a))
    except np.linalg.LinAlgError:  # no row is left, or none that the others resemble
        return np.asarray(np.linalg.lstsq(P, a, rcond=None)[0])
