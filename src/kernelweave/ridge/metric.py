"""Learned metrics for kernel ridge regression.

The kernel is a mixture of a product Laplacian and a Laplacian in a Mahalanobis distance,

    k(x, z) = h exp(-sum_j w_j |x_j - z_j| / L1) + (1 - h) exp(-|R (x - z)| / L2).

Ridge regression with it is solved in closed form together with all leave-one-out errors, which
choose the ridge, the widths and the share h. The average gradient outer product of the fitted
function then gives new weights w and a new metric ``M = R R``, and the step is repeated.

References
----------
Radhakrishnan, Beaglehole, Pandit and Belkin (2024), Mechanism for feature learning in neural
networks and backpropagation-free machine learning models, Science 383 (recursive feature machines).
Allen (1974), The relationship between variable selection and data augmentation and a method for
prediction, Technometrics 16 (leave-one-out residuals in closed form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from kernelweave import _core
from kernelweave._types import Bools, Floats, Indices
from kernelweave.kernels.metric import Metric

_MOST_OUTPUTS = 8  # above this, random mixtures of the outputs give the gradients
_WIDTH_ROWS = 1500  # rows above which median distances are those of _WIDTH_SAMPLE rows to all
_WIDTH_SAMPLE = 500
_CONE = 1e-9  # distance, relative to the width, below which the gradient of a cone is taken as zero


@dataclass(frozen=True)
class MetricOptions:
    """Grids and limits of the search; the defaults were chosen on 16 tables."""

    n_steps: int = 2  # number of times the metric is updated
    # Share of the off-diagonal part of the gradient outer product that the metric keeps.
    shrink: float = 0.3
    # Shares h of the product Laplacian to choose from.
    shares: tuple[float, ...] = (0.15, 0.5, 0.85)
    # Widths to choose from, in medians of the distances.
    widths: tuple[float, ...] = (1.0, 2.5, 6.0)
    # Ridges to choose from, for a kernel of unit diagonal and targets of unit variance.
    ridges: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Ridge regression at one kernel and ridge."""

    # (n_samples, n_outputs): coefficients a of ``f(x) = sum_i a_i k(x, x_i) + b``.
    dual_coef: Floats
    intercept: Floats  # (n_outputs,): the bias b
    loo_residuals: Floats  # (n_samples, n_outputs): ``y_i - f^(-i)(x_i)``, exactly


def solve_ridge(K: Floats, ridge: float, Y: Floats, weight: Floats) -> RidgeSolution | None:
    """Minimise ``sum_i weight_i |y_i - f(x_i) - b|^2 + ridge |f|^2``.

    Of K, the diagonal and what is above it are used; it is overwritten.

    With ``G = (K + ridge W^-1)^-1``, ``u = G 1`` and ``s = 1'u`` the coefficients are
    ``a = G y - u b``, ``b = u'y / s``, and the leave-one-out residuals ``a_i / c_i`` with
    ``c_i = G_ii - u_i^2 / s``. None where rounding leaves the matrix indefinite.
    """
    n = len(K)
    K[np.diag_indices(n)] += ridge / weight
    # The transpose of a C-ordered symmetric matrix is what LAPACK takes without a copy.
    factor, info = lapack.dpotrf(K.T, lower=1, clean=1, overwrite_a=1)
    if info:
        return None
    inverse, info = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    if info:
        return None
    sides = inverse.T @ (inverse @ np.column_stack([Y, np.ones(n)]))
    u = sides[:, -1]
    total = u.sum()
    intercept = (u @ Y) / total
    dual_coef = sides[:, :-1] - np.outer(u, intercept)
    leverage = np.einsum("ki,ki->i", inverse, inverse) - u**2 / total
    if not (leverage > 0).all():
        return None
    return RidgeSolution(dual_coef, intercept, dual_coef / leverage[:, None])


@dataclass(frozen=True)
class Setting:
    """Width factor, ridge and share of the product Laplacian, by position in the grids."""

    width: int
    ridge: int
    share: int


