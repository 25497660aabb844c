"""Second derivatives of the optimal value in the kernel weights.

With J(theta) the optimal value of the problem for the kernel ``sum_j theta_j K_j``, ``beta`` its
dual coefficients and ``V = [K_j beta]``, the Hessian is ``V'(K + D)^-1 V`` over the rows with
curvature, projected on the equation that their coefficients satisfy; ``D`` is one over the second
derivatives of the loss.

References
----------
O. Chapelle, A. Rakotomamonjy (2008), Second order optimization of kernel parameters, NIPS workshop
on automatic selection of optimal kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelweave._linalg import solve_positive
from kernelweave._types import Floats, Indices
from kernelweave.banks import KernelOperator, WeightedSum, Workspace
from kernelweave.banks.kernel_sum import gram_product
from kernelweave.losses.base import InnerSolver, Loss

from .systems import make_system, sample_rows

# Rows of the Hessian of a smooth loss on Nystroem features: for every feature, and of all; by hand.
_SAMPLE = 8
_SHARE = 0.1
# Systems of kernels on demand: gain of a block of the Krylov space in the quadratic forms of the
# inverse, relative to all so far, at which it is the last; blocks at most. By hand.
_KRYLOV_GAIN = 0.01
_KRYLOV_BLOCKS = 16


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of the optimal value in the kernel weights, and how coefficients follow.

    Parameters
    ----------
    hessian : ndarray of shape (n_kernels, n_kernels)
        Valid while the set of free coefficients stays.
    free : list of ndarray
        Per output, the rows with curvature.
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


def weight_curvature(
    loss: Loss,
    K: KernelOperator,
    products: Callable[[Indices], Floats],
    dual_coef: Floats,
    Y: Floats,
    cost: Floats,
) -> Curvature:
    """Return the Hessian of the optimal value in the weights of the kernels of ``products``.

    Parameters
    ----------
    loss, K
        As in `solve_inner`.
    products : callable
        Given rows, returns those of ``K_j @ dual_coef`` for the kernels of interest, of shape
        (n_kernels, n_rows, n_outputs).
    dual_coef, Y, cost : ndarray of shape (n_samples, n_outputs)
        The solution for K, targets and costs.
    """
    if is_smooth(loss, K):
        return _smooth_curvature(loss, K, products, dual_coef, Y, cost)
    curved = loss.inverse_curvature(dual_coef, Y, cost)
    if K.workspace is not None:
        curved = [_spread_rows(*pair, K.workspace.n_rows) for pair in curved]
    rows = np.unique(np.concatenate([free for free, _ in curved]))
    values = products(rows)
    hessian = np.zeros((len(values), len(values)))
    responses = []
    for o, (free, inverse) in enumerate(curved):
        V = values[:, np.searchsorted(rows, free), o].T
        normal = loss.normal(dual_coef, Y, cost, o)
        if len(free) < (1 if normal is None else 2):
            responses.append(np.zeros_like(V))
            continue
        sides = V if normal is None else np.column_stack([V, normal[free]])
        solved = _solve_block(K, free, inverse, sides)
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
    return Curvature(0.5 * (hessian + hessian.T), [free for free, _ in curved], responses)


def _spread_rows(rows: Indices, inverse: Floats, most: int) -> tuple[Indices, Floats]:
    """Return at most so many of the rows, evenly spread, which then count for their neighbours.

    The Hessian of an interpolant of some of the rows is a lower bound of that of all of them, and
    near it where the functions are smooth.
    """
    if len(rows) <= most:
        return rows, inverse
    some = np.linspace(0, len(rows) - 1, most).astype(np.intp)
    return rows[some], inverse[some] * (most / len(rows))


def is_smooth(loss: Loss, K: KernelOperator) -> bool:
    """Whether all rows have curvature, and systems in them are solved by their matrix."""
    if K.features() is not None:
        return False
    large = K.workspace is not None and loss.inner_solver is InnerSolver.LINEAR_SYSTEM
    return large or loss.inner_solver is InnerSolver.NEWTON


def _smooth_curvature(
    loss: Loss,
    K: KernelOperator,
    products: Callable[[Indices], Floats],
    dual_coef: Floats,
    Y: Floats,
    cost: Floats,
) -> Curvature:
    """Return the same by the systems of Newton steps, for any number of rows."""
    n_outputs, every = Y.shape[1], np.arange(len(Y))
    V = np.ascontiguousarray(products(every).transpose(1, 2, 0))
    if loss.is_coupled:
        weights = np.maximum(np.where(Y > 0, cost, 0.0) - dual_coef, 0.0)  # cost x probabilities
    else:
        weights = np.zeros_like(Y)
        for o, (rows, inverse) in enumerate(loss.inverse_curvature(dual_coef, Y, cost)):
            weights[rows, o] = 1.0 / inverse
    response = make_system(K, weights, loss.is_coupled, loss.fit_intercept).projected(V)
    hessian = np.tensordot(V, response, axes=((0, 1), (0, 1)))
    parts = [response[:, o] for o in range(n_outputs)]
    return Curvature(0.5 * (hessian + hessian.T), [every] * n_outputs, parts)


def _solve_block(K: KernelOperator, rows: Indices, ridge: Floats, sides: Floats) -> Floats:
    """Solve with the block of some rows plus a diagonal, by features where they are fewer."""
    if K.workspace is not None and len(rows) <= K.workspace.n_rows:
        return _solve_roughly(K, K.workspace, rows, ridge, sides)
    features = K.features()
    if features is None or len(rows) <= features.n_features or not (ridge > 0).all():
        M = K.block(rows, rows)
        # Rows at which all kernels with a weight are zero have no curvature; any value will do.
        size = np.trace(M) / len(rows) or 1.0
        M[np.diag_indices_from(M)] += ridge + 1e-9 * size
        return solve_positive(M, sides)
    Z = features.rows(rows)
    scaled = Z / ridge[:, None]
    inner = Z.T @ scaled
    inner[np.diag_indices_from(inner)] += 1.0
    inward = solve_positive(inner, scaled.T @ sides)
    return np.asarray(sides / ridge[:, None] - scaled @ inward)


def _solve_roughly(
    K: KernelOperator, workspace: Workspace, rows: Indices, ridge: Floats, sides: Floats
) -> Floats:
    """Solve by a Galerkin method on the block Krylov space of all sides, scaled by the diagonal.

    Curvature guides steps and proves nothing, so that one digit is enough. The space of all sides
    together needs a third of the passes over the matrix that conjugate gradients need.
    """
    n, width = len(rows), sides.shape[1]
    root = np.sqrt(np.maximum(K.diag()[rows] + ridge, 0.0))
    root = np.where(root > 0, root, 1.0)[:, None]
    scaled = sides / root
    basis: Floats = np.empty((n, 0))
    images: Floats = np.empty((n, 0))
    new: Floats = scaled
    before = np.zeros(width)
    solution = np.zeros_like(sides)
    with workspace.borrow() as memory:
        block = memory[: n * n].reshape(n, n)
        K.fill_square(rows, 0, block)
        for _ in range(_KRYLOV_BLOCKS):
            for _ in range(2):  # twice is enough for orthogonality
                new = new - basis @ (basis.T @ new)
            new = np.linalg.qr(new)[0].astype(np.float64, copy=False)
            wide = new / root
            image = gram_product(block, wide.astype(block.dtype)) + ridge[:, None] * wide
            image = image / root
            basis, images = np.hstack([basis, new]), np.hstack([images, image])
            inner = basis.T @ images
            inner = 0.5 * (inner + inner.T)
            inner[np.diag_indices_from(inner)] += 1e-6  # the block may be in single precision
            across = basis.T @ scaled
            solution = solve_positive(inner, across)
            forms = (across * solution).sum(axis=0)  # of the inverse: these only grow
            if (forms - before <= _KRYLOV_GAIN * forms).all():
                break
            before, new = forms, image[:, :width]
    return np.asarray(basis @ solution / root)


def feature_hessian(
    loss: Loss, kernel: WeightedSum, which: Indices, dual_coef: Floats, Y: Floats, cost: Floats
) -> Floats:
    """Return the Hessian on Nystroem features in one pass, without a copy of the free rows.

    `which` are the kernels of interest, in increasing order, all with a weight among them.
    """
    features = kernel.features()
    assert features is not None
    hessian = np.zeros((len(which), len(which)))
    for o, (free, ridge) in enumerate(loss.inverse_curvature(dual_coef, Y, cost)):
        if len(free) <= features.n_features or not (ridge > 0).all():

            def products(rows: Indices, o: int = o) -> Floats:
                return np.asarray(kernel.bank.products(dual_coef, which, rows)[:, :, [o]])

            own = (dual_coef[:, [o]], Y[:, [o]], cost[:, [o]])
            hessian += weight_curvature(loss.of_output(o), kernel, products, *own).hessian
            continue
        q = np.zeros(len(Y))
        q[free] = 1.0 / ridge
        if loss.inner_solver is InnerSolver.NEWTON:
            q = sample_rows(q, _SAMPLE * features.n_features, _SHARE)
        # With D = diag(ridge) of the free rows, values U of the kernels there and Z the weighted
        # features: U'(D + ZZ')^-1 U = U'QU - U'QZ (I + Z'QZ)^-1 Z'QU where Q = D^-1.
        values, cross, inner, weights = features.moments(dual_coef, o, which, q)
        used, roots = weights > 0, np.sqrt(weights[weights > 0])
        system = inner[np.ix_(used, used)]
        system *= roots[:, None]
        system *= roots
        system[np.diag_indices_from(system)] += 1.0
        side = roots[:, None] * cross[used]
        left = values - side.T @ solve_positive(system, side)
        part = left[:-1, :-1]
        if loss.fit_intercept:  # project on coefficients that sum to zero
            part = part - np.outer(left[:-1, -1], left[-1, :-1]) / left[-1, -1]
        hessian += 0.5 * (part + part.T)
    return hessian
