"""What a fitted model claims, against the definition of its problem.

Tolerances. The claims are float64, the referee's values long double (64 bits of mantissa), so what
is left between them is the rounding of the library. With ``r_i = sqrt(k(x_i, x_i))`` of the learned
kernel and ``A = sum_k r_k |coef_k|``, an objective may be wrong by ``ROUNDING`` times

    sum_i cost_i slope_i (r_i A + |b| + |y_i|) + A^2,

the first-order change of losses and norm when each term of their sums is wrong by its own size
times ``ROUNDING``. Nystroem features are single precision: their sums may be wrong by ``SINGLE``
times the norms of row and function, in place of ``ROUNDING``. A kernel value may be wrong by
``KERNEL sqrt(k(x, x) k(z, z))``, so that predictions may be wrong by ``KERNEL r_i A + ROUNDING
|b|``. An upper bound of the optimum is always the objective of an explicit function, in long
double: that a conic solver is inaccurate makes it larger, and never makes a true claim look false.
"""

import copy
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.base import is_classifier

from hkl_oracles import closure, conjunctions, solve_dag
from kernelweave.kernels import Product
from noisy_oracles import capped_oracle
from oracles import LOSSES, _factor, solve_fixed, solve_mkl
from radius_oracles import ball_oracle, radius_margin_value, solve_do, solve_radius
from spn_oracles import joint_oracle

from .reference import REAL, Table, block, diagonal, products

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 32 * EPS
KERNEL = 1e-12
CONSTANT = 1.1e-12  # centred trace, relative to the trace, below which kernels are not normalised
TINY = 1e-290  # mean diagonal that is zero in float64, or nearly so
SCALE = 1e-4  # times tol: how exactly kernels are normalised; factors leave a tenth out, by count
NEGLIGIBLE = 1e-10  # parts of a function that prediction may leave out, relative to the largest
FLOOR = 1e-24  # objective relative to the loss of zero, below which a fit has converged
SINGLE = 2.0**-22  # relative error of values that sum up features in single precision
NEAR = 1e-9  # of the objective: more than that no rounding error of a certified fit may hide
CONIC = 1e-7  # relative accuracy of optima that a conic solver gives without a function
MOST_CONIC_ROWS = 60
MOST_CONIC_KERNELS = 10


class AskingError(Exception):
    """A method of a fitted model raised what it should not."""


def ask(method, *arguments):
    """Call a method of a fitted model, on rows that it has to accept."""
    try:
        return method(*arguments)
    except Exception as error:
        name = method.__name__
        raise AskingError(f"{name}(): {type(error).__name__}: {error}") from error


def values_at(model, X):
    """Return the decision values or predictions of a model, one column per output."""
    # Predicted quantiles are sorted; the certificate is that of the functions of all levels.
    crossing = getattr(model, "_several_levels", False)
    for name in ("_decide",) if crossing else ("decision_function", "predict"):
        if hasattr(model, name):
            values = np.asarray(ask(getattr(model, name), X))
            return values.reshape(len(values), -1) if values.dtype.kind == "f" else np.zeros(1)
    return np.zeros(1)


# Problems with one weight per kernel


@dataclass
class Problem:
    """Targets, costs and rows of a fit, as its documentation states them."""

    table: Table
    Y: np.ndarray  # (n_rows, n_outputs)
    cost: np.ndarray  # (n_rows, n_outputs)
    weight: np.ndarray  # (n_rows,)
    loss: str
    epsilon: float
    fit_intercept: bool
    levels: np.ndarray | float = 0.5  # of quantiles

    @classmethod
    def of(cls, instance, model, C):
        y = np.asarray(instance.fit["y"])
        given = instance.fit.get("sample_weight")
        weight = np.ones(len(y)) if given is None else np.asarray(given, dtype=float)
        if is_classifier(model):
            classes, codes = np.unique(y, return_inverse=True)
            columns = [1] if len(classes) == 2 else range(len(classes))
            Y = np.where(codes[:, None] == np.array(columns), 1.0, -1.0)
            row_cost = weight * _class_factors(model.class_weight, classes, codes, weight)[codes]
        else:
            Y, row_cost = y.reshape(len(y), -1).astype(float), weight
        loss = getattr(model, "loss", "hinge")
        levels = np.atleast_1d(getattr(model, "quantile", 0.5))
        if loss == "quantile":
            Y = np.repeat(Y, len(levels), axis=1)
        elif loss == "logistic" and Y.shape[1] > 1:
            loss = "softmax"
        cost = np.repeat(C * row_cost[:, None], Y.shape[1], axis=1)
        unit = getattr(model, "target_scale_", 1.0)
        if loss in ("epsilon_insensitive", "quantile"):
            cost *= unit
        epsilon, table = unit * getattr(model, "epsilon", 0.0), Table(instance.fit["X"])
        return cls(table, Y, cost, weight, loss, epsilon, model.fit_intercept, levels)

    def losses(self, F):
        """Return the loss of every entry, and a bound of its slope."""
        Y, e = self.Y.astype(REAL), REAL(self.epsilon)
        size = np.abs(Y - F)
        if self.loss == "hinge":
            return np.maximum(0, 1 - Y * F), np.ones_like(F)
        if self.loss == "epsilon_insensitive":
            return np.maximum(0, size - e), np.ones_like(F)
        if self.loss == "square":
            return size**2 / 2, size
        if self.loss == "squared_hinge":
            slack = np.maximum(0, 1 - Y * F)
            return slack**2 / 2, slack
        if self.loss == "logistic":
            return np.logaddexp(0, -Y * F), 1 / (1 + np.exp(np.minimum(Y * F, 11000)))
        if self.loss == "softmax":  # all of it in the column of the class of the row
            ahead = F - np.sum(np.where(Y > 0, F, 0), axis=1, keepdims=True)
            top = ahead.max(axis=1, keepdims=True)
            sums = np.exp(ahead - top).sum(axis=1, keepdims=True)
            logs = top + np.log(sums)
            # Small losses: the logarithm of one plus the rest.
            rest = np.where(Y > 0, 0, np.exp(np.minimum(ahead, 0))).sum(axis=1, keepdims=True)
            logs = np.where(top > 0, logs, np.log1p(rest))
            p = np.exp(ahead - logs)
            return np.where(Y > 0, logs, 0), np.where(Y > 0, np.abs(1 - p), p)
        if self.loss == "quantile":
            up = self.levels * np.maximum(0, Y - F) + (1 - self.levels) * np.maximum(0, F - Y)
            return up, np.broadcast_to(np.maximum(self.levels, 1 - self.levels), F.shape)
        return np.where(size <= e, size**2 / 2, e * size - e**2 / 2), np.minimum(size, e)

    def best_intercept(self, F):
        """Return the best intercepts for these values; any number is a valid choice."""
        best = np.zeros(self.Y.shape[1])
        if not self.fit_intercept:
            return best
        if self.loss not in LOSSES:
            return self._search_intercept(F.astype(float))
        loss = LOSSES[self.loss](self.epsilon)
        for o in range(len(best)):
            keep = self.cost[:, o] > 0
            y, f = self.Y[keep, o], F[keep, o].astype(float)
            best[o] = loss.best_intercept(y - f, y, self.cost[keep, o])
        return best

    def _search_intercept(self, F):
        """Return intercepts of losses without a closed form, by a general minimiser."""
        start = np.zeros(self.Y.shape[1])
        if self.loss == "quantile":
            start = np.median(self.Y - F, axis=0)
            for o, level in enumerate(np.broadcast_to(self.levels, start.shape)):
                order = np.argsort(self.Y[:, o] - F[:, o])
                shares = np.cumsum(self.cost[order, o])
                k = np.searchsorted(shares, level * shares[-1])
                start[o] = (self.Y - F)[order[min(k, len(order) - 1)], o]
            return start
        size = float(self.total(F.astype(REAL))) or 1.0
        found = minimize(lambda b: float(self.total((F + b).astype(REAL))) / size, start)
        return found.x

    def total(self, F):
        return np.sum(self.cost * self.losses(F)[0])

    def zero_value(self):
        """Return the objective of the function that is constant."""
        F = np.zeros(self.Y.shape, dtype=REAL)
        return self.total(F + self.best_intercept(F))


