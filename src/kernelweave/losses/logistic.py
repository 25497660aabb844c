"""The logistic loss of two classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, xlog1py

from kernelweave._types import Floats, Indices

from .base import DualBox, InnerSolver, Loss, Tangent

INSIDE = 1e-12  # distance from the ends of its box, in boxes, of a repaired coefficient
FLAT = 1e-10  # second derivative, relative to the cost, below which a row has no curvature
_MAX_STEPS = 200  # of the search of a bias, bisections included
_FARTHEST = 40.0  # log-odds of a class without rows


class LogLikelihood(Loss):
    """Base of the losses that are minus the logarithm of a probability; targets are +-1.

    ``u = y beta / cost`` is the probability of another class than that of the row, the loss grows
    with every ``-y f``, and the conjugate is minus the entropy of the probabilities.
    """

    fit_intercept: bool
    inner_solver = InnerSolver.NEWTON
    steepest = 40.0  # the slope of the entropy, log((1 - u) / u), where 1 - u is rounding

    def box(self, Y: Floats, cost: Floats) -> DualBox:
        zero = np.zeros_like(cost)
        return DualBox(np.where(Y > 0, zero, -cost), np.where(Y > 0, cost, zero), zero)

    def largest_increase(self, fitted: Floats, error: Floats, Y: Floats, cost: Floats) -> float:
        worst = self.row_losses(fitted - Y * error, Y, cost)
        return float((worst - self.row_losses(fitted, Y, cost)).sum())

    def ridge_term(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        return 0.0

    def zero_loss(self, Y: Floats, cost: Floats) -> float:
        return float(self.row_losses(np.zeros_like(Y), Y, cost).sum())


@dataclass(frozen=True)
class Logistic(LogLikelihood):
    """The loss ``cost * log(1 + exp(-y f))`` of every output; targets are +-1.

    Parameters
    ----------
    fit_intercept : bool
        Whether to add a bias to every output.
    """

    fit_intercept: bool = True

    def row_losses(self, fitted: Floats, Y: Floats, cost: Floats) -> Floats:
        margin = Y * fitted
        return np.asarray(cost * (np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))))

    def linear(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        u = other_probabilities(dual_coef, Y, cost)
        return float((cost * (entr(u) - xlog1py(1.0 - u, -u))).sum())

    def value(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        bias = self._best_bias(fitted, Y, cost)
        return float(self.row_losses(fitted + bias, Y, cost).sum()), bias

    def tangent(
        self, fitted: Floats, Y: Floats, cost: Floats, near: Floats | None = None
    ) -> Tangent:
        bias = self._best_bias(fitted, Y, cost, near)
        margin = Y * (fitted + bias)
        u = expit(-margin)
        dual_coef = Y * cost * u
        if self.fit_intercept:
            dual_coef = balanced(dual_coef)
        value = float(self.row_losses(fitted + bias, Y, cost).sum())
        return Tangent(value, bias, dual_coef, cost * u * expit(margin))

    def bias_bound(self, Y: Floats, cost: Floats) -> float:
        return float(np.abs(_log_odds(Y, cost)).max())

    def inverse_curvature(
        self, dual_coef: Floats, Y: Floats, cost: Floats
    ) -> list[tuple[Indices, Floats]]:
        u = other_probabilities(dual_coef, Y, cost)
        weights = cost * u * (1.0 - u)
        rows = [np.flatnonzero(w > FLAT * c) for w, c in zip(weights.T, cost.T, strict=True)]
        return [(some, 1.0 / weights[some, o]) for o, some in enumerate(rows)]

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        u = np.clip(other_probabilities(dual_coef, Y, cost), INSIDE, 1.0 - INSIDE)
        if not self.fit_intercept:
            return Y * cost * u
        # With the best bias of the function that has these coefficients, they sum to zero.
        return self.tangent(Y * (np.log1p(-u) - np.log(u)), Y, cost).dual_coef

    def _best_bias(
        self, fitted: Floats, Y: Floats, cost: Floats, near: Floats | None = None
    ) -> Floats:
        """Return the biases at which the derivatives of every output sum to zero."""
        if not self.fit_intercept:
            return np.zeros(Y.shape[1])
        first = np.full(Y.shape[1], np.nan) if near is None else near
        parts = zip(_log_odds(Y, cost), first, fitted.T, Y.T, cost.T, strict=True)
        return np.array([_search_bias(*part) for part in parts])


def other_probabilities(dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
    """Return ``y dual_coef / cost`` inside [0, 1]; zero where a row is absent."""
    u = np.divide(Y * dual_coef, cost, out=np.zeros_like(dual_coef), where=cost > 0)
    return np.clip(u, 0.0, 1.0)


def balanced(dual_coef: Floats) -> Floats:
    """Scale the heavier side of every output down until its coefficients sum to zero."""
    up, down = np.maximum(dual_coef, 0.0), np.minimum(dual_coef, 0.0)
    above, below = up.sum(axis=0), -down.sum(axis=0)
    least = np.minimum(above, below)
    rise = np.divide(least, above, out=np.zeros_like(least), where=above > 0)
    fall = np.divide(least, below, out=np.zeros_like(least), where=below > 0)
    return np.asarray(rise * up + fall * down)


def _log_odds(Y: Floats, cost: Floats) -> Floats:
    """Return the log-odds of the summed costs of every output, those of an absent class clipped."""
    with np.errstate(divide="ignore", invalid="ignore"):
        plus, minus = np.log((cost * (Y > 0)).sum(axis=0)), np.log((cost * (Y < 0)).sum(axis=0))
        return np.asarray(np.clip(np.nan_to_num(plus - minus), -_FARTHEST, _FARTHEST))


def _search_bias(odds: float, near: float, f: Floats, y: Floats, c: Floats) -> float:
    """Return the bias at which ``sum c sigma(f + b)`` is the summed cost of the positives.

    It lies between the log-odds less the largest and the smallest value of f: Newton steps inside
    this bracket, and bisection where they leave it.
    """
    some = c > 0
    if not some.all():
        f, y, c = f[some], y[some], c[some]
    if not len(f):
        return 0.0
    low, high = odds - float(f.max()), odds - float(f.min())
    b = near if np.isfinite(near) else odds - float(f @ c) / float(c.sum())
    b = min(max(b, low), high)
    yc = y * c
    for _ in range(_MAX_STEPS):
        margin = y * (f + b)
        u = expit(-margin)
        slope = float(yc @ u)  # minus the derivative of the loss
        size = float(c @ u)
        if abs(slope) <= 1e-16 * size:
            break
        low, high = (b, high) if slope > 0.0 else (low, b)
        curvature = float((c * u) @ expit(margin))
        new = b + slope / curvature if curvature > 0.0 else low
        if not low < new < high:
            new = 0.5 * (low + high)
        if new == b or not low < new < high:
            break
        small = abs(new - b) <= 1e-9 * (1.0 + abs(b))
        b = new
        if small and abs(slope) <= 1e-9 * size:  # the error of a Newton step is its square
            break
    return b
