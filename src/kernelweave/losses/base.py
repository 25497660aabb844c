"""What a loss is: its value, and its conjugate as a box with quadratic and absolute-value terms.

With a signed dual variable ``beta`` per output (``f = K beta + b``) all losses share

    min  1/2 beta'(K + diag d) beta - y'beta + e |beta|_1,   lo <= beta <= hi,   sum beta = 0,

and differ only in ``lo, hi, d, e``. A loss is the conjugate of the last terms, so values, bounds
and curvature follow from its box.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats, Indices


class InnerSolver(Enum):
    """The solver of `kernelweave.inner` that fits a loss on a kernel given by its values."""

    SMO = auto()  # a quadratic program over finite boxes
    LINEAR_SYSTEM = auto()  # no boxes
    CVAR = auto()  # a quadratic program with a cap on the sum of all coefficients
    NEWTON = auto()  # a smooth loss, whose derivatives are given by `Loss.tangent`


@dataclass(frozen=True)
class DualBox:
    """The conjugate of a loss, one column per output."""

    # lower, upper (n_samples, n_outputs): bounds of every coefficient, with zero between them
    lower: Floats
    upper: Floats
    ridge: Floats  # (n_samples, n_outputs): the quadratic term d on each coefficient
    dead_zone: float = 0.0  # the absolute-value term e on each coefficient

    def columns(self, Y: Floats, o: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return target, bounds and ridge of one output, contiguous as the core needs them."""
        return column(Y, o), column(self.lower, o), column(self.upper, o), column(self.ridge, o)

    def losses(self, residual: Floats) -> Floats:
        """Return the loss of every residual ``y - f``, for finite boxes."""
        slack = np.maximum(np.abs(residual) - self.dead_zone, 0.0)
        limit = np.where(residual > 0, self.upper, -self.lower)
        t = np.divide(slack, self.ridge, out=limit.copy(), where=self.ridge > 0)
        t = np.minimum(t, limit)  # the maximiser of t * slack - ridge / 2 * t^2 in the box
        return t * slack - 0.5 * self.ridge * t * t

    def respond(self, residual: Floats, anchor: Floats, s: float) -> tuple[Floats, Floats]:
        """Return the dual coefficients at which the proximal conjugate is attained, with slopes.

        They maximise ``t r - e|t| - d t^2/2 - s (t - anchor)^2/2`` over the box; the second array
        has their derivatives in the residuals r.
        """
        moved = residual + s * anchor
        if self.dead_zone > 0.0:
            moved = np.sign(moved) * np.maximum(np.abs(moved) - self.dead_zone, 0.0)
        stiff = s + self.ridge
        slope = np.divide(1.0, stiff, out=np.zeros_like(stiff), where=self.upper > self.lower)
        raw = slope * moved
        t = np.clip(raw, self.lower, self.upper)
        inside = (raw > self.lower) & (raw < self.upper)
        if self.dead_zone > 0.0:
            inside &= moved != 0.0
        return t, np.where(inside, slope, 0.0)

    def dual_value(self, t: Floats, Y: Floats, squared_norm: float) -> float:
        """Return the dual value of coefficients whose functions have this squared norm."""
        curved = squared_norm + float(np.vdot(self.ridge * t, t))
        return float(np.vdot(Y, t) - self.dead_zone * np.abs(t).sum()) - 0.5 * curved

    def free_rows(self, beta: Floats, o: int) -> Indices:
        """Return where coefficients of an output are strictly inside their box and off zero."""
        lower, upper = self.lower[:, o], self.upper[:, o]
        with np.errstate(invalid="ignore"):
            margin = np.where(np.isfinite(upper - lower), 1e-9 * (upper - lower), 0.0)
        inside = (beta > lower + margin) & (beta < upper - margin)
        if self.dead_zone > 0:
            inside &= beta != 0
        return np.flatnonzero(inside)


@dataclass(frozen=True)
class Tangent:
    """A smooth loss to second order at a function, with the best bias."""

    value: float  # the total loss
    bias: Floats  # (n_outputs,): the best bias
    # (n_samples, n_outputs): minus its derivatives, which are feasible dual coefficients.
    dual_coef: Floats
    # (n_samples, n_outputs): its second derivatives W. Where outputs are coupled, those of a row
    # are ``diag(w) - w w' / sum(w)``.
    weights: Floats


