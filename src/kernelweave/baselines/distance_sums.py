"""Solvers of GDM: large sums of distances of some pairs at a given sum of squares of others.

Both problems are scaled so that the squared distances of the same pairs sum to the trace of the
unknown, which is one half at the optimum. The Frank-Wolfe gap over ``trace <= 1/2`` then bounds the
distance from the optimum.

References
----------
Xing, Ng, Jordan and Russell (2002), Distance metric learning, with application to clustering with
side-information, NIPS 15, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from kernelweave._types import Floats
from kernelweave.pairs.solver import NewtonOptions

from .pair_base import minimize_to_gap, square

_INSIDE = 1e-12  # added to squared distances of size one, so that the root is differentiable
_DAMPING = 1e-2  # largest damping, in units of the diagonal of the Newton system; chosen by hand
OPTIONS = NewtonOptions(cg_tol=0.1, halvings=50, held=1e-9)  # cg_tol: of the norm of the residual


@dataclass(frozen=True)
class Minimum:
    """Result of a search for a metric."""

    point: Floats  # weights of columns, or a factor of the metric
    objective: float
    gap: float  # upper bound of the distance of the objective from its optimum
    n_iter: int


def minimize_diagonal(G: Any, tol: float, max_iter: int) -> Minimum:
    """Minimise ``sum b - ln sum_i sqrt((G b)_i)`` over ``b >= 0`` by a projected Newton method.

    ``G`` holds the squared differences of the pairs; every row has a positive entry.
    """
    m = G.shape[1]
    shift = float(np.mean(np.asarray(G.sum(axis=1)))) / (
        2.0 * m
    )  # distances of size one at the start
    G = G / shift
    transposed = G.T.tocsr() if hasattr(G, "tocsr") else G.T
    squared = square(transposed)
    b = np.full(m, 0.5 / m)

    def value(b: Floats) -> tuple[float, Floats, float]:
        roots = np.sqrt(np.asarray(G @ b) + _INSIDE)
        total = float(roots.sum())
        return float(b.sum()) - np.log(total), roots, total

    f, roots, total = value(b)
    step, gap = 0, np.inf
    while True:
        pull = np.asarray(transposed @ (0.5 / roots)) / total
        grad = 1.0 - pull
        gap = float(grad @ b) - 0.5 * min(0.0, float(grad.min()))
        if gap <= tol or step >= max_iter:
            break
        free = ~((b <= min(OPTIONS.held, gap)) & (grad > 0))
        curvature = 0.25 / (roots**3 * total)
        diagonal = np.asarray(squared @ curvature) + pull**2
        # Fewer pairs than columns leave directions without curvature: damping keeps steps short.
        damping = min(_DAMPING, gap) * diagonal
        d = _newton(G, transposed, curvature, pull, grad, free, diagonal, damping)
        length, moved = 1.0, False
        for _ in range(OPTIONS.halvings):
            new = np.where(free, np.maximum(b + length * d, 0.0), 0.0)
            change = float(grad @ (new - b))
            trial = value(new)
            rounding = OPTIONS.rounding * max(1.0, abs(f))
            if change < 0 and trial[0] <= f + OPTIONS.decrease * change + rounding:
                b, (f, roots, total), moved = new, trial, True
                break
            length *= 0.5
        if not moved:
            break
        step += 1
    return Minimum(b, f - 0.5 * np.log(shift), gap, step)


def _newton(
    G: Any,
    transposed: Any,
    curvature: Floats,
    pull: Floats,
    grad: Floats,
    free: Any,
    diagonal: Floats,
    damping: Floats,
) -> Floats:
    """Return the Newton direction of the free weights by conjugate gradients."""
    diagonal = diagonal + damping
    rhs = np.where(free, -grad, 0.0)

    def hessian(q: Floats) -> Floats:
        along = np.asarray(transposed @ (curvature * np.asarray(G @ q))) + pull * float(pull @ q)
        return np.where(free, along + damping * q, 0.0)

    shape = (len(rhs), len(rhs))
    return np.asarray(
        cg(
            LinearOperator(shape, matvec=hessian, dtype=np.float64),
            rhs,
            rtol=min(OPTIONS.cg_tol, np.sqrt(float(np.linalg.norm(rhs)))),
            maxiter=OPTIONS.cg_steps,
            M=LinearOperator(shape, matvec=lambda r: r / diagonal, dtype=np.float64),
        )[0]
    )


def minimize_full(V: Floats, tol: float, max_iter: int) -> Minimum:
    """Minimise ``tr B - ln sum_i sqrt(v_i' B v_i)`` over semi-definite ``B = W W'`` by L-BFGS.

    ``W`` is square, so that there are no spurious local minima; the gap is that of the convex
    problem over ``B``. The rows of ``V`` are differences, none of them zero.
    """
    m = V.shape[1]
    shift = float(np.mean(np.sum(V**2, axis=1))) / (2.0 * m)
    V = V / np.sqrt(shift)

    def slope(W: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient in ``B``."""
        roots = np.sqrt(np.sum((V @ W) ** 2, axis=1) + _INSIDE)
        total = float(roots.sum())
        H = V.T @ (V * (0.5 / roots)[:, None]) / total
        return float(np.sum(W**2)) - np.log(total), np.eye(m) - H

    def gap(flat: Floats) -> float:
        W = flat.reshape(m, m)
        grad = slope(W)[1]
        return float(np.sum(W * (grad @ W))) - 0.5 * min(0.0, float(np.linalg.eigvalsh(grad)[0]))

    def descend(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(m, m)
        f, grad = slope(W)
        return f, 2.0 * (grad @ W).ravel()

    start = (np.eye(m) * np.sqrt(0.5 / m)).ravel()
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter}
    flat, steps = minimize_to_gap(descend, start, gap, tol, **options)
    W = flat.reshape(m, m)
    return Minimum(W, slope(W)[0] - 0.5 * np.log(shift), gap(flat), steps)
