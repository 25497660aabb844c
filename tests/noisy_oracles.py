"""Reference solutions of small capped multiple kernel learning problems (noisy labels).

As in ``oracles``, nothing is shared with the library, and each answer is checked in NumPy: an
``OracleError`` is raised where a feasible point and a dual bound do not meet within ``ACCEPT``.
``Y`` holds -1 / +1, one column an output; a vector of labels is one column. Equation numbers are
those of the specification of noisy labels.
"""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

from oracles import ACCEPT, TARGET, OracleError, _factor, _solve, random_problem, solve_mkl


@dataclass(frozen=True)
class NoisySolution:
    """A saddle point of the capped problem and the interval that holds its value.

    ``f`` has the objective ``upper`` and ``alpha`` the dual objective ``lower``. On other rows the
    classifier of output o is ``sum_j weights[j] * k_j(x, X) @ (alpha * Y)[:, o] / (n * lam)``,
    which agrees with ``f`` to a few digits less.
    """

    lower: float
    upper: float
    alpha: np.ndarray  # (n_samples, n_outputs)
    weights: np.ndarray  # (n_kernels,), sum one; all equal where f is zero
    f: np.ndarray  # (n_samples, n_outputs)
    th: np.ndarray  # (n_outputs,), the smallest optimal multiplier of each cap
    omega: float  # sum over the kernels of the norm of their part of all outputs

    @property
    def value(self) -> float:
        return 0.5 * (self.lower + self.upper)


@dataclass(frozen=True)
class Structure:
    """The classifier of the capped problem as ``gamma`` times that of plain learning at ``mu``."""

    gamma: float
    mu: float
    f: np.ndarray  # (n_samples,)


@dataclass(frozen=True)
class NoisyProblem:
    """A small problem with wrong labels."""

    grams: np.ndarray  # (n_kernels, n_samples, n_samples)
    Y: np.ndarray  # (n_samples, n_outputs), -1 / +1, as observed
    lam: float
    cap: float
    X: np.ndarray
    y: np.ndarray  # observed class numbers
    clean: np.ndarray  # class numbers before the flips


def capped_oracle(grams, Y, lam, cap, slack=0.0, exact=False, constant=None) -> NoisySolution:
    """Solve problem (11), or (10) if ``exact``, for outputs that share the kernel weights.

    Minimise ``lam / 2 (sum_j sqrt(sum_o |f_j^o|^2))^2`` plus the sum over outputs of the largest
    ``1/n sum_i alpha_i (1 - y_i f(x_i))`` with alpha in ``[0, 1 + slack]`` and
    ``sum alpha <= n (cap + slack)`` or, if ``exact``, ``sum max(0, alpha - slack) <= n cap``.

    Parameters
    ----------
    grams : array (n_kernels, n_samples, n_samples)
    Y : array (n_samples, n_outputs)
    cap : one number or one an output
    constant : value of a constant kernel put behind the others; its weight is the last
    """
    grams, Y = _with_constant(grams, constant), _columns(Y)
    caps = np.broadcast_to(np.asarray(cap, dtype=float), Y.shape[1])
    if not (lam > 0 and slack >= 0 and (caps > 0).all() and (caps <= 1).all()):
        raise ValueError(f"lam = {lam}, cap = {cap}, slack = {slack}.")
    n = len(Y)
    if exact:
        sets = [_CappedBox(slack, 1.0, n * c) for c in caps]
    else:
        sets = [_CappedBox(0.0, 1.0 + slack, n * (c + slack)) for c in caps]
    return _Search(grams, Y, float(lam), sets).run()


def plain_mkl_oracle(grams, Y, lam, constant=None) -> NoisySolution:
    """Solve (2), which is the capped problem with cap one, by ``oracles.solve_mkl``."""
    grams, Y = _with_constant(grams, constant), _columns(Y)
    cost = np.full(Y.shape, 1 / (len(Y) * lam))
    found = solve_mkl(grams, Y, cost, p=1, loss="hinge", fit_intercept=False)
    fit = found.upper - np.sum(cost * np.maximum(0, 1 - Y * found.decision))
    return NoisySolution(
        lower=lam * found.lower,
        upper=lam * found.upper,
        alpha=np.clip(Y * found.dual_coef / cost, 0.0, 1.0),
        weights=found.weights,
        f=found.decision,
        th=np.zeros(Y.shape[1]),
        omega=np.sqrt(max(0.0, 2 * fit)),
    )


