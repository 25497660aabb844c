"""NPK: a nonparametric kernel matrix from pairs, by semi-definite programming."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.errors import InputError
from kernelweave.estimators.shared_docs import shared_attributes

from .pair_base import PairEmbedding, neighbour_laplacian


@dataclass(frozen=True)
class ADMMOptions:
    """Constants of the alternating direction method of multipliers; all chosen by hand."""

    max_rows: int = 500  # every step decomposes a matrix of that size
    check_every: int = 10  # steps between evaluations of the gap
    imbalance: float = 5.0  # ratio of primal and dual residuals at which rho changes
    factor: float = 2.0  # change of rho
    null: float = 1e-9  # eigenvalues below this share of the largest are not embedded


OPTIONS = ADMMOptions()


@shared_attributes()
@dataclass(eq=False, repr=False)
class NonParametricKernel(PairEmbedding):
    """NPK: the kernel matrix that is smooth on a neighbourhood graph and fits the pairs.

    Solves the semi-definite problem

        min over K >= 0 of tr(L K) + C sum max(0, 1 - s_ab K_ab),

    where ``L`` is the normalised Laplacian of the graph plus ``ridge`` times the identity, by the
    alternating direction method of multipliers, to a given duality gap. It is for a few hundred
    rows; `SimpleNPKL` is for more.

    Parameters
    ----------
    n_neighbors : int, default=10
        Nearest neighbours of a row in the graph.
    C : float, default=1.0
        Cost of a pair that is not fitted.
    ridge : float, default=0.01
        Added to the Laplacian, without which the problem is not bounded.
    tol : float, default=1e-4
        Relative duality gap to stop at.
    max_iter : int, default=5000
        Maximum number of steps.

    Attributes
    ----------
    gap_ : float
        Duality gap, relative to the objective.

    References
    ----------
    Hoi, Jin and Lyu (2007), Learning nonparametric kernel matrices from pairwise constraints,
    ICML 24. Boyd et al. (2011), Distributed optimization and statistical learning via the
    alternating direction method of multipliers, section 3.4.1 (change of rho).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.baselines import NonParametricKernel
    >>> y = np.arange(20) % 2
    >>> X = np.random.default_rng(0).normal(size=(20, 2)) + 4 * y[:, None]
    >>> model = NonParametricKernel(4).fit(X, pairs=[[0, 2], [1, 3], [0, 1]], labels=[1, 1, -1])
    >>> K = model.embedding_ @ model.embedding_.T
    >>> bool(K[4, 6] > 0 > K[4, 5])  # rows of no pair
    True
    """

    n_neighbors: int = 10
    _: KW_ONLY
    C: float = 1.0
    ridge: float = 0.01
    tol: float = 1e-4
    max_iter: int = 5000

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PairEmbedding._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "ridge": [Interval(Real, 0, None, closed="neither")],
    }

    def _learn(self, X: Any, pairs: Indices, labels: Floats) -> None:
        n = X.shape[0]
        if n > OPTIONS.max_rows:
            raise InputError(
                f"X: {type(self).__name__} is for {OPTIONS.max_rows} rows at most, got {n}. "
                "Hint: use SimpleNPKL."
            )
        L = neighbour_laplacian(X, self.n_neighbors, self.ridge).toarray()
        problem = _Problem.of(L, pairs, float(self.C) * labels)
        K, value, gap, steps = _solve(problem, self.tol, self.max_iter)
        values, vectors = eigh(K)
        kept = np.flatnonzero(values > OPTIONS.null * max(values[-1], 0.0))[::-1]
        self.embedding_ = vectors[:, kept] * np.sqrt(values[kept])
        self.objective_, self.gap_ = value, gap
        self._report(steps, gap, self.tol, "relative duality gap")


@dataclass(frozen=True)
class _Problem:
    """Minimise ``tr(L K)`` plus ``up max(0, 1 - K_ab) + down max(0, 1 + K_ab)`` over all pairs."""

    L: Floats
    rows: Indices
    columns: Indices
    up: Floats
    down: Floats

    @classmethod
    def of(cls, L: Floats, pairs: Indices, costs: Floats) -> _Problem:
        """Merge repeated unordered pairs."""
        found, place = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
        place = place.ravel()
        up = np.bincount(place, np.maximum(costs, 0.0)).astype(np.float64)
        down = np.bincount(place, np.maximum(-costs, 0.0)).astype(np.float64)
        return cls(L, found[:, 0], found[:, 1], up, down)

    def value(self, K: Floats) -> float:
        at = K[self.rows, self.columns]
        loss = self.up @ np.maximum(0.0, 1.0 - at) + self.down @ np.maximum(0.0, 1.0 + at)
        return float(np.sum(self.L * K)) + float(loss)

    def bound(self, beta: Floats) -> float:
        """Return the dual value of multipliers that are scaled until ``L - A(beta)`` is psd."""
        A = np.zeros_like(self.L)
        A[self.rows, self.columns] = A[self.columns, self.rows] = 0.5 * beta
        n = len(A)
        largest = float(eigh(A, self.L, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0])
        beta = beta / max(1.0, largest)
        return float(np.minimum(beta + 2.0 * self.down, 2.0 * self.up - beta).sum())

    def prox(self, v: Floats, step: float) -> Floats:
        """Minimise the loss of every pair plus ``(z - v)^2 / (2 step)``."""
        z = np.clip(v + step * (self.up - self.down), -1.0, 1.0)
        z = np.where(v + step * self.up < -1.0, v + step * self.up, z)
        return np.where(v - step * self.down > 1.0, v - step * self.down, z)


def _solve(p: _Problem, tol: float, max_iter: int) -> tuple[Floats, float, float, int]:
    """Alternate between the semi-definite cone and the losses of the pairs; return K and its gap.

    ``K`` is semi-definite, ``Z`` fits the pairs, ``U`` is the scaled multiplier of ``K = Z``.
    """
    n = len(p.L)
    Z, U = np.zeros((n, n)), np.zeros((n, n))
    rho, best, bound = 1.0, np.inf, 0.0
    kept = Z
    step = 0
    for step in range(1, max_iter + 1):
        values, vectors = eigh(Z - U - p.L / rho)
        positive = values > 0
        K = (vectors[:, positive] * values[positive]) @ vectors[:, positive].T
        before, Z = Z, K + U
        v = Z[p.rows, p.columns]
        z = p.prox(v, 0.5 / rho)  # a pair occupies two entries
        Z[p.rows, p.columns] = Z[p.columns, p.rows] = z
        U = U + K - Z
        if step % OPTIONS.check_every and step < max_iter:
            continue
        value = p.value(K)
        if value < best:
            best, kept = value, K
        bound = max(bound, p.bound(np.clip(2.0 * rho * (z - v), -p.down, p.up)))
        if best - bound <= tol * abs(best):
            break
        # Residual balancing: the primal and the dual residual are kept within a factor.
        primal, dual = np.linalg.norm(K - Z), np.linalg.norm(Z - before) * rho
        factor = 1.0
        if primal > OPTIONS.imbalance * dual:
            factor = OPTIONS.factor
        elif dual > OPTIONS.imbalance * primal:
            factor = 1.0 / OPTIONS.factor
        rho, U = rho * factor, U / factor
    return kept, best, (best - bound) / abs(best), step