def _class_factors(class_weight, classes, codes, weight):
    """Return the factor of C of every class."""
    if class_weight is None:
        return np.ones(len(classes))
    if class_weight == "balanced":
        counts = np.bincount(codes, weight, len(classes))
        return weight.sum() / (len(classes) * counts)
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()])


@dataclass
class Value:
    """A function ``sum_j theta_j K_j dual_coef + b`` in long double."""

    F: np.ndarray  # (n_rows, n_outputs), with the intercept
    norms: np.ndarray  # (n_kernels,), |w_j|: theta_j sqrt(coef' K_j coef), of normalised kernels
    used: np.ndarray  # (n_kernels,), which kernels have a weight
    root: np.ndarray  # r_i of the training rows
    reach: float  # A
    intercept: np.ndarray
    single: float = 0.0  # norm of the part of the function that is fitted in single precision

    def rounding_of_values(self, root=None, unit=KERNEL):
        """Return how far float64 values of the function may be off."""
        root = self.root if root is None else root
        return unit * root[:, None] * self.reach + ROUNDING * np.abs(self.intercept)

    def rounding(self, problem):
        """Return how far a float64 objective may be off; see the top of this module."""
        slope = problem.losses(self.F)[1]
        parts = self.rounding_of_values(unit=ROUNDING) + ROUNDING * np.abs(problem.Y)
        return np.sum(problem.cost * slope * parts) + ROUNDING * self.reach**2

    def rounding_of_features(self, problem):
        """Return how far the objective may be off by features in single precision."""
        slope = problem.losses(self.F)[1]
        return SINGLE * self.single * np.sum(problem.cost * slope * self.root[:, None])


def evaluate(table, model, scales=None, kernels=None, gamma=1.0) -> Value:
    """Return the function of a fitted model on the rows of a table that it was fitted to."""
    scales = model.scales_ if scales is None else scales
    kernels = model.kernels_ if kernels is None else kernels
    dual_coef = model.dual_coef_.T * gamma
    return expand(
        table, kernels, model.weights_, scales, model.support_, dual_coef, model.intercept_
    )


def expand(table, kernels, weights, scales, support, dual_coef, intercept) -> Value:
    """Return ``sum_j weights_j scales_j k_j(., support) dual_coef + intercept`` on the rows."""
    B, V = table.take(support), dual_coef.astype(REAL)
    F = np.zeros((table.n_rows, V.shape[1]), dtype=REAL)
    square, norms = np.zeros(table.n_rows, dtype=REAL), np.zeros(len(kernels), dtype=REAL)
    for j in np.flatnonzero(weights):
        scale, weight = REAL(scales[j]), REAL(weights[j])
        part = scale * products(kernels[j], table, B, V)
        norms[j] = weight * np.sqrt(np.maximum(np.sum(V * part[support]), 0))
        F += weight * part
        square += weight * scale * np.maximum(diagonal(kernels[j], table), 0)
    root = np.sqrt(square)
    reach = np.sum(root[support][:, None] * np.abs(V))
    return Value(F + intercept, norms, np.asarray(weights) != 0, root, reach, np.asarray(intercept))


def _evaluate_landmarks(table, model):
    """Return the function of Nystroem features, ``sum_j k_j(., P_j) c_j``; None where not known."""
    function = model._function
    kernels = [model.kernels_[j] for j in function.which]
    simple = ("Linear", "RBF", "ARD", "Laplacian", "Polynomial", "Additive", "FromCallable")
    if any(type(kernel).__name__ not in simple for kernel in kernels):
        return None
    F = np.zeros((table.n_rows, len(model.intercept_)), dtype=REAL) + model.intercept_
    norms, reach, single = np.zeros(len(model.kernels_), dtype=REAL), REAL(0), REAL(0)
    square = np.zeros(table.n_rows, dtype=REAL)
    parts = zip(function.which, kernels, function.rows, function.coefs, strict=True)
    for j, kernel, rows, dual_coef in parts:
        # Landmarks are prepared rows: the chosen columns only.
        P, V = Table(rows), dual_coef.astype(REAL)
        inner = copy.copy(kernel)
        object.__setattr__(inner, "columns", None)
        chosen = Table(table.numbers(kernel.columns))
        F += products(inner, chosen, P, V)
        size = np.sqrt(np.maximum(np.sum(V * products(inner, P, P, V)), 0))
        norms[j], single = size / np.sqrt(REAL(model.scales_[j])), single + size
        root = np.sqrt(diagonal(inner, P))
        reach += np.sum(root[:, None] * np.abs(V))
        square = np.maximum(square, diagonal(inner, chosen))
    return Value(F, norms, norms > 0, np.sqrt(square), reach, model.intercept_, single)


