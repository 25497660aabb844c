"""Reference solutions of small multiple kernel learning problems, by conic programming.

Nothing here is shared with the library. Every solution comes with two bounds, evaluated in NumPy,
so that it does not rest on the word of the solver: ``upper`` is the objective at a point and
``lower`` the dual objective at a feasible dual point. Rounding of the Gram matrices themselves,
which the bounds do not cover, moves the optimum by about ``1e-16 * trace * |dual_coef|^2``.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

TARGET = 1e-11  # relative gap at which no further formulation is tried
ACCEPT = 1e-8  # relative gap above which an instance counts as unsolved


class OracleError(RuntimeError):
    """No formulation brought the two bounds together."""


@dataclass(frozen=True)
class OracleSolution:
    """A minimiser of the problem and the interval that holds its optimal value.

    ``decision`` has the objective ``upper``. ``sum_j weights[j] * grams[j] @ dual_coef +
    intercept`` agrees with it to a few digits less: ``dual_coef`` is the point of the lower bound,
    feasible in the dual, and as ill-determined as the Gram matrices are ill-conditioned.
    """

    lower: float
    upper: float
    weights: np.ndarray  # (n_kernels,)
    intercept: np.ndarray  # (n_outputs,), the middle where an interval of values is optimal
    decision: np.ndarray  # (n_samples, n_outputs)
    dual_coef: np.ndarray  # (n_samples, n_outputs)

    @property
    def objective(self) -> float:
        return 0.5 * (self.lower + self.upper)

    @property
    def gap(self) -> float:
        """Width of the interval relative to the upper bound."""
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)


@dataclass(frozen=True)
class Problem:
    """A small learning problem; multiply ``cost`` by the C wanted."""

    grams: np.ndarray  # (n_kernels, n_samples, n_samples)
    Y: np.ndarray  # (n_samples, n_outputs): -1 / +1 or real targets
    cost: np.ndarray  # (n_samples, n_outputs)
    X: np.ndarray
    y: np.ndarray


def solve_mkl(grams, Y, cost, *, p, loss, epsilon=0.1, fit_intercept=True) -> OracleSolution:
    """Minimise ``1/2 sum_j |w_j|^2 / theta_j + sum_io cost_io loss(Y_io, f_o(x_i))``.

    Over ``w``, the intercepts and the weights ``theta >= 0``, ``|theta|_p <= 1``, which all
    outputs share.

    Parameters
    ----------
    grams : array (n_kernels, n_samples, n_samples)
    Y, cost : array (n_samples, n_outputs); a cost of zero removes the entry
    p : float, at least 1; ``np.inf`` is the plain sum of the kernels
    loss : "hinge", "epsilon_insensitive", "square" or "huber"
    epsilon : half-width of the insensitive tube, or the threshold of Huber's loss
    """
    grams, Y, cost = (np.asarray(a, dtype=float) for a in (grams, Y, cost))
    if p == np.inf:
        total = grams.sum(axis=0)
        alone = solve_fixed(total, Y, cost, loss=loss, epsilon=epsilon, fit_intercept=fit_intercept)
        return replace(alone, weights=np.ones(len(grams)))
    return _Search(_Instance(grams, Y, cost, float(p), LOSSES[loss](epsilon), fit_intercept)).run()


def solve_fixed(gram, Y, cost, *, loss, epsilon=0.1, fit_intercept=True) -> OracleSolution:
    """Minimise ``1/2 |w|^2 + sum_io cost_io loss(Y_io, f_o(x_i))`` for one kernel."""
    # One kernel in a unit ball has weight one, whatever the ball.
    grams = np.asarray(gram)[None]
    return solve_mkl(grams, Y, cost, p=1, loss=loss, epsilon=epsilon, fit_intercept=fit_intercept)


def random_problem(
    seed, *, kind="binary", n=30, m=4, badly_scaled=False, weighted=False
) -> Problem:
    """Draw a problem with noisy targets and kernels of several kinds, some of low rank.

    Mean diagonals are one, or spread over seven orders of magnitude if ``badly_scaled``. Costs
    are one or, if ``weighted``, vary over rows with some rows absent.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    if kind == "regression":
        y = signal
        Y = y[:, None]
    else:
        n_classes = {"binary": 2, "multiclass": 3}[kind]
        y = np.argsort(np.argsort(signal)) * n_classes // n
        wrong = rng.random(n) < 0.1
        y[wrong] = rng.integers(n_classes, size=wrong.sum())
        Y = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
        if kind == "binary":
            Y = Y[:, 1:]
    grams = np.stack([_KERNELS[j % len(_KERNELS)](X, 1.0 + j // len(_KERNELS)) for j in range(m)])
    grams /= np.trace(grams, axis1=1, axis2=2)[:, None, None] / n
    if badly_scaled:
        grams *= rng.permutation(np.logspace(-3.5, 3.5, m))[:, None, None]
    cost = np.ones_like(Y)
    if weighted:
        cost *= rng.choice([0.0, 0.5, 1.0, 2.0], size=Y.shape, p=[0.1, 0.3, 0.3, 0.3])
    return Problem(grams, Y, cost, X, y)


_KERNELS = (
    lambda X, k: rbf_kernel(X, gamma=0.1 * k),
    lambda X, k: linear_kernel(X[:, :2] * k),
    lambda X, k: polynomial_kernel(X[:, 1:], degree=2, gamma=1.0, coef0=k),
    lambda X, k: rbf_kernel(X[:, :1], gamma=0.5 * k),
    lambda X, k: polynomial_kernel(X[:, :1], degree=3, gamma=1.0, coef0=k),
)


class _Loss(ABC):
    """A loss of target and prediction, and what its conjugate needs.

    Minus the conjugate of ``cost * loss`` at the signed dual variable ``beta`` is
    ``y * beta - tube * |beta| - curvature * beta^2 / (2 * cost)`` inside the box.
    """

    tube = 0.0
    curvature = 0.0

    def __init__(self, epsilon):
        self.epsilon = epsilon

    @abstractmethod
    def value(self, Y, F):
        """Loss of every entry."""

    @abstractmethod
    def expression(self, Y, F, cost):
        """Total cost as a cvxpy expression."""

    @abstractmethod
    def box(self, Y, cost):
        """Lower and upper limits of the dual variables."""

    @abstractmethod
    def best_intercept(self, residual, y, cost):
        """Minimise over b the total cost of predictions whose residual is ``residual - b``."""


class _Hinge(_Loss):
    def value(self, Y, F):
        return np.maximum(0.0, 1.0 - Y * F)

    def expression(self, Y, F, cost):
        return cp.sum(cp.multiply(cost, cp.pos(1 - cp.multiply(Y, F))))

    def box(self, Y, cost):
        return np.minimum(0.0, Y * cost), np.maximum(0.0, Y * cost)

    def best_intercept(self, residual, y, cost):
        return _flat_middle(residual, cost, -cost[y > 0].sum())


class _EpsilonInsensitive(_Loss):
    def __init__(self, epsilon):
        super().__init__(epsilon)
        self.tube = epsilon

    def value(self, Y, F):
        return np.maximum(0.0, np.abs(Y - F) - self.epsilon)

    def expression(self, Y, F, cost):
        return cp.sum(cp.multiply(cost, cp.pos(cp.abs(Y - F) - self.epsilon)))

    def box(self, Y, cost):
        return -cost, cost

    def best_intercept(self, residual, y, cost):
        kinks = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        return _flat_middle(kinks, np.concatenate([cost, cost]), -cost.sum())


class _Square(_Loss):
    curvature = 1.0

    def value(self, Y, F):
        return 0.5 * (Y - F) ** 2

    def expression(self, Y, F, cost):
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(cost), Y - F))

    def box(self, Y, cost):
        free = np.where(cost > 0, np.inf, 0.0)
        return -free, free

    def best_intercept(self, residual, y, cost):
        return np.average(residual, weights=cost)


class _Huber(_Loss):
    curvature = 1.0

    def value(self, Y, F):
        size = np.abs(Y - F)
        return np.where(
            size <= self.epsilon, 0.5 * size**2, self.epsilon * size - 0.5 * self.epsilon**2
        )

    def expression(self, Y, F, cost):
        return 0.5 * cp.sum(cp.multiply(cost, cp.huber(Y - F, self.epsilon)))

    def box(self, Y, cost):
        return -cost * self.epsilon, cost * self.epsilon

    def best_intercept(self, residual, y, cost):
        # The slope in b is continuous, rises and is linear between kinks.
        kinks = np.unique(np.concatenate([residual - self.epsilon, residual + self.epsilon]))
        slopes = np.clip(kinks[:, None] - residual, -self.epsilon, self.epsilon) @ cost
        rounding = 1e-12 * self.epsilon * cost.sum()
        ends = [np.searchsorted(slopes, -rounding), np.searchsorted(slopes, rounding, "right")]
        return np.mean([np.interp(0.0, slopes[k - 1 : k + 1], kinks[k - 1 : k + 1]) for k in ends])


LOSSES = {
    "hinge": _Hinge,
    "epsilon_insensitive": _EpsilonInsensitive,
    "square": _Square,
    "huber": _Huber,
}


def _flat_middle(kinks, jumps, slope):
    """Minimise a convex piecewise linear function: ``slope`` on the left, ``jumps`` at ``kinks``.

    A half-infinite set of minimisers gives its end.
    """
    order = np.argsort(kinks)
    kinks = kinks[order]
    slopes = slope + np.cumsum(jumps[order])  # to the right of each kink
    rounding = 1e-12 * jumps.sum()
    left = np.searchsorted(slopes, -rounding)
    right = np.searchsorted(slopes, rounding, "right")
    if slope >= -rounding:
        return kinks[right]
    if right == len(kinks):
        return kinks[left]
    return 0.5 * (kinks[left] + kinks[right])


class _Instance:
    """One problem with its two objectives, both evaluated without the solver."""

    def __init__(self, grams, Y, cost, p, loss, fit_intercept):
        if not p >= 1:
            raise ValueError(f"p must be at least 1, got {p}.")
        if not (grams.ndim == 3 and Y.ndim == 2 and Y.shape == cost.shape):
            raise ValueError("grams must be (m, n, n), Y and cost (n, n_outputs).")
        self.grams, self.Y, self.cost, self.p = grams, Y, cost, p
        self.loss, self.fit_intercept = loss, fit_intercept
        self.exponent = 2 * p / (p + 1)  # of the group norm of w
        self.conjugate = np.inf if p == 1 else p / (p - 1)
        self.factors = [_factor(gram) for gram in grams]
        self.low, self.high = loss.box(Y, cost)
        self.bounded = (self.low < self.high) & np.isfinite(self.high)
        self.inverse_cost = np.divide(loss.curvature, cost, where=cost > 0, out=np.zeros_like(cost))

    def intercept(self, F):
        """Best intercepts for predictions without one."""
        if not self.fit_intercept:
            return np.zeros(F.shape[1])
        best = np.zeros(F.shape[1])
        for o, (y, f, cost) in enumerate(zip(self.Y.T, F.T, self.cost.T, strict=True)):
            keep = cost > 0
            if keep.any():
                best[o] = self.loss.best_intercept((y - f)[keep], y[keep], cost[keep])
        return best

    def primal(self, norms, F):
        """Objective of w with these group norms and predictions, the intercept at its best."""
        total = np.sum(self.cost * self.loss.value(self.Y, F + self.intercept(F)))
        return 0.5 * _norm(norms, self.exponent) ** 2 + total

    def dual(self, B):
        """Best dual objective between zero and feasible ``B``."""
        linear = np.sum(self.Y * B) - self.loss.tube * np.abs(B).sum()
        quadratic = _norm(self.quadratic_forms(B), self.conjugate) + np.sum(
            self.inverse_cost * B**2
        )
        step = np.clip(linear / quadratic, 0.0, 1.0) if quadratic > 0 else 1.0
        return step * linear - 0.5 * step**2 * quadratic

    def quadratic_forms(self, B):
        """``q_j = tr B' K_j B``."""
        return np.array([np.sum((L.T @ B) ** 2) for L in self.factors])

    def feasible(self, B):
        """Move ``B`` into the box and, with an intercept, to columns that sum to zero."""
        B = np.clip(B, self.low, self.high)
        if not self.fit_intercept:
            return B
        for beta, low, high in zip(B.T, self.low.T, self.high.T, strict=True):
            for _ in range(20):
                excess = beta.sum()
                room = beta - low if excess > 0 else high - beta
                if np.isinf(room).any():
                    room = np.isinf(room).astype(float) * abs(excess)
                if excess == 0 or room.sum() == 0:
                    break
                share = min(1.0, abs(excess) / room.sum())
                beta -= np.sign(excess) * share * room
                np.clip(beta, low, high, out=beta)
        return B

    def weights(self, norms):
        """Optimal weights given the group norms of w."""
        if not norms.any():
            return np.full(len(norms), len(norms) ** (-1 / self.p))
        raw = (norms / norms.max()) ** (2 / (self.p + 1))
        return raw / _norm(raw, self.p)

    def combine(self, weights, B):
        """Predictions without intercept."""
        return sum(t * (L @ (L.T @ B)) for t, L in zip(weights, self.factors, strict=True))


def _factor(gram):
    """Return L with ``L L' = gram``."""
    values, vectors = np.linalg.eigh(gram)
    # Smooth kernels have most of a large dual variable where their eigenvalues are tiny: to drop
    # those under 1e-13 of the largest can change the seventh digit of the objective.
    keep = values > 0
    L = vectors[:, keep] * np.sqrt(values[keep])
    if np.abs(L @ L.T - gram).max() > 1e-10 * np.abs(gram).max():
        raise ValueError("A Gram matrix is not symmetric positive semidefinite.")
    return L


def _norm(x, p):
    """The lp norm of a non-negative vector, safe for large p."""
    largest = x.max(initial=0.0)
    if largest == 0 or p == np.inf:
        return largest
    return largest * np.sum((x / largest) ** p) ** (1 / p)


class _Search:
    """Offers the answers of several formulations to the two objectives and keeps the best."""

    def __init__(self, instance):
        self.instance = instance
        self.norms = np.zeros(len(instance.grams))
        self.F = np.zeros_like(instance.Y)
        self.B = np.zeros_like(instance.Y)
        self.upper = instance.primal(self.norms, self.F)
        self.lower = 0.0
        self.log = []

    @property
    def gap(self):
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)

    def run(self) -> OracleSolution:
        for exact in (True, False):
            for form in (_GroupForm, _DualForm, _WeightForm):
                if self.gap > TARGET:
                    status = self.attempt(form, exact)
                    self.log.append(f"{form.__name__} {status}, gap {self.gap:.1e}")
        # Bounds may cross by rounding; by more, one of the two objectives is wrong.
        if not abs(self.gap) <= ACCEPT:
            raise OracleError(
                f"Lower bound {self.lower:.15g}, upper bound {self.upper:.15g}: "
                f"{'; '.join(self.log)}."
            )
        weights = self.instance.weights(self.norms)
        intercept = self.instance.intercept(self.F)
        lower, upper = sorted((float(self.lower), float(self.upper)))
        return OracleSolution(lower, upper, weights, intercept, self.F + intercept, self.B)

    def attempt(self, form, exact):
        """Solve one formulation and take what it gives; return the solver's status."""
        # For w / sqrt(size) the problem is the same, with an optimum of at most one.
        size = self.upper
        factors = [np.sqrt(size) * L for L in self.instance.factors]
        stated = form(self.instance, factors, self.instance.cost / size, exact)
        status = _solve(stated.problem)
        if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            W, B = stated.answer()
            self.offer([np.sqrt(size) * w for w in W], size * B)
        return status

    def offer(self, W, B):
        """Evaluate both bounds at ``W``, ``B`` and at the w which ``B`` and the weights give."""
        instance = self.instance
        B = instance.feasible(B)
        norms = np.array([np.linalg.norm(w) for w in W])
        F = sum(L @ w for L, w in zip(instance.factors, W, strict=True))
        weights = instance.weights(norms)
        candidates = [
            (norms, F),
            (weights * np.sqrt(instance.quadratic_forms(B)), instance.combine(weights, B)),
        ]
        for norms, F in candidates:
            upper = instance.primal(norms, F)
            if upper < self.upper:
                self.upper, self.norms, self.F = upper, norms, F
        lower = instance.dual(B)
        if lower > self.lower:
            self.lower, self.B = lower, B


