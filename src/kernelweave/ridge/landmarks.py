"""Ridge regression of one kernel on the Nystroem features of landmarks, with leave-one-out errors.

Landmarks are chosen by block-pivoted Cholesky. One eigendecomposition of the moments of features
gives the leave-one-out residuals of all rows for all ridges.

References
----------
Williams and Seeger (2001), Using the Nystroem method to speed up kernel machines, NIPS 13.
Golub, Heath and Wahba (1979), Generalized cross-validation as a method for choosing a good ridge
parameter, Technometrics 21 (residuals of left-out rows from the diagonal of the hat matrix).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, TypeAlias

import numpy as np
import scipy.linalg

from kernelweave._linalg import eigh
from kernelweave._types import Floats, Indices

_BATCH = 64  # landmarks chosen between two updates of the residuals
_KEEP = 0.1  # residual within a batch, relative to the largest, below which a row is passed over
_SPENT = 1e-10  # residual below which a row is explained by the landmarks
_BLOCK_ROWS = 4096  # rows whose features are computed together


@dataclass(frozen=True, eq=False)
class LandmarkRidge:
    """Ridge regression on the Nystroem features of landmarks, with leave-one-out residuals."""

    landmarks: Indices  # rows that the function is a sum over
    # dual_coef, intercept: the function ``sum_m dual_coef[m] k(x, x_m) + intercept``
    dual_coef: Floats
    intercept: Floats
    loo_residuals: Floats  # (n_samples, n_outputs): ``y_i - f^(-i)(x_i)`` with the landmarks fixed
    ridge: float  # the ridge with the smallest leave-one-out error
    loo_error: float  # that error, relative to the variance of the targets
    # Mean of ``1 - |phi(x)|^2`` over the rows: the share of the trace that landmarks leave out.
    left_out: float


def nystroem_bytes(n: int, n_landmarks: int, n_outputs: int, n_ridges: int) -> float:
    """Return the memory that `solve_nystroem` takes: features, blocks of them, and residuals."""
    features = (1.1 * n + 4.0 * min(n, _BLOCK_ROWS) + 8.0 * n_landmarks) * n_landmarks
    return 8.0 * (features + 2.0 * n_ridges * n * n_outputs)


def choose_landmarks(
    block: Callable[[Indices, Indices], Floats], candidates: Indices, n_landmarks: int
) -> tuple[Indices, Floats]:
    """Choose landmarks by block-pivoted Cholesky on a kernel of unit diagonal.

    Returns the candidates with the largest residuals, batch by batch, and lower triangular L with
    ``L L'`` the kernel between landmarks.
    """
    n_landmarks = min(n_landmarks, len(candidates))
    residual = np.ones(len(candidates))
    factor = np.zeros((len(candidates), n_landmarks))
    chosen: list[int] = []
    while len(chosen) < n_landmarks:
        k = len(chosen)
        picks = np.argsort(-residual, kind="stable")[: min(_BATCH, n_landmarks - k)]
        picks = picks[residual[picks] > _SPENT]
        columns = block(candidates, candidates[picks]) - factor[:, :k] @ factor[picks, :k].T
        new: list[int] = []
        for j, pick in enumerate(picks):  # those that the batch itself explains are passed over
            part = columns[:, j] - factor[:, k : k + len(new)] @ factor[pick, k : k + len(new)]
            if part[pick] > _KEEP * residual[picks[0]]:
                factor[:, k + len(new)] = part / np.sqrt(part[pick])
                new.append(int(pick))
        if not new:
            break
        fresh = factor[:, k : k + len(new)]
        residual -= np.einsum("ik,ik->i", fresh, fresh)
        residual[new] = 0.0
        chosen += new
    return candidates[chosen], factor[chosen, : len(chosen)]


def features_of(values: Floats, triangle: Floats) -> Floats:
    """Return the features ``L^-1 k(P, x)`` of rows from their kernel values with landmarks P."""
    return np.asarray(scipy.linalg.solve_triangular(triangle, values, lower=True).T)


def nystroem_features(
    block: Callable[[Indices, Indices], Floats], n: int, candidates: Indices, n_landmarks: int
) -> tuple[Indices, Floats, Floats]:
    """Return landmarks, the triangle L of their kernel ``L L'``, and the features of n rows."""
    landmarks, triangle = choose_landmarks(block, candidates, n_landmarks)
    features = np.empty((n, len(landmarks)))
    for a in range(0, n, _BLOCK_ROWS):
        part = np.arange(a, min(a + _BLOCK_ROWS, n))
        features[part] = features_of(block(landmarks, part), triangle)
    return landmarks, triangle, features


