"""Compare what a fitted model claims with what can be worked out without it.

Tolerances. The claims are float64, the referee's values long double (64 bits of mantissa), so what
is left between them is the rounding of the library. With ``r_i = sqrt(k(x_i, x_i))`` of the learned
kernel and ``A = sum_k r_k |coef_k|``, a value ``f(x_i)`` may be wrong by ``ROUNDING (r_i A + |b|)``,
and an objective by ``ROUNDING`` times

    sum_i cost_i slope_i (r_i A + |b| + |y_i|) + A^2,

the first-order change of losses and norm when each term of their sums is wrong by its own size
times ``ROUNDING``. Kernel values may be wrong by ``KERNEL sqrt(k(x, x) k(z, z))``. An upper bound
of the optimum is always the objective of an explicit function, in long double: that a conic solver
is inaccurate makes it larger, and never makes a true claim look false.
"""

import re
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import InvalidParameterError

from kernelweave.errors import KernelweaveError
from oracles import LOSSES, solve_fixed, solve_mkl

from .instances import Instance
from .reference import REAL, Table, block, diagonal, products

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 32 * EPS
KERNEL = 1e-12
SCALE = 1e-5  # times tol: how exactly kernels are normalised, as factors are held to that
FLOOR = 1e-28  # objective relative to the loss of zero, below which a fit has converged
MOST_CONIC_ROWS = 60
MOST_CONIC_KERNELS = 10

# Sentences of scikit-learn that a user may see in place of the library's own.
SKLEARN = (
    r"Found array with \d+ (sample|feature)",
    r"Input (X|y) contains (NaN|infinity)",
    r"Found input variables with inconsistent numbers of samples",
    r"Unknown label type",
    r"The number of classes has to be greater than one",
    r"n_splits=\d+ cannot be greater than",
    r"Cannot have number of splits",
)
# Every kernel that is drawn is positive semi-definite, so that these refusals are wrong.
WRONG_REFUSALS = ("not positive semi-definite", "not a valid kernel", "not symmetric")
# What may be other than finite: see the documentation of these attributes.
NOT_FINITE = {
    "landmark_gap_": "nan",
    "duality_gap_": "inf nan",
    "lower_bound_": "-inf",
    "label_quality_": "nan",
}


@dataclass
class Outcome:
    """What became of one fit."""

    estimator: str = ""
    status: str = "fitted"  # "refused", "foreign", "slow" or "stuck"
    converged: bool = True
    conic: bool = False  # whether a conic solver found an upper bound
    findings: list[tuple[str, str]] = field(default_factory=list)

    def report(self, kind, text):
        self.findings.append((kind, text))


def judge(instance: Instance, stage=lambda name: None) -> Outcome:
    """Fit, and check everything that can be checked; ``stage`` hears what is being done."""
    outcome = Outcome(instance.name)
    before = {name: _bits(value) for name, value in instance.fit.items()}
    stage("fit")
    model, caught = _fit(instance, outcome)
    stage("referee")
    for name, value in instance.fit.items():
        if _bits(value) != before[name]:
            outcome.report("changed input", f"{name} is not what it was before the fit")
    if model is None:
        return outcome
    outcome.converged = bool(getattr(model, "converged_", True))
    warned = any(issubclass(item.category, ConvergenceWarning) for item in caught)
    if not outcome.converged and not warned:
        outcome.report("silent", "converged_ is False, and no ConvergenceWarning said so")
    if instance.repeat:
        stage("fit")
        again, _ = _fit(instance, Outcome())
        stage("referee")
        _check_same(model, again, outcome)
    try:
        with np.errstate(all="ignore"):
            for check in (check_finite, *CHECKS[instance.name]):
                check(instance, model, outcome)
    except AskingError as error:
        outcome.report("foreign exception", str(error))
    return outcome


class AskingError(Exception):
    """A method of a fitted model raised what it should not."""


def ask(method, *arguments):
    """Call a method of a fitted model, on rows that it has to accept."""
    try:
        return method(*arguments)
    except Exception as error:
        name = method.__name__
        raise AskingError(f"{name}(): {type(error).__name__}: {error}") from error


