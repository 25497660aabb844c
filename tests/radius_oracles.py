"""Reference solutions of small radius-margin problems, by conic programming.

As in ``oracles``, nothing is shared with the library, and each answer is checked in NumPy: an
``OracleError`` is raised where a feasible point and a dual bound do not meet within ``ACCEPT``.
``Y`` holds -1 / +1, one column an output; a vector of labels is one column.
"""

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

from oracles import ACCEPT, OracleError, _factor, _solve, random_problem, solve_fixed, solve_mkl


@dataclass(frozen=True)
class RadiusProblem:
    """A small classification problem on kernels of very different scale."""

    grams: np.ndarray  # (n_kernels, n_samples, n_samples)
    Y: np.ndarray  # (n_samples, n_outputs), -1 / +1
    cost: np.ndarray  # (n_samples, n_outputs), C included
    C: float
    X: np.ndarray
    y: np.ndarray  # class numbers


def ball_oracle(K):
    """Return the squared radius and the centre of the smallest ball around the mapped rows.

    Maximise ``beta' diag(K) - beta' K beta`` over the simplex; the centre is
    ``sum_i beta_i phi(x_i)``.
    """
    K = np.asarray(K, dtype=float)
    centred, n = _centre(K), len(K)
    spread = np.trace(centred) / n
    if spread <= 1e-14 * np.trace(K) / n:
        return 0.0, np.full(n, 1 / n)
    unit = centred / spread
    beta = cp.Variable(n)
    quadratic = cp.sum_squares(_factor(unit).T @ beta)
    _solve(
        cp.Problem(cp.Maximize(np.diag(unit) @ beta - quadratic), [beta >= 0, cp.sum(beta) == 1])
    )
    weights = _on_simplex(beta)
    distances = np.diag(unit) - 2 * unit @ weights + weights @ unit @ weights
    value = _agreed("ball", _spread(unit, weights), distances.max())
    return spread * value, weights


def radius_margin_value(K, Y, cost, intercept=True):
    """Return g, the optimum of ``1/2 r^2 |w|^2 + sum cost * hinge`` summed over the outputs.

    It is that of the support vector machine on ``K / r^2``; all outputs share the ball, which
    holds every row whatever its cost.
    """
    squared_radius, _ = ball_oracle(K)
    if squared_radius == 0:
        raise ValueError("The kernel is constant, so its ball has no radius.")
    return _machine(np.asarray(K) / squared_radius, Y, cost, intercept).objective


def solve_radius(grams, Y, cost, intercept=True):
    """Minimise ``radius_margin_value`` over the sums of kernels; return the value and the weights.

    Maximise ``sum alpha - t / 2`` subject to ``sum_o alpha_o' Y_o K_j Y_o alpha_o <= t s_j`` and
    ``s_j + beta' K_j beta <= beta' diag(K_j)``, with beta in the simplex. The multipliers of the
    last constraints are the weights, here scaled to sum to one.
    """
    grams, Y, cost = np.asarray(grams, dtype=float), _columns(Y), _columns(cost)
    cost = np.broadcast_to(cost, Y.shape)
    radii = np.array([ball_oracle(gram)[0] for gram in grams])
    used = radii > 0
    if not used.any():
        raise ValueError("All kernels are constant.")
    if not (intercept or used.all()):
        raise ValueError("Without an intercept the best weight of a constant kernel is infinite.")
    unit = grams[used] / radii[used, None, None]
    # For alpha / size the problem is the same, with an optimum of at most one.
    size = radius_margin_value(unit.mean(axis=0), Y, cost, intercept)
    lower, upper, best = -np.inf, np.inf, None
    for factor in (1.0, 0.1, 10.0):  # where the solver gives up early depends on it
        try:
            theta, centre = _radius_program(unit, Y, cost, factor * size, intercept)
        except OracleError:
            continue
        polished, bound = _around(centre, unit, Y, cost, intercept)
        lower = max(lower, bound)
        for candidate in (theta, polished):
            K = np.tensordot(candidate, unit, 1)
            squared_radius, centre = ball_oracle(K)
            value = _machine(K / squared_radius, Y, cost, intercept).upper
            if value < upper:
                upper, best = value, candidate
            lower = max(lower, _around(centre, unit, Y, cost, intercept)[1])
        if upper - lower <= 1e-10 * upper:
            break
    if best is None:
        raise OracleError("The solver gave no answer.")
    weights = np.zeros(len(grams))
    weights[used] = best / radii[used]
    return _agreed("radius", lower, upper), weights / weights.sum()


