"""The multinomial logistic loss of several classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, xlog1py

from kernelweave._types import Floats, Indices

from .base import Tangent
from .logistic import FLAT, INSIDE, LogLikelihood, other_probabilities

# Steps of a search of the biases, and halvings of each, at most:
_QUICK = (12, 3)  # from a start that may be far off
_ROUGH = (12, 10)  # for another start
_THOROUGH = (100, 30)
_SMALLEST = 1e-300  # share of a class that no row is close to
_EPS = float(np.finfo(np.float64).eps)
_STAGE = 2.0  # factor of the values, from close together to as they are
_FARTHEST = 1e12  # distance of values from which on a bias is a matter of rounding
_CLOSE = 1e-13  # promised gain, relative to the summed cost, at which the next step is the last
_RAREST = 1e-16  # share of a class without rows


@dataclass(frozen=True)
class Softmax(LogLikelihood):
    """The loss ``cost * (log sum_k exp f_k - f_y)``; targets are +1 for the class y, else -1.

    The dual coefficients of a row are ``cost (e_y - p)`` with probabilities p, so they sum to zero.
    Costs of a row are equal for all outputs.

    Parameters
    ----------
    fit_intercept : bool
        Whether to add a bias to every output; the biases sum to zero.
    """

    fit_intercept: bool = True
    is_coupled = True
    bias_reach = 2.0

    def row_losses(self, fitted: Floats, Y: Floats, cost: Floats) -> Floats:
        own = np.take_along_axis(fitted, Y.argmax(axis=1)[:, None], axis=1)
        # Against the own class, whose part is one, so that small losses keep their digits.
        ahead = np.asfortranarray(np.where(Y > 0, -np.inf, fitted - own))
        top = np.maximum(ahead.max(axis=1, keepdims=True), 0.0)
        rest = np.exp(ahead - top).sum(axis=1, keepdims=True)
        small = np.log1p(rest)  # where the own class is the largest: top is zero
        return np.asarray(cost[:, :1] * np.where(top > 0, top + np.log(np.exp(-top) + rest), small))

    def linear(self, dual_coef: Floats, Y: Floats, cost: Floats) -> float:
        u = other_probabilities(dual_coef, Y, cost)
        terms = np.where(Y > 0, -xlog1py(1.0 - u, -u), entr(u))
        return float((cost * terms).sum())

    def value(self, fitted: Floats, Y: Floats, cost: Floats) -> tuple[float, Floats]:
        bias = self._best_bias(fitted, Y, cost)
        return float(self.row_losses(fitted + bias, Y, cost).sum()), bias

    def tangent(
        self, fitted: Floats, Y: Floats, cost: Floats, near: Floats | None = None
    ) -> Tangent:
        bias = self._best_bias(fitted, Y, cost, near)
        p = _probabilities(fitted + bias)
        value = float(self.row_losses(fitted + bias, Y, cost).sum())
        if self.fit_intercept:
            p = _with_shares(p, Y, cost)
        return Tangent(value, bias, _coefficients(p, Y, cost), cost * p)

    def bias_bound(self, Y: Floats, cost: Floats) -> float:
        return float(np.abs(np.log(_shares(Y, cost))).max())

    def inverse_curvature(
        self, dual_coef: Floats, Y: Floats, cost: Floats
    ) -> list[tuple[Indices, Floats]]:
        """Return those of outputs that do not see each other, which are right for equal shares.

        The second derivatives of a row are ``cost (diag(p) - p p')``; on coefficients that sum to
        zero ``cost k / (k - 1) diag(p (1 - p))`` is the same where k classes are equally likely,
        and for two classes always.
        """
        u = other_probabilities(dual_coef, Y, cost)
        weights = Y.shape[1] / (Y.shape[1] - 1.0) * cost * u * (1.0 - u)
        rows = [np.flatnonzero(w > FLAT * c) for w, c in zip(weights.T, cost.T, strict=True)]
        return [(some, 1.0 / weights[some, o]) for o, some in enumerate(rows)]

    def repair(self, dual_coef: Floats, Y: Floats, cost: Floats) -> Floats:
        u = other_probabilities(dual_coef, Y, cost)
        p = np.maximum(np.where(Y > 0, 1.0 - u, u), INSIDE)
        p /= p.sum(axis=1, keepdims=True)
        if not self.fit_intercept:
            return _coefficients(p, Y, cost)
        # With the best bias of the function that has these coefficients, they sum to zero.
        return self.tangent(np.log(p), Y, cost).dual_coef

    def _best_bias(
        self, fitted: Floats, Y: Floats, cost: Floats, near: Floats | None = None
    ) -> Floats:
        """Return the biases at which expected and true shares of the classes agree.

        They minimise ``sum_i c_i logsumexp(f_i + b) - N.b``, with N the summed costs of the
        classes.
        """
        n_outputs = Y.shape[1]
        # Column by column: reductions over a short last axis are several times slower.
        fitted, c = np.asfortranarray(fitted), np.ascontiguousarray(cost[:, 0])
        total = float(c.sum())
        if not self.fit_intercept or total <= 0.0:
            return np.zeros(n_outputs)
        wanted = total * _shares(Y, cost)
        start = np.zeros(n_outputs) if near is None else near
        bias, found = _descend(fitted, start, c, wanted, *_QUICK)
        spread = float(np.ptp(fitted, axis=1).max())
        if not found and spread < _FARTHEST:
            # Values far apart saturate the probabilities, and Newton steps from afar are useless.
            # Minimisers for F / s are about those for F divided by s: begin where values are close.
            bias = np.zeros(n_outputs)
            for k in range(int(np.log(max(spread, 1.0)) / np.log(_STAGE)), 0, -1):
                bias = _STAGE * _descend(fitted / _STAGE**k, bias, c, wanted, *_ROUGH)[0]
            bias, _ = _descend(fitted, bias, c, wanted, *_THOROUGH)
        return np.asarray(bias - bias.mean())


def _descend(
    F: Floats, bias: Floats, c: Floats, wanted: Floats, max_steps: int, max_halvings: int
) -> tuple[Floats, bool]:
    """Minimise ``sum_i c_i logsumexp(F_i + b) - wanted.b``; return ``b`` and whether it converged.

    Newton steps with halving. Where none helps, ``b += log(wanted / sum_i c_i p_i)`` never raises
    the value (iterative scaling).
    """
    total = float(c.sum())
    value, p = _value_and_shares(F, bias, c, wanted)
    for _ in range(max_steps):
        found = c @ p
        slope = found - wanted
        hessian = np.diag(found) - (p.T * c) @ p
        hessian += total / len(bias)  # along the sum of all biases, which changes nothing
        step = _solve_step(hessian, slope)
        gain = -float(slope @ step)
        small = max(_CLOSE * total, _EPS * float(wanted @ np.abs(bias)))  # the latter: rounding
        if gain <= small and slope @ slope <= small * total:
            far = np.abs(step).max() > 1.0  # by a Hessian of rounding errors
            # Otherwise this is the last step: its error is the square of the one before.
            return (bias if far else bias + step), True
        # Probabilities of zero and one leave a Hessian without information, so no gain.
        for _ in range(max_halvings if gain > small else 0):
            new, ahead = _value_and_shares(F, bias + step, c, wanted)
            if new <= value:
                break
            step = 0.5 * step
        else:
            step = np.log(wanted) - np.log(np.maximum(found, _SMALLEST * total))
            new, ahead = _value_and_shares(F, bias + step, c, wanted)
            if not new < value:
                return bias, True  # the rest is rounding
        bias, value, p = bias + step, new, ahead
    return bias, False


def _solve_step(hessian: Floats, slope: Floats) -> Floats:
    try:
        step = -np.linalg.solve(hessian, slope)
    except np.linalg.LinAlgError:  # shares of zero
        step = -np.linalg.lstsq(hessian, slope, rcond=None)[0]
    return np.asarray(step - step.mean())


def _value_and_shares(F: Floats, bias: Floats, c: Floats, wanted: Floats) -> tuple[float, Floats]:
    """Return the part of the loss that depends on the bias, and the probabilities."""
    values = F + bias
    top = values.max(axis=1, keepdims=True)
    p = np.exp(values - top)
    sums = p.sum(axis=1, keepdims=True)
    p /= sums
    logs = (top - F.max(axis=1, keepdims=True) + np.log(sums))[:, 0]
    return float(c @ logs - wanted @ bias), p


def _probabilities(values: Floats) -> Floats:
    values = np.asfortranarray(values)
    p = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _shares(Y: Floats, cost: Floats) -> Floats:
    """Return the shares of the classes in the summed costs, none of them zero."""
    sums = (cost * (Y > 0)).sum(axis=0)
    return np.asarray(np.maximum(sums / max(float(sums.sum()), 1e-300), _RAREST))


def _coefficients(p: Floats, Y: Floats, cost: Floats) -> Floats:
    """Return ``cost (e_y - p)``, whose rows sum to zero to the last digit of the largest."""
    others = np.asfortranarray(np.where(Y > 0, 0.0, p))
    return np.ascontiguousarray(cost * np.where(Y > 0, others.sum(axis=1, keepdims=True), -others))


def _with_shares(p: Floats, Y: Floats, cost: Floats) -> Floats:
    """Return probabilities nearby whose expected shares are exactly the true ones.

    Classes with too much give the same share of every row, and those with too little divide it.
    """
    wanted = (cost * (Y > 0)).sum(axis=0)
    found = (cost * p).sum(axis=0)
    excess = found - wanted
    give = np.divide(excess, found, out=np.zeros_like(found), where=(excess > 0) & (found > 0))
    take = np.maximum(-excess, 0.0)
    if not take.any():
        return p
    return np.asarray(p * (1.0 - give) + (p @ give)[:, None] * (take / take.sum()))