class Features(Protocol):
    """Nystroem features of all rows, read in passes."""

    def moments(self, Y: Floats, weight: Floats) -> Sums:
        """Return ``Z'w``, ``Z'WZ``, ``Z'WY`` and ``sum_i w_i |z_i|^2``."""

    def residuals(self, Y: Floats, weight: Floats, solved: Solved) -> Floats:
        """Return leave-one-out residuals of shape (n_rows, n_ridges, n_outputs)."""


Sums: TypeAlias = tuple[Floats, Floats, Floats, float]


@dataclass(frozen=True, eq=False)
class Solved:
    """The moments of centred features, decomposed: ``Z'WZ = V diag(values) V'``."""

    middle: Floats
    vectors: Floats
    inverse: Floats  # 1 / (values + ridge), (n_features, n_ridges)
    turned: Floats  # V'Z'WY
    total: float  # of the weights

    def residuals(self, Z: Floats, Y: Floats, weight: Floats) -> Floats:
        """Return residuals of left-out rows, (n_rows, n_ridges, n_outputs); Y is centred.

        Row i has the leverage ``w_i (1 / sum w + sum_k T_ik^2 / (e_k + ridge))`` with ``T = Z V``.
        """
        T = (Z - self.middle) @ self.vectors
        leverage = weight[:, None] * (1.0 / self.total + T**2 @ self.inverse)
        out = np.empty((len(Z), self.inverse.shape[1], Y.shape[1]))
        for r in range(self.inverse.shape[1]):
            off = Y - T @ (self.inverse[:, [r]] * self.turned)
            out[:, r] = off / np.maximum(1.0 - leverage[:, [r]], 1e-12)
        return out


def feature_moments(Z: Floats, Y: Floats, weight: Floats) -> Sums:
    """Return the sums of `Features.moments` over some rows."""
    scaled = weight[:, None] * Z
    return weight @ Z, Z.T @ scaled, scaled.T @ Y, float(np.einsum("ik,ik->", Z, scaled))


@dataclass(frozen=True, eq=False)
class HeldFeatures:
    """Features in memory."""

    Z: Floats

    def _blocks(self) -> list[slice]:
        return [slice(a, a + _BLOCK_ROWS) for a in range(0, len(self.Z), _BLOCK_ROWS)]

    def moments(self, Y: Floats, weight: Floats) -> Sums:
        """Sum over blocks of rows."""
        parts = (feature_moments(self.Z[rows], Y[rows], weight[rows]) for rows in self._blocks())
        return reduce(lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]), parts)

    def residuals(self, Y: Floats, weight: Floats, solved: Solved) -> Floats:
        """Block by block."""
        parts = [solved.residuals(self.Z[rows], Y[rows], weight[rows]) for rows in self._blocks()]
        return np.concatenate(parts)


def solve_nystroem(
    block: Callable[[Indices, Indices], Floats],
    Y: Floats,
    weight: Floats,
    candidates: Indices,
    n_landmarks: int,
    ridges: Floats,
) -> tuple[LandmarkRidge, Callable[[], float]]:
    """Fit ridge regression to all rows on the Nystroem features of landmarks.

    Returns the model, and a function that returns the leave-one-out error with the first half of
    the landmarks, whose features are the first half of the features.
    """
    landmarks, triangle, Z = nystroem_features(block, len(Y), candidates, n_landmarks)

    def solve(k: int) -> LandmarkRidge:
        features = HeldFeatures(Z[:, :k])
        return solve_features(features, Y, weight, landmarks[:k], triangle[:k, :k], ridges)

    return solve(len(landmarks)), lambda: solve(max(1, len(landmarks) // 2)).loo_error


def solve_features(
    features: Features,
    Y: Floats,
    weight: Floats,
    landmarks: Indices,
    triangle: Floats,
    ridges: Floats,
) -> LandmarkRidge:
    """Fit ridge regression in two passes over features: moments, then residuals of all ridges."""
    total = float(weight.sum())
    means = (weight @ Y) / total
    centred = Y - means
    sums, gram, along, explained = features.moments(centred, weight)
    middle = sums / total
    # Z'WY needs no correction: the weighted mean of centred targets is zero.
    values, vectors = eigh(gram - total * np.outer(middle, middle))
    inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + ridges)
    solved = Solved(middle, vectors, inverse, vectors.T @ along, total)
    residuals = features.residuals(centred, weight, solved)
    spread = float((weight @ centred**2).sum())
    errors = np.einsum("i,iro->r", weight, residuals**2) / spread
    best = int(np.argmin(errors))
    w = vectors @ (inverse[:, [best]] * solved.turned)
    return LandmarkRidge(
        landmarks,
        scipy.linalg.solve_triangular(triangle, w, lower=True, trans="T"),
        means - middle @ w,
        np.ascontiguousarray(residuals[:, best]),
        float(ridges[best]),
        float(errors[best]),
        max(0.0, 1.0 - explained / total),
    )