def penalty(norms, norm):
    """Return ``1/2 sum_j |w_j|^2 / theta_j`` at the best weights of unit lp norm, or equal ones."""
    if norm == "uniform":
        return len(norms) * np.sum(norms**2) / 2
    exponent = 2 * REAL(norm) / (REAL(norm) + 1)
    largest = norms.max() or REAL(1)
    return largest**2 * np.sum((norms / largest) ** exponent) ** (2 / exponent) / 2


def check_flat(instance, model, outcome):
    """Check the certificate of a model with one weight per kernel."""
    problem = Problem.of(instance, model, model.C)
    factors = model.weights_ * model.scales_
    _check_weights(model, outcome)
    check_scales(model, problem, outcome)
    check_kernel(instance, model, factors, outcome)
    if getattr(model, "_function", None) is None:
        value = evaluate(problem.table, model)
        check_values(instance, model, factors, value, outcome)
    elif (value := _evaluate_landmarks(problem.table, model)) is not None:
        limit = value.rounding_of_values()
        _compare("training rows", model, instance.fit["X"], value.F, limit, outcome)
    else:
        return
    true = penalty(value.norms, model.norm) + problem.total(value.F)
    zero = problem.zero_value()
    noise = value.rounding(problem)
    single = value.rounding_of_features(problem)
    check_objective(model, problem, true, zero, noise, outcome, single)
    uppers = {"the model": true, "the zero function": zero}
    if instance.oracle and instance.n_rows <= MOST_CONIC_ROWS:
        found = _conic_flat(model, problem)
        uppers["a conic solver's function"] = found
        outcome.conic = bool(np.isfinite(found))
    check_lower(model, uppers, noise, outcome)


def check_objective(model, problem, true, zero, noise, outcome, single=0.0):
    """Check that the objective is that of the model, and no worse than doing nothing."""
    claimed = REAL(model.objective_)
    # The gap holds a bound of the rounding error of both sides, that of features included.
    near = max(NEAR * abs(claimed), single)
    if true > claimed + max(noise, min(REAL(model.duality_gap_), near)):
        outcome.report(
            "false certificate",
            f"objective_ is {claimed:.12g}, but the model has {true:.12g} "
            f"(rounding {noise:.1e}, gap {model.duality_gap_:.1e})",
        )
    if claimed > zero + noise + model.tol * abs(zero):
        outcome.report(
            "bad model", f"objective_ is {claimed:.6g}, the zero function has {zero:.6g}"
        )
    scale = 0 if problem is None else problem.total(np.zeros(problem.Y.shape, dtype=REAL))
    small = claimed <= FLOOR * (1 + 1e-9) * scale
    gap = getattr(model, "landmark_gap_", np.nan)
    gap = model.duality_gap_ if np.isnan(gap) else min(gap, model.duality_gap_)
    known = np.isfinite(gap)  # where no bound is known, convergence means something else
    if known and model.converged_ and not (gap <= model.tol * abs(claimed) * (1 + 1e-9) or small):
        outcome.report("false convergence", f"converged_ with a gap of {gap:.3g} at {claimed:.6g}")


def check_lower(model, uppers, noise, outcome):
    """Check the lower bound against objectives of explicit functions."""
    lower = REAL(model.objective_) - REAL(model.duality_gap_)
    name = min(uppers, key=lambda key: uppers[key])
    if lower > uppers[name] + noise:
        outcome.report(
            "false certificate",
            f"the lower bound is {lower:.12g}, but {name} has {uppers[name]:.12g} "
            f"(rounding {noise:.1e}, objective {model.objective_:.12g})",
        )


def _check_weights(model, outcome):
    weights, p = model.weights_, 1.0 if model.norm == "uniform" else float(model.norm)
    norm = np.sum(weights.astype(REAL) ** p) ** (1 / p)
    if weights.min() < 0 or norm > 1 + 1e-9:
        outcome.report("false certificate", f"weights_ have a norm of {norm}")


def check_kernel(instance, model, factors, outcome, kernels=None):
    """Compare the learned kernel with its definition on some rows."""
    table, new = Table(instance.fit["X"]), Table(instance.new)
    some = np.unique(np.linspace(0, table.n_rows - 1, 25).astype(int))
    rows = _pick(instance.fit["X"], some)
    few = table.take(some)
    pairs = [
        (ask(model.kernel, rows), few, few),
        (ask(model.kernel, instance.new, rows), new, few),
    ]
    used = _used(model.kernels_ if kernels is None else kernels, factors)
    for claimed, A, B in pairs:
        true = sum((f * block(k, A, B) for k, f in used), np.zeros(claimed.shape, dtype=REAL))
        roots = [_root(used, side) for side in (A, B)]
        error = np.abs(claimed - true)
        limit = KERNEL * np.multiply.outer(*roots) + TINY
        if not (error <= limit).all():
            i, k = np.unravel_index(np.argmax(error - limit), error.shape)
            outcome.report(
                "wrong kernel",
                f"kernel() gives {claimed[i, k]:.12g} in place of {true[i, k]:.12g} "
                f"where sizes are {roots[0][i]:.2g} and {roots[1][k]:.2g}",
            )
            return


def _pick(X, rows):
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def _used(kernels, factors):
    return [(k, REAL(f)) for k, f in zip(kernels, factors, strict=True) if f]


def _root(used, table):
    square = sum((f * diagonal(k, table) for k, f in used), np.zeros(table.n_rows, dtype=REAL))
    return np.sqrt(square)


def check_values(instance, model, factors, value, outcome, kernels=None):
    """Compare predictions with the expansion in the dual coefficients."""
    support = Table(instance.fit["X"]).take(model.support_)
    new, dual_coef = Table(instance.new), model.dual_coef_.T.astype(REAL)
    used = _used(model.kernels_ if kernels is None else kernels, factors)
    F = np.zeros((new.n_rows, dual_coef.shape[1]), dtype=REAL) + model.intercept_
    for kernel, factor in used:
        F += factor * products(kernel, new, support, dual_coef)
    limit = value.rounding_of_values(_root(used, new))
    X = instance.fit["X"]
    _compare("training rows", model, X, value.F, value.rounding_of_values(), outcome)
    _compare("new rows", model, instance.new, F, limit, outcome)