@dataclass(frozen=True, eq=False)
class MetricStep:
    """The best model with one metric."""

    metric: Metric
    widths: tuple[float, float]  # widths L1 and L2
    width: float  # both in medians of the distances
    # ridge, share: the ridge, and the share h of the product Laplacian
    ridge: float
    share: float
    solution: RidgeSolution  # coefficients and leave-one-out residuals
    # Weighted mean squared leave-one-out residual, relative to the variance of the targets.
    loo_error: float
    n_solves: int  # factorisations that the search took
    # (n_columns, n_columns): mean outer product of the gradients
    outer_product: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def values(self, train: Floats, rows: Floats) -> Floats:
        """Return the function at encoded rows; `train` are those that it was fitted to."""
        distances = self.metric.distances(rows, train)
        E1, E2 = (np.exp(D / -L) for D, L in zip(distances, self.widths, strict=True))
        K = self.share * E1 + (1.0 - self.share) * E2
        return np.asarray(K @ self.solution.dual_coef + self.solution.intercept)


@dataclass
class _Search:
    """Search of width, ridge and share for one metric by leave-one-out errors."""

    X: Floats
    Y: Floats
    weight: Floats
    metric: Metric
    options: MetricOptions
    seen: dict[Setting, float] = field(default_factory=dict)
    best: tuple[Setting, RidgeSolution] | None = None
    _exponentials: tuple[int, Floats] | None = None
    _kernel: Floats | None = None  # memory of the last kernel

    @cached_property
    def _pairs(self) -> tuple[Floats, Bools, tuple[float, float]]:
        """Distances between rows, where the second kind is, and typical distances of both kinds.

        Both are symmetric: the first kind is above the diagonal of one matrix, the second below.
        """
        n = len(self.X)
        below = np.tri(n, k=-1, dtype=bool)
        rows = np.linspace(0, n - 1, _WIDTH_SAMPLE).astype(np.intp)
        off = np.ones((len(rows), n), dtype=bool)
        off[np.arange(len(rows)), rows] = False

        def typical(D: Floats) -> float:
            """Return the median distance of pairs of rows; the mean where the median is zero."""
            pairs = D[rows][off] if n > _WIDTH_ROWS else D[below]
            mean = float(pairs.mean())
            return float(np.median(pairs, overwrite_input=True)) or mean

        D1, D2 = self.metric.distances(self.X, self.X)
        scales = typical(D1), typical(D2)
        np.copyto(D1, D2, where=below)
        return D1, below, scales

    def distances(self) -> Iterator[Floats]:
        """Return the distances of both kinds, one after the other."""
        self._exponentials = self._kernel = None
        D, below, _ = self._pairs
        yield np.where(below, D.T, D)
        yield np.where(below, D, D.T)

    @property
    def scales(self) -> tuple[float, float]:
        """Typical distances of both kinds."""
        return self._pairs[2]

    def widths(self, setting: Setting) -> tuple[float, float]:
        factor = self.options.widths[setting.width]
        return factor * self.scales[0], factor * self.scales[1]

    def kernel(self, setting: Setting) -> Floats:
        """Return the kernel, right on and above the diagonal; it may be overwritten.

        Both exponentials are kept for the last width; their mixture where there is one share.
        """
        several = len(self.options.shares) > 1
        D, below, _ = self._pairs
        if self._kernel is None:
            self._kernel = np.empty_like(D)
        if self._exponentials is None or self._exponentials[0] != setting.width:
            L1, L2 = self.widths(setting)
            E = np.empty_like(D) if self._exponentials is None else self._exponentials[1]
            np.divide(D, -L1, out=E)
            np.divide(D, -L2, out=E, where=below)
            np.exp(E, out=E)
            if not several:
                E, self._kernel = self._mixed(E, setting), E
            self._exponentials = (setting.width, E)
        E = self._exponentials[1]
        if several:
            return self._mixed(E, setting)
        np.copyto(self._kernel, E)
        return self._kernel

    def _mixed(self, E: Floats, setting: Setting) -> Floats:
        """Return ``share * E1 + (1 - share) * E2``, right above the diagonal, in kept memory."""
        K = np.subtract(E, E.T, out=self._kernel)
        K *= self._share(setting)
        K += E.T
        return K

    def _share(self, setting: Setting) -> float:
        return self.options.shares[setting.share]

    def error(self, setting: Setting) -> float:
        """Return the leave-one-out error of a setting; infinite where it cannot be solved."""
        if setting not in self.seen:
            K = self.kernel(setting)
            found = solve_ridge(K, self.options.ridges[setting.ridge], self.Y, self.weight)
            error = np.inf if found is None else self._relative(found.loo_residuals)
            if found is not None and error < min(self.seen.values(), default=np.inf):
                self.best = (setting, found)
            self.seen[setting] = error
        return self.seen[setting]

    def _relative(self, residuals: Floats) -> float:
        centred = self.Y - (self.weight @ self.Y) / self.weight.sum()
        return float((self.weight @ residuals**2).sum() / (self.weight @ centred**2).sum())

    def run(self, start: Setting) -> MetricStep | None:
        """Walk from a setting to one that no neighbour improves on."""
        options, here = self.options, start
        self.error(here)  # it may have no neighbour
        limits = Setting(len(options.widths), len(options.ridges), len(options.shares))
        moved = True
        while moved:
            moved = False
            for direction in _DIRECTIONS:
                while (next_ := _shifted(here, direction, limits)) is not None:
                    if not self.error(next_) < self.error(here):
                        break
                    here, moved = next_, True
                    if direction.width:
                        break  # ridge and share of the new width come first
        if self.best is None:
            return None
        setting, solution = self.best
        return MetricStep(
            self.metric,
            self.widths(setting),
            options.widths[setting.width],
            options.ridges[setting.ridge],
            self._share(setting),
            solution,
            self.seen[setting],
            len(self.seen),
        )


