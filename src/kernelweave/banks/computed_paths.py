"""The kernels of a sum-product network with large n: leaves are computed whenever they are needed.

No matrix over all rows is formed. Blocks of the leaves come from the rows, are multiplied along the
paths and summed; only the blocks that an inner solver works with may be in single precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices, Stored
from kernelweave.kernels.network import Network, Path

from .base import KernelBank
from .paths import ExplicitForms, PathBank
from .protocol import KernelOperator, Workspace
from .storage import support
from .weighted import Weighted

_TILE_BYTES = 3.2e7  # of the leaves that are held at a time


@dataclass(frozen=True)
class _Constant:
    """A leaf that has the same value everywhere, in the place of a `Weighted`."""

    value: float

    def add_diagonal(self, out: Floats) -> None:
        out += self.value

    def add_tile(
        self, rows: Indices, columns: Indices, out: Stored, *, fresh: bool = False
    ) -> None:
        out[:] = self.value


@dataclass(frozen=True)
class ComputedLeaves:
    """Kernels on demand, one of them per leaf, or constants."""

    bank: KernelBank
    leaves: tuple[Weighted | _Constant, ...]

    @classmethod
    def of(
        cls, bank: KernelBank, which: Sequence[int], constants: dict[int, float]
    ) -> ComputedLeaves:
        """Take kernels of a bank that computes all of them, or the ``constants`` in their place."""
        place = {j: (part, k) for part, ids in bank.parts for k, j in enumerate(ids.tolist())}
        leaves: list[Weighted | _Constant] = []
        for j in which:
            part, k = place[j]
            weights = np.zeros(part.n_kernels)
            weights[k] = bank.scales[j]
            leaves.append(_Constant(constants[j]) if j in constants else part.weighted(weights))
        return cls(bank, tuple(leaves))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.bank.n_samples

    @property
    def workspace(self) -> Workspace:
        """Memory for parts of the matrix."""
        assert self.bank.workspace is not None
        return self.bank.workspace

    def tile(self, rows: Indices, columns: Indices, dtype: Any = np.float64) -> Stored:
        """Return a block of every leaf, of shape (n_leaves, len(rows) * len(columns))."""
        out = np.empty((len(self.leaves), len(rows), len(columns)), dtype=dtype)
        for block, leaf in zip(out, self.leaves, strict=True):
            leaf.add_tile(rows, columns, block, fresh=True)
        return out.reshape(len(out), -1)

    def diagonals(self) -> Floats:
        """Return the diagonal of every leaf."""
        out = np.zeros((len(self.leaves), self.n_samples))
        for diagonal, leaf in zip(out, self.leaves, strict=True):
            leaf.add_diagonal(diagonal)
        return out

    def panels(self, n_rows: int, n_columns: int) -> Iterator[slice]:
        """Yield rows whose blocks of all leaves fit in a little memory."""
        step = int(max(1, _TILE_BYTES // (8 * max(1, n_columns) * len(self.leaves))))
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))


class ComputedPathBank(PathBank):
    """A canonical network with its paths written out, over leaves that are computed on demand."""

    leaves: ComputedLeaves  # type: ignore[assignment]

    def __init__(self, leaves: ComputedLeaves, network: Network, paths: list[Path]) -> None:
        super().__init__(leaves, network, paths)  # type: ignore[arg-type]

    def kernel(self, u: Floats) -> KernelOperator:
        return self.combine(self.path_weights(u))

    def combine(self, weights: Floats) -> KernelOperator:  # type: ignore[override]
        return ComputedPaths(self, weights)

    def path_forms(self, V: Floats, added: Floats | None = None) -> ExplicitForms:
        forms = self._sums(V, np.arange(self.n_kernels), added)
        return ExplicitForms(self.counts * np.maximum(forms, 0.0), self.A)

    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        which = np.arange(self.n_kernels) if which is None else which
        return np.maximum(self._sums(V, which), 0.0)

    def _sums(self, V: Floats, which: Indices, added: Floats | None = None) -> Floats:
        """Return ``tr(V' K_m V)``, raised by ``sum_i added_i K_ii`` if given."""
        table, used = self.table.subset(which), support(V)
        total, picked = np.zeros(len(which)), V[used]
        if added is not None:
            total += table.quadratic_forms(self.leaves.diagonals(), added)
        for rows in self.leaves.panels(len(used), len(used)):
            weights = picked[rows] @ picked[rows.start :].T
            weights[:, rows.stop - rows.start :] *= 2.0  # of two entries of the matrix
            tile = self.leaves.tile(used[rows], used[rows.start :])
            total += table.quadratic_forms(tile, weights.ravel())
        return total


class ComputedPaths(KernelOperator):
    """``sum_m weights_m K_m`` of the paths of a network, computed on demand.

    Parameters
    ----------
    bank : ComputedPathBank
        The paths.
    weights : ndarray of shape (n_paths,)
        Theirs.
    """

    def __init__(self, bank: ComputedPathBank, weights: Floats) -> None:
        self.bank, self.weights = bank, weights
        self.n_samples, self.dtype = bank.n_samples, bank.leaves.bank.dtype

    @property
    def workspace(self) -> Workspace:
        return self.bank.leaves.workspace

    def _tile(self, rows: Indices, columns: Indices, dtype: Any) -> Floats:
        leaves = self.bank.leaves.tile(rows, columns, dtype)
        return self.bank.table.combine(leaves, self.weights).reshape(len(rows), len(columns))

    def fill_square(self, index: Indices, known: int, out: Stored) -> None:
        for part in self.bank.leaves.panels(len(index) - known, len(index)):
            rows = slice(known + part.start, known + part.stop)
            tile = self._tile(index[rows], index[: rows.stop], out.dtype)
            out[rows, : rows.stop] = tile
            out[: rows.start, rows] = tile[:, : rows.start].T

    def product_at(self, rows: Indices, V: Floats) -> Floats:
        return self._product(rows, V, self.dtype)

    def _product(self, rows: Indices, V: Floats, dtype: Any) -> Floats:
        used, out = support(V), np.zeros((len(rows), V.shape[1]))
        if len(used):
            for part in self.bank.leaves.panels(len(rows), len(used)):
                out[part] = self._tile(rows[part], used, dtype) @ V[used]
        return out

    def __matmul__(self, V: Floats) -> Floats:
        return self.product_at(np.arange(self.n_samples), V)

    def exact_product(self, V: Floats) -> Floats:
        return self._product(np.arange(self.n_samples), V, np.float64)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        out = np.empty((len(rows), len(columns)))
        for part in self.bank.leaves.panels(len(rows), len(columns)):
            out[part] = self._tile(rows[part], columns, np.float64)
        return out

    def rows(self, index: Indices) -> Floats:
        return self.block(index, np.arange(self.n_samples))

    def diag(self) -> Floats:
        return self.bank.table.combine(self.bank.leaves.diagonals(), self.weights)

    def scaled(self, factor: float) -> ComputedPaths:
        return self if factor == 1.0 else ComputedPaths(self.bank, factor * self.weights)

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        return []

    def fetch(self, index: Indices) -> None:
        raise AssertionError("inner solvers take parts of a kernel on demand")

    def dense(self) -> Stored:
        raise AssertionError("no matrix over all rows is formed")
