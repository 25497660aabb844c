"""The weighted sum of the kernels of a bank, computed row by row on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices, Stored

from .gram import GramKernel
from .storage import WeightedFactors, WeightedGrams, support

if TYPE_CHECKING:
    from .base import KernelBank

_MOST_ROWS = 0.35  # share of rows from which all are computed: that costs as much as half of them
_PANEL = 256  # rows of a product; fixed, so that sums do not depend on the thread count


class CombinedKernel:
    """``sum_j weights_j K_j`` over the rows of a bank.

    Rows are computed when they are first needed and kept; `dense` computes all of them, at half the
    price per row.

    Parameters
    ----------
    bank : KernelBank
        Where the kernels are.
    weights : ndarray of shape (n_kernels,)
        Non-negative weights of the normalised kernels.
    coarse : bool
        Whether factors may be cut to their leading columns.
    """

    def __init__(self, bank: KernelBank, weights: Floats, *, coarse: bool = False) -> None:
        self.bank = bank
        self.weights = weights
        raw = weights * bank.scales
        used = [(part, ids) for part, ids in bank.parts if raw[ids].any()] or bank.parts[:1]
        self._parts = [part.weighted(raw[ids], coarse=coarse) for part, ids in used]
        self._blocks: list[tuple[Indices, Stored]] = []
        self._place = np.full((bank.n_samples, 2), -1)  # block and row within it

    @property
    def n_samples(self) -> int:
        """How many rows the kernel has."""
        return self.bank.n_samples

    @property
    def dtype(self) -> Any:
        """The type of computed rows."""
        return self.bank.dtype

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        """The rows computed so far, as (row numbers, rows)."""
        return self._blocks

    def scaled(self, factor: float) -> CombinedKernel | GramKernel:
        """Return a multiple of the kernel."""
        if factor == 1.0:
            return self
        if self.dtype == np.float64:
            return GramKernel(factor * np.asarray(self.dense(), dtype=np.float64))
        return CombinedKernel(self.bank, factor * self.weights)

    def dense(self) -> Stored:
        """Return the whole Gram matrix; do not write to it."""
        n = self.n_samples
        if not self._is_whole():
            out = np.empty((n, n), dtype=self.dtype)
            for k, part in enumerate(self._parts):
                part.add_upper(out, fresh=k == 0)
            _core.mirror_upper(out)
            self._keep(np.arange(n), out)
        return self._blocks[-1][1]

    def _is_whole(self) -> bool:
        return bool(self._blocks) and len(self._blocks[-1][1]) == self.n_samples

    def fetch(self, index: Indices) -> None:
        """Compute those of the rows that are not there yet; all of them if that is cheaper."""
        missing = index[self._place[index, 0] < 0]
        if not len(missing):
            return
        if (self._place[:, 0] >= 0).sum() + len(missing) > _MOST_ROWS * self.n_samples:
            self.dense()
            return
        out = np.zeros((len(missing), self.n_samples), dtype=self.dtype)
        for part in self._parts:
            part.add_rows(missing, out)
        self._keep(missing, out)

    def _keep(self, index: Indices, rows: Stored) -> None:
        self._place[index, 0] = len(self._blocks)
        self._place[index, 1] = np.arange(len(index))
        self._blocks.append((index, rows))

    def rows(self, index: Indices) -> Stored:
        """Return some rows of the Gram matrix."""
        self.fetch(index)
        out = np.empty((len(index), self.n_samples), dtype=self.dtype)
        for b in np.unique(self._place[index, 0]):
            here = np.flatnonzero(self._place[index, 0] == b)
            out[here] = self._blocks[b][1][self._place[index[here], 1]]
        return out

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the Gram matrix, in float64; cheapest where rows and columns agree."""
        if self._is_whole():
            return self._blocks[-1][1][np.ix_(rows, columns)].astype(np.float64, copy=False)
        here = self.dtype == np.float64 and bool((self._place[rows, 0] >= 0).all())
        if here or rows is not columns:
            return self.rows(rows)[:, columns].astype(np.float64, copy=False)
        out = np.zeros((len(rows), len(rows)))
        for part in self._parts:
            part.add_block(rows, out)
        _core.mirror_upper(out)
        return out

    def diag(self) -> Floats:
        """Return the diagonal."""
        out = np.zeros(self.n_samples)
        for part in self._parts:
            part.add_diagonal(out)
        return out

    def forms_for(self, V: Floats) -> bool:
        """Tell whether a product with ``V`` forms the whole Gram matrix, if it is not there yet.

        A machine that starts from so many coefficients asks for it anyway, and one reading of it is
        cheaper than one of every kernel. Sums of float32 storage would not be those of the kernels.
        """
        if self.dtype != np.float64:
            return False
        return self._is_whole() or len(support(V)) > _MOST_ROWS * self.n_samples

    @property
    def sums_rows(self) -> bool:
        """Whether a product with few coefficients sums up their rows of the combined kernel.

        Stored matrices are then read once for the rows, which a machine asks for next, instead of
        once for the product and once more for the rows.
        """
        stored = all(isinstance(part, WeightedGrams) for part in self._parts)
        return stored and self.dtype == np.float64

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply, in float64 whatever the storage."""
        if self.forms_for(V):
            K = self.dense()
            return np.concatenate(run_blocks(lambda rows: K[rows] @ V, len(K), _PANEL))
        if not self.sums_rows:
            return self.product(V)
        self.fetch(support(V))
        if self._is_whole():
            return self @ V
        out = np.zeros(V.shape)
        for index, rows in self._blocks:  # no row is in two of them
            out += rows.T @ V[index]
        return out

    def product(self, V: Floats) -> Floats:
        """Multiply without forming the Gram matrix."""
        which = np.flatnonzero(self.weights)
        return np.asarray(np.tensordot(self.weights[which], self.bank.products(V, which), axes=1))

    def exact_product(self, V: Floats) -> Floats:
        """Multiply by the exact kernels, whatever their forms leave out."""
        return self @ V if self.bank.is_exact else self.bank.exact_product(self.weights, V)

    def features(self) -> Floats | None:
        """Return ``Z`` with ``Z' Z`` equal to the kernel, or None if its rank is not low."""
        if not all(isinstance(part, WeightedFactors) for part in self._parts):
            return None
        blocks = [part.Z for part in self._parts if isinstance(part, WeightedFactors)]
        return np.concatenate(blocks) if blocks else np.empty((0, self.n_samples))
