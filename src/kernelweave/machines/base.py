"""The problem for one fixed kernel, in one form for every loss.

With a signed dual variable ``beta`` per output (``f = K beta + b``) all losses share

    min  1/2 beta'(K + diag d) beta - y'beta + e |beta|_1,   lo <= beta <= hi,   sum beta = 0,

and differ only in ``lo, hi, d, e``; the loss is the conjugate of the rest, so values, bounds and
curvature need no case distinction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from kernelweave import _core
from kernelweave._linalg import factor_upper
from kernelweave._types import Floats, Indices
from kernelweave.banks import CombinedKernel

_PANEL = 256  # rows copied at a time
MAX_FREE = 3000  # free coefficients above which systems in them cost more than they save


@dataclass(frozen=True)
class DualShape:
    """Boxes of the dual variable, one column per output.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_samples, n_outputs)
        Bounds of every coefficient, with zero between them.
    ridge : ndarray of shape (n_samples, n_outputs)
        The quadratic term d on each coefficient.
    dead_zone : float
        The absolute-value term e on each coefficient.
    """

    lower: Floats
    upper: Floats
    ridge: Floats
    dead_zone: float = 0.0

    def columns(self, Y: Floats, o: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return target, bounds and ridge of one output, contiguous as the core wants them."""
        return column(Y, o), column(self.lower, o), column(self.upper, o), column(self.ridge, o)