def _compare(what, model, X, true, limit, outcome):
    error = np.abs(values_at(model, X) - true)
    if not (error <= limit).all():
        worst = np.argmax((error - limit).max(axis=1))
        outcome.report(
            "wrong values",
            f"{what}: row {worst} is off by {error[worst].max():.3g}, "
            f"rounding explains {limit[worst].max():.1e}",
        )


def check_scales(model, problem, outcome):
    """Compare the numbers that kernels are normalised by with their definition."""
    kept = np.flatnonzero(problem.weight > 0)
    table, share = problem.table.take(kept), problem.weight[kept].astype(REAL)
    share /= share.sum()
    centred = problem.fit_intercept and model.normalize == "trace"
    if model.normalize in (None, "cosine"):
        wrong = np.flatnonzero(model.scales_ != 1.0)
        if len(wrong):
            outcome.report("wrong scale", f"scales_[{wrong[0]}] is {model.scales_[wrong[0]]}")
        return
    if model.normalize == "radius" or (table.n_rows > 1000 and centred):
        return
    for j, kernel in enumerate(model.kernels_):
        entries = diagonal(kernel, table)
        size = mean = share @ entries
        if centred:
            size = mean - share @ products(kernel, table, table, share[:, None])[:, 0]
        lost = ROUNDING * mean  # by a difference of float64 values
        if size <= max(CONSTANT * mean, TINY) and model.scales_[j] == 1.0:
            continue  # constant, or zero, as far as float64 can tell
        error = abs(1 / REAL(model.scales_[j]) - size)
        # Factors leave out a share of the trace, in which all rows count alike.
        if not error <= SCALE * model.tol * max(size, np.mean(entries)) + lost:
            outcome.report(
                "wrong scale",
                f"scales_[{j}] is {model.scales_[j]:.12g} in place of {1 / size:.12g} "
                f"({kernel}, mean diagonal {mean:.3g})",
            )


def _conic_flat(model, problem):
    """Return the objective of the function that a conic solver finds, infinity without one."""
    if len(model.kernels_) > MOST_CONIC_KERNELS:
        return np.inf
    grams, n = _grams(problem, model), len(problem.Y)
    options = {"loss": problem.loss, "epsilon": problem.epsilon}
    options["fit_intercept"] = problem.fit_intercept
    try:
        if model.norm == "uniform":
            found = solve_fixed(grams.mean(axis=0), problem.Y, problem.cost, **options)
            weights = np.full(len(grams), 1 / len(grams))
        else:
            found = solve_mkl(grams, problem.Y, problem.cost, p=float(model.norm), **options)
            weights = np.maximum(found.weights, 0)
    except Exception:  # the solver may give up in any way; the other upper bounds remain
        return np.inf
    zero = np.zeros(problem.Y.shape[1])
    value = expand(
        problem.table, model.kernels_, weights, model.scales_, np.arange(n), found.dual_coef, zero
    )
    total = problem.total(value.F + problem.best_intercept(value.F))
    return penalty(value.norms, model.norm) + total


# Radius and margin


def check_radius(instance, model, outcome):
    """Check kernel learning by the ratio of margin and radius."""
    problem = Problem.of(instance, model, model.C)
    scales = model.scales_ / model.squared_radius_
    value = evaluate(problem.table, model, scales)
    check_kernel(instance, model, model.weights_ * scales, outcome)
    check_values(instance, model, model.weights_ * scales, value, outcome)
    criterion = getattr(model, "criterion", "radius")
    conic = instance.oracle and instance.n_rows <= MOST_CONIC_ROWS // 2
    kept = np.flatnonzero(problem.weight > 0)
    if criterion != "radius":
        if conic and criterion == "do" and problem.Y.shape[1] == 1:
            grams = _grams(problem, model, kept)
            found = _optimum(
                solve_do,
                grams[np.ptp(grams, axis=(1, 2)) > 1e-9],  # constant kernels get no weight
                problem.Y[kept],
                problem.cost[kept, 0],
                float(model.norm),
                model.fit_intercept,
            )
            check_lower(model, {"a conic solver": found}, CONIC * found, outcome)
        return
    bounded = getattr(model, "radius", "exact") != "exact"
    # The bounds of the radius have sizes of their own: what is left to check is the loss.
    norm = 0 if bounded else np.sum(value.norms**2 / np.where(value.used, model.weights_, 1)) / 2
    noise = value.rounding(problem)
    if not bounded:
        noise = noise + 1e-5 * model.tol * norm  # the radius is known to a part of the tolerance
    zero = problem.zero_value()
    true = norm + problem.total(value.F)
    check_objective(model, problem, true, zero, noise, outcome)
    uppers = {"the zero function": zero}
    if conic and not bounded and len(model.kernels_) <= MOST_CONIC_KERNELS:
        grams = _grams(problem, model, kept)
        Y, cost = problem.Y[kept], problem.cost[kept]
        combined = np.tensordot(model.weights_, grams, 1)
        radius = _optimum(lambda K: ball_oracle(K)[0], combined)
        if np.isfinite(radius) and abs(radius - model.squared_radius_) > 2 * model.tol * radius:
            outcome.report(
                "wrong scale",
                f"squared_radius_ is {model.squared_radius_:.9g}, and should be {radius:.9g}",
            )
        if getattr(model, "norm", "uniform") == "uniform":
            found = _optimum(radius_margin_value, combined, Y, cost, model.fit_intercept)
        else:
            found = _optimum(lambda *a: solve_radius(*a)[0], grams, Y, cost, model.fit_intercept)
        uppers["a conic solver"] = found * (1 + CONIC)
        outcome.conic = bool(np.isfinite(found))
    check_lower(model, uppers, noise, outcome)


def _grams(problem, model, rows=slice(None)):
    """Return the normalised Gram matrices, rounded to float64."""
    table = problem.table.take(rows)
    pairs = zip(model.kernels_, model.scales_, strict=True)
    return np.stack([(REAL(s) * block(k, table, table)).astype(float) for k, s in pairs])


def _optimum(solve, *arguments):
    """Return what a conic solver gives, infinity where it gives up: then it bounds nothing."""
    try:
        found = solve(*arguments)
    except Exception:  # it may give up in any way
        return np.inf
    return found[0] if isinstance(found, tuple) else getattr(found, "upper", found)


