"""Curvature of the optimal value in the kernel weights for Nystroem features, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices

from .base import Machine, free_rows, solve_positive


def feature_hessian(
    machine: Machine, kernel: Any, which: Indices, dual_coef: Floats, Y: Floats, cost: Floats
) -> Floats:
    """Return what `Machine.curvature` has as its Hessian, without the features of the free rows.

    Parameters
    ----------
    machine : Machine
        The loss.
    kernel : FeatureSum
        The kernel that the coefficients belong to.
    which : ndarray of int
        The kernels of interest, in increasing order, all with a weight among them.
    dual_coef, Y, cost : ndarray of shape (n_samples, n_outputs)
        Dual coefficients, targets and costs.
    """
    bank, shape = kernel.bank, machine.shape(Y, cost)
    hessian = np.zeros((len(which), len(which)))
    for o in range(Y.shape[1]):
        free = free_rows(dual_coef[:, o], shape, o)
        ridge = shape.ridge[free, o]
        if len(free) <= kernel.n_features or not (ridge > 0).all():
            hessian += _by_rows(machine, kernel, which, dual_coef, o, Y[:, [o]], cost[:, [o]])
            continue
        q = np.zeros(len(Y))
        q[free] = 1.0 / ridge
        # With D = diag(ridge) of the free rows, values U of the kernels there and Z the weighted
        # features: U'(D + ZZ')^-1 U = U'QU - U'QZ (I + Z'QZ)^-1 Z'QU where Q = D^-1.
        values, cross, inner = bank.gram(dual_coef, o, which, q)
        weights = kernel.weights[bank.owner()[np.isin(bank.owner(), which)]]
        used, roots = weights > 0, np.sqrt(weights[weights > 0])
        system = inner[np.ix_(used, used)]
        system *= roots[:, None]
        system *= roots
        system[np.diag_indices_from(system)] += 1.0
        side = roots[:, None] * cross[used]
        left = values - side.T @ solve_positive(system, side)
        part = left[:-1, :-1]
        if machine.fit_intercept:
            part = part - np.outer(left[:-1, -1], left[-1, :-1]) / left[-1, -1]
        hessian += 0.5 * (part + part.T)
    return hessian


def _by_rows(
    machine: Machine,
    kernel: Any,
    which: Indices,
    dual_coef: Floats,
    output: int,
    Y: Floats,
    cost: Floats,
) -> Floats:
    def products(rows: Indices) -> Floats:
        return np.asarray(kernel.bank.products(dual_coef, which, rows)[:, :, [output]])

    return machine.curvature(kernel, products, dual_coef[:, [output]], Y, cost).hessian
