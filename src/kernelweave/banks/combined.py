"""The weighted sum of a bank's kernels, computed only as far as somebody asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelweave._types import Floats, Indices, Stored
from .parts import Factors, Part

if TYPE_CHECKING:
    from .base import KernelBank


class CombinedKernel:
    """``sum_j weights_j K_j`` over the rows of a bank.

    Parameters
    ----------
    bank : KernelBank
        Where the kernels are.
    weights : ndarray of shape (n_kernels,)
        Non-negative weights of the normalised kernels.
    """

    def __init__(self, bank: KernelBank, weights: Floats) -> None:
        self.bank = bank
        self.weights = weights
        self._raw = weights * bank.scales
        self._dense: Stored | None = None

    @property
    def n_samples(self) -> int:
        """How many rows the kernel has."""
        return self.bank.n_samples

    def dense(self) -> Stored:
        """Return the whole Gram matrix; kept, so that a second call is free. Do not write to it."""
        if self._dense is None:
            n = self.n_samples
            out = np.zeros((n, n), dtype=self.bank.dtype)
            for part, weights in self._parts():
                part.add_square(weights, out)
            self._dense = out
        return self._dense

    def rows(self, index: Indices) -> Stored:
        """Return some rows of the Gram matrix."""
        if self._dense is not None:
            return self._dense[index]
        out = np.zeros((len(index), self.n_samples), dtype=self.bank.dtype)
        for part, weights in self._parts():
            part.add_rows(weights, index, out)
        return out

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the Gram matrix."""
        if self._dense is not None:
            return np.asarray(self._dense[np.ix_(rows, columns)], dtype=np.float64)
        return np.asarray(self.rows(rows)[:, columns], dtype=np.float64)

    def diag(self) -> Floats:
        """Return the diagonal."""
        out = np.zeros(self.n_samples)
        for part, weights in self._parts():
            part.add_diagonal(weights, out)
        return out

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply, in float64 whatever the storage, without forming the Gram matrix."""
        which = np.flatnonzero(self.weights)
        out = np.zeros(V.shape)
        for j, product in zip(which, self.bank.products(V, which), strict=True):
            out += self.weights[j] * product
        return out

    def features(self) -> Floats | None:
        """Return ``Z`` with ``Z' Z`` equal to the kernel, one row per feature; None if not low rank."""
        blocks = []
        for part, weights in self._parts():
            if not weights.any():
                continue
            if not isinstance(part, Factors):
                return None
            blocks.append(part.scaled(weights))
        return np.concatenate(blocks) if blocks else np.empty((0, self.n_samples))

    def _parts(self) -> Sequence[tuple[Part, Floats]]:
        return [(part, self._raw[ids]) for part, ids in self.bank.parts]