def chapelle_value(K, y, C, literal=False, intercept=True):
    """Return squared radius times hard-margin objective, on ``K + I/C`` in both places.

    If ``literal``, the optimum of ``r^2 (1/2 |w|^2 + C sum slack^2)`` with the ball of ``K``,
    which is a hard margin on ``K + I/(2C)``. ``C`` may be one number or one a row.
    """
    ridge = _per_row(C, K) ** -1.0
    if literal:
        return ball_oracle(K)[0] * _soft_margin(K, ridge / 2, y, intercept)
    return ball_oracle(K + np.diag(ridge))[0] * _soft_margin(K, ridge, y, intercept)


def do_value(grams, theta, y, C, intercept=True):
    """Minimise ``1/2 sum_j |w_j|^2 / theta_j + C / (sum_j theta_j R_j^2) sum slack^2`` over w.

    It is a hard margin on ``sum_j theta_j (K_j + R_j^2 / (2C) I)``.
    """
    radii = [ball_oracle(gram)[0] for gram in grams]
    ridge = np.dot(theta, radii) / (2 * _per_row(C, grams[0]))
    return _soft_margin(np.tensordot(theta, grams, 1), ridge, y, intercept)


def solve_do(grams, y, C, norm, intercept=True):
    """Minimise ``do_value`` over weights whose ``norm``-norm is at most one.

    Return the value and the weights.
    """
    grams, Y, m = np.asarray(grams, dtype=float), _columns(y), len(grams)
    ridge = np.diag(0.5 / _per_row(C, grams[0]))
    ridged = np.stack([gram + ball_oracle(gram)[0] * ridge for gram in grams])
    # The optimum is sum(alpha) / 2, so a box of twice any value never binds.
    box = 4 * do_value(grams, np.full(m, m ** (-1 / norm)), Y, C, intercept)
    cost = np.full(Y.shape, box)
    found = solve_mkl(ridged, Y, cost, p=norm, loss="hinge", fit_intercept=intercept)
    if np.abs(found.dual_coef).max() > 0.6 * box:
        raise OracleError(f"A coefficient is {np.abs(found.coef).max():.3g}, the box {box:.3g}.")
    upper = do_value(grams, found.weights, Y, C, intercept)
    return _agreed("do", found.lower, upper), found.weights


def random_radius_problem(seed, *, n=16, m=3, n_classes=None, C=None, weighted=False):
    """Draw a problem with kernels whose scales differ by up to a million.

    By default there are two or three classes, and C lies between 0.01 and 1000.
    """
    rng = np.random.default_rng([seed, 2010])
    drawn = int(rng.integers(2, 4)), 10 ** rng.uniform(-2, 3)
    n_classes = drawn[0] if n_classes is None else n_classes
    C = drawn[1] if C is None else C
    kind = {2: "binary", 3: "multiclass"}[n_classes]
    base = random_problem(seed, kind=kind, n=n, m=m, weighted=weighted)
    grams = base.grams * 10 ** rng.uniform(-3, 3, size=(m, 1, 1))
    return RadiusProblem(grams, base.Y, C * base.cost, C, base.X, base.y)


def _around(centre, grams, Y, cost, intercept):
    """Solve the problem with the ball around a given centre; return weights and lower bound.

    Its squared radius is linear in the weights and nowhere larger than the true one, and so is
    the objective. On kernels divided by theirs it is multiple kernel learning.
    """
    radii = np.array([_spread(gram, centre) for gram in grams])
    if radii.min() <= 1e-9:
        return np.ones(len(grams)), -np.inf
    fixed = grams / radii[:, None, None]
    found = solve_mkl(fixed, Y, cost, p=1, loss="hinge", fit_intercept=intercept)
    return found.weights / radii, found.lower


