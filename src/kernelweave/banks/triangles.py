"""Upper triangles of symmetric matrices, row by row: half the memory of the matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats, Indices, Stored

from .base import KernelBank


@dataclass(frozen=True)
class Triangles:
    """Upper triangles of several symmetric matrices."""

    entries: Floats  # (n_matrices, n_samples * (n_samples + 1) / 2): one row per matrix
    n_samples: int  # rows of each matrix

    @classmethod
    def of(cls, bank: KernelBank, which: Sequence[int], *, n_ones: int = 0) -> Triangles:
        """Evaluate each kernel of a bank once, after a number of matrices of ones."""
        n = bank.n_samples
        out = cls(np.ones((n_ones + len(which), n * (n + 1) // 2)), n)
        everything = np.arange(bank.n_kernels)
        # A residual left out by a factor is small only until it is multiplied by other kernels.
        exact = ~bank.rounded & ~bank.residual_roots(everything).any(axis=1)
        for row, j in enumerate(which, n_ones):
            if exact[j] and bank.dtype == np.float64:  # Gaussians share their distances
                gram: Stored = bank.combine((everything == j).astype(np.float64)).dense()
            else:
                gram = bank.scales[j] * bank.kernels[j].block(bank.views[j], bank.views[j])
            out._pack(gram, row)
        return out

    @cached_property
    def _starts(self) -> list[int]:
        """Where each row of a matrix starts among its entries, and the end."""
        lengths = np.arange(self.n_samples, 0, -1)
        return [0, *np.cumsum(lengths).tolist()]

    @cached_property
    def _places(self) -> tuple[Indices, Indices]:
        return np.triu_indices(self.n_samples)

    def _pack(self, gram: Stored, row: int) -> None:
        for i, start in enumerate(self._starts[:-1]):
            self.entries[row, start : self._starts[i + 1]] = gram[i, i:]

    def square(self, entries: Floats) -> Floats:
        """Return the symmetric matrix with these entries."""
        out = np.empty((self.n_samples, self.n_samples))
        for i, start in enumerate(self._starts[:-1]):
            out[i, i:] = entries[start : self._starts[i + 1]]
        _core.mirror_upper(out)
        return out

    def diagonals(self) -> Floats:
        """Return the diagonal of every matrix."""
        return self.entries[:, self._starts[:-1]]

    def weigh(self, V: Floats, added: Floats | None = None) -> tuple[Floats, Floats]:
        """Return entries of all matrices, and weights with which they sum to ``tr(V' K V)``.

        Entries that meet a zero row of ``V`` are left out where that pays. ``sum_i added_i K_ii``
        is added, if given; ``added`` must be zero where ``V`` is.
        """
        rows, columns = self._places
        used = np.asarray(V.any(axis=1))
        inside = np.flatnonzero(used[rows] & used[columns])
        whole = len(inside) > 0.5 * len(rows)
        if whole:
            inside = np.arange(len(rows))
        i, k = rows[inside], columns[inside]
        # Entries off the diagonal stand for two entries of the matrix.
        weights = np.einsum("to,to->t", V[i], V[k]) * np.where(i == k, 1.0, 2.0)
        if added is not None:
            weights += np.where(i == k, added[i], 0.0)
        return self.entries if whole else self.entries[:, inside], weights
