"""The weighted sum of kernels with exact storage, as rows of its Gram matrix on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices, Stored

from .protocol import KernelFunction, KernelOperator, WeightedSum
from .storage import support
from .weighted import PANEL

if TYPE_CHECKING:
    from .base import KernelBank

_MOST_ROWS = 0.35  # share of rows from which all are computed, at the cost of half of them


class GramKernel(KernelOperator):
    """A symmetric matrix.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        float64, not changed.
    """

    def __init__(self, gram: Floats) -> None:
        self.gram, self.n_samples, self.dtype = gram, len(gram), gram.dtype

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        return [(np.arange(len(self.gram)), self.gram)]

    def fetch(self, index: Indices) -> None:
        pass

    def scaled(self, factor: float) -> GramKernel:
        return self if factor == 1.0 else GramKernel(factor * self.gram)

    def dense(self) -> Floats:
        return self.gram

    def rows(self, index: Indices) -> Floats:
        return np.asarray(self.gram[index])

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return np.asarray(self.gram[np.ix_(rows, columns)])

    def diag(self) -> Floats:
        return np.ascontiguousarray(self.gram.diagonal())

    def __matmul__(self, V: Floats) -> Floats:
        return gram_product(self.gram, V)


def gram_product(gram: Stored, V: Floats) -> Floats:
    """Return ``gram @ V`` in panels of rows, the same for any number of threads."""
    return np.concatenate(run_blocks(lambda rows: gram[rows] @ V, len(gram), PANEL))


class KernelSum(WeightedSum):
    """``sum_j weights_j K_j`` over the rows of a bank with exact storage.

    Rows are computed when they are first needed and kept; `dense` computes all of them, at half the
    cost per row.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    weights : ndarray of shape (n_kernels,)
        Non-negative weights of the normalised kernels.
    coarse : bool
        Whether factors may be cut to their leading columns.
    """

    bank: KernelBank

    def __init__(self, bank: KernelBank, weights: Floats, *, coarse: bool = False) -> None:
        self.bank, self.weights = bank, weights
        self.n_samples, self.dtype = bank.n_samples, bank.dtype
        raw = weights * bank.scales
        used = [(part, ids) for part, ids in bank.parts if raw[ids].any()] or bank.parts[:1]
        self._parts = [part.weighted(raw[ids], coarse=coarse) for part, ids in used]
        self._blocks: list[tuple[Indices, Stored]] = []
        self._place = np.full((bank.n_samples, 2), -1)  # block and row within it

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        return self._blocks

    def scaled(self, factor: float) -> KernelOperator:
        if factor == 1.0:
            return self
        if self.dtype == np.float64:
            return GramKernel(factor * np.asarray(self.dense(), dtype=np.float64))
        return KernelSum(self.bank, factor * self.weights)

    def dense(self) -> Stored:
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
        self.fetch(index)
        out = np.empty((len(index), self.n_samples), dtype=self.dtype)
        for b in np.unique(self._place[index, 0]):
            here = np.flatnonzero(self._place[index, 0] == b)
            out[here] = self._blocks[b][1][self._place[index[here], 1]]
        return out

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the Gram matrix; cheapest where rows and columns are the same array."""
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
        out = np.zeros(self.n_samples)
        for part in self._parts:
            part.add_diagonal(out)
        return out

    def _multiplies_gram(self, V: Floats) -> bool:
        """Whether a product with ``V`` forms the whole Gram matrix, if it is not there yet.

        A solver that starts from that many coefficients needs it anyway, and one pass over it is
        cheaper than one over every kernel. Sums of float32 storage would not be those of the
        kernels.
        """
        if self.dtype != np.float64:
            return False
        return self._is_whole() or len(support(V)) > _MOST_ROWS * self.n_samples

    @property
    def _sums_rows(self) -> bool:
        """Whether a product with few coefficients sums their rows of the matrix.

        Stored Gram matrices are then read once, for rows that an inner solver needs next, instead
        of once for the product and once more for the rows.
        """
        return all(part.stored for part in self._parts) and self.dtype == np.float64

    def __matmul__(self, V: Floats) -> Floats:
        if self._multiplies_gram(V):
            return gram_product(self.dense(), V)
        if not self._sums_rows:
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
        return self @ V if self.bank.is_exact else self.bank.exact_product(self.weights, V)

    def start_values(self, dual_coef: Floats) -> Floats:
        return self @ dual_coef

    def moved_values(
        self,
        dual_coef: Floats,
        fitted: Floats,
        weights: Floats,
        products: Callable[[Indices], Floats],
    ) -> Floats:
        if self._multiplies_gram(dual_coef) or self._sums_rows:
            return self @ dual_coef
        change = self.weights - weights  # mostly zero
        ids = np.flatnonzero(change)
        if not len(ids):
            return fitted
        return fitted + np.tensordot(change[ids], products(ids), axes=1)

    def function(
        self,
        dual_coef: Floats,
        fitted: Floats,
        which: Indices,
        quadratic_forms: Floats,
        columns: Floats | None = None,
    ) -> KernelFunction:
        weights, bank = self.weights[which], self.bank
        dropped = bank.residual_forms(dual_coef)[which] if bank.leaves_out else 0.0
        norms = np.zeros(len(self.weights))
        norms[which] = weights * np.sqrt(quadratic_forms + dropped)
        return KernelFunction(fitted, norms, float(weights @ quadratic_forms))

    def columns(self) -> Floats | None:
        Z = self.factor()
        return None if Z is None else Z.T

    def factor(self) -> Floats | None:
        blocks = [Z for part in self._parts if (Z := part.factor()) is not None]
        return np.concatenate(blocks) if len(blocks) == len(self._parts) else None