def _solve(problem):
    with warnings.catch_warnings():
        # The tolerances are beyond what double precision always reaches, so the solver may stop
        # short of them, and p-norms may be approximated in the last digits when towers of
        # second-order cones stand for them. The two bounds tell how good the answer is.
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        warnings.filterwarnings("ignore", "pnorm with p=.* is being approximated", UserWarning)
        try:
            problem.solve(
                solver=cp.CLARABEL,
                accept_unknown=True,
                tol_gap_abs=1e-13,
                tol_gap_rel=1e-13,
                tol_feas=1e-13,
                max_threads=1,
            )
        except cp.SolverError:
            return cp.SOLVER_ERROR
    return problem.status


def _pnorm(x, p, exact):
    """The p-norm, by power cones or by towers of second-order cones."""
    if p == 1:
        return cp.norm1(x)
    return cp.pnorm(x, p, approx=not exact)


class _PrimalForm(ABC):
    """Minimise a penalty of w and the loss; the multiplier of ``F = sum_j L_j w_j + b`` is B."""

    def __init__(self, instance, factors, cost, exact):
        n_outputs = instance.Y.shape[1]
        self.W = [cp.Variable((L.shape[1], n_outputs)) if L.size else None for L in factors]
        F = cp.Variable(instance.Y.shape)
        fit = np.zeros_like(instance.Y)
        if instance.fit_intercept:
            fit = fit + np.ones((len(fit), 1)) @ cp.Variable((1, n_outputs))
        for L, w in zip(factors, self.W, strict=True):
            if w is not None:
                fit = fit + L @ w
        self.link = F == fit
        used = [w for w in self.W if w is not None]
        penalty, constraints = self.penalty(used, instance, exact) if used else (0.0, [])
        self.problem = cp.Problem(
            cp.Minimize(penalty + instance.loss.expression(instance.Y, F, cost)),
            [self.link, *constraints],
        )

    @abstractmethod
    def penalty(self, W, instance, exact):
        """Penalty of w and the constraints it comes with."""

    def answer(self):
        B = self.link.dual_value
        return [np.zeros((0, B.shape[1])) if w is None else w.value for w in self.W], B


