"""NPK: a nonparametric kernel matrix from pairs, by low-rank semi-definite programming.

Given the kernel between the rows of the pairs, the smoothest kernel of all rows has a closed form,
so that only these rows are unknown. Their kernel is a product ``V V'`` of few columns, found by an
augmented Lagrangian method. The multipliers of the pairs give a lower bound, so that the optimum is
certified although the factorised problem is not convex.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular, svd
from scipy.optimize import minimize
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval
from kernelweave.estimators.shared_docs import shared_attributes

from .pair_base import PairEmbedding, neighbour_laplacian


@dataclass(frozen=True)
class LowRankOptions:
    """Constants of the augmented Lagrangian method; chosen by hand on 150 and 1000 rows."""

    first_steps: int = 100  # of L-BFGS in a round; doubled while the dual is far from feasible
    most_steps: int = 3000  # of L-BFGS in a round
    memory: int = 20  # pairs of vectors that L-BFGS keeps
    growth: float = 2.0  # of the penalty, where the violation does not shrink enough
    shrinkage: float = 0.25  # violation after a round, relative to the one before, that is enough
    rank: float = 1e-3  # singular values below this share of the largest may be dropped
    spare: float = 0.25  # columns kept beyond the others, relative to their number
    null: float = 1e-5  # of the embedding: singular values below this share are left out
    shift: float = 0.1  # first shift tried to make the dual feasible, relative to the tolerance


OPTIONS = LowRankOptions()


@shared_attributes()
@dataclass(eq=False, repr=False)
class NonParametricKernel(PairEmbedding):
    """NPK: the kernel matrix that is smooth on a neighbourhood graph and fits the pairs.

    Solves the semi-definite problem

        min over K >= 0 of tr(L K) + C sum max(0, 1 - s_ab K_ab),

    where ``L`` is the normalised Laplacian of the graph plus ``ridge`` times the identity, to a
    given duality gap. Time grows with the cube of the number of rows in pairs, and is seconds for
    1000 of them; `SimpleNPKL` is for more.

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
    ICML 24. Burer and Monteiro (2003), A nonlinear programming algorithm for solving semidefinite
    programs via low-rank factorization, Mathematical Programming 95.

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
        L = neighbour_laplacian(X, self.n_neighbors, self.ridge)
        problem = _Problem.of(L, pairs, float(self.C) * labels)
        W, value, gap, steps = _solve(problem, self.tol, self.max_iter)
        left, values, _ = svd(problem.extend(W), full_matrices=False)
        kept = values > OPTIONS.null * max(values[0], 0.0)
        self.embedding_ = left[:, kept] * values[kept]
        self.objective_, self.gap_ = value, gap
        self._report(steps, gap, self.tol, "relative duality gap")


