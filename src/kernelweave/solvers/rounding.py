"""Bounds of the rounding error of objectives and of lower bounds.

A sum of n products is off by some ``sqrt(n)`` units in the last place of the sum of their sizes
(Higham and Mary, 2019), and an entry of a kernel is at most ``sqrt(K_ii K_kk)``. A quadratic form
is then off by ``unit |V|_1 sum_i |V_i| K_ii``, and a fitted value by ``unit`` times the root of
``K_ii`` times the root of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np

from kernelweave._types import Floats
from kernelweave.machines import Machine

EPSILON = float(np.finfo(np.float64).eps)
_UNITS = 8.0  # in the last place, by which values of kernels may be off


def unit(n_samples: int) -> float:
    """Return the relative rounding error of a sum over so many rows."""
    return EPSILON * (_UNITS + float(np.sqrt(n_samples)))


def form_errors(V: Floats, diagonal_sums: Callable[[Floats], Floats]) -> Floats:
    """Bound the rounding error of ``tr(V' K_j V)``.

    Parameters
    ----------
    V : ndarray of shape (n_samples, n_outputs)
        Dual coefficients.
    diagonal_sums : callable
        Returns ``sum_i shares_i K_j[i, i]`` of every kernel.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sums = [v.sum() * diagonal_sums(v) for v in np.abs(V).T]
        return np.asarray(unit(len(V)) * np.sum(sums, axis=0))


def loss_error(
    machine: Machine,
    Y: Floats,
    cost: Floats,
    diagonal: Floats,
    coef: Floats,
    fitted: Floats,
    intercept: Floats,
    relation: Floats | None = None,
) -> float:
    """Bound how far rounding may have lowered the total loss.

    Parameters
    ----------
    machine : Machine
        The loss.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    diagonal : ndarray of shape (n_samples,)
        Of the learned kernel.
    coef : ndarray of shape (n_samples, n_outputs)
        Dual coefficients.
    fitted : ndarray of shape (n_samples, n_outputs)
        Values of the function without its bias.
    intercept : ndarray of shape (n_outputs,)
        The bias.
    relation : ndarray of shape (n_outputs, n_outputs), optional
        How functions of several outputs are related.
    """
    V = np.abs(coef)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = V.sum(axis=0) * (diagonal @ V)
        error = unit(len(Y)) * np.sqrt(np.outer(diagonal, squares))
        if relation is not None:
            error = error @ np.abs(relation)
        values = fitted + intercept
        error += 2.0 * EPSILON * (np.abs(Y) + np.abs(fitted) + np.abs(values))
        change = machine.loss_change(values, error, Y, cost)
    return change if change >= 0 else np.inf  # not a number where it overflows


def dual_error(
    machine: Machine, Y: Floats, coef: Floats, linear: float, ridge: float, bias: float
) -> float:
    """Bound how far rounding may have raised the part of a lower bound that no kernel is needed for.

    Parameters
    ----------
    machine : Machine
        The loss.
    Y : ndarray of shape (n_samples, n_outputs)
        Targets.
    coef : ndarray of shape (n_samples, n_outputs)
        Dual coefficients.
    linear, ridge : float
        Linear and ridge part of their dual value.
    bias : float
        Bound of the best bias. Coefficients should sum to zero; where they do not, a bias gains.
    """
    terms = float(np.vdot(np.abs(Y), np.abs(coef))) + 0.5 * ridge
    terms += abs(float(np.vdot(Y, coef)) - linear)
    error = unit(len(Y)) * terms
    if machine.fit_intercept:
        error += bias * sum(abs(fsum(v)) for v in coef.T)
    return error
