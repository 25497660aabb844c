"""Ridge regression of one kernel on all rows, by preconditioned conjugate gradients.

The kernel matrix is held once, in single precision, as blocks of its upper triangle. Nystroem
features of landmarks give the preconditioner. Several problems share every pass over the kernel:
left-out folds are rows of weight zero, so that cross-validation of the ridge is one block of right
sides.

References
----------
Frangella, Tropp and Udell (2023), Randomized Nystroem preconditioning, SIAM J. Matrix Anal. Appl.
44.
Rudi, Carratino and Rosasco (2017), FALKON: an optimal large scale kernel method, NIPS 30.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._threads import run_each, stop_if_interrupted
from kernelweave._types import Floats, Indices, Stored

_ROWS = 1024  # of a block of the kernel
_TOLERANCE = 1e-3  # residual, relative to the right side, at which a column is solved
_MOST_STEPS = 200  # of conjugate gradients


@dataclass(frozen=True, eq=False)
class UpperKernel:
    """The upper triangle of a kernel matrix in single precision, by blocks of rows."""

    blocks: list[Stored]  # block b holds rows from b * _ROWS, columns from there to the end

    @classmethod
    def compute(cls, block: Callable[[Indices, Indices], Floats], n: int) -> UpperKernel:
        """Compute every block once."""

        def part(first: int) -> Stored:
            stop_if_interrupted()
            rows = np.arange(first, min(first + _ROWS, n))
            return block(rows, np.arange(first, n)).astype(np.float32)

        return cls(run_each(part, range(0, n, _ROWS)))

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply with columns, in single precision within a block."""
        V32 = V.astype(np.float32)
        n = len(V)

        def part(b: int) -> tuple[Stored, Stored]:
            first, K = b * _ROWS, self.blocks[b]
            rows = len(K)
            # Rows of the block see all columns; columns beyond it see the block by symmetry.
            return K @ V32[first:], K[:, rows:].T @ V32[first : first + rows]

        out = np.zeros(V.shape)
        for b, (own, mirrored) in enumerate(run_each(part, range(len(self.blocks)))):
            first = b * _ROWS
            out[first : first + len(own)] += own
            out[first + len(own) : n] += mirrored
        return out


def full_bytes(n: int, n_landmarks: int, n_outputs: int, n_ridges: int) -> float:
    """Return the memory of `solve_full`: kernel, features, and vectors of all problems."""
    kernel = 4.0 * n * (0.5 * n + _ROWS) + 3 * 8.0 * _ROWS * n
    features = 8.0 * n_landmarks * (1.3 * n + (n_ridges + 8.0) * n_landmarks)
    return kernel + features + 10 * 8.0 * n * n_ridges * (n_outputs + 1)


@dataclass(frozen=True, eq=False)
class Problems:
    """Ridge problems on the same rows, each with a ridge and perhaps a fold left out."""

    # (n_samples, n_landmarks): Nystroem features Z, whose inner products are close to the kernel.
    features: Floats
    # (n_samples, n_problems): roots S of the weights of the rows, zero for the fold that is left
    # out.
    roots: Floats
    ridges: Floats  # (n_problems,)
    factors: list[tuple[Floats, bool]]  # Cholesky factors of ``Z' S^2 Z + ridge``

    @classmethod
    def build(
        cls, features: Floats, weight: Floats, folds: Indices, left_out: Indices, ridges: Floats
    ) -> Problems:
        """Factorise the moments of the features; a fold of -1 leaves no row out."""
        moments = []
        for f in range(int(folds.max()) + 1):
            part = features[folds == f] * np.sqrt(weight[folds == f])[:, None]
            moments.append(part.T @ part)
        total = sum(moments)
        factors = []
        for f, ridge in zip(left_out.tolist(), ridges, strict=True):
            system = total - moments[f] if f >= 0 else total.copy()
            system[np.diag_indices_from(system)] += ridge
            factors.append(scipy.linalg.cho_factor(system, lower=True, overwrite_a=True))
        roots = np.sqrt(weight)[:, None] * (folds[:, None] != left_out)
        return cls(features, roots, ridges, factors)

    def precondition(self, V: Floats, problem: Indices) -> Floats:
        """Return ``(S Z Z' S + ridge)^-1 V``; the columns of V belong to the given problems."""
        S = self.roots[:, problem]
        inner = self.features.T @ (S * V)
        for c, p in enumerate(problem):
            inner[:, c] = scipy.linalg.cho_solve(self.factors[p], inner[:, c])
        # Woodbury: (S Z Z' S + r)^-1 = (1 - S Z (Z' S^2 Z + r)^-1 Z' S) / r.
        return np.asarray((V - S * (self.features @ inner)) / self.ridges[problem])