@dataclass(frozen=True)
class _Problem:
    """Minimise ``|W|^2 + sum up max(0, 1 - K_ab) + down max(0, 1 + K_ab)`` over all pairs.

    ``K = C W W' C'`` is the kernel of the rows in pairs, where ``C C'`` is the block of ``L^-1``
    of these rows. ``tr(L K)`` of the smoothest kernel of all rows that agrees with it is ``|W|^2``,
    by the Schur complement of L.
    """

    C: Floats  # (n_used, n_used), lower triangular
    columns: Floats  # (n_samples, n_used): of ``L^-1``
    # first, second, up, down (n_pairs,): places of both rows, costs of the two hinges
    first: Indices
    second: Indices
    up: Floats
    down: Floats

    @classmethod
    def of(cls, L: csr_array[np.float64], pairs: Indices, costs: Floats) -> _Problem:
        """Merge repeated unordered pairs, and eliminate the rows of no pair."""
        found, place = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
        place = place.ravel()
        up = np.bincount(place, np.maximum(costs, 0.0)).astype(np.float64)
        down = np.bincount(place, np.maximum(-costs, 0.0)).astype(np.float64)
        used, ends = np.unique(found, return_inverse=True)
        ends = ends.reshape(found.shape)
        units = np.zeros((L.shape[0], len(used)))
        units[used, np.arange(len(used))] = 1.0
        columns = splu(csc_array(L)).solve(units)
        C = cholesky(columns[used], lower=True)
        return cls(C, columns, ends[:, 0], ends[:, 1], up, down)

    def extend(self, W: Floats) -> Floats:
        """Return points of all rows, by the smoothest kernel that agrees with the one of ``W``."""
        return np.asarray(self.columns @ solve_triangular(self.C, W, trans=1, lower=True))

    def values(self, V: Floats) -> Floats:
        """Return the kernel of every pair, ``V`` being the points of the rows in pairs."""
        return np.asarray(np.einsum("ij,ij->i", V[self.first], V[self.second]))

    def loss(self, z: Floats) -> float:
        return float(self.up @ np.maximum(0.0, 1.0 - z) + self.down @ np.maximum(0.0, 1.0 + z))

    def matrix(self, g: Floats) -> csr_array[np.float64]:
        """Return the symmetric matrix A with ``tr(A K) = sum g_ab K_ab``."""
        ends = np.r_[self.first, self.second], np.r_[self.second, self.first]
        return csr_array((0.5 * np.r_[g, g], ends), shape=self.C.shape)

    def prox(self, v: Floats, step: float) -> Floats:
        """Minimise the loss of every pair plus ``(z - v)^2 / (2 step)``."""
        z = np.clip(v + step * (self.up - self.down), -1.0, 1.0)
        z = np.where(v + step * self.up < -1.0, v + step * self.up, z)
        return np.where(v - step * self.down > 1.0, v - step * self.down, z)

    def lagrangian(self, flat: Floats, multipliers: Floats, sigma: float) -> tuple[float, Floats]:
        """Return the augmented Lagrangian, minimised over the split values, and its gradient."""
        W = flat.reshape(len(self.C), -1)
        V = self.C @ W
        z = self.values(V)
        split = self.prox(z + multipliers / sigma, 1.0 / sigma)
        slopes = multipliers + sigma * (z - split)
        penalty = multipliers @ (z - split) + 0.5 * sigma * ((z - split) @ (z - split))
        gradient = 2.0 * W + 2.0 * self.C.T @ (self.matrix(slopes) @ V)
        return float(np.vdot(W, W) + self.loss(split) + penalty), gradient.ravel()

    def bound(self, slopes: Floats, tol: float) -> tuple[float, float]:
        """Return the lower bound that slopes of the loss prove, and how infeasible they are.

        With ``beta = -slopes``, ``beta / s`` is dual feasible where ``s I - C' A(beta) C`` is
        positive definite, s at least one; a Cholesky factorisation tells.
        """
        beta = np.clip(-slopes, -self.down, self.up)
        M = self.C.T @ (self.matrix(beta) @ self.C)
        shift = OPTIONS.shift * tol
        while True:
            try:
                cholesky((1.0 + shift) * np.eye(len(M)) - M, overwrite_a=True, check_finite=False)
                break
            except LinAlgError:
                shift *= 4.0
        beta = beta / (1.0 + shift)
        return float(np.minimum(beta + 2.0 * self.down, 2.0 * self.up - beta).sum()), shift


def _solve(p: _Problem, tol: float, max_iter: int) -> tuple[Floats, float, float, int]:
    """Return ``W``, its objective, the relative gap and the number of steps of L-BFGS.

    Some optimal kernel has rank r with ``r (r + 1) / 2`` at most the number of pairs (Pataki), and
    with that many columns the factorised problem has no spurious minima in general. Columns that
    turn out not to be needed are dropped.
    """
    n, n_pairs = len(p.C), len(p.up)
    rank = min(n, int(np.ceil(np.sqrt(2.0 * n_pairs))) + 1)
    W = np.random.default_rng(0).normal(size=(n, rank)) / np.sqrt(n * rank)
    multipliers, sigma = np.zeros(n_pairs), float(np.median(p.up + p.down))
    best, kept, bound, violation, steps = np.inf, W, 0.0, np.inf, 0
    most = OPTIONS.first_steps
    while True:
        found = minimize(
            p.lagrangian,
            W.ravel(),
            args=(multipliers, sigma),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": min(most, max_iter - steps),
                "maxcor": OPTIONS.memory,
                "gtol": 0.0,
                "ftol": 1e-14,
            },
        )
        steps += max(1, found.nit)
        W = found.x.reshape(n, -1)
        z = p.values(p.C @ W)
        split = p.prox(z + multipliers / sigma, 1.0 / sigma)
        multipliers = multipliers + sigma * (z - split)
        value = float(np.vdot(W, W)) + p.loss(z)
        if value < best:
            best, kept = value, W
        proved, shift = p.bound(multipliers, tol)
        bound = max(bound, proved)
        if best - bound <= tol * best or steps >= max_iter:
            return kept, best, (best - bound) / best, steps
        before, violation = violation, float(np.linalg.norm(z - split))
        excess, infeasible = p.loss(z) - p.loss(split), shift * bound
        if infeasible > max(excess, tol * best):
            most = min(2 * most, OPTIONS.most_steps)
        elif violation > OPTIONS.shrinkage * before:
            sigma *= OPTIONS.growth
        W = _fewer_columns(W)


def _fewer_columns(W: Floats) -> Floats:
    """Rotate the columns, which changes no kernel, and drop those that are nearly zero."""
    left, values, _ = svd(W, full_matrices=False)
    rank = int(np.count_nonzero(values > OPTIONS.rank * values[0]))
    rank = min(len(values), rank + max(2, int(OPTIONS.spare * rank)))
    return np.ascontiguousarray(left[:, :rank] * values[:rank])