# Wrong labels


def check_noisy(instance, model, outcome):
    """Check learning by the worst case of wrong labels."""
    problem = Problem.of(instance, model, 1.0)
    gamma = np.atleast_1d(model.gamma_) if problem.Y.shape[1] > 1 else np.ones(1)
    if getattr(model, "_function", None) is not None:
        return
    value = evaluate(problem.table, model)
    check_scales(model, replace(problem, fit_intercept=False), outcome)
    check_kernel(instance, model, model.weights_ * model.scales_, outcome)
    check_values(instance, model, model.weights_ * model.scales_, value, outcome)
    if model.robust == "best" or np.min(gamma) <= NEGLIGIBLE:
        return
    # Decision values of several classes are divided by gamma, and the objective is not.
    F = value.F * gamma
    if len(gamma) > 1:
        scaled = evaluate(problem.table, model, gamma=gamma)
        value = replace(scaled, F=F)
    norms = np.append(value.norms, np.linalg.norm((model.intercept_ * gamma).astype(float)))
    true = model.lam / REAL(2) * norms.sum() ** 2 + _worst(problem, model, F)
    zero = _worst(problem, model, np.zeros_like(F))
    count = problem.weight.sum()
    share = replace(problem, cost=problem.cost * (1 + model.slack) / count)
    noise = value.rounding(share) + ROUNDING * model.lam * norms.sum() ** 2
    check_objective(model, None, true, zero, noise, outcome)
    uppers = {"the model": true, "the zero function": zero}
    plain = (problem.cost == 1).all() and (problem.weight == 1).all()
    small = instance.n_rows <= MOST_CONIC_ROWS and len(model.kernels_) <= MOST_CONIC_KERNELS
    if instance.oracle and plain and small:
        constant = 1.0 if model.fit_intercept else None
        exact = model.uncertainty == "exact"
        grams = _grams(problem, model)
        found = _optimum(
            capped_oracle, grams, problem.Y, model.lam, model.cap_, model.slack, exact, constant
        )
        uppers["a conic solver"] = found * (1 + CONIC)
        outcome.conic = bool(np.isfinite(found))
    check_lower(model, uppers, noise, outcome)


def _worst(problem, model, F):
    """Return the largest mean loss that the weights of the losses allow."""
    total = REAL(0)
    count = problem.weight.sum()
    for o in range(F.shape[1]):
        cost = problem.cost[:, o].astype(REAL)
        loss = np.maximum(0, 1 - problem.Y[:, o] * F[:, o])
        order = np.argsort(-loss)
        cost, loss = cost[order], loss[order]
        free = room = REAL(1)
        if model.uncertainty == "exact":
            free, room, budget = REAL(model.slack), REAL(1), model.cap_[o] * cost.sum()
        else:
            free, room = REAL(0), 1 + REAL(model.slack)
            budget = (model.cap_[o] + model.slack) * cost.sum()
        taken = np.clip(budget - (np.cumsum(room * cost) - room * cost), 0, room * cost)
        total += np.sum((taken + free * cost) * loss) / count
    return total


def check_tolerant(instance, model, outcome):
    """Compare the values of an average of ridge classifiers with their expansion."""
    train, dual_coef = Table(instance.fit["X"]), model.dual_coef_
    support = train.take(model.support_)
    for what, X in (("training rows", instance.fit["X"]), ("new rows", instance.new)):
        table = Table(X)
        F, limit = 0, 0
        for kernel, scale, part in zip(model.kernels_, model.scales_, dual_coef, strict=True):
            if not part.any():
                continue
            F = F + REAL(scale) * products(kernel, table, support, part.T.astype(REAL))
            roots = [np.sqrt(REAL(scale) * diagonal(kernel, side)) for side in (table, support)]
            limit = limit + KERNEL * np.multiply.outer(roots[0], roots[1] @ np.abs(part.T))
        _compare(
            what, model, X, F + model.intercept_, limit + ROUNDING * abs(model.intercept_), outcome
        )


def check_metric(instance, model, outcome):
    """Compare leave-one-out values of an exact fit with a refit without the row."""
    if not 0 <= model.weights_.min() <= model.weights_.sum() <= 1 + 1e-9:
        outcome.report("wrong values", f"weights of columns sum to {model.weights_.sum():.12g}")
    if model.trace_left_out_ > 0 or len(model.support_) > 300:
        return
    K = model.kernel_.block(model._rows, model._rows)
    if np.abs(K - K.T).max() > 0 or np.linalg.eigvalsh(K)[0] < -1e-9 * len(K):
        outcome.report("wrong kernel", "the learned kernel is not symmetric and semi-definite")
    y, weight = instance.fit["y"], instance.fit["sample_weight"]
    if hasattr(model, "classes_") or weight is not None or np.ndim(y) > 1:
        return
    if len(K) < len(y):
        return
    y, left_out = y[model.support_], model.loo_values_[model.support_]
    n, i = len(K), len(K) // 2
    if model.solver_ == "conjugate gradients":  # its left-out values are those of folds
        off = K @ model.dual_coef_[0] + model.ridge_ * model.dual_coef_[0] + model.intercept_ - y
        if not np.linalg.norm(off) <= 1e-2 * np.linalg.norm(y - y.mean()):
            outcome.report("wrong values", "the ridge regression is not solved")
        return
    rest = np.delete(np.arange(n), i)
    system = np.ones((n, n))
    system[:-1, :-1] = K[np.ix_(rest, rest)] + model.ridge_ * np.eye(n - 1)
    system[-1, -1] = 0.0
    shift, unit = y.mean(), y.std()
    solved = np.linalg.solve(system, np.append((y[rest] - shift) / unit, 0.0))
    value = K[i, rest] @ solved[:-1] + solved[-1]
    error = abs((left_out[i] - shift) / unit - value)
    if not error <= 1e-6:
        outcome.report(
            "wrong values",
            f"the left-out value of row {model.support_[i]} is off by {error:.3g} units",
        )


def check_annotators(instance, model, outcome):
    """Check that what is called a probability is one."""
    for name in ("truth_", "confusions_"):
        p = getattr(model, name)
        if p.min() < 0 or np.abs(p.sum(axis=-1) - 1).max() > 1e-9:
            outcome.report("wrong values", f"{name} has no probabilities")
    for name in ("annotator_accuracy_", "answer_quality_", "label_quality_"):
        p = getattr(model, name)
        if p.min() < 0 or p.max() > 1 + 1e-12:
            outcome.report("wrong values", f"{name} reaches from {p.min():.3g} to {p.max():.3g}")


