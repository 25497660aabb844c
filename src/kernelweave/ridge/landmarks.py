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
    """Ridge regression on the Nystroem features of landmarks, with leave-one-out residuals.

    Parameters
    ----------
    landmarks : ndarray of int
        Rows that the function is a sum over.
    dual_coef, intercept : ndarray
        The function ``sum_m dual_coef[m] k(x, x_m) + intercept``.
    loo_residuals : ndarray of shape (n_samples, n_outputs)
        ``y_i - f^(-i)(x_i)`` with the landmarks fixed.
    ridge : float
        The ridge with the smallest leave-one-out error.
    loo_error : float
        That error, relative to the variance of the targets.
    left_out : float
        Mean of ``1 - |phi(x)|^2`` over the rows: the share of the trace that landmarks leave out.
    """

    landmarks: Indices
    dual_coef: Floats
    intercept: Floats
    loo_residuals: Floats
    ridge: float
    loo_error: float
    left_out: float


def nystroem_bytes(n: int, n_landmarks: int, n_outputs: int, n_ridges: int) -> float:
    """Return the memory that `solve_nystroem` takes: features, blocks of them, and residuals."""
    features = (1.1 * n + 4.0 * min(n, _BLOCK_ROWS) + 8.0 * n_landmarks) * n_landmarks
    return 8.0 * (features + 2.0 * n_ridges * n * n_outputs)


def choose_landmarks(
    block: Callable[[Indices, Indices], Floats], candidates: Indices, n_landmarks: int
) -> tuple[Indices, Floats]:
    """Choose landmarks by block-pivoted Cholesky on a kernel of unit diagonal.

    Returns
    -------
    landmarks : ndarray of int
        The candidates with the largest residuals, batch by batch.
    triangle : ndarray
        Lower triangular L with ``L L'`` the kernel between landmarks.
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


def solve_nystroem(
    block: Callable[[Indices, Indices], Floats],
    Y: Floats,
    weight: Floats,
    candidates: Indices,
    n_landmarks: int,
    ridges: Floats,
) -> LandmarkRidge:
    """Fit ridge regression to all rows on the Nystroem features of landmarks.

    With centred features Z, ``Z'WZ = V diag(e) V'`` and ``T = Z V``, row i has the leverage
    ``h_i = w_i (1 / sum w + sum_k T_ik^2 / (e_k + ridge))`` and the leave-one-out residual
    ``(y_i - f_i) / (1 - h_i)``, for all ridges from one eigendecomposition.
    """
    n, total = len(Y), weight.sum()
    landmarks, triangle = choose_landmarks(block, candidates, n_landmarks)
    rows = [np.arange(a, min(a + _BLOCK_ROWS, n)) for a in range(0, n, _BLOCK_ROWS)]
    features = [
        scipy.linalg.solve_triangular(triangle, block(landmarks, part), lower=True).T
        for part in rows
    ]
    middle = sum(weight[part] @ Z for part, Z in zip(rows, features, strict=True)) / total
    means = (weight @ Y) / total
    gram = np.zeros((len(landmarks), len(landmarks)))
    along = np.zeros((len(landmarks), Y.shape[1]))
    explained = 0.0
    for part, Z in zip(rows, features, strict=True):
        explained += float(weight[part] @ np.einsum("ik,ik->i", Z, Z))
        Z -= middle
        scaled = weight[part][:, None] * Z
        gram += Z.T @ scaled
        along += scaled.T @ (Y[part] - means)
    values, vectors = eigh(gram)
    values, turned = np.maximum(values, 0.0), vectors.T @ along
    inverse = 1.0 / (values[:, None] + ridges)  # (n_features, n_ridges)
    residuals = np.empty((len(ridges), *Y.shape))
    for part, Z in zip(rows, features, strict=True):
        T = Z @ vectors
        leverage = weight[part][:, None] * (1.0 / total + T**2 @ inverse)
        for r in range(len(ridges)):
            fitted = means + T @ (inverse[:, [r]] * turned)
            residuals[r, part] = (Y[part] - fitted) / np.maximum(1.0 - leverage[:, [r]], 1e-12)
    spread = float((weight @ (Y - means) ** 2).sum())
    errors = np.array([float((weight @ part**2).sum()) for part in residuals]) / spread
    best = int(np.argmin(errors))
    w = vectors @ (inverse[:, [best]] * turned)
    return LandmarkRidge(
        landmarks,
        scipy.linalg.solve_triangular(triangle, w, lower=True, trans="T"),
        means - middle @ w,
        residuals[best],
        float(ridges[best]),
        float(errors[best]),
        max(0.0, 1.0 - explained / total),
    )