def _fit(instance, outcome):
    model = clone(instance.model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(**instance.fit)
        except (KernelweaveError, InvalidParameterError) as error:
            outcome.status = "refused"
            if any(words in str(error) for words in WRONG_REFUSALS):
                outcome.report("wrong refusal", str(error))
            return None, caught
        except Exception as error:
            known = isinstance(error, ValueError)
            if known and any(re.search(words, str(error)) for words in SKLEARN):
                outcome.status = "refused"
            else:
                outcome.status = "foreign"
                outcome.report("foreign exception", f"{type(error).__name__}: {error}")
            return None, caught
    for item in caught:
        if issubclass(item.category, RuntimeWarning):
            where = f"{item.filename.rsplit('/', 2)[-1]}:{item.lineno}"
            outcome.report("foreign warning", f"{item.message} ({where})")
            break
    return model, caught


def _bits(value):
    """Return everything there is of an argument, for comparison."""
    if sparse.issparse(value):
        return [part.tobytes() for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.strides, value.tobytes()
    if isinstance(value, pd.DataFrame):
        return [_bits(value[name].to_numpy()) for name in value]
    if hasattr(value, "to_dict"):
        return value.to_dict(as_series=False).__repr__()
    return repr(value)


def _public(model):
    learned = {k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"}
    arrays = {k: np.asarray(v) for k, v in learned.items() if isinstance(v, np.ndarray | float)}
    return {k: v for k, v in arrays.items() if v.dtype.kind in "fiub"}


def check_finite(instance, model, outcome):
    for name, value in _public(model).items():
        wrong = value[~np.isfinite(value)].astype(float)
        allowed = [float(item) for item in NOT_FINITE.get(name, "").split()]
        wrong = [w for w in wrong if not any(w == a or (w != w and a != a) for a in allowed)]
        if wrong:
            outcome.report("not finite", f"{name} has {len(wrong)} values such as {wrong[0]}")
    if not np.isfinite(values_at(model, instance.fit["X"])).all():
        outcome.report("not finite", "the values at the training rows")
    gap = getattr(model, "duality_gap_", 0.0)
    if gap < 0:
        outcome.report("false certificate", f"the duality gap is {gap:.3g}")


def _check_same(model, again, outcome):
    if again is None:
        outcome.report("not reproducible", "the same fit was refused")
        return
    first, second = _public(model), _public(again)
    for name, value in first.items():
        if name not in second or value.tobytes() != second[name].tobytes():
            outcome.report("not reproducible", f"{name} differs")
            return


def values_at(model, X):
    """Return the decision values or predictions of a model, one column per output."""
    for name in ("decision_function", "predict"):
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
        cost = np.repeat(C * row_cost[:, None], Y.shape[1], axis=1)
        loss = getattr(model, "loss", "hinge")
        epsilon = getattr(model, "epsilon", 0.0)
        return cls(Table(instance.fit["X"]), Y, cost, weight, loss, epsilon, model.fit_intercept)

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
        return np.where(size <= e, size**2 / 2, e * size - e**2 / 2), np.minimum(size, e)

    def best_intercept(self, F):
        """Return the best intercepts for these values; any number is a valid choice."""
        best = np.zeros(self.Y.shape[1])
        if not self.fit_intercept:
            return best
        loss = LOSSES[self.loss](self.epsilon)
        for o in range(len(best)):
            keep = self.cost[:, o] > 0
            y, f = self.Y[keep, o], F[keep, o].astype(float)
            best[o] = loss.best_intercept(y - f, y, self.cost[keep, o])
        return best

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
    """A function ``sum_j theta_j K_j coef + b`` in long double."""

    F: np.ndarray  # (n_rows, n_outputs), with the intercept
    norms: np.ndarray  # (n_kernels,), |w_j|: theta_j sqrt(coef' K_j coef), of normalised kernels
    root: np.ndarray  # r_i of the training rows
    reach: float  # A
    intercept: np.ndarray

    def rounding_of_values(self, root=None):
        """Return how far float64 values of the function may be off."""
        root = self.root if root is None else root
        return ROUNDING * (root[:, None] * self.reach + np.abs(self.intercept))

    def rounding(self, problem):
        """Return how far a float64 objective may be off; see the top of this module."""
        slope = problem.losses(self.F)[1]
        parts = self.rounding_of_values() + ROUNDING * np.abs(problem.Y)
        return np.sum(problem.cost * slope * parts) + ROUNDING * self.reach**2


def evaluate(table, kernels, weights, scales, support, coef, intercept) -> Value:
    """Return ``sum_j weights_j scales_j k_j(., support) coef + intercept`` on the rows."""
    B, V = table.take(support), coef.astype(REAL)
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
    return Value(F + intercept, norms, root, reach, np.asarray(intercept))


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
    coef = model.dual_coef_.T
    kernels, support = model.kernels_, model.support_
    value = evaluate(
        problem.table, kernels, model.weights_, model.scales_, support, coef, model.intercept_
    )
    _check_weights(model, outcome)
    check_scales(instance, model, problem, outcome)
    check_kernel(instance, model, factors, outcome)
    if getattr(model, "_function", None) is not None:
        return  # many rows: the function is not that of the dual coefficients
    check_values(instance, model, factors, value, outcome)
    true = penalty(value.norms, model.norm) + problem.total(value.F)
    zero = problem.zero_value()
    noise = value.rounding(problem)
    check_objective(model, problem, true, zero, noise, outcome)
    uppers = {"the model": true, "the zero function": zero}
    if instance.oracle and instance.n_rows <= MOST_CONIC_ROWS:
        found = _conic_flat(model, problem)
        if found is not None:
            outcome.conic = True
            uppers["a conic solver's function"] = found
    check_lower(model, uppers, noise, outcome)


def check_objective(model, problem, true, zero, noise, outcome):
    """Check that the objective is that of the model, and no worse than doing nothing."""
    claimed = REAL(model.objective_)
    if true > claimed + noise:
        outcome.report(
            "false certificate",
            f"objective_ is {claimed:.12g}, but the model has {true:.12g} "
            f"(rounding {noise:.1e}, gap {model.duality_gap_:.1e})",
        )
    if claimed > zero + noise + model.tol * abs(zero):
        outcome.report(
            "bad model", f"objective_ is {claimed:.6g}, the zero function has {zero:.6g}"
        )
    small = claimed <= FLOOR * (1 + 1e-9) * problem.total(np.zeros(problem.Y.shape, dtype=REAL))
    gap = getattr(model, "landmark_gap_", np.nan)
    gap = model.duality_gap_ if np.isnan(gap) else min(gap, model.duality_gap_)
    if model.converged_ and not (gap <= model.tol * abs(claimed) * (1 + 1e-9) or small):
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


def check_kernel(instance, model, factors, outcome, divisor=1.0):
    """Compare the learned kernel with its definition on some rows."""
    table, new = Table(instance.fit["X"]), Table(instance.new)
    some = np.unique(np.linspace(0, table.n_rows - 1, 25).astype(int))
    rows = _pick(instance.fit["X"], some)
    few = table.take(some)
    pairs = [
        (ask(model.kernel, rows), few, few),
        (ask(model.kernel, instance.new, rows), new, few),
    ]
    for claimed, A, B in pairs:
        used = [
            (k, REAL(f) / REAL(divisor)) for k, f in zip(model.kernels_, factors, strict=True) if f
        ]
        true = sum((f * block(k, A, B) for k, f in used), np.zeros(claimed.shape, dtype=REAL))
        roots = [
            np.sqrt(
                sum((f * diagonal(k, side) for k, f in used), np.zeros(side.n_rows, dtype=REAL))
            )
            for side in (A, B)
        ]
        error = np.abs(claimed - true)
        limit = KERNEL * np.multiply.outer(*roots)
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


def check_values(instance, model, factors, value, outcome):
    """Compare predictions with the expansion in the dual coefficients."""
    train = Table(instance.fit["X"])
    support, coef = train.take(model.support_), model.dual_coef_.T
    new = Table(instance.new)
    used = [(k, REAL(f)) for k, f in zip(model.kernels_, factors, strict=True) if f]
    F = sum(
        (f * products(k, new, support, coef) for k, f in used),
        np.zeros((new.n_rows, coef.shape[1]), dtype=REAL),
    )
    root = np.sqrt(sum((f * diagonal(k, new) for k, f in used), np.zeros(new.n_rows, dtype=REAL)))
    for what, X, true, limit in (
        ("training rows", instance.fit["X"], value.F, value.rounding_of_values()),
        ("new rows", instance.new, F + model.intercept_, value.rounding_of_values(root)),
    ):
        error = np.abs(values_at(model, X) - true)
        if not (error <= limit).all():
            worst = np.argmax((error - limit).max(axis=1))
            outcome.report(
                "wrong values",
                f"{what}: row {worst} is off by {error[worst].max():.3g}, "
                f"rounding explains {limit[worst].max():.1e}",
            )


def check_scales(instance, model, problem, outcome):
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
        size = mean = share @ diagonal(kernel, table)
        if centred:
            size = mean - share @ products(kernel, table, table, share[:, None])[:, 0]
        lost = ROUNDING * mean  # by a difference of float64 values
        if size <= 30 * lost and model.scales_[j] == 1.0:
            continue  # constant as far as float64 can tell
        error = abs(1 / REAL(model.scales_[j]) - size)
        if not error <= SCALE * model.tol * size + lost:
            outcome.report(
                "wrong scale",
                f"scales_[{j}] is {model.scales_[j]:.12g} in place of {1 / size:.12g} "
                f"({kernel}, mean diagonal {mean:.3g})",
            )


def _conic_flat(model, problem):
    """Return the objective of the function that a conic solver finds, or None if it finds none."""
    if len(model.kernels_) > MOST_CONIC_KERNELS:
        return None
    table = problem.table
    grams = np.stack(
        [
            (REAL(s) * block(k, table, table)).astype(float)
            for k, s in zip(model.kernels_, model.scales_, strict=True)
        ]
    )
    options = {
        "loss": problem.loss,
        "epsilon": problem.epsilon,
        "fit_intercept": problem.fit_intercept,
    }
    try:
        if model.norm == "uniform":
            found = solve_fixed(grams.mean(axis=0), problem.Y, problem.cost, **options)
            weights = np.full(len(grams), 1 / len(grams))
        else:
            found = solve_mkl(grams, problem.Y, problem.cost, p=float(model.norm), **options)
            weights = found.weights
    except Exception:  # the solver may give up in any way; the other upper bounds remain
        return None
    everything = np.arange(table.n_rows)
    zero = np.zeros(problem.Y.shape[1])
    weights = np.maximum(weights, 0)
    value = evaluate(table, model.kernels_, weights, model.scales_, everything, found.coef, zero)
    total = problem.total(value.F + problem.best_intercept(value.F))
    return penalty(value.norms, model.norm) + total


CHECKS = {
    "MKLClassifier": [check_flat],
    "MKLRegressor": [check_flat],
}