@dataclass(frozen=True)
class Solution:
    """Dual coefficients for one kernel, with the bounds they prove.

    Parameters
    ----------
    dual_coef : ndarray of shape (n_samples, n_outputs)
        Signed dual coefficients.
    intercept : ndarray of shape (n_outputs,)
        Best bias for these coefficients.
    fitted : ndarray of shape (n_samples, n_outputs)
        ``K @ dual_coef``, without the bias.
    primal, dual : float
        Upper and lower bound of the one-kernel problem.
    work : int
        Coefficient updates spent.
    function : ndarray of shape (n_columns, n_outputs), optional
        Of kernels held as features: weights of all columns of the bank that give the function of
        the upper bound, which then is `fitted` in place of ``K @ dual_coef``.
    sharpness : float
        How little the last solve was smoothed, where it was; tells the next one where to begin.
    scores : ndarray of shape (n_columns at hand, n_outputs), optional
        Of kernels held as features: these transposed times `dual_coef`.
    """

    dual_coef: Floats
    intercept: Floats
    fitted: Floats
    primal: float
    dual: float
    work: int = 0
    function: Floats | None = None
    sharpness: float = 0.0
    scores: Floats | None = None

    @property
    def gap(self) -> float:
        """Distance between the bounds."""
        return self.primal - self.dual


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of the optimal value in the kernel weights, and how coefficients follow.

    Parameters
    ----------
    hessian : ndarray of shape (n_kernels, n_kernels)
        Valid while the set of free coefficients stays.
    free : list of ndarray
        Per output, the rows strictly inside their box.
    response : list of ndarray
        Per output, minus the derivative of the free coefficients in the weights.
    """

    hessian: Floats
    free: list[Indices]
    response: list[Floats]

    def predict(self, dual_coef: Floats, step: Floats) -> Floats:
        """Return the coefficients expected after a step of the weights; may leave the box."""
        out = dual_coef.copy()
        for o, (rows, response) in enumerate(zip(self.free, self.response, strict=True)):
            out[rows, o] -= response @ step
        return out


class Machine(ABC):
    """A loss with an optional intercept.

    A subclass says its dual shape; one without finite boxes also solves its problem itself.
    """

    fit_intercept: bool
    bounded = True  # boxes are finite, so a bound may not be scaled up
    by_rows = True  # the loss is the sum of losses of rows, so that errors of theirs can be summed

    @abstractmethod
    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        """Return the boxes for these targets; ``cost`` is zero where a row is absent."""

    @abstractmethod
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
        """Solve for one kernel until the gap is at most ``max(tol * primal, floor)``.

        A machine with one output may stop early once its dual value has reached ``enough``.
        """

    def linear(self, dual_coef: Floats, Y: Floats) -> float:
        """Return the part of the dual value that grows linearly with the coefficients."""
        return float(np.vdot(Y, dual_coef))

    def ridge_term(self, dual_coef: Floats, cost: Floats, Y: Floats) -> float:
        """Return ``sum d beta^2``."""
        return float((self.shape(Y, cost).ridge * dual_coef**2).sum())

    def loss(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        """Return the total loss at the best bias, and that bias."""
        shape = self.shape(Y, cost)
        n_outputs = Y.shape[1]
        total, bias = 0.0, np.zeros(n_outputs)
        for o in range(n_outputs):
            y, lower, upper, ridge = shape.columns(Y, o)
            if self.fit_intercept:
                bias[o], loss = _core.best_bias(
                    column(fitted, o), y, lower, upper, ridge, shape.dead_zone
                )
            else:
                rows = _conjugate(fitted[:, o], y, lower, upper, ridge, shape.dead_zone)
                loss = float(rows.sum())
            total += loss
        return total, bias

    def loss_change(self, fitted: Floats, error: Floats, Y: Floats, cost: Floats) -> float:
        """Bound how much the total loss may grow when fitted values, bias included, are in error.

        A convex loss grows most at one of the two ends.
        """
        shape = self.shape(Y, cost)

        def rows(values: Floats) -> Floats:
            return _conjugate(values, Y, shape.lower, shape.upper, shape.ridge, shape.dead_zone)

        worst = np.maximum(rows(fitted - error), rows(fitted + error))
        return float((worst - rows(fitted)).sum())

    def loss_slopes(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        """Bound the slope of the loss of every row; of unbounded ones, at these coefficients."""
        shape = self.shape(Y, cost)
        slopes = np.maximum(np.abs(shape.lower), np.abs(shape.upper))
        return np.where(np.isfinite(slopes), slopes, np.abs(dual_coef))

    def constant(self, fitted: Floats, Y: Floats, cost: Floats) -> float:
        """Return a part of the loss that a tolerance should not be measured against."""
        return 0.0

    def normal(self, dual_coef: Floats, Y: Floats, cost: Floats, o: int) -> Floats | None:
        """Return the normal of the equation that the coefficients of an output satisfy, if any."""
        return np.ones(len(Y)) if self.fit_intercept else None

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        """Return the total loss of the function that is zero everywhere."""
        shape = self.shape(Y, cost)
        rows = _conjugate(
            np.zeros_like(Y), Y, shape.lower, shape.upper, shape.ridge, shape.dead_zone
        )
        return float(rows.sum())

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        """Return feasible coefficients near the given ones: inside the boxes, summing to zero."""
        shape = self.shape(Y, cost)
        dual_coef = np.clip(dual_coef, shape.lower, shape.upper)
        if not self.fit_intercept:
            return dual_coef
        for o in range(dual_coef.shape[1]):
            _balance(dual_coef[:, o], shape.lower[:, o], shape.upper[:, o])
        return dual_coef

    def curvature(
        self,
        K: CombinedKernel,
        products: Callable[[Indices], Floats],
        dual_coef: Floats,
        Y: Floats,
        cost: Floats,
    ) -> Curvature:
        """Return the Hessian of the optimal value in the weights of the kernels of ``products``.

        Parameters
        ----------
        K : CombinedKernel
            The kernel the coefficients belong to.
        products : callable
            Given rows, returns those of ``K_j @ dual_coef`` for the kernels of interest, of shape
            (n_kernels, n_rows, n_outputs).
        dual_coef : ndarray of shape (n_samples, n_outputs)
            Dual coefficients.
        Y, cost : ndarray of shape (n_samples, n_outputs)
            Targets and costs.
        """
        shape = self.shape(Y, cost)
        free_sets = [free_rows(dual_coef[:, o], shape, o) for o in range(dual_coef.shape[1])]
        some = np.unique(np.concatenate(free_sets))
        values = products(some)
        hessian = np.zeros((len(values), len(values)))
        responses = []
        for o, free in enumerate(free_sets):
            V = values[:, np.searchsorted(some, free), o].T
            normal = self.normal(dual_coef, Y, cost, o)
            if len(free) < (1 if normal is None else 2):
                responses.append(np.zeros_like(V))
                continue
            sides = V if normal is None else np.column_stack([V, normal[free]])
            solved = _solve_block(K, free, shape.ridge[free, o], sides)
            if normal is None:
                response = solved
            else:
                across = normal[free]
                response = solved[:, :-1] - np.outer(
                    solved[:, -1], (solved[:, -1] @ V) / (across @ solved[:, -1])
                )
            with np.errstate(over="ignore", invalid="ignore"):  # of squares of huge kernels
                hessian += V.T @ response
            responses.append(response)
        return Curvature(0.5 * (hessian + hessian.T), free_sets, responses)


def _solve_block(K: Any, rows: Indices, ridge: Floats, sides: Floats) -> Floats:
    """Solve with the block of some rows plus a diagonal, by features where they are fewer."""
    n_features = getattr(K, "n_features", np.inf)
    if len(rows) <= n_features or not (ridge > 0).all():
        M = K.block(rows, rows)
        # Rows that no kernel in use reaches have no curvature at all; anything but zero will do.
        size = np.trace(M) / len(rows) or 1.0
        M[np.diag_indices_from(M)] += ridge + 1e-9 * size
        return solve_positive(M, sides)
    Z = K.rows(rows)
    scaled = Z / ridge[:, None]
    inner = Z.T @ scaled
    inner[np.diag_indices_from(inner)] += 1.0
    inward = solve_positive(inner, scaled.T @ sides)
    return np.asarray(sides / ridge[:, None] - scaled @ inward)


def column(array: Floats, o: int) -> Floats:
    """Return one column, contiguous as the core wants it."""
    return np.ascontiguousarray(array[:, o])


def _conjugate(
    fitted: Floats, target: Floats, lower: Floats, upper: Floats, ridge: Floats, dead_zone: float
) -> Floats:
    """Return the loss per row from the dual shape (finite boxes)."""
    r = target - fitted
    slack = np.maximum(np.abs(r) - dead_zone, 0.0)
    limit = np.where(r > 0, upper, -lower)
    t = np.minimum(np.divide(slack, ridge, out=limit.copy(), where=ridge > 0), limit)
    return t * slack - 0.5 * ridge * t * t


def _balance(beta: Floats, lower: Floats, upper: Floats) -> None:
    """Make ``beta`` sum to zero inside its box, in place, moving free coefficients first."""
    for _ in range(50):
        excess = float(beta.sum())
        if abs(excess) <= 1e-15 * float(np.abs(beta).sum()):
            return
        room = beta - lower if excess > 0 else upper - beta
        inside = np.where((beta > lower) & (beta < upper), room, 0.0)
        usable = inside if inside.sum() >= abs(excess) else room
        total = float(usable.sum())
        if total <= 0:
            return
        beta -= np.sign(excess) * usable * min(1.0, abs(excess) / total)
        np.clip(beta, lower, upper, out=beta)


def free_rows(beta: Floats, shape: DualShape, o: int) -> Indices:
    """Return the rows of one output that lie strictly inside their box and off the kink at zero."""
    lower, upper = shape.lower[:, o], shape.upper[:, o]
    with np.errstate(invalid="ignore"):
        margin = np.where(np.isfinite(upper - lower), 1e-9 * (upper - lower), 0.0)
    inside = (beta > lower + margin) & (beta < upper - margin)
    if shape.dead_zone > 0:
        inside &= beta != 0
    return np.flatnonzero(inside)


def solve_positive(M: Floats, sides: Floats) -> Floats:
    """Solve with a positive definite matrix, or one that is so but for rounding.

    Then its diagonal is raised by as little of its mean as helps: rounding of entries in single
    precision grows with their number. The matrix is overwritten.
    """
    size = float(np.trace(M)) / max(1, len(M))
    diagonal = M.diagonal().copy()
    for raised in (0.0, 1e-6, 1e-4, 1e-2):
        if raised:
            restore_upper(M, diagonal + raised * size)
        try:
            factor = factor_upper(M)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(scipy.linalg.cho_solve(factor, sides, check_finite=False))
    return np.asarray(sides / size)  # a step along the slopes, at worst


def restore_upper(M: Floats, diagonal: Floats) -> None:
    """Undo `factor_upper`."""
    for a in range(0, len(M), _PANEL):
        b = a + _PANEL
        corner = np.tril(M[a:b, a:b])
        M[a:b, a:b] = corner + np.tril(corner, -1).T
        M[a:b, b:] = M[b:, a:b].T
    np.fill_diagonal(M, diagonal)