def structure_oracle(grams, y, lam, cap) -> Structure:
    """Solve (11) for one output without slack by the plain path.

    With ``a(mu)`` the mean dual variable of plain learning, the classifier is that at ``lam`` if
    ``a(lam) <= cap``, otherwise ``mu / lam`` times that at the ``mu`` with ``a(mu) = cap``, and
    zero if ``a`` stays above the cap.
    """
    y = np.asarray(y, dtype=float).ravel()

    def excess(log_mu):
        found = plain_mkl_oracle(grams, y, np.exp(log_mu))
        # The mean of alpha, from the primal solution, which is better determined.
        return _mean_hinge(y, found.f[:, 0]) + np.exp(log_mu) * found.omega**2 - cap

    top = np.log(lam)
    if excess(top) <= 0:
        return Structure(1.0, float(lam), plain_mkl_oracle(grams, y, lam).f[:, 0])
    if cap <= least_mean_hinge(grams, y) + 1e-10:
        return Structure(0.0, 0.0, np.zeros(len(y)))
    bottom = top - 2.0
    while excess(bottom) > 0:
        top, bottom = bottom, bottom - 2.0
    mu = np.exp(brentq(excess, bottom, top, xtol=1e-12, rtol=1e-12))
    gamma = mu / lam
    return Structure(float(gamma), float(mu), gamma * plain_mkl_oracle(grams, y, mu).f[:, 0])


def least_mean_hinge(grams, y) -> float:
    """Return the infimum of the mean hinge loss over all sums of functions of the kernels."""
    y = np.asarray(y, dtype=float).ravel()
    unit = sum(gram / max(np.trace(gram), np.finfo(float).tiny) for gram in np.asarray(grams))
    values, vectors = np.linalg.eigh(unit)
    null = vectors[:, values <= 1e-10 * values.max()]
    if not null.shape[1]:
        return 0.0
    # The dual: maximise mean(alpha) with sum_i alpha_i y_i k(x_i, .) = 0.
    alpha = cp.Variable(len(y))
    basis = null * y[:, None]
    coordinates = cp.Variable(null.shape[1])
    constraints = [alpha >= 0, alpha <= 1, alpha == basis @ coordinates]
    problem = cp.Problem(cp.Maximize(cp.sum(alpha) / len(y)), constraints)
    _solve(problem)
    return max(0.0, float(problem.value))


def project_oracle(v, box, total):
    """Project ``v`` on ``0 <= a <= box, sum(a) <= total``."""
    return _project(v, _CappedBox(0.0, box, total))


def project_exact_oracle(v, slack, total):
    """Project ``v`` on ``0 <= a <= 1 + slack, sum max(0, a - slack) <= total``."""
    return _project(v, _CappedBox(slack, 1.0, total))


def group_prox_oracle(norms, c):
    """Minimise ``1/2 sum_j (r_j - norms_j)^2 + c/2 (sum_j r_j)^2`` over ``r >= 0``; return r.

    The group j is shrunk to ``r_j / norms_j`` times itself, or to zero where its norm is zero.
    """
    norms, c = [Fraction(float(v)) for v in norms], Fraction(float(c))

    def shrunk(t):
        return [max(Fraction(0), v - c * t) for v in norms]

    kinks = [v / c for v in norms] if c else []
    t = _root(lambda t: sum(shrunk(t)) - t, [0, *kinks, sum(norms)])
    return np.array([float(r) for r in shrunk(t)])


