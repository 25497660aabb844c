"""Optimal values of small learning problems by conic programming, for every loss by its formula.

Nothing here is shared with the library: the primal problem in group form is given to Clarabel
(exponential cones for logarithms), and its value is good to about 1e-9.
"""

import warnings

import cvxpy as cp
import numpy as np


def expression(loss, Y, F, cost, levels=(0.5,)):
    """Return the total loss as a cvxpy expression."""
    if loss == "hinge":
        return cp.sum(cp.multiply(cost, cp.pos(1 - cp.multiply(Y, F))))
    if loss == "squared_hinge":
        slack = cp.pos(1 - cp.multiply(Y, F))
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(cost), slack))
    if loss == "logistic":
        return cp.sum(cp.multiply(cost, cp.logistic(-cp.multiply(Y, F))))
    if loss == "softmax":
        own = cp.sum(cp.multiply((Y > 0).astype(float), F), axis=1)
        logs = cp.hstack([cp.log_sum_exp(F[i]) for i in range(len(Y))])
        return cp.sum(cp.multiply(cost[:, 0], logs - own))
    up, down = cp.pos(Y - F), cp.pos(F - Y)
    level = np.broadcast_to(levels, Y.shape)
    return cp.sum(cp.multiply(cost * level, up) + cp.multiply(cost * (1 - level), down))


def reference(loss, grams, Y, cost, *, norm=1.0, fit_intercept=True, levels=(0.5,)):
    """Return the optimal value and the decisions, with the bias."""
    if norm == "uniform":
        grams, norm = [np.mean(grams, axis=0)], 1.0
    factors = []
    for gram in grams:
        values, vectors = np.linalg.eigh(gram)
        keep = values > 0  # the smallest ones may count in the seventh digit
        factors.append(vectors[:, keep] * np.sqrt(values[keep]))
    n_outputs = Y.shape[1]
    W = [cp.Variable((L.shape[1], n_outputs)) for L in factors]
    F = sum(L @ w for L, w in zip(factors, W, strict=True))
    if fit_intercept:
        F = F + np.ones((len(Y), 1)) @ cp.Variable((1, n_outputs))
    norms = cp.hstack([cp.norm(w, "fro") for w in W])
    exponent = 2 * norm / (norm + 1)
    size = cp.sum(norms) if exponent == 1 else cp.pnorm(norms, exponent)
    top = cp.Variable()
    total = 0.5 * cp.square(top) + expression(loss, Y, F, cost, levels)
    problem = cp.Problem(cp.Minimize(total), [size <= top])
    best = np.inf, None
    # The solver may end worse with a tolerance that it does not reach, so two are tried.
    for tol in (1e-9, 1e-11):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tol)
            problem.solve(solver=cp.CLARABEL, accept_unknown=True, **options)
        if problem.value < best[0]:
            best = problem.value, F.value
    return best