def check_combined(instance, model, outcome):
    """Compare a combination with the weighted mean of its members."""
    new, total = instance.new, 0
    if is_classifier(model):
        p = ask(model.predict_proba, new)
        if not (np.isfinite(p).all() and p.min() >= 0 and np.abs(p.sum(axis=1) - 1).max() < 1e-9):
            outcome.report("wrong values", "the probabilities of classes do not sum to one")
        return
    rules = model.logarithms or [None] * len(model.members_)
    for weight, member, item in zip(model.weights_, model.members_, rules, strict=True):
        values = np.asarray(ask(member.predict, new))
        if item is not None:
            values = item[1] * np.exp(values) - item[0]
        total = total + weight * values
    error, size = np.abs(total - ask(model.predict, new)).max(), np.abs(total).max()
    if np.isfinite(size) and not error <= 1e-9 * (size + sum(abs(r[0]) for r in rules if r)):
        outcome.report("wrong values", f"the mean of the members is off by {error:.3g}")


# Structures and graphs


def check_structure(instance, model, outcome):
    """Check a sum-product network."""
    if not model.paths_:
        return
    problem = Problem.of(instance, model, model.C)
    leaves = {i: k for k, i in enumerate(model.network_.leaves)}
    paths = [tuple(leaves[i] for i in path.leaves) for path in model.paths_]
    kernels = [Product([model.kernels_[k] for k in path]) for path in paths]
    scales = np.array([np.prod(model.scales_[list(path)].astype(REAL)) for path in paths])
    value = evaluate(problem.table, model, scales, kernels)
    check_kernel(instance, model, model.weights_ * scales, outcome, kernels)
    check_values(instance, model, model.weights_ * scales, value, outcome, kernels)
    names = list(model.node_weights_)
    beta = np.array(list(model.node_weights_.values())).astype(REAL)
    places = {i: k for k, i in enumerate(model.network_.products)}
    counts = np.zeros(len(names), dtype=REAL)
    for path in model.paths_:
        for node, exponent in path.exponents:
            counts[places[node]] += path.count * REAL(float(exponent))
    cost = REAL(model.lam) * np.sum(counts * beta**model.p)
    used = value.used
    norm = np.sum(value.norms[used] ** 2 / model.weights_[used]) / 2
    zero = problem.zero_value()
    noise = value.rounding(problem) + ROUNDING * cost
    noise = noise + NEGLIGIBLE * len(paths) * (norm + value.reach * np.max(value.root))
    true = norm + cost + problem.total(value.F)
    check_objective(model, problem, true, zero, noise, outcome)
    uppers = {"the model": true, "the zero function": zero}
    even = np.ptp(problem.cost) == 0
    if instance.oracle and instance.plain and even and instance.n_rows <= MOST_CONIC_ROWS // 2:
        found = _optimum(
            joint_oracle,
            _grams(problem, model),
            instance.plain,
            problem.Y,
            problem.cost[0, 0],
            model.lam,
            model.p,
            model.fit_intercept,
        )
        uppers["a conic solver"] = found * (1 + CONIC)
        outcome.conic = bool(np.isfinite(found))
    if np.isfinite(model.duality_gap_):
        check_lower(model, uppers, noise, outcome)


def omega(norms, above, cost, rho):
    """Return ``sum_v cost(v) (sum over nodes w below v of norms_w^rho)^(1/rho)``."""
    sums = defaultdict(lambda: REAL(0))
    for node, norm in norms.items():
        for v in above(node):
            sums[v] += REAL(norm) ** REAL(rho)
    return sum(cost(v) * total ** (1 / REAL(rho)) for v, total in sums.items())


def check_hierarchy(instance, model, outcome):
    """Check a hierarchy of kernels."""
    problem = Problem.of(instance, model, model.C)
    value = evaluate(problem.table, model)
    factors = model.weights_ * model.scales_
    if model.kernels is not None:
        check_scales(model, problem, outcome)
    check_kernel(instance, model, factors, outcome)
    check_values(instance, model, factors, value, outcome)
    norms = dict(zip(model.active_nodes_, value.norms, strict=True))
    graph = _Graph(model)
    norm = omega(norms, graph.above, graph.cost, model.rho) ** 2 / 2
    zero = problem.zero_value()
    left = (
        NEGLIGIBLE
        * model.n_nodes_
        * (
            2 * norm
            + value.norms.max(initial=0)
            * np.sum(problem.cost * problem.losses(value.F)[1] * value.root[:, None])
        )
    )
    noise = value.rounding(problem) + left
    true = norm + problem.total(value.F)
    check_objective(model, problem, true, zero, noise, outcome)
    uppers = {"the model": true, "the zero function": zero}
    small = instance.n_rows <= MOST_CONIC_ROWS // 2 and model.fit_intercept
    if instance.oracle and small and model.kernels is not None:
        found = _conic_graph(model, problem, graph)
        uppers["a conic solver"] = found * (1 + CONIC)
        outcome.conic = bool(np.isfinite(found))
    if np.isfinite(model.duality_gap_):
        check_lower(model, uppers, noise, outcome)


class _Graph:
    """The ancestors and costs of nodes, in a dict of kernels or a lattice of products."""

    def __init__(self, model):
        self.lattice = model.kernels is None
        self.base = 2.0 if model.node_cost is None else float(model.node_cost)
        if self.lattice:
            return
        self.nodes = list(model.kernels)
        parents = [[self.nodes.index(v) for v in model.parents[node]] for node in self.nodes]
        self.closed = closure(parents)
        depth = []
        for above in parents:  # parents come first
            depth.append(max((depth[v] + 1 for v in above), default=0))
        self.costs = dict(zip(self.nodes, self.base ** np.array(depth, dtype=float), strict=True))

    def above(self, node):
        if not self.lattice:
            return [self.nodes[v] for v in np.flatnonzero(self.closed[:, self.nodes.index(node)])]
        choices = product(*([(ladder, k) for k in range(rung + 1)] for ladder, rung in node))
        return [tuple(item for item in choice if item[1]) for choice in choices]

    def cost(self, node):
        return self.base ** sum(rung for _, rung in node) if self.lattice else self.costs[node]