def random_noisy_problem(
    seed, *, n=None, m=None, n_classes=None, flip=0.2, spread=None, lam=None, cap=None
) -> NoisyProblem:
    """Draw a problem whose labels are changed with probability ``flip``.

    By default it has 20 to 40 rows, 3 to 6 kernels of several kinds, 2 or 3 classes, kernels
    whose scales differ by up to ``spread`` decades (0 or 6), lam between 0.001 and 1 times the
    largest scale, and a cap between 0.2 and 0.9.
    """
    rng = np.random.default_rng([seed, 2012])

    def pick(given, drawn):
        return drawn if given is None else given

    n, m = pick(n, int(rng.integers(20, 41))), pick(m, int(rng.integers(3, 7)))
    n_classes = pick(n_classes, int(rng.integers(2, 4)))
    spread = pick(spread, float(rng.choice([0, 6])))
    relative, cap = 10 ** rng.uniform(-3, 0), pick(cap, float(rng.uniform(0.2, 0.9)))
    base = random_problem(seed, kind={2: "binary", 3: "multiclass"}[n_classes], n=n, m=m)
    scales = 10 ** (spread * rng.uniform(-0.5, 0.5, size=m))
    wrong = rng.random(n) < flip
    shift = np.where(wrong, rng.integers(1, n_classes, size=n), 0)
    y = (base.y + shift) % n_classes
    Y = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
    return NoisyProblem(
        grams=base.grams * scales[:, None, None],
        Y=Y[:, 1:] if n_classes == 2 else Y,
        lam=float(pick(lam, relative * scales.max())),
        cap=cap,
        X=base.X,
        y=y,
        clean=base.y,
    )


@dataclass(frozen=True)
class _CappedBox:
    """The vectors ``0 <= a <= free + box`` with ``sum max(0, a - free) <= total``.

    They are the sums of a vector in ``[0, free]`` and one in ``[0, box]`` with a capped sum.
    """

    free: float
    box: float
    total: float

    def support(self, d):
        """Return the largest ``a @ d``."""
        gains = np.sort(np.maximum(d, 0.0))[::-1]
        shares = np.clip(self.total / self.box - np.arange(len(d)), 0.0, 1.0)
        return self.free * gains.sum() + self.box * (shares @ gains)

    def threshold(self, d):
        """Return the smallest minimiser of ``total * th + box * sum max(0, d - th)``, th >= 0."""
        below = int(np.floor(self.total / self.box + 1e-9))
        return max(0.0, np.sort(d)[::-1][below]) if below < len(d) else 0.0

    def move(self, a):
        """Return a member near ``a``."""
        a = np.clip(a, 0.0, self.free + self.box)
        capped = np.maximum(0.0, a - self.free)
        return np.minimum(a, self.free) + capped * min(
            1.0, self.total / max(capped.sum(), np.finfo(float).tiny)
        )


def _project(v, members):
    """Project in rational arithmetic, so that nothing is lost, and check the optimality."""
    v = np.asarray(v, dtype=float)
    rows = [Fraction(float(x)) for x in v]
    free, box, total = (Fraction(float(x)) for x in (members.free, members.box, members.total))

    def capped(eta):
        return [min(max(x - free - eta, Fraction(0)), box) for x in rows]

    def excess(eta):
        return sum(capped(eta)) - total

    eta = Fraction(0)
    if excess(eta) > 0:
        kinks = [x - free for x in rows] + [x - free - box for x in rows]
        eta = _root(excess, [eta, *kinks])
    parts = zip(rows, capped(eta), strict=True)
    a = np.array([float(min(max(x, Fraction(0)), free) + part) for x, part in parts])
    # The nearest point is the one which no other exceeds in the direction towards v.
    left = members.support(v - a) - (v - a) @ a
    if not abs(left) <= 1e-12 * max(1.0, np.abs(v - a) @ np.abs(a)):
        raise OracleError(f"projection: {left:.3g} left.")
    return a


def _root(decreasing, kinks):
    """Return the root of a function that falls, linearly between the kinks, from zero or above."""
    kinks = sorted({Fraction(k) for k in kinks if k >= 0})
    right = bisect_left(kinks, 0, key=lambda k: -decreasing(k))
    if right == len(kinks):
        raise OracleError("No root.")
    if right == 0:
        return kinks[0]
    left, right = kinks[right - 1], kinks[right]
    high, low = decreasing(left), decreasing(right)
    return left + (right - left) * high / (high - low)