# Wide Laplacians obey k = 1 - r / L, so that with an intercept only ridge * L matters: a wider
# kernel is tried with a smaller ridge too, and a narrower one with a larger ridge.
_DIRECTIONS = [
    *(Setting(0, by, 0) for by in (-1, 1)),
    *(Setting(0, 0, by) for by in (-1, 1)),
    *(Setting(by, shift, 0) for by in (-1, 1) for shift in (0, -by)),
]


def _shifted(setting: Setting, by: Setting, limits: Setting) -> Setting | None:
    moved = Setting(setting.width + by.width, setting.ridge + by.ridge, setting.share + by.share)
    inside = (
        0 <= moved.width < limits.width
        and 0 <= moved.ridge < limits.ridge
        and 0 <= moved.share < limits.share
    )
    return moved if inside else None


def _exponential(D: Floats, width: float, factor: float) -> Floats:
    """Return ``factor * exp(-D / width)``; D is overwritten."""
    D /= -width
    np.exp(D, out=D)
    D *= factor
    return D


def gradients(
    A: Floats,
    B: Floats,
    metric: Metric,
    widths: tuple[float, float],
    share: float,
    coef: Floats,
    distances: Iterator[Floats] | None = None,
) -> Floats:
    """Return gradients, (n_outputs, n_rows of A, n_columns), of ``sum_m coef[m] k(x, B[m])``.

    A Laplacian has a cone at its centre, whose one-sided slopes cancel: there, and on ties of a
    column, the gradient counts as zero. ``distances`` gives those of both kinds, one after the
    other, where they are known; they are overwritten.
    """
    (L1, L2), both = widths, distances or iter(metric.distances(A, B))
    S = _exponential(next(both), L1, share / L1)
    out = np.stack([-metric.weights * _core.signed_sums(A, B, S * a) for a in coef.T])
    del S
    D = next(both)
    far = D > _CONE * L2
    S = _exponential(D.copy(), L2, (1.0 - share) / L2)
    np.divide(S, D, out=S, where=far)
    S[~far] = 0.0
    del D, far
    M = metric.root @ metric.root
    for slopes, a in zip(out, coef.T, strict=True):
        weighted = S * a
        slopes -= (weighted.sum(axis=1)[:, None] * A - weighted @ B) @ M
    return out