def _radius_program(grams, Y, cost, size, intercept):
    """Return the multipliers of the constraints on beta, and beta."""
    alpha, beta = cp.Variable(Y.shape), cp.Variable(len(Y))
    t, s = cp.Variable(), cp.Variable(len(grams))
    B = cp.multiply(Y, alpha)
    present = cost > 0
    constraints = [beta >= 0, cp.sum(beta) == 1, alpha[present] >= 0]
    constraints.append(alpha[present] <= cost[present] / size)
    if not present.all():
        constraints.append(alpha[~present] == 0)
    if intercept:
        constraints.append(cp.sum(B, axis=0) == 0)
    spreads = []
    for j, gram in enumerate(grams):
        centred = _centre(gram)
        # The ball does not see where the origin is; the machine does if it has no intercept.
        L = np.sqrt(size) * _factor(centred if intercept else gram)
        constraints.append(cp.SOC(t + s[j], cp.hstack([2 * cp.vec(L.T @ B, order="C"), t - s[j]])))
        inside = cp.sum_squares(_factor(centred).T @ beta)
        spreads.append(s[j] + inside <= np.diag(centred) @ beta)
    _solve(cp.Problem(cp.Maximize(cp.sum(alpha) - t / 2), constraints + spreads))
    B, beta = Y * _answer(alpha), _on_simplex(beta)
    theta = np.maximum([np.sum(c.dual_value) for c in spreads], 0.0)
    ratios = np.array([np.sum(B * (gram @ B)) / _spread(gram, beta) for gram in grams])
    # A multiplier is noise if it is smaller than what its constraint leaves.
    theta[theta * ratios.max() <= theta.max() * (ratios.max() - ratios)] = 0.0
    # With w = 0 at the optimum all weights are equally good.
    return (theta if theta.any() else np.ones(len(grams))), beta


def _machine(K, Y, cost, intercept):
    Y = _columns(Y)
    cost = np.broadcast_to(_columns(cost), Y.shape)
    return solve_fixed(K, Y, cost, loss="hinge", fit_intercept=intercept)


def _soft_margin(K, ridge, Y, intercept):
    """Minimise ``1/2 |w|^2 + sum_i slack_i^2 / (2 ridge_i)``, summed over the outputs.

    Maximise ``sum alpha - 1/2 alpha' Y (K + diag(ridge)) Y alpha`` over alpha >= 0: the best
    multiple of an alpha with sum one has the value ``1 / (2 alpha' Y (K + diag(ridge)) Y alpha)``.
    """
    full = K + np.diag(ridge)
    scale = np.trace(full) / len(K)
    root, total = _factor(full / scale).T, 0.0
    for y in _columns(Y).T:
        alpha = cp.Variable(len(y))
        constraints = [alpha >= 0, cp.sum(alpha) == 1]
        if intercept:
            constraints.append(y @ alpha == 0)
        _solve(cp.Problem(cp.Minimize(cp.sum_squares((root * y) @ alpha)), constraints))
        a = np.maximum(_answer(alpha), 0.0)
        if intercept:
            up, down = a[y > 0].sum(), a[y < 0].sum()
            a *= np.where(y > 0, min(1.0, down / up), min(1.0, up / down))
        a *= a.sum() / (y * a @ full @ (y * a))
        f = K @ (y * a)
        if intercept:
            f += _best_intercept(y, f, ridge)
        upper = a @ (y * (K @ (y * a))) + np.sum(np.maximum(0, 1 - y * f) ** 2 / ridge)
        total += _agreed("margin", a.sum() / 2, upper / 2)
    return total


def _best_intercept(y, f, ridge):
    """Minimise ``sum_i max(0, 1 - y_i (f_i + b))^2 / ridge_i`` over b."""

    def slope(b):
        return np.sum(y * np.maximum(0, 1 - y * (f + b)) / ridge)

    return brentq(slope, np.min(y - f), np.max(y - f), xtol=1e-300)


def _per_row(C, K):
    return np.broadcast_to(np.asarray(C, dtype=float), len(K))


def _answer(variable):
    if variable.value is None:
        raise OracleError("The solver gave no answer.")
    return variable.value


def _agreed(what, lower, upper):
    """Return the middle of two bounds that meet."""
    if not abs(upper - lower) <= ACCEPT * abs(upper):
        raise OracleError(f"{what}: lower bound {lower:.15g}, upper bound {upper:.15g}.")
    return float(0.5 * (lower + upper))


def _columns(a):
    """Return one column an output."""
    a = np.asarray(a, dtype=float)
    return a[:, None] if a.ndim == 1 else a


def _centre(K):
    return K - K.mean(axis=0) - K.mean(axis=1, keepdims=True) + K.mean()


def _spread(K, beta):
    """``beta' diag(K) - beta' K beta``, the squared radius at the best beta."""
    return np.diag(K) @ beta - beta @ K @ beta


def _on_simplex(variable):
    beta = np.maximum(_answer(variable), 0.0)
    return beta / beta.sum()
