"""Reference solutions for learning from pairs, by conic programming; nothing of the library."""

import warnings

import cvxpy as cp
import numpy as np


def _solve(problem):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        problem.solve(
            solver=cp.CLARABEL,
            accept_unknown=True,
            tol_gap_abs=1e-14,
            tol_gap_rel=1e-14,
            tol_feas=1e-14,
            max_threads=1,
        )


def solve_weights(F, c, g, lam, *, prior=0.0, balance=None):
    """Minimise ``sum c ln(2 cosh(u/2)) - w.g/2 - b h/2 + lam/2 |w - prior|^2`` over w >= 0.

    Returns weights and bias; columns are brought to one size first, for the sake of the solver.
    """
    F = np.asarray(F, dtype=float)
    size = np.abs(F).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    v, b = cp.Variable(F.shape[1], nonneg=True), cp.Variable()
    u = (F / size) @ v + (b if balance is not None else 0.0)
    penalty = 0.5 * lam * cp.sum_squares(cp.multiply(1 / size, v) - prior)
    value = c @ (cp.logistic(u) - 0.5 * u) - 0.5 * (g / size) @ v + penalty
    if balance is not None:
        value = value - 0.5 * balance * b
    _solve(cp.Problem(cp.Minimize(value)))
    return np.maximum(v.value, 0.0) / size, 0.0 if balance is None else float(b.value)


def solve_statistic(same, different, share, reliability, prior, *, nonneg=False):
    """Minimise ``|Z B - A|^2`` subject to ``Z p = a``; returns Z with two columns."""
    A = np.column_stack([same, different])
    up, down = reliability
    B = np.array([[up, 1 - down], [1 - up, down]])
    p = np.array([prior, 1 - prior])
    Z = cp.Variable(A.shape)
    limits = [Z @ p == A @ np.array([share, 1 - share])]
    if nonneg:
        limits.append(Z >= 0)
    _solve(cp.Problem(cp.Minimize(cp.sum_squares(Z @ B - A)), limits))
    return Z.value
