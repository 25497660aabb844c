"""Kernels computed from the rows whenever they are needed; no matrix over all rows is formed.

Gaussian and Laplacian kernels of one view are computed by fused tiles of the core: distances once,
all widths from these. Other kernels are evaluated in panels. Quadratic forms and products are those
of the exact kernels; only the tiles that an inner solver works with are in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices, Stored
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import Rows, take
from kernelweave.kernels.distances import squared_distances

from .kernel_sum import KernelSum, gram_product
from .protocol import Workspace
from .storage import Grams, Ladder, Part, precision, support
from .weighted import PANEL, Weighted

FORM = "on demand"


@dataclass(frozen=True)
class OnDemandOptions:
    """Tunable numbers of kernels on demand, chosen by hand."""

    single_error: float = 2e-6  # of a value by rows in single precision, up to which these are used
    stored_rows: int = 6500  # of a part of the rows, up to which kernels are stored again
    sample: int = 4096  # rows from which the means of kernels are estimated
    working_share: float = 0.5  # of the memory, for the block of an inner solver
    most_working: int = 16_000  # rows of that block
    least_working: int = 2000
    whole_bytes: float = 16.0  # per entry: a sum, in double precision at most, and the rest


OPTIONS = OnDemandOptions()


@dataclass(frozen=True)
class ComputedLadder(Part):
    """Kernels ``exp(-rate_j * distance)`` of the rows of one view."""

    rows: Floats  # (n_samples, n_columns)
    squared: bool  # whether distances are squared Euclidean ones, not absolute ones
    rates: Floats  # (n_kernels,): positive rates
    dtype: Any  # of the tiles that an inner solver works with
    form: str = field(default=FORM, init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.rates)

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        used = support(V)
        return _core.tile_forms(
            self.rows, self.squared, self.rates[which], used, np.ascontiguousarray(V[used])
        )

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        used = support(V)
        rows = np.arange(len(self.rows)) if rows is None else np.ascontiguousarray(rows)
        return _core.tile_kernel_products(
            self.rows, self.squared, self.rates[which], rows, used, np.ascontiguousarray(V[used])
        )

    def rough_products(self, V: Floats, which: Indices, rows: Indices | None) -> Floats:
        if self._single is None or rows is None:
            return self.products(V, which, rows)
        (table, factor), used = self._single, support(V)
        rates, picked = factor * self.rates[which], np.ascontiguousarray(V[used])
        return _core.tile_kernel_products(table, self.squared, rates, rows, used, picked)

    @cached_property
    def _scaled(self) -> tuple[Floats, float]:
        """Rows around their mean, the largest entry one, and what the rates are multiplied by.

        Neither the rows nor their distances overflow in single precision.
        """
        centred = self.rows - self.rows.mean(axis=0)
        size = float(np.abs(centred).max(initial=0.0)) or 1.0
        return centred / size, size**2 if self.squared else size

    @cached_property
    def _single(self) -> tuple[Stored, float] | None:
        """The scaled rows in single precision, None where that is too coarse.

        Rounding moves a point by ``2^-24`` of its norm at most, and the distance t of two points by
        twice that. ``exp(-r t^2)`` then changes by ``sqrt(2 r / e)`` of it, ``exp(-r t)`` by r.
        """
        if self.dtype == np.float64:
            return None
        rows, factor = self._scaled
        rate = factor * float(self.rates.max())
        norm = float(np.linalg.norm(rows, 2 if self.squared else 1, axis=1).max(initial=0.0))
        slope = np.sqrt(2.0 * rate / np.e) if self.squared else rate
        if not slope * 2.0**-23 * norm <= OPTIONS.single_error:
            return None
        return rows.astype(np.float32), factor

    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        active = np.flatnonzero(weights)
        table, factor = (self.rows, 1.0) if self._single is None else self._single
        return WeightedTiles(self, table, factor, active, weights[active])

    def traces(self) -> Floats:
        return np.full(self.n_kernels, float(len(self.rows)))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return np.full(self.n_kernels, float(shares.sum()))

    def take(self, rows: Indices) -> Part:
        some = np.ascontiguousarray(self.rows[rows])
        if len(some) <= OPTIONS.stored_rows:
            return stored_ladder(some, self.squared, self.rates, self.dtype)
        return ComputedLadder(some, self.squared, self.rates, self.dtype)


def stored_ladder(rows: Floats, squared: bool, rates: Floats, dtype: Any) -> Ladder:
    """Return the kernels of a ladder by the distances of all rows.

    Distances that leave the range of the precision are held in another unit, a power of two.
    """
    if dtype == np.float32 and precision(rates, 1.0) != dtype:
        unit = 2.0 ** np.round(np.log2(rates.max()) / (2 if squared else 1))
        rows, rates = rows * unit, rates / unit / (unit if squared else 1.0)
    return Ladder(distances(rows, squared=squared, dtype=dtype), rates)


def distances(rows: Floats, *, squared: bool, dtype: Any) -> Stored:
    """Return the squared Euclidean or the absolute distances between all rows."""
    if squared:
        return squared_distances(rows, rows, dtype=dtype)
    out = np.empty((len(rows), len(rows)), dtype=dtype)
    _core.absolute_distances(rows, rows, out)
    return out


@dataclass(frozen=True)
class WeightedTiles(Weighted):
    """Weights of kernels that share their distances."""

    part: ComputedLadder  # the kernels
    # (n_samples, n_columns): rows for the tiles, in single precision where that is enough.
    table: Stored
    stretch: float  # what the rates are multiplied by for these rows
    # active, weights (n_active,): kernels with a weight, and their weights
    active: Indices
    weights: Floats

    @property
    def _rates(self) -> Floats:
        return self.stretch * self.part.rates[self.active]

    def _arithmetic(self, dtype: Any) -> tuple[Stored, Floats]:
        """Return rows and rates; the rows in single precision serve tiles of that type alone."""
        if dtype == self.table.dtype:
            return self.table, self._rates
        return self.part.rows, self.part.rates[self.active]

    def add_upper(self, out: Stored, *, fresh: bool) -> None:
        self.add_square(np.arange(len(self.table)), 0, out, fresh=fresh)

    def add_rows(self, index: Indices, out: Stored) -> None:
        self.add_tile(index, np.arange(len(self.table)), out)

    def add_tile(
        self, rows: Indices, columns: Indices, out: Stored, *, fresh: bool = False
    ) -> None:
        table, rates = self._arithmetic(out.dtype)
        places = np.ascontiguousarray(rows), np.ascontiguousarray(columns)
        _core.tile_sums(table, self.part.squared, rates, self.weights, *places, not fresh, out)

    def add_square(self, index: Indices, known: int, out: Stored, *, fresh: bool = False) -> None:
        table, rates = self._arithmetic(out.dtype)
        index = np.ascontiguousarray(index)
        _core.tile_square(
            table, self.part.squared, rates, self.weights, index, known, not fresh, out
        )

    def add_block(self, index: Indices, out: Floats) -> None:
        self.add_square(index, 0, out)

    def add_product(self, rows: Indices, used: Indices, V: Floats, out: Floats) -> None:
        if len(self.active):
            out += _core.tile_products(
                self.table, self.part.squared, self._rates, self.weights, rows, used, V
            )

    def add_diagonal(self, out: Floats) -> None:
        out += self.weights.sum()


@dataclass(frozen=True)
class ComputedKernels(Part):
    """Kernels of any kind, evaluated in panels."""

    kernels: tuple[Kernel, ...]
    views: tuple[Rows, ...]  # the prepared rows of each
    dtype: Any  # of stored matrices, where a part of the rows is taken
    form: str = field(default=FORM, init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.kernels)

    @property
    def nbytes(self) -> int:
        return sum({id(rows): getattr(rows, "nbytes", 0) for rows in self.views}.values())

    @cached_property
    def _diagonals(self) -> Floats:
        pairs = zip(self.kernels, self.views, strict=True)
        return np.array([kernel.diagonal(rows) for kernel, rows in pairs])

    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        used = support(V)
        picked = V[used]
        return np.array([np.vdot(picked, part) for part in self.products(V, which, used)])

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        n = len(V) if rows is None else len(rows)
        out = np.zeros((len(which), n, V.shape[1]))
        for k, j in enumerate(which.tolist()):
            self.add_product(j, np.arange(len(V)) if rows is None else rows, V, 1.0, out[k])
        return out

    def add_product(self, j: int, rows: Indices, V: Floats, weight: float, out: Floats) -> None:
        """Add a multiple of ``K_j[rows] V`` to ``out``."""
        used = support(V)
        points, picked = take(self.views[j], used), weight * V[used]

        def panel(part: slice) -> None:
            block = self.kernels[j].block(take(self.views[j], rows[part]), points)
            out[part] += block @ picked

        if len(used):
            run_blocks(panel, len(rows), PANEL)

    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        return WeightedPanels(self, weights)

    def traces(self) -> Floats:
        return np.asarray(self._diagonals.sum(axis=1))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return np.array([float(diagonal @ shares) for diagonal in self._diagonals])

    def take(self, rows: Indices) -> Part:
        views = tuple(take(view, rows) for view in self.views)
        if len(rows) > OPTIONS.stored_rows:
            return ComputedKernels(self.kernels, views, self.dtype)
        pairs = zip(self.kernels, views, strict=True)
        return Grams(tuple(kernel.stored_block(view, self.dtype) for kernel, view in pairs))


@dataclass(frozen=True)
class WeightedPanels(Weighted):
    """Weights of kernels that are evaluated in panels."""

    part: ComputedKernels
    weights: Floats

    def _active(self) -> list[int]:
        return [int(j) for j in np.flatnonzero(self.weights)]

    def add_upper(self, out: Stored, *, fresh: bool) -> None:
        every = np.arange(len(out))
        self.add_tile(every, every, out, fresh=fresh)

    def add_rows(self, index: Indices, out: Stored) -> None:
        self.add_tile(index, np.arange(out.shape[1]), out)

    def add_tile(
        self, rows: Indices, columns: Indices, out: Stored, *, fresh: bool = False
    ) -> None:
        if fresh:
            out[:] = 0.0
        for j in self._active():
            view, kernel, weight = self.part.views[j], self.part.kernels[j], self.weights[j]
            points = take(view, columns)

            def panel(
                part: slice,
                block: Callable[[Rows, Rows], Floats] = kernel.block,
                view: Rows = view,
                points: Rows = points,
                weight: float = weight,
            ) -> None:
                out[part] += weight * block(take(view, rows[part]), points)

            run_blocks(panel, len(rows), PANEL)

    def add_block(self, index: Indices, out: Floats) -> None:
        self.add_tile(index, index, out)

    def add_product(self, rows: Indices, used: Indices, V: Floats, out: Floats) -> None:
        spread = np.zeros((self.part._diagonals.shape[1], V.shape[1]))
        spread[used] = V
        for j in self._active():
            self.part.add_product(j, rows, spread, float(self.weights[j]), out)

    def add_diagonal(self, out: Floats) -> None:
        for j in self._active():
            out += self.weights[j] * self.part._diagonals[j]


class ComputedSum(KernelSum):
    """``sum_j weights_j K_j`` of kernels on demand; tiles and products are not kept.

    Where steps multiply by all of it and it fits in memory, the sum of the computed kernels is kept
    until another sum needs the memory; kernels of low rank multiply by their factors.
    """

    @property
    def workspace(self) -> Workspace | None:
        return self.bank.workspace

    def rows(self, index: Indices) -> Stored:
        out = np.empty((len(index), self.n_samples), dtype=self.dtype)
        self._fill_tile(index, np.arange(self.n_samples), out)
        return out

    def fill_square(self, index: Indices, known: int, out: Stored) -> None:
        for k, part in enumerate(self._parts):
            part.add_square(index, known, out, fresh=k == 0)

    def _fill_tile(self, rows: Indices, columns: Indices, out: Stored) -> None:
        for k, part in enumerate(self._parts):
            part.add_tile(rows, columns, out, fresh=k == 0)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        out = np.empty((len(rows), len(columns)))
        if rows is columns:
            self.fill_square(rows, 0, out)
        else:
            self._fill_tile(rows, columns, out)
        return out

    def product(self, V: Floats) -> Floats:
        return self.product_at(np.arange(self.n_samples), V)

    def product_at(self, rows: Indices, V: Floats) -> Floats:
        used = support(V)
        picked, out = np.ascontiguousarray(V[used]), np.zeros((len(rows), V.shape[1]))
        if len(used):
            for part in self._parts:
                part.add_product(rows, used, picked, out)
        return out

    def __matmul__(self, V: Floats) -> Floats:
        return self.product(V)

    def rough_product(self, V: Floats, *, single: bool) -> Floats:
        assert self.workspace is not None
        if not self.workspace.whole:
            return self.product(V)
        out, every = np.zeros(V.shape), np.arange(self.n_samples)
        if any(part.factor() is None for part in self._parts):
            with self.workspace.sum_of(self, self.n_samples, self._compute) as gram:
                flat: Any = V.astype(gram.dtype, copy=False) if single else V
                out += gram_product(gram, flat)
        for part in self._parts:
            if part.factor() is not None:
                part.add_product(every, every, V, out)
        return out

    def _compute(self, out: Stored) -> None:
        """Write the sum of the kernels without a factor."""
        parts = [part for part in self._parts if part.factor() is None]
        for k, part in enumerate(parts):
            part.add_square(np.arange(self.n_samples), 0, out, fresh=k == 0)

    def moved_values(
        self,
        dual_coef: Floats,
        fitted: Floats,
        weights: Floats,
        products: Callable[[Indices], Floats],
    ) -> Floats:
        # One pass for the weighted sum is cheaper than the products of single kernels.
        return fitted if np.array_equal(self.weights, weights) else self @ dual_coef

    def scaled(self, factor: float) -> ComputedSum:
        return self if factor == 1.0 else ComputedSum(self.bank, factor * self.weights)