class _Search:
    """Offers the answers of several formulations to the two objectives and keeps the best."""

    def __init__(self, grams, Y, lam, sets):
        self.Y, self.lam, self.sets = Y, lam, sets
        self.factors = [_factor(gram) for gram in grams]
        self.norms, self.F = np.zeros(len(grams)), np.zeros_like(Y)
        self.alpha = np.zeros_like(Y)
        self.lower, self.upper = 0.0, self.primal(self.norms, self.F)
        self.log = []

    def primal(self, norms, F):
        losses = (s.support(d) for s, d in zip(self.sets, (1 - self.Y * F).T, strict=True))
        return 0.5 * self.lam * norms.sum() ** 2 + sum(losses) / len(F)

    def dual(self, alpha):
        return alpha.sum() / len(alpha) - self.slopes(alpha).max() ** 2 / (2 * self.lam)

    def slopes(self, alpha):
        """``|v_j|`` over all outputs."""
        Z = alpha * self.Y / len(alpha)
        return np.array([np.linalg.norm(L.T @ Z) for L in self.factors])

    def weights(self, norms):
        return norms / norms.sum() if norms.any() else np.full(len(norms), 1 / len(norms))

    @property
    def thresholds(self):
        pairs = zip(self.sets, (1 - self.Y * self.F).T, strict=True)
        return np.array([s.threshold(d) for s, d in pairs])

    @property
    def size(self):
        """The largest gamma of an output, which is the size of its classifier."""
        return float(np.clip(np.max(1 - self.thresholds), 1e-6, 1.0))

    @property
    def unit(self):
        """The objective over ``size`` without what the caps take, of plain learning for one."""
        taken = sum(s.total * th for s, th in zip(self.sets, self.thresholds, strict=True))
        return float(np.clip((self.upper - taken / len(self.Y)) / self.size, 1e-8, None))

    @property
    def gap(self):
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)

    def run(self) -> NoisySolution:
        for _ in range(2):
            for form in (_GroupForm, _DualForm):
                if self.gap > TARGET * self.size:
                    size, unit = (self.size, self.unit) if self.log else (1.0, 1.0)
                    status = self.attempt(form, size, unit)
                    self.log.append(
                        f"{form.__name__} {size:.1e} {unit:.1e} {status}, gap {self.gap:.1e}"
                    )
        # Bounds may cross by rounding; by more, one of the two objectives is wrong.
        if not abs(self.gap) <= ACCEPT:
            raise OracleError(
                f"Lower bound {self.lower:.15g}, upper bound {self.upper:.15g}: "
                f"{'; '.join(self.log)}."
            )
        lower, upper = sorted((float(self.lower), float(self.upper)))
        weights, omega = self.weights(self.norms), float(self.norms.sum())
        return NoisySolution(lower, upper, self.alpha, weights, self.F, self.thresholds, omega)

    def attempt(self, form, size, unit):
        """Solve one formulation for ``f / size`` and ``alpha / unit`` and take what it gives."""
        scale = np.sqrt(unit / (size * self.lam))
        sets = [_CappedBox(s.free / unit, s.box / unit, s.total / unit) for s in self.sets]
        stated = form([scale * L for L in self.factors], self.Y, sets, size)
        status = _solve(stated.problem)
        if status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            W, alpha = stated.answer()
            self.offer([size * scale * w for w in W], unit * alpha)
        return status

    def offer(self, W, alpha):
        """Evaluate both bounds at ``W``, ``alpha`` and at the w which alpha and weights give."""
        columns = zip(self.sets, alpha.T, strict=True)
        alpha = np.stack([s.move(a) for s, a in columns], axis=1)
        norms = np.array([np.linalg.norm(w) for w in W])
        F = sum(L @ w for L, w in zip(self.factors, W, strict=True))
        u, Z = self.weights(norms), alpha * self.Y / (len(F) * self.lam)
        combined = sum(t * (L @ (L.T @ Z)) for t, L in zip(u, self.factors, strict=True))
        candidates = [(norms, F), (u * self.slopes(alpha) / self.lam, combined)]
        for norms, F in candidates:
            upper = self.primal(norms, F)
            if upper < self.upper:
                self.upper, self.norms, self.F = upper, norms, F
        lower = self.dual(alpha)
        if lower > self.lower:
            self.lower, self.alpha = lower, alpha