def _conic_graph(model, problem, graph):
    """Return the optimum over all nodes of a graph, those without weight included."""
    # Kernels without weight have no scale among the attributes, so all must be active or unscaled.
    if model.normalize is not None and len(model.active_nodes_) < len(graph.nodes):
        return np.inf
    table = problem.table
    scales = dict(zip(model.active_nodes_, model.scales_, strict=True))
    kernels = model.kernels | dict(zip(model.active_nodes_, model.kernels_, strict=True))
    try:
        features = [
            _factor((scales.get(n, 1.0) * block(kernels[n], table, table)).astype(float))
            for n in graph.nodes
        ]
    except ValueError:  # rounded Gram matrices of huge values
        return np.inf
    costs = np.array([graph.costs[n] for n in graph.nodes])
    return _optimum(
        lambda: solve_dag(
            features,
            problem.Y,
            problem.cost,
            graph.closed,
            costs,
            model.rho,
            loss=problem.loss,
            epsilon=problem.epsilon,
        )
    )


def check_rules(instance, model, outcome):
    """Check an ensemble of rules over given propositions.

    `objective_` and `duality_gap_` are those of the search over all conjunctions; the rules that
    are kept have another problem where they are refitted, with a gap of its own.
    """
    problem = Problem.of(instance, model, model.C)
    if problem.loss == "softmax":  # classes of rules are one-vs-rest
        problem = replace(problem, loss="logistic")
    zero = problem.zero_value()
    noise = ROUNDING * (zero + np.sum(problem.cost * np.abs(problem.Y)))
    uppers = {"the zero function": zero}
    true = REAL(-np.inf)  # rules below the threshold are not part of the model
    if model.propositions == "given" and model.fit_intercept:
        P = np.asarray(instance.fit["X"]) > 0.5
        rules = {frozenset(c.position for c in rule.conditions): rule for rule in model.rules_}
        weights = np.array([rule.weights for rule in rules.values()], dtype=REAL)
        Z = np.array([P[:, sorted(columns)].all(axis=1) for columns in rules]).T.astype(REAL)
        F = np.zeros(problem.Y.shape, dtype=REAL) + model.intercept_
        if rules:
            F += Z @ weights
        limit = ROUNDING * (np.abs(F) + (np.abs(weights).sum() if rules else 0))
        _compare("training rows", model, instance.fit["X"], F, limit, outcome)
        norms = {columns: np.linalg.norm(rule.weights) for columns, rule in rules.items()}
        norm = omega(norms, _subsets, lambda v: REAL(model.base) ** len(v), model.rho) ** 2 / 2
        value = norm + problem.total(F)
        uppers["the model"] = value
        selected = model.threshold > 0 or model.max_rules is not None or model.required is not None
        if not (selected or model.refit or model.n_resamples):
            true = value
            noise = noise + 1e-9 * value  # rules of a norm below 1e-12 are dropped
        small = instance.oracle and instance.n_rows <= MOST_CONIC_ROWS
        limited = model.forbidden is not None or model.max_columns is not None
        if small and P.shape[1] <= 4 and not limited and model.monotone is None:
            uppers["a conic solver"] = _conic_lattice(model, problem, P)
            outcome.conic = bool(np.isfinite(uppers["a conic solver"]))
        if model.refit and small:
            _check_refit(instance, model, Z, weights, F, outcome)
    elif model.rho == 1 and model.linear_terms_ and isinstance(instance.fit["X"], np.ndarray):
        uppers["the model"] = _value_with_terms(instance, model, problem, outcome)
    check_objective(model, problem, true, zero, noise, outcome)
    check_lower(model, uppers, noise, outcome)


def _value_with_terms(instance, model, problem, outcome):
    """Compare the scores of rules and linear terms; return the value of their function."""
    X = instance.fit["X"]
    F = np.zeros(problem.Y.shape, dtype=REAL) + model.intercept_
    size, norm = np.abs(F), REAL(0)
    for rule in model.rules_:
        weights = np.array(rule.weights, dtype=REAL)
        F += rule.holds(X)[:, None] * weights
        size += np.abs(weights)
        norm += REAL(1 + model.base) ** rule.length * np.linalg.norm(weights)
    for term in model.linear_terms_:
        x, weights = X[:, term.position].astype(REAL), np.array(term.weights, dtype=REAL)
        known = ~np.isnan(x)
        above = np.where(known, np.clip(x, term.low, term.high) - REAL(term.mean), 0)
        F += above[:, None] * weights
        size += (np.abs(above) + max(abs(term.low), abs(term.high)))[:, None] * np.abs(weights)
        share = np.where(known, problem.weight, 0) / problem.weight[known].sum()
        spread = np.sqrt(share @ above**2 - (share @ above) ** 2)  # 0.8 in the problem
        norm += (1 + model.base) * np.linalg.norm(weights) * spread / REAL(0.8)
    _compare("training rows", model, X, F, ROUNDING * size, outcome)
    return norm**2 / 2 + problem.total(F)


def _conic_lattice(model, problem, P):
    """Return an upper bound of the optimum over all conjunctions."""
    lattice = conjunctions(P, model.max_length)
    columns, lengths = lattice.support.T.astype(float), lattice.lengths.astype(float)
    if model.rho == 1:  # without the empty conjunction, which the intercept stands for
        some = lengths > 0
        costs = (1.0 + model.base) ** lengths[some]
        return _conic_linear(problem, columns[some].T, costs)
    if problem.loss not in LOSSES:
        return np.inf
    found = _optimum(
        lambda: solve_dag(
            [column[:, None] for column in columns],
            problem.Y,
            problem.cost,
            closure(lattice.parents),
            model.base**lengths,
            model.rho,
            loss=problem.loss,
            epsilon=problem.epsilon,
        )
    )
    return found * (1 + CONIC)