class _GroupForm(_PrimalForm):
    """``1/2 (sum_j |w_j|^r)^(2/r)``."""

    def penalty(self, W, instance, exact):
        norm = cp.Variable()
        norms = cp.hstack([cp.norm(w, "fro") for w in W])
        return 0.5 * cp.square(norm), [_pnorm(norms, instance.exponent, exact) <= norm]


class _WeightForm(_PrimalForm):
    """``1/2 sum_j |w_j|^2 / theta_j``, the weights as variables."""

    def penalty(self, W, instance, exact):
        theta, ratio = cp.Variable(len(W)), cp.Variable(len(W))
        # |w|^2 <= theta * ratio; quad_over_lin would divide by the zeros of theta afterwards.
        cones = [
            cp.SOC(t + s, cp.hstack([2 * cp.vec(w, order="C"), t - s]))
            for w, t, s in zip(W, theta, ratio, strict=True)
        ]
        return 0.5 * cp.sum(ratio), [*cones, _pnorm(theta, instance.p, exact) <= 1]


class _DualForm:
    """Maximise ``lin(B) - 1/2 |q(B)|_{p*}``; the multipliers of the cones are w."""

    def __init__(self, instance, factors, cost, exact):
        self.B = B = cp.Variable(instance.Y.shape)
        norm = cp.Variable()
        norms = [norm] * len(factors) if instance.p == 1 else cp.Variable(len(factors))
        self.cones = [
            cp.SOC(t, cp.vec(L.T @ B, order="C")) if L.size else None
            for L, t in zip(factors, norms, strict=True)
        ]
        constraints = [cone for cone in self.cones if cone is not None]
        if instance.p > 1:
            constraints.append(_pnorm(norms, 2 * instance.conjugate, exact) <= norm)
        if instance.fit_intercept:
            constraints.append(cp.sum(B, axis=0) == 0)
        low, high = instance.loss.box(instance.Y, cost)
        if instance.bounded.any():
            inside = B[instance.bounded]
            constraints += [inside >= low[instance.bounded], inside <= high[instance.bounded]]
        present = cost > 0
        if not present.all():
            constraints.append(B[~present] == 0)
        gain = cp.sum(cp.multiply(instance.Y, B)) - instance.loss.tube * cp.sum(cp.abs(B))
        if instance.loss.curvature and present.any():
            gain -= 0.5 * cp.sum_squares(cp.multiply(B[present], cost[present] ** -0.5))
        self.problem = cp.Problem(cp.Minimize(0.5 * cp.square(norm) - gain), constraints)

    def answer(self):
        n_outputs = self.B.shape[1]
        W = [
            np.zeros((0, n_outputs)) if cone is None else -cone.dual_value[1].reshape(-1, n_outputs)
            for cone in self.cones
        ]
        return W, self.B.value
