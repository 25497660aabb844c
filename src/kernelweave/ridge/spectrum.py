"""Eigendecompositions of centred kernels, for leave-one-out values in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from kernelweave import _core
from kernelweave._linalg import eigh, right_svd
from kernelweave._types import Floats, Indices
from kernelweave.banks import KernelBank, KernelSum
from kernelweave.errors import ConstantKernelsError, InputError

DENSE_ROWS = 2000  # rows up to which all eigenvectors are computed
MAX_RANK = 1000  # rank of the factor that replaces the kernel beyond
_FACTOR_TOL = 1e-9  # trace that such a factor may leave out, relative
_NEGATIVE = 1e-8  # largest negative eigenvalue, relative to the trace, that counts as rounding
_ALIKE = 1e-9  # distance of the alignment of two kernels from one below which they are copies


@dataclass(frozen=True)
class Directions:
    """Eigenvalues of a centred kernel ``U diag(d) U'``, and its functions as kernel expansions.

    A ridge solution is ``f(x) = sum_i c_i k(x, x_i) - shift`` with ``c = basis @ g`` on the rows
    `rows`, ``shift = offsets @ g`` and ``g`` the coordinates of its coefficients in ``U``.
    """

    values: Floats  # (rank,): eigenvalues d, not negative
    rows: Indices  # (n_rows,): training rows of the expansions
    basis: Floats  # (n_rows, rank): coefficients of each direction
    offsets: Floats  # (rank,): constants that centring subtracts


@dataclass(frozen=True)
class Spectrum(Directions):
    """Directions with their eigenvectors in memory."""

    vectors: Floats  # (n_samples, rank): orthonormal columns U


def kernel_spectrum(kernel: KernelSum, name: str = "The kernel") -> Spectrum:
    """Return the spectrum of a centred kernel of unit mean diagonal.

    Factors are decomposed as they are. Beyond `DENSE_ROWS` rows a kernel that has none is replaced
    by a pivoted-Cholesky factor of rank `MAX_RANK` at most, and functions are then expansions in
    its pivots alone: leave-one-out values are exact for the kernel that predicts.
    """
    n = kernel.n_samples
    everything = np.arange(n)
    Z = kernel.factor()
    if Z is not None and len(Z) < n:
        return _of_factor(Z, everything, None)
    if n > DENSE_ROWS:
        _, Z, pivots, _ = _core.factor_by_columns(
            kernel.diag(),
            lambda i: kernel.rows(np.array([i]))[0].astype(np.float64),
            _FACTOR_TOL,
            MAX_RANK,
        )
        return _of_factor(Z, pivots, Z[:, pivots])
    means = np.asarray(kernel.dense(), dtype=np.float64).mean(axis=0)
    K = np.array(kernel.dense(), dtype=np.float64, order="F")  # LAPACK's order saves it a copy
    K -= means
    K -= means[:, None] - means.mean()
    values, vectors = eigh(K)
    # Centring leaves the rounding of the entries it cancels, relative to their own size.
    rounding = 4.0 * float(np.finfo(kernel.dtype).eps) * float(kernel.diag().sum())
    if values[0] < -max(_NEGATIVE * float(values.sum()), rounding, 1e-300):
        raise InputError(
            f"{name}: the Gram matrix is not positive semi-definite (an eigenvalue is "
            f"{values[0]:.3g}). Hint: clip its negative eigenvalues, or add a multiple of the "
            "identity."
        )
    return Spectrum(np.maximum(values, 0.0), everything, vectors, means @ vectors, vectors)


def _of_factor(Z: Floats, rows: Indices, corner: Floats | None) -> Spectrum:
    """Decompose ``Z' Z``; with a triangular corner, functions are expansions in its rows."""
    means = Z.mean(axis=1)
    roots, vectors = right_svd(Z - means[:, None])
    # Directions of no length are arbitrary: they need not even be orthogonal to a constant.
    kept = roots > 1e-8 * max(float(roots.max(initial=0.0)), 1e-300)
    roots, vectors = roots[kept], np.ascontiguousarray(vectors[:, kept])
    features = Z @ vectors
    basis = vectors
    if corner is not None:
        # Z' Z = K[:, rows] K[rows, rows]^-1 K[rows, :], and the corner is a root of the middle.
        basis = scipy.linalg.solve_triangular(corner, features, check_finite=False)
    return Spectrum(roots**2, rows, basis, means @ features, vectors)


def distinct_kernels(bank: KernelBank) -> Indices:
    """Return the kernels that are neither constant nor copies of earlier ones.

    Two kernels are copies when the cosine between their centred Gram matrices is one, to 1e-9.
    """
    n = bank.n_samples
    varied = varied_kernels(bank)
    means = bank.products(np.full((n, 1), 1.0 / n), varied)[:, :, 0]
    sizes = bank.traces(centred=True)[varied] / n
    diagonals = [
        (bank.combine(_unit(bank, j)).diag() - 2.0 * mean + mean.mean()) / size
        for j, mean, size in zip(varied, means, sizes, strict=True)
    ]
    kept: list[int] = []
    for k, diagonal in enumerate(diagonals):
        # Copies have the same diagonal, which is cheap to compare.
        near = [i for i in kept if np.abs(diagonal - diagonals[i]).max() < 1e-3]
        if not any(_alignment(bank, varied[i], varied[k]) > 1 - _ALIKE for i in near):
            kept.append(k)
    return varied[kept]


def varied_kernels(bank: KernelBank) -> Indices:
    """Return the kernels that are not constant; at least one must not be."""
    varied = np.flatnonzero(bank.centred_traces > 0)
    if not len(varied):
        raise ConstantKernelsError
    return varied


def _alignment(bank: KernelBank, first: Any, second: Any) -> float:
    A, B = (_centred(bank.combine(_unit(bank, j))) for j in (first, second))
    return float(np.vdot(A, B) / np.sqrt(np.vdot(A, A) * np.vdot(B, B)))


def _centred(kernel: KernelSum) -> Floats:
    K = np.array(kernel.dense(), dtype=np.float64)
    means = K.mean(axis=0)
    return np.asarray(K - means - means[:, None] + means.mean())


def _unit(bank: KernelBank, kernel: Any) -> Floats:
    return np.asarray(np.eye(1, bank.n_kernels, int(kernel))[0])