def _conic_linear(problem, Z, costs=None):
    """Return the objective of the linear function that a conic solver finds.

    The penalty is half the squared sum of weighted norms, or half the sum of squares.
    """
    Z = Z.astype(float)
    W, b = cp.Variable((Z.shape[1], problem.Y.shape[1])), cp.Variable((1, problem.Y.shape[1]))
    F = Z @ W + np.ones((len(Z), 1)) @ b
    Y, size = problem.Y, float(problem.total(np.zeros(problem.Y.shape, dtype=REAL))) or 1.0
    losses = {
        "hinge": lambda: cp.pos(1 - cp.multiply(Y, F)),
        "logistic": lambda: cp.logistic(-cp.multiply(Y, F)),
        "square": lambda: cp.square(Y - F) / 2,
        "epsilon_insensitive": lambda: cp.pos(cp.abs(Y - F) - problem.epsilon),
        "huber": lambda: cp.huber(Y - F, problem.epsilon) / 2,
    }
    size_of = cp.sum_squares(W) if costs is None else cp.square(costs @ cp.norm(W, 2, axis=1))
    aim = (size_of / 2 + cp.sum(cp.multiply(problem.cost, losses[problem.loss]()))) / size
    try:
        cp.Problem(cp.Minimize(aim)).solve(solver="CLARABEL")
        found = np.asarray(W.value, dtype=REAL)
        values = Z @ found
    except Exception:  # the solver may give up in any way; the other upper bounds remain
        return np.inf
    norms = np.sqrt((found**2).sum(axis=1))
    penalty = np.sum(norms**2) / 2 if costs is None else np.sum(costs * norms) ** 2 / 2
    return penalty + problem.total(values + problem.best_intercept(values))


def _check_refit(instance, model, Z, weights, F, outcome):
    """Check the gap of the second fit, to the rules that are kept."""
    if not model.rules_ or not np.isfinite(model.refit_gap_):
        if model.rules_ or model.refit_gap_ != 0:
            outcome.report("not finite", f"refit_gap_ is {model.refit_gap_}")
        return
    problem = Problem.of(instance, model, 0.1)
    if problem.loss == "softmax":
        problem = replace(problem, loss="logistic")
    value = np.sum(weights**2) / 2 + problem.total(F)
    found = _conic_linear(problem, Z)
    allowed = (model.refit_gap_ + 1e-9) * abs(value)
    if np.isfinite(found) and value > found + allowed:
        outcome.report(
            "false certificate",
            f"the refitted rules have {value:.12g}, a conic solver's {found:.12g} "
            f"(refit_gap_ {model.refit_gap_:.1e})",
        )


def _subsets(columns):
    return [frozenset(s) for k in range(len(columns) + 1) for s in combinations(columns, k)]


# Pairs and balls


def check_pairs(instance, model, outcome):
    """Check the objective of weights learned from pairs whose labels are taken as true."""
    if model.method != "lkcnpc" or model.correction != "naive" or model.kernels is None:
        return
    table, pairs = Table(instance.fit["X"]), instance.fit["pairs"]
    labels = instance.fit["labels"].astype(REAL)
    values = np.stack([_paired(kernel, table, pairs) for kernel in model.kernels_], axis=1)
    w, b = model.weights_.astype(REAL), REAL(model.intercept_)
    u = values @ w + b
    lam = REAL(0.01) / len(pairs) if model.lam is None else REAL(model.lam)
    half = np.abs(u) / 2
    terms = [
        np.mean(half + np.log1p(np.exp(-2 * half))),
        np.mean(labels * u) / 2,
        lam * np.sum(w**2) / 2,
    ]
    true = terms[0] - terms[1] + terms[2]
    noise = KERNEL * np.mean(np.abs(values) @ w) + ROUNDING * (abs(b) + sum(map(abs, terms)))
    if abs(true - model.objective_) > noise:
        outcome.report(
            "false certificate",
            f"objective_ is {model.objective_:.12g}, but the "
            f"weights have {true:.12g} (rounding {noise:.1e})",
        )
    if true > np.log(REAL(2)) + noise:
        outcome.report("bad model", f"objective_ is {true:.6g}, zero weights have 0.693147")


def _paired(kernel, table, pairs):
    left, right = (table.take(side) for side in pairs.T)
    step = 16
    blocks = [
        np.diagonal(block(kernel, left.take(slice(k, k + step)), right.take(slice(k, k + step))))
        for k in range(0, len(pairs), step)
    ]
    return np.concatenate(blocks)


def check_ball(instance, model, outcome):
    """Check the bounds of a squared radius: the centre gives both."""
    K, beta = model.gram.astype(REAL), model.centre_.astype(REAL)
    if beta.min() < 0 or abs(beta.sum() - 1) > ROUNDING * len(beta):
        outcome.report("false certificate", "the centre is not in the simplex")
    product_, quadratic = K @ beta, beta @ K @ beta
    lower = np.diagonal(K) @ beta - quadratic
    upper = (np.diagonal(K) - 2 * product_ + quadratic).max()
    noise = ROUNDING * np.abs(K).max()
    if not lower - noise <= model.squared_radius_ <= upper + noise:
        outcome.report(
            "false certificate",
            f"squared_radius_ is {model.squared_radius_:.12g}, "
            f"and lies between {lower:.12g} and {upper:.12g}",
        )


CHECKS = {
    "MKLClassifier": [check_flat],
    "MKLRegressor": [check_flat],
    "RadiusMKLClassifier": [check_radius],
    "RadiusKernelClassifier": [check_radius],
    "NoisyLabelMKLClassifier": [check_noisy],
    "NoiseTolerantKernelClassifier": [check_tolerant],
    "MetricKernelClassifier": [check_metric],
    "MetricKernelRegressor": [check_metric],
    "SumProductMKLClassifier": [check_structure],
    "HierarchicalMKLClassifier": [check_hierarchy],
    "HierarchicalMKLRegressor": [check_hierarchy],
    "RuleEnsembleClassifier": [check_rules],
    "RuleEnsembleRegressor": [check_rules],
    "RuleEnsembleClassifierCV": [check_rules],
    "RuleEnsembleRegressorCV": [check_rules],
    "PairwiseKernelLearner": [check_pairs],
    "KernelSpectralClustering": [],
    "Ball": [check_ball],
    "OnDemandClassifier": [check_flat],
    "OnDemandRegressor": [check_flat],
    "OnDemandRadius": [check_radius],
    "OnDemandNoisy": [check_noisy],
    "OnDemandStructure": [check_structure],
    "NystroemClassifier": [check_flat],
    "NystroemRegressor": [check_flat],
    "MKLClassifierCV": [check_flat],
    "MKLRegressorCV": [check_flat],
    "AnnotatorKernelClassifier": [check_tolerant, check_annotators],
    "CombinedClassifier": [check_combined],
    "CombinedRegressor": [check_combined],
}