class Loss(ABC):
    """A convex loss with an optional intercept.

    A subclass gives its box; one whose conjugate is not a box overrides what follows from it.
    `Y` and `cost`, of shape (n_samples, n_outputs), are the targets and the cost of each error; a
    row of cost zero is absent.
    """

    fit_intercept: bool
    inner_solver = InnerSolver.SMO
    bounded = True  # boxes are finite, so a feasible point may not be scaled up
    is_sum = True  # the total is the sum of losses of rows, so that errors of theirs can be summed
    steepest = 1.0  # bound of the slope of `linear` in a coefficient, relative to its target
    bias_reach = 1.0  # bound of the move of the best bias, relative to that of the fitted values
    is_coupled = False  # the loss of a row depends on all of its outputs together

    @property
    def is_piecewise(self) -> bool:
        """Whether the loss has pieces, so that smoothing makes kernel weights easier to learn."""
        return self.inner_solver is InnerSolver.SMO

    @abstractmethod
    def box(self, Y: Floats, cost: Floats) -> DualBox:
        """Return the conjugate for these targets."""

    def of_output(self, o: int) -> Loss:
        """Return the loss of one output alone."""
        return self

    def linear(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        """Return the part of the dual value that is neither quadratic nor depends on the kernel.

        It must be concave in the coefficients and zero at zero.
        """
        return float(np.vdot(Y, dual_coef))

    def ridge_term(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        """Return ``sum d beta^2``."""
        return float((self.box(Y, cost).ridge * dual_coef**2).sum())

    def row_losses(self, fitted: Floats, Y: Floats, cost: Floats) -> Floats:
        """Return the loss of every row and output, bias included in the fitted values."""
        return self.box(Y, cost).losses(Y - fitted)

    def tangent(
        self, fitted: Floats, Y: Floats, cost: Floats, near: Floats | None = None
    ) -> Tangent:
        """Return a smooth loss to second order, for `InnerSolver.NEWTON`.

        The search of the best bias begins at ``near``, if given.
        """
        raise NotImplementedError

    def bias_bound(self, Y: Floats, cost: Floats) -> float:
        """Bound the best bias of the function that is zero everywhere."""
        return float(np.abs(Y).max())

    def value(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        """Return the total loss at the best bias, and that bias."""
        box, n_outputs = self.box(Y, cost), Y.shape[1]
        bias = np.zeros(n_outputs)
        if not np.isfinite(fitted).all():  # products with large kernels overflowed
            return np.inf, bias
        if not self.fit_intercept:
            losses = box.losses(Y - fitted)
            return sum(float(losses[:, o].sum()) for o in range(n_outputs)), bias
        total = 0.0
        for o in range(n_outputs):
            bias[o], loss_value = _core.best_bias(
                column(fitted, o), *box.columns(Y, o), box.dead_zone
            )
            total += loss_value
        return total, bias

    def largest_increase(self, fitted: Floats, error: Floats, Y: Floats, cost: Floats) -> float:
        """Bound the growth of the total loss when fitted values, bias included, are in error.

        A convex loss grows most at one of the two ends.
        """
        box = self.box(Y, cost)
        ends = [box.losses(Y - (fitted - error)), box.losses(Y - (fitted + error))]
        return float((np.maximum(*ends) - box.losses(Y - fitted)).sum())

    def slope_bounds(self, dual_coef: Floats, Y: Floats, cost: Floats, gap: float = 0.0) -> Floats:
        """Bound the slope of the loss of every row; of unbounded ones, within a gap.

        That of the square loss differs by v from the coefficient of its row, and ``v**2`` in units
        of twice the cost is part of the gap (Fenchel and Young).
        """
        box = self.box(Y, cost)
        slopes = np.maximum(np.abs(box.lower), np.abs(box.upper))
        near = np.abs(dual_coef) + np.sqrt(2.0 * cost * max(gap, 0.0))
        return np.where(np.isfinite(slopes), slopes, near)

    def inverse_curvature(
        self, dual_coef: Floats, Y: Floats, cost: Floats
    ) -> list[tuple[Indices, Floats]]:
        """Return, per output, the rows with curvature, and one over their second derivatives."""
        box = self.box(Y, cost)
        free = [box.free_rows(beta, o) for o, beta in enumerate(dual_coef.T)]
        return [(rows, box.ridge[rows, o]) for o, rows in enumerate(free)]

    def constant(self, fitted: Floats, Y: Floats, cost: Floats) -> float:
        """Return the part of the loss that relative tolerances exclude."""
        return 0.0

    def normal(self, dual_coef: Floats, Y: Floats, cost: Floats, o: int) -> Floats | None:
        """Return the normal of the equation that the coefficients of an output satisfy, if any."""
        return np.ones(len(Y)) if self.fit_intercept else None

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        """Return the total loss of the function that is zero everywhere."""
        return float(self.box(Y, cost).losses(Y).sum())

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        """Return feasible coefficients near the given ones: inside the boxes, summing to zero."""
        box = self.box(Y, cost)
        dual_coef = np.clip(dual_coef, box.lower, box.upper)
        if self.fit_intercept:
            for o in range(dual_coef.shape[1]):
                balance(dual_coef[:, o], box.lower[:, o], box.upper[:, o])
        return dual_coef


def column(array: Floats, o: int) -> Floats:
    """Return one column, contiguous as the core needs it."""
    return np.ascontiguousarray(array[:, o])


def balance(beta: Floats, lower: Floats, upper: Floats, aim: float = 0.0) -> None:
    """Make ``beta`` sum to ``aim`` inside its box, in place, moving free coefficients first."""
    for _ in range(50):
        excess = float(beta.sum()) - aim
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
