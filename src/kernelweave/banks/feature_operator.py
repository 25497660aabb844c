"""A kernel matrix that is applied through features of the rows."""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats, Indices, Stored

from .protocol import Features, KernelOperator


class FeatureOperator(KernelOperator):
    """A matrix ``Z Z'`` that is applied through its features; rows are computed on demand."""

    dtype = np.dtype(np.float64)

    def __init__(self, features: Features) -> None:
        self._features, self.n_samples = features, features.n_samples
        self._blocks: list[tuple[Indices, Stored]] = []
        self._dense: Floats | None = None

    def features(self) -> Features:
        return self._features

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        return self._blocks

    def fetch(self, index: Indices) -> None:
        known = [rows for rows, _ in self._blocks]
        missing = np.setdiff1d(index, np.concatenate(known) if known else [])
        if len(missing):
            self._blocks.append((missing, self.rows(missing)))

    def rows(self, index: Indices) -> Floats:
        return np.ascontiguousarray(self._features.times(self._features.rows(index).T).T)

    def dense(self) -> Floats:
        if self._dense is None:
            every = np.arange(self.n_samples)
            self._dense = self.block(every, every)
        return self._dense

    def block(self, rows: Indices, columns: Indices) -> Floats:
        left = self._features.rows(rows)
        return left @ (left if columns is rows else self._features.rows(columns)).T

    def diag(self) -> Floats:
        Z = self._features.rows(np.arange(self.n_samples))
        return np.asarray(np.einsum("nr,nr->n", Z, Z))

    def __matmul__(self, V: Floats) -> Floats:
        return self._features.times(self._features.sums(V))