class _GroupForm:
    """``1/2 (sum_j |w_j|)^2`` and the losses over a threshold ``th = 1 - size * s``.

    For ``f / size`` with all divided by ``size``; the constant of ``total * th`` is left out.
    """

    def __init__(self, factors, Y, sets, size):
        n, n_outputs = Y.shape
        free, box, total = np.array([[s.free, s.box, s.total] for s in sets]).T
        self.W = [cp.Variable((L.shape[1], n_outputs)) if L.size else None for L in factors]
        used = [(L, w) for L, w in zip(factors, self.W, strict=True) if w is not None]
        F = cp.Variable(Y.shape)
        norm, s = cp.Variable(), cp.Variable((1, n_outputs))
        self.link = F == sum((L @ w for L, w in used), np.zeros(Y.shape))
        margins = cp.multiply(Y, F)
        over = cp.pos(np.ones((n, 1)) @ s - margins)
        loss = cp.sum(over, axis=0) @ box - cp.sum(cp.multiply(total, s[0]))
        if free.any():
            loss += cp.sum(cp.pos(1 / size - margins), axis=0) @ free
        constraints = [self.link, s <= 1 / size]
        constraints.append(sum((cp.norm(w, "fro") for _, w in used), cp.Constant(0.0)) <= norm)
        self.problem = cp.Problem(cp.Minimize(0.5 * cp.square(norm) + loss / n), constraints)
        self.Y = Y

    def answer(self):
        alpha = self.Y * self.link.dual_value * len(self.Y)
        n_outputs = self.Y.shape[1]
        return [np.zeros((0, n_outputs)) if w is None else w.value for w in self.W], alpha


class _DualForm:
    """Maximise the mean of alpha minus half the largest ``|v_j|^2``, divided by ``size``."""

    def __init__(self, factors, Y, sets, size):
        n = len(Y)
        self.free, self.capped = cp.Variable(Y.shape), cp.Variable(Y.shape)
        norm = cp.Variable()
        Z = cp.multiply(Y, self.free + self.capped) / n
        self.cones = [cp.SOC(norm, cp.vec(L.T @ Z, order="C")) if L.size else None for L in factors]
        constraints = [cone for cone in self.cones if cone is not None]
        if sets[0].free:
            constraints += [self.free >= 0, self.free <= sets[0].free]
        else:
            constraints.append(self.free == 0)
        constraints += [self.capped >= 0, self.capped <= sets[0].box]
        total = np.array([s.total for s in sets])
        sums = cp.sum(self.capped, axis=0)
        constraints.append(sums <= total)
        # Where the caps are reached, what matters is much smaller than their sum.
        gain = (cp.sum(self.free) + cp.sum(sums - total)) / (n * size)
        self.problem = cp.Problem(cp.Minimize(0.5 * cp.square(norm) - gain), constraints)
        self.shape = Y.shape

    def answer(self):
        n_outputs = self.shape[1]
        W = [
            np.zeros((0, n_outputs)) if cone is None else -cone.dual_value[1].reshape(-1, n_outputs)
            for cone in self.cones
        ]
        return W, self.free.value + self.capped.value


def _with_constant(grams, constant):
    grams = np.asarray(grams, dtype=float)
    if constant is None:
        return grams
    return np.concatenate([grams, np.full((1, *grams.shape[1:]), float(constant))])


def _mean_hinge(y, f):
    return np.mean(np.maximum(0.0, 1 - y * f))


def _columns(a):
    """Return one column an output."""
    a = np.asarray(a, dtype=float)
    return a[:, None] if a.ndim == 1 else a
