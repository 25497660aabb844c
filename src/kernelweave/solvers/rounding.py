"""Bounds of the rounding error of objectives and of lower bounds.

A sum of n products is off by some ``sqrt(n)`` units in the last place of the sum of their sizes
(Higham and Mary, 2019), and an entry of a kernel is at most ``sqrt(K_ii K_kk)``. A fitted value
``(K V)_i`` is then off by ``unit sqrt(K_ii) A`` with ``A = sum_k |V_k| sqrt(K_kk)``, and a
quadratic form by ``unit A^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import numpy as np

from kernelweave._types import Bools, Floats
from kernelweave.losses import Loss

EPSILON = float(np.finfo(np.float64).eps)
_UNITS = 8.0  # in the last place, by which values of kernels may be off
_NEGLIGIBLE = 1e-12  # effect of a kernel on the loss, relative to the objective, when dropped
_DROPPED = 1e-10  # the same, of all of them together
_LEAST_ROOT = 1e-8  # of a diagonal entry, relative to the largest


def unit(n_samples: int) -> float:
    """Return the relative rounding error of a sum over a number of rows."""
    return EPSILON * (_UNITS + float(np.sqrt(n_samples)))


def form_error(V: Floats, diagonal: Floats) -> float:
    """Bound the rounding error of ``tr(V' K V)`` of a kernel with this diagonal."""
    with np.errstate(over="ignore"):
        reach = np.sqrt(diagonal) @ np.abs(V)
        return unit(len(V)) * float((reach**2).sum())


def form_errors(V: Floats, diagonal_sums: Callable[[Floats], Floats], diagonal: Floats) -> Floats:
    """Bound the rounding errors of ``tr(V' K_j V)``.

    For every positive s, ``A^2 <= sum_i |V_i| s_i sum_i |V_i| K_ii / s_i``, with equality where
    s is the root of the diagonal. The bounds for ones and for the root of the diagonal of the
    learned kernel are good enough, and need only ``diagonal_sums`` (of ``shares_i K_j[i, i]``).
    """
    V = np.abs(V)
    bounds = []
    for s in (np.ones(len(V)), diagonal_roots(diagonal)):
        with np.errstate(over="ignore", invalid="ignore"):
            sums = [(s @ v) * np.asarray(diagonal_sums(v / s)) for v in V.T]
            bounds.append(np.sum(sums, axis=0))
    return np.asarray(unit(len(V)) * np.fmin(*bounds))


def diagonal_roots(diagonal: Floats) -> Floats:
    """Return the roots of a diagonal, none far below the largest; ones for one of zeros."""
    roots = np.sqrt(diagonal)
    return np.maximum(roots, _LEAST_ROOT * roots.max(initial=0.0)) if roots.any() else roots + 1.0


def loss_error(
    loss: Loss,
    Y: Floats,
    cost: Floats,
    diagonal: Floats,
    dual_coef: Floats,
    fitted: Floats,
    intercept: Floats,
    relation: Floats | None = None,
) -> float:
    """Bound how far rounding may have lowered the total loss.

    `diagonal` is that of the learned kernel, `fitted` the function without its bias `intercept`,
    and `relation` couples several outputs.
    """
    roots = np.sqrt(diagonal)
    with np.errstate(over="ignore", invalid="ignore"):
        error = unit(len(Y)) * np.outer(roots, roots @ np.abs(dual_coef))
        if relation is not None:
            error = error @ np.abs(relation)
        values = fitted + intercept
        error += 2.0 * EPSILON * (np.abs(Y) + np.abs(fitted) + np.abs(values))
        change = loss.largest_increase(values, error, Y, cost)
    return change if change >= 0 else np.inf  # not a number where it overflows


def keep_kernels(
    weights: Floats,
    norms: Floats,
    slopes: Floats,
    objective: float,
    diagonal_sums: Callable[[Floats], Floats],
    values: Callable[[Floats], Floats],
) -> Bools:
    """Return which kernels matter to the loss; the others may be dropped.

    Values of a function are at most its norm times ``sqrt(K_ii)``, and ``sum_i s_i sqrt(K_ii)`` is
    at most the root of ``sum_i s_i sum_i s_i K_ii``. Norms may be lost in rounding: all kernels
    with a weight are kept if the values of those to be dropped are not as small as their norms say.

    `slopes` bound those of the losses, `objective` is what effects on the loss are relative to,
    `diagonal_sums` returns ``sum_i shares_i K_j[i, i]`` of every kernel and `values` the function
    for weights of the kernels.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.sum([s.sum() * diagonal_sums(s) for s in slopes.T], axis=0)
        kept = np.asarray(norms * np.sqrt(sums) > _NEGLIGIBLE * objective)
    dropped = np.where(kept, 0.0, weights)
    if not dropped.any():
        return kept
    with np.errstate(invalid="ignore"):
        effect = float((slopes * np.abs(values(dropped))).sum())
    return kept if effect <= _DROPPED * objective else kept | (weights > 0.0)


def dual_error(
    loss: Loss, Y: Floats, dual_coef: Floats, linear: float, ridge: float, bias: float
) -> float:
    """Bound how far rounding may have raised the part of a lower bound without kernels.

    `bias` bounds the best one: coefficients should sum to zero; where they do not, a bias gains.
    """
    terms = loss.steepest * float(np.vdot(np.abs(Y), np.abs(dual_coef))) + 0.5 * ridge
    terms += abs(float(np.vdot(Y, dual_coef)) - linear)
    error = unit(len(Y)) * terms
    excess = sum(abs(fsum(v)) for v in dual_coef.T)
    return error + bias * excess if loss.fit_intercept and excess > 0.0 else error