def solve_columns(K: UpperKernel, problems: Problems, sides: Floats, problem: Indices) -> Floats:
    """Solve ``(S K S + ridge) X = sides`` by conjugate gradients, all columns in one pass.

    A column is left alone once its residual is below the tolerance.
    """
    X, R = np.zeros(sides.shape), sides.copy()
    P = problems.precondition(R, problem)
    slope = np.einsum("ij,ij->j", R, P)
    goal = _TOLERANCE * np.linalg.norm(sides, axis=0)
    active = np.flatnonzero(goal > 0)
    for _ in range(_MOST_STEPS):
        if not len(active):
            break
        stop_if_interrupted()
        S, D = problems.roots[:, problem[active]], P[:, active]
        Q = S * (K @ (S * D)) + problems.ridges[problem[active]] * D
        length = slope[active] / np.einsum("ij,ij->j", D, Q)
        X[:, active] += length * D
        R[:, active] -= length * Q
        active = active[np.linalg.norm(R[:, active], axis=0) > goal[active]]
        if len(active):
            Z = problems.precondition(R[:, active], problem[active])
            now = np.einsum("ij,ij->j", R[:, active], Z)
            P[:, active] = Z + now / slope[active] * P[:, active]
            slope[active] = now
    return X


def solve_problems(K: UpperKernel, problems: Problems, Y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return coefficients, intercepts and values at all rows, of every problem and output.

    With ``u = S (S K S + ridge)^-1 S 1`` the intercept is ``u'y / u'1``, as in `solve_ridge`.
    """
    n, n_outputs = Y.shape
    n_problems = len(problems.ridges)
    problem = np.repeat(np.arange(n_problems), n_outputs + 1)
    S = problems.roots[:, problem]
    sides = S * np.tile(np.column_stack([Y, np.ones(n)]), n_problems)
    solved = S * solve_columns(K, problems, sides, problem)
    solved = solved.reshape(n, n_problems, n_outputs + 1)
    u = solved[..., -1]
    intercepts = (u.T @ Y) / u.sum(axis=0)[:, None]
    coef = solved[..., :-1] - u[..., None] * intercepts
    values = (K @ coef.reshape(n, -1)).reshape(coef.shape) + intercepts
    return coef, intercepts, values


@dataclass(frozen=True, eq=False)
class FullRidge:
    """Ridge regression on all rows, with values of left-out folds."""

    # dual_coef, intercept: the function ``sum_i dual_coef[i] k(x, x_i) + intercept``
    dual_coef: Floats
    intercept: Floats
    # (n_samples, n_outputs): ``y_i`` minus the value of the model without the fold of row i.
    residuals: Floats
    ridge: float
    error: float  # weighted mean of the squared residuals, relative to the variance of the targets


def solve_full(
    K: UpperKernel, features: Floats, Y: Floats, weight: Floats, ridges: Floats, folds: Indices
) -> FullRidge:
    """Fit ridge regression on all rows; the ridge is the best one for the rows of fold 0.

    ``features`` are Nystroem features, of shape (n_samples, n_landmarks); weights of the rows are
    positive, and ``folds`` the fold of every row, from 0.
    """
    first = Problems.build(features, weight, folds, np.zeros(len(ridges), dtype=np.intp), ridges)
    test = folds == 0
    off = Y[test][:, None] - solve_problems(K, first, Y)[2][test]
    ridge = float(ridges[np.argmin(np.einsum("i,iro->r", weight[test], off**2))])
    left_out = np.append(np.arange(folds.max() + 1), -1)
    problems = Problems.build(features, weight, folds, left_out, np.full(len(left_out), ridge))
    coef, intercepts, values = solve_problems(K, problems, Y)
    residuals = Y - values[np.arange(len(Y)), folds]
    spread = float((weight @ (Y - (weight @ Y) / weight.sum()) ** 2).sum())
    error = float((weight @ residuals**2).sum()) / spread
    return FullRidge(coef[:, -1], intercepts[-1], residuals, ridge, error)


def stratified_folds(Y: Floats, random: np.random.RandomState, n_folds: int = 5) -> Indices:
    """Return a fold for every row, alike in their targets."""
    along = Y[:, 0] if Y.shape[1] == 1 else Y.argmax(axis=1)
    folds = np.empty(len(Y), dtype=np.intp)
    folds[np.lexsort((random.random_sample(len(Y)), along))] = np.arange(len(Y)) % n_folds
    return folds