def gradient_outer_product(
    X: Floats,
    weight: Floats,
    step: MetricStep,
    random: np.random.RandomState,
    distances: Iterator[Floats] | None = None,
) -> Floats:
    """Return the weighted mean of the outer products of the gradients at the rows.

    Of many outputs, a few mixtures with random signs have the same mean outer product.
    """
    coef = step.solution.dual_coef
    if coef.shape[1] > _MOST_OUTPUTS:
        signs = random.choice([-1.0, 1.0], size=(coef.shape[1], _MOST_OUTPUTS))
        coef = coef @ signs / np.sqrt(_MOST_OUTPUTS)
    slopes = gradients(X, X, step.metric, step.widths, step.share, coef, distances)
    F = sum(g.T @ (weight[:, None] * g) for g in slopes)
    return np.asarray(F / weight.sum())


def metric_of(F: Floats, groups: Indices, shrink: float) -> Metric | None:
    """Return the metric of a gradient outer product; None where all gradients are zero.

    The l1 weights are roots of F because distances are linear in them, and tied within groups (the
    levels of a category). The metric keeps a share of the off-diagonal part.
    """
    tied = np.bincount(groups, weights=np.diag(F))[groups]
    weights = np.sqrt(np.maximum(tied, 0.0))
    size = np.sqrt(np.mean(weights**2))
    M = shrink * F
    M[np.diag_indices_from(M)] = np.diag(F)
    trace = float(np.trace(M))
    if not (np.isfinite(size) and size > 0 and trace > 0):
        return None
    values, vectors = scipy.linalg.eigh(M / trace * len(M))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return Metric(weights / size, 0.5 * (root + root.T))


def _nearest(grid: Floats, value: float) -> int:
    return int(np.argmin(np.abs(grid - value)))


def learn_metric(
    X: Floats,
    Y: Floats,
    weight: Floats,
    groups: Indices,
    options: MetricOptions,
    random: np.random.RandomState,
    callback: Callable[[MetricStep], None] | None = None,
) -> list[MetricStep]:
    """Alternate between ridge regression and the metric of its gradients.

    ``X`` are encoded rows, ``Y`` targets in units of their spread, of shape (n_samples, n_outputs),
    and ``weight`` positive with mean one. Columns with the same number in ``groups`` share their
    weight; ``random`` mixes the outputs where there are many; ``callback`` is called with every
    step. The first step has the identity; the one with the smallest `loo_error` is the model.
    """
    metric: Metric | None = Metric.identity(X.shape[1])
    start = Setting(
        _nearest(np.log(options.widths), np.log(6.0)),
        _nearest(np.log(options.ridges), np.log(0.1)),
        _nearest(np.asarray(options.shares), 0.5),
    )
    steps: list[MetricStep] = []
    for k in range(options.n_steps + 1):
        if metric is None:
            break
        search = _Search(X, Y, weight, metric, options)
        if not min(search.scales) > 0:
            break
        step = search.run(start)
        if step is None or search.best is None:
            break
        start = search.best[0]
        F = gradient_outer_product(X, weight, step, random, search.distances())
        del search  # before the matrices of the next one
        steps.append(replace(step, outer_product=F))
        if callback is not None:
            callback(step)
        if k < options.n_steps:
            metric = metric_of(F, groups, options.shrink)
    return steps


def cross_validate(
    X: Floats,
    Y: Floats,
    weight: Floats,
    groups: Indices,
    options: MetricOptions,
    random: np.random.RandomState,
    folds: Indices,
) -> Floats:
    """Return the error of every step on left-out folds, with the metric learned without them.

    Errors are relative to the variance of the targets. Steps that a fold did not reach are left
    out; none where a fold has no model.
    """
    off = np.zeros(options.n_steps + 1)
    reached = options.n_steps + 1
    for fold in range(int(folds.max()) + 1):
        train, test = folds != fold, folds == fold
        if not np.ptp(Y[train], axis=0).any():  # every step is a constant
            off += float((weight[test] @ (Y[test] - Y[train][:1]) ** 2).sum())
            continue
        own = weight[train] / weight[train].mean()
        steps = learn_metric(X[train], Y[train], own, groups, options, random)
        reached = min(reached, len(steps))
        for k in range(reached):
            residuals = Y[test] - steps[k].values(X[train], X[test])
            off[k] += float((weight[test] @ residuals**2).sum())
    centred = Y - (weight @ Y) / weight.sum()
    return np.asarray(off[:reached] / float((weight @ centred**2).sum()))
