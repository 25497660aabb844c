"""Weighted sums of the kernels of one storage form, added to the Gram matrix of a sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Bools, Floats, Indices, Stored

PANEL = 256  # rows of a block product; fixed, so that sums do not depend on the thread count


class Weighted(ABC):
    """A weighted sum of the kernels of a part."""

    stored: ClassVar[bool] = False  # whether rows are read, not computed

    @abstractmethod
    def add_upper(self, out: Stored, *, fresh: bool) -> None:
        """Add to the upper triangle of ``out``; write it instead where ``out`` is ``fresh``."""

    @abstractmethod
    def add_rows(self, index: Indices, out: Stored) -> None:
        """Add some rows to ``out``."""

    @abstractmethod
    def add_block(self, index: Indices, out: Floats) -> None:
        """Add the block of some rows and the same columns to the upper triangle of ``out``."""

    @abstractmethod
    def add_diagonal(self, out: Floats) -> None:
        """Add the diagonal to ``out``."""

    def add_tile(
        self, rows: Indices, columns: Indices, out: Stored, *, fresh: bool = False
    ) -> None:
        """Add the block of some rows and columns to ``out``, as exact as the type of ``out``."""
        raise NotImplementedError

    def add_square(self, index: Indices, known: int, out: Stored, *, fresh: bool = False) -> None:
        """Add the block of some rows and the same columns, but not of the first ``known`` ones."""
        for start in range(known, len(index), PANEL):
            rows = slice(start, min(start + PANEL, len(index)))
            tile = np.empty((rows.stop - start, len(index)), dtype=out.dtype)
            self.add_tile(index[rows], index, tile, fresh=True)
            if fresh:
                out[rows], out[:known, rows] = tile, tile[:, :known].T
            else:
                out[rows] += tile
                out[:known, rows] += tile[:, :known].T

    def add_product(self, rows: Indices, used: Indices, V: Floats, out: Floats) -> None:
        """Add the block of some rows and of the columns ``used``, times ``V``, to ``out``."""
        raise NotImplementedError

    def factor(self) -> Floats | None:
        """Return ``Z`` with ``Z' Z`` equal to the sum, or None if its rank is not low."""
        return None


@dataclass(frozen=True)
class WeightedFactors(Weighted):
    """A factor of the weighted sum, one factor column per row."""

    Z: Floats

    def add_upper(self, out: Stored, *, fresh: bool) -> None:
        Z = self.Z.astype(out.dtype, copy=False)

        def panel(rows: slice) -> None:
            here = out[rows, rows.start :]
            if fresh:
                np.matmul(Z[:, rows].T, Z[:, rows.start :], out=here)
            else:
                here += Z[:, rows].T @ Z[:, rows.start :]

        if len(Z) or fresh:
            run_blocks(panel, len(out), PANEL)

    def add_rows(self, index: Indices, out: Stored) -> None:
        picked = np.ascontiguousarray(self.Z[:, index].T)

        def panel(columns: slice) -> None:
            out[:, columns] += picked @ self.Z[:, columns]

        if len(self.Z):
            run_blocks(panel, out.shape[1], 4 * PANEL)

    def add_block(self, index: Indices, out: Floats) -> None:
        Z = self.Z[:, index]

        def panel(rows: slice) -> None:
            out[rows, rows.start :] += Z[:, rows].T @ Z[:, rows.start :]

        run_blocks(panel, len(out), PANEL)

    def add_diagonal(self, out: Floats) -> None:
        out += np.einsum("rn,rn->n", self.Z, self.Z)

    def add_tile(
        self, rows: Indices, columns: Indices, out: Stored, *, fresh: bool = False
    ) -> None:
        left = np.ascontiguousarray(self.Z[:, rows].T, dtype=out.dtype)
        right = self.Z[:, columns].astype(out.dtype, copy=False)

        def panel(part: slice) -> None:
            if fresh:
                np.matmul(left[part], right, out=out[part])
            else:
                out[part] += left[part] @ right

        if len(self.Z) or fresh:
            run_blocks(panel, len(out), PANEL)

    def add_product(self, rows: Indices, used: Indices, V: Floats, out: Floats) -> None:
        scores = self.Z[:, used] @ V

        def panel(part: slice) -> None:
            out[part] += self.Z[:, rows[part]].T @ scores

        run_blocks(panel, len(out), 4 * PANEL)

    def factor(self) -> Floats:
        return self.Z


@dataclass(frozen=True)
class WeightedLadder(Weighted):
    """Weights of kernels that share a distance matrix, and the rows they are not zero for."""

    distances: Stored
    rates: Floats
    weights: Floats
    present: Bools

    def add_upper(self, out: Stored, *, fresh: bool) -> None:
        if fresh:
            out[:] = 0.0
        if len(self.rates):
            _core.ladder_combine_upper(self.distances, self.rates, self.weights, out)

    def add_rows(self, index: Indices, out: Stored) -> None:
        if len(self.rates):
            _core.ladder_combine_rows(self.distances, self.rates, self.weights, index, out)

    def add_block(self, index: Indices, out: Floats) -> None:
        if len(self.rates):
            _core.ladder_combine_block(self.distances, self.rates, self.weights, index, out)

    def add_diagonal(self, out: Floats) -> None:
        out[self.present] += self.weights.sum()


@dataclass(frozen=True)
class WeightedGrams(Weighted):
    """Weights of stored matrices."""

    stored: ClassVar[bool] = True

    groups: list[tuple[Floats, list[Stored]]]  # weights and matrices, one pair per type of storage
    diagonal: Floats  # (n_samples,): diagonal of the weighted sum

    def add_upper(self, out: Stored, *, fresh: bool) -> None:
        if fresh:
            out[:] = 0.0
        for weights, grams in self.groups:
            _core.gram_combine_upper(grams, weights, out)

    def add_rows(self, index: Indices, out: Stored) -> None:
        for weights, grams in self.groups:
            _core.gram_combine_rows(grams, weights, index, out)

    def add_block(self, index: Indices, out: Floats) -> None:
        for weights, grams in self.groups:
            _core.gram_combine_block(grams, weights, index, out)

    def add_diagonal(self, out: Floats) -> None:
        out += self.diagonal
