"""Metrics that keep the sum of distances of some pairs large at a given sum of squares of others.

Both problems are written so that the squares of the same pairs sum to the sum (the trace) of what
is sought, which is one half at the optimum. So the Frank-Wolfe gap is a true bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from kernelweave._types import Floats

_INSIDE = 1e-12  # added to squared distances of size one, so that the root has a slope at zero
_CG_STEPS = 200
_DAMPING = 1e-2  # at most, in units of the diagonal of the Newton system
_HALVINGS = 50
_ROUNDING = 4e-16


@dataclass(frozen=True)
class Minimum:
    """Where a search for a metric ended.

    Parameters
    ----------
    point : ndarray
        Weights of columns, or a factor of the metric.
    objective : float
        Value reached.
    gap : float
        How far at most that is above the optimum.
    n_iter : int
        Steps.
    """

    point: Floats
    objective: float
    gap: float
    n_iter: int


def weigh_columns(G: Any, tol: float, max_iter: int) -> Minimum:
    """Minimise ``sum b - ln sum_i sqrt((G b)_i)`` over ``b >= 0`` by projected Newton steps.

    Parameters
    ----------
    G : csr_array or ndarray of shape (n_pairs, n_features)
        Squared differences, non-negative; every row has a positive entry.
    tol : float
        Gap to stop at.
    max_iter : int
        Steps at most.
    """
    m = G.shape[1]
    shift = float(np.mean(np.asarray(G.sum(axis=1)))) / (2.0 * m)  # distances of size one to begin
    G = G / shift
    transposed = G.T.tocsr() if hasattr(G, "tocsr") else G.T
    squared = transposed.multiply(transposed).tocsr() if hasattr(G, "tocsr") else transposed**2
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
        free = ~((b <= min(1e-9, gap)) & (grad > 0))
        bend = 0.25 / (roots**3 * total)
        diagonal = np.asarray(squared @ bend) + pull**2
        # Fewer pairs than columns leave directions without a bend: damping keeps steps short.
        damping = min(_DAMPING, gap) * diagonal
        d = _newton(G, transposed, bend, pull, grad, free, diagonal, damping)
        length, moved = 1.0, False
        for _ in range(_HALVINGS):
            new = np.where(free, np.maximum(b + length * d, 0.0), 0.0)
            change = float(grad @ (new - b))
            trial = value(new)
            if change < 0 and trial[0] <= f + 1e-4 * change + _ROUNDING * max(1.0, abs(f)):
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
    bend: Floats,
    pull: Floats,
    grad: Floats,
    free: Any,
    diagonal: Floats,
    damping: Floats,
) -> Floats:
    """Solve the Newton system of the free weights by conjugate gradients."""
    diagonal = diagonal + damping
    r = np.where(free, -grad, 0.0)
    size = float(np.linalg.norm(r))
    stop = min(0.1, np.sqrt(size)) * size
    x, z = np.zeros_like(r), r / diagonal
    q, rz = z.copy(), float(r @ z)
    for _ in range(_CG_STEPS):
        along = np.asarray(transposed @ (bend * np.asarray(G @ q))) + pull * float(pull @ q)
        Hq = np.where(free, along + damping * q, 0.0)
        curve = float(q @ Hq)
        if curve <= 0.0:
            break
        x = x + (rz / curve) * q
        r = r - (rz / curve) * Hq
        if float(np.linalg.norm(r)) <= stop:
            break
        z = r / diagonal
        before, rz = rz, float(r @ z)
        q = z + (rz / before) * q
    return x


def factor_metric(V: Floats, tol: float, max_iter: int) -> Minimum:
    """Minimise ``tr B - ln sum_i sqrt(v_i' B v_i)`` over semi-definite ``B = W W'``.

    ``W`` is square, so that the search over it has no local minima (L-BFGS); the gap is that of the
    convex problem over ``B``.

    Parameters
    ----------
    V : ndarray of shape (n_pairs, n_features)
        Differences as rows, none of them zero.
    tol : float
        Gap to stop at.
    max_iter : int
        Steps at most.
    """
    m = V.shape[1]
    shift = float(np.mean(np.sum(V**2, axis=1))) / (2.0 * m)
    V = V / np.sqrt(shift)
    steps = 0

    def slope(W: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient in ``B``."""
        roots = np.sqrt(np.sum((V @ W) ** 2, axis=1) + _INSIDE)
        total = float(roots.sum())
        H = V.T @ (V * (0.5 / roots)[:, None]) / total
        return float(np.sum(W**2)) - np.log(total), np.eye(m) - H

    def gap(W: Floats) -> float:
        grad = slope(W)[1]
        return float(np.sum(W * (grad @ W))) - 0.5 * min(0.0, float(np.linalg.eigvalsh(grad)[0]))

    def descend(flat: Floats) -> tuple[float, Floats]:
        W = flat.reshape(m, m)
        f, grad = slope(W)
        return f, 2.0 * (grad @ W).ravel()

    def stop(intermediate_result: Any) -> None:
        nonlocal steps
        steps += 1
        if gap(intermediate_result.x.reshape(m, m)) <= tol:
            raise StopIteration

    result = minimize(
        descend,
        (np.eye(m) * np.sqrt(0.5 / m)).ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=stop,
        options={"maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": 0.0, "gtol": 0.0},
    )
    W = np.asarray(result.x).reshape(m, m)
    return Minimum(W, slope(W)[0] - 0.5 * np.log(shift), gap(W), steps)
