"""Kernels defined by attribute weights, with or without the links between rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import LinearOperator

from kernelweave._types import Floats

SHAPES = ("diag", "words", "graph")


@dataclass(frozen=True)
class ShapedKernel:
    """A kernel over training rows that is never formed.

    - ``diag``: ``X diag(w) X'``.
    - ``words``: ``Q S^(2t) Q`` with ``Q = X diag(q) X'``, ``q_j = w_j^(1/4) / sqrt(sum_i x_ij)``;
      attributes interact through the links, and a new row needs its attributes only.
    - ``graph``: ``S^t X diag(w) X' S^t``; links are part of the kernel, which is defined for
      training rows only.

    ``S`` is ``D^(-1/2) (A + I) D^(-1/2)`` with the links ``A`` and the degrees ``D`` of ``A + I``.
    """

    shape: str
    X: Any  # training rows, csr_array or ndarray
    weights: Floats  # w
    smoother: Any = None  # S; not needed for ``diag``
    steps: int = 1  # t

    @property
    def column_weights(self) -> Floats:
        """Factors of the columns in the factor of the kernel."""
        if self.shape != "words":
            return np.sqrt(self.weights)
        sums = np.asarray(self.X.sum(axis=0)).ravel()
        return np.where(sums > 0, self.weights**0.25 / np.sqrt(np.where(sums > 0, sums, 1.0)), 0.0)

    def smooth(self, V: Floats) -> Floats:
        """Take ``t`` steps along the links."""
        for _ in range(self.steps):
            V = self.smoother @ V
        return V

    def operator(self) -> LinearOperator:
        """Return the kernel between training rows as an operator."""
        X, n = self.X, self.X.shape[0]
        q = self.column_weights

        def times(v: Any) -> Floats:
            v = np.asarray(v, dtype=np.float64).ravel()
            if self.shape == "words":
                inner = self.smooth(self.smooth(X @ (q * (X.T @ v))))
                return np.asarray(X @ (q * (X.T @ inner)))
            if self.shape == "graph":
                v = self.smooth(v)
            v = np.asarray(X @ (q**2 * (X.T @ v)))
            return self.smooth(v) if self.shape == "graph" else v

        return LinearOperator((n, n), matvec=times, dtype=np.float64)

    def features(self, X: Any) -> Any:
        """Return ``Z`` with ``Z Z'`` equal to the kernel between the rows of ``X``.

        For ``graph`` the rows must be the training rows.
        """
        q = self.column_weights
        scaled = X @ diags_array(q) if hasattr(X, "tocsr") else X * q
        if self.shape == "diag":
            return scaled
        if self.shape == "graph":
            return self.smooth(_dense(scaled))
        return self.smooth(_dense(self.X @ scaled.T)).T


def _dense(X: Any) -> Floats:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)


def smoother(links: csr_array[np.float64]) -> Any:
    """Return ``D^(-1/2) (A + I) D^(-1/2)`` of a symmetric matrix of links."""
    A = csr_array(links) + eye_array(links.shape[0], format="csr")
    roots = diags_array(1.0 / np.sqrt(np.asarray(A.sum(axis=1)).ravel()))
    return csr_array(roots @ A @ roots)
