"""Landmarks of a kernel by pivoted Cholesky, and its Nystroem features.

With landmarks ``P`` and ``K_PP = L L'`` the features of a row are ``phi(x) = L^-1 k(P, x)``. A
function ``phi(x)'w`` lies in the space of the exact kernel and has exactly the norm ``|w|`` there,
so that objectives need no correction; only lower bounds do, by what the features leave out.

References
----------
Williams and Seeger (2001), Using the Nystroem method to speed up kernel machines, NIPS 13.
Fine and Scheinberg (2001), Efficient SVM training using low-rank kernel representations, JMLR 2
(pivoting).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from kernelweave import _core
from kernelweave._types import Floats, Indices
from kernelweave.banks.views import Views, gaussian_rate, is_plain_gaussian
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import Rows, take

TIGHT = 1e-13  # trace that all landmarks together may leave out of the sample, relative


@dataclass(frozen=True)
class Landmarks:
    """Landmarks of one kernel in pivoting order, so that any leading part is a choice too."""

    kernel: Kernel  # the kernel as written
    rows: Rows  # the landmarks, prepared for the kernel
    # (n_landmarks, n_landmarks): lower triangular ``L`` with ``L L'`` the kernel between landmarks.
    triangle: Floats
    rank: int  # number of leading landmarks whose features are kept. All of them serve for bounds.
    complete: bool  # whether all landmarks together leave out no more than rounding
    index: Indices  # (n_landmarks,): their row numbers

    @property
    def size(self) -> int:
        """Number of landmarks."""
        return len(self.triangle)

    def features(self, rows: Rows) -> Floats:
        """Return the features of rows by all landmarks."""
        block = self.kernel.block(rows, self.rows)
        solved = scipy.linalg.solve_triangular(
            self.triangle, block.T, lower=True, check_finite=False
        )
        return np.asarray(solved.T)

    def fold(self, w: Floats) -> Floats:
        """Return ``c`` with ``phi(x)'w = k(x, P) c`` for weights of the features kept."""
        r = self.rank
        return np.asarray(
            scipy.linalg.solve_triangular(
                self.triangle[:r, :r], w, lower=True, trans="T", check_finite=False
            )
        )


def find_landmarks(
    kernels: Sequence[Kernel],
    which: Sequence[int],
    views: Views,
    sample: Sequence[Indices],
    *,
    tol: float,
    max_rank: int,
) -> list[Landmarks]:
    """Return landmarks of the kernels ``which``, each chosen from the rows of its sample.

    The features kept may leave out a share ``tol`` of the trace of the centred kernel.
    """
    rows = {j: take(views[j], index) for j, index in zip(which, sample, strict=True)}
    plain = [j for j in which if is_plain_gaussian(kernels[j], rows[j])]
    views_of = [np.ascontiguousarray(rows[j].T) for j in plain]
    rates = np.array([gaussian_rate(kernels[j]) for j in plain])
    limits = np.array([min(max_rank, view.shape[1]) for view in views_of], dtype=np.int64)
    parts = dict(zip(plain, _core.factor_gaussians(views_of, rates, TIGHT, limits), strict=True))
    found = []
    for j, index in zip(which, sample, strict=True):
        if j not in parts:
            parts[j] = _factor(kernels[j], rows[j], max_rank)
        item = _lead(kernels[j], rows[j], parts[j], tol)
        found.append(replace(item, index=index[item.index]))
    return found


def _factor(kernel: Kernel, rows: Rows, max_rank: int) -> tuple[bool, Floats, Indices, Floats]:
    diagonal = kernel.diagonal(rows)

    def column(i: int) -> Floats:
        return np.ascontiguousarray(kernel.block(rows, take(rows, [i])).ravel())

    return _core.factor_by_columns(diagonal, column, TIGHT, min(max_rank, len(diagonal)))


def _lead(
    kernel: Kernel, rows: Rows, parts: tuple[bool, Floats, Indices, Floats], tol: float
) -> Landmarks:
    """Return landmarks with the smallest rank that meets the tolerance."""
    complete, columns, pivots, residual = parts
    if not len(pivots):
        return Landmarks(kernel, take(rows, slice(0, 0)), np.zeros((0, 0)), 0, complete, pivots)
    squares = np.einsum("rn,rn->r", columns, columns)
    centred = float((squares - columns.sum(axis=1) ** 2 / columns.shape[1]).sum())
    # Trace left out after each column, summed from the last one so that small values keep digits.
    left = np.cumsum(squares[::-1])[::-1] - squares + residual.sum()
    rank = int(np.flatnonzero(left <= tol * centred)[0]) + 1 if left[-1] <= tol * centred else None
    triangle = np.tril(columns[:, pivots].T)
    return Landmarks(kernel, take(rows, pivots), triangle, rank or len(pivots), complete, pivots)


@dataclass(frozen=True)
class LandmarkFunction:
    """``f(x) = sum_j k_j(x, P_j) c_j``, the prediction of a Nystroem model."""

    which: Indices  # kernels in use
    rows: tuple[Rows, ...]  # their landmarks, prepared
    coefs: tuple[Floats, ...]  # (n_landmarks, n_outputs): coefficients for the kernels as written

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks of all kernels together."""
        return sum(len(dual_coef) for dual_coef in self.coefs)

    def values(self, kernels: Sequence[Kernel], views: Views) -> Floats:
        """Return the values at rows prepared for the kernels in use, one column per output."""
        out = np.zeros((views.n_samples, self.coefs[0].shape[1]))
        for k, (rows, dual_coef) in enumerate(zip(self.rows, self.coefs, strict=True)):
            out += kernels[k].block(views[k], rows) @ dual_coef
        return out
