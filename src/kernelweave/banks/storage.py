"""Storage forms of kernels in a bank: factors, shared distances, Gram matrices.

Each part holds several kernels in one storage form. Values are those of the kernels as written; the
bank applies normalising scales.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Bools, Floats, Indices, Stored

from .weighted import PANEL, Weighted, WeightedFactors, WeightedGrams, WeightedLadder

_SINGLE = np.finfo(np.float32)  # eps is twice the rounding error, which covers errors on top of it


def precision(sizes: Floats, tol: float) -> Any:
    """Return the precision in which kernels of these sizes are held for a tolerance.

    Sizes are the largest diagonal value of each, or distances of the rows. Numbers of single
    precision end at 1e-38 and 1e38, which leaves room for sums of values in this range.
    """
    used = sizes[sizes > 0.0]
    narrow = bool((used > 1e-30).all() and (used < 1e30).all())
    return np.float32 if narrow and tol >= 1e-5 else np.float64


def support(V: Floats) -> Indices:
    """Return the rows of ``V`` that are not zero."""
    return np.flatnonzero(V.any(axis=1))


class Part(ABC):
    """Several kernels over the same rows, held in one storage form.

    ``which`` is always an increasing array of positions within the part.
    """

    form: str

    @property
    @abstractmethod
    def n_kernels(self) -> int:
        """Number of kernels."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held."""

    @abstractmethod
    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        """Return ``tr(V' K_j V)`` for each kernel."""

    @abstractmethod
    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        """Return ``K_j[rows] V``, of shape (n_kernels, n_rows, n_outputs); all rows by default."""

    def rough_products(self, V: Floats, which: Indices, rows: Indices | None) -> Floats:
        """Return `products` in single precision, where that is cheaper and exact enough."""
        return self.products(V, which, rows)

    @abstractmethod
    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        """Return ``sum_j weights_j K_j``, of which zero weights cost nothing."""

    @abstractmethod
    def traces(self) -> Floats:
        """Return the exact trace of every kernel."""

    @abstractmethod
    def diagonal_sums(self, shares: Floats) -> Floats:
        """Return ``sum_i shares_i K_j[i, i]`` of every kernel, exactly."""

    @abstractmethod
    def take(self, rows: Indices) -> Part:
        """Return the same kernels over some of the rows."""

    def ranks(self) -> list[int | None]:
        """Return the rank of every kernel where it is known."""
        return [None] * self.n_kernels

    def residual_roots(self) -> Floats | None:
        """Return square roots of the diagonals of what is left out; None if nothing is."""
        return None

    def storage_units(self) -> Floats:
        """Bound the storage error of ``K[i, k]`` relative to ``sqrt(K[i, i] K[k, k])``."""
        return np.zeros(self.n_kernels)


def _sums(diagonals: Floats, shares: Floats) -> Floats:
    # One by one: a product with all of them would round each differently by its place.
    return np.array([float(diagonal @ shares) for diagonal in diagonals])


@dataclass(frozen=True)
class Factors(Part):
    """Low-rank kernels, ``K_j ~ L_j L_j'``, all factor columns in one array."""

    columns: Floats  # (total rank, n_samples): factor columns, one per row, kernel by kernel
    offsets: Indices  # (n_kernels + 1,): where the columns of each kernel begin
    roots: Floats  # (n_kernels, n_samples): square roots of the diagonals of ``K_j - L_j L_j'``
    # (n_kernels, n_samples): of the kernels themselves: a pass over all columns would cost as much
    # as quadratic forms.
    diagonals: Floats
    form: str = field(default="factor", init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return self.columns.nbytes + self.roots.nbytes + self.diagonals.nbytes

    def _of(self, kernel: int) -> Floats:
        return self.columns[self.offsets[kernel] : self.offsets[kernel + 1]]

    def _scores(self, V: Floats, which: Indices) -> list[Floats]:
        """Return ``L_j' V`` for each kernel; one pass over the array when most are asked for."""
        if 2 * len(which) > self.n_kernels and len(self.columns):
            everything = np.concatenate(
                run_blocks(lambda block: self.columns[block] @ V, len(self.columns), PANEL)
            )
            return [np.asarray(everything[self.offsets[j] : self.offsets[j + 1]]) for j in which]
        return [self._of(int(j)) @ V for j in which]

    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        return np.array([np.vdot(score, score) for score in self._scores(V, which)])

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        n_rows = V.shape[0] if rows is None else len(rows)
        out = np.empty((len(which), n_rows, V.shape[1]))
        for k, (j, score) in enumerate(zip(which, self._scores(V, which), strict=True)):
            columns = self._of(j) if rows is None else self._of(j)[:, rows]
            np.matmul(columns.T, score, out=out[k])
        return out

    @cached_property
    def _coarse_ranks(self) -> Indices:
        """Number of leading columns of each factor that hold 95 % of its trace."""
        squares = np.einsum("rn,rn->r", self.columns, self.columns)
        ranks = []
        for j in range(self.n_kernels):
            kept = np.cumsum(squares[self.offsets[j] : self.offsets[j + 1]])
            ranks.append(int(np.searchsorted(kept, 0.95 * kept[-1])) + 1 if len(kept) else 0)
        return np.array(ranks)

    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        blocks = [
            np.sqrt(weights[j]) * self._of(j)[: self._coarse_ranks[j] if coarse else None]
            for j in np.flatnonzero(weights).tolist()
        ]
        empty = np.empty((0, self.columns.shape[1]))
        return WeightedFactors(np.concatenate(blocks) if blocks else empty)

    def traces(self) -> Floats:
        return np.asarray(self.diagonals.sum(axis=1))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return _sums(self.diagonals, shares)

    def take(self, rows: Indices) -> Part:
        tables = (self.columns, self.roots, self.diagonals)
        columns, roots, diagonals = (np.ascontiguousarray(table[:, rows]) for table in tables)
        return Factors(columns, self.offsets, roots, diagonals)

    def ranks(self) -> list[int | None]:
        return [int(rank) for rank in np.diff(self.offsets)]

    def residual_roots(self) -> Floats | None:
        return self.roots


@dataclass(frozen=True)
class Ladder(Part):
    """Kernels ``exp(-rate_j * distance)`` of one distance matrix; only the distances are held.

    An exponential costs hardly more than a memory access, so that hundreds of widths need the
    memory of one Gram matrix.
    """

    # (n_samples, n_samples): squared Euclidean or absolute distances; infinite, on the diagonal
    # too, for rows that all of the kernels are zero for.
    distances: Stored
    rates: Floats  # (n_kernels,): positive rates
    form: str = field(default="distances", init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.rates)

    @property
    def nbytes(self) -> int:
        return self.distances.nbytes

    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        rows = support(V)
        picked = np.ascontiguousarray(V[rows])
        return _core.ladder_forms(self.distances, self.rates[which], rows, picked)

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        used = support(V)
        rows = np.arange(len(self.distances)) if rows is None else np.ascontiguousarray(rows)
        return _core.ladder_products(
            self.distances, self.rates[which], rows, used, np.ascontiguousarray(V[used])
        )

    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        active = np.flatnonzero(weights)
        return WeightedLadder(self.distances, self.rates[active], weights[active], self._present)

    @cached_property
    def _present(self) -> Bools:
        """Which rows the kernels are one for; the others lack their source."""
        return np.isfinite(self.distances.diagonal())

    def traces(self) -> Floats:
        return np.full(self.n_kernels, float(self._present.sum()))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return np.full(self.n_kernels, float(shares[self._present].sum()))

    def take(self, rows: Indices) -> Part:
        return Ladder(self.distances[np.ix_(rows, rows)], self.rates)

    def storage_units(self) -> Floats:
        if self.distances.dtype == np.float64:
            return np.zeros(self.n_kernels)
        # An error of D d in a distance D is one of x exp(-x) d <= d / e in the kernel, x = rate D.
        # Tiny distances are off by a denormal number, and huge ones may become infinite.
        error = _SINGLE.eps / np.e + self.rates * float(_SINGLE.smallest_subnormal)
        return np.asarray(error + np.exp(-self.rates * float(_SINGLE.max)))


@dataclass(frozen=True)
class Grams(Part):
    """Kernels whose Gram matrices are stored."""

    # (n_samples, n_samples): symmetric matrices, float64 or float32; read only.
    grams: tuple[Stored, ...]
    form: str = field(default="dense", init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.grams)

    @property
    def nbytes(self) -> int:
        return sum(gram.nbytes for gram in self.grams)

    def _alike(self, which: Indices) -> list[tuple[Indices, list[Stored]]]:
        """Return matrices grouped by dtype, with their places in ``which``."""
        types = np.array([self.grams[j].dtype.char for j in which])
        groups = [np.flatnonzero(types == kind) for kind in np.unique(types)]
        return [(places, [self.grams[which[k]] for k in places]) for places in groups]

    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        used = support(V)
        picked = np.ascontiguousarray(V[used])
        out = np.empty(len(which))
        for places, grams in self._alike(which):
            out[places] = _core.gram_forms(grams, used, picked)
        return out

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        used = support(V)
        picked = np.ascontiguousarray(V[used])
        out = np.empty((len(which), len(V) if rows is None else len(rows), V.shape[1]))
        for places, grams in self._alike(which):
            if rows is None:
                out[places] = _core.gram_products(grams, used, picked)
            else:
                out[places] = _core.gram_products_at(
                    grams, np.ascontiguousarray(rows), used, picked
                )
        return out

    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        active = np.flatnonzero(weights)
        groups = [(weights[active[places]], grams) for places, grams in self._alike(active)]
        return WeightedGrams(groups, weights[active] @ self._diagonals[active])

    @cached_property
    def _diagonals(self) -> Floats:
        """The diagonals, kept: each entry in the matrix is a cache line of its own."""
        return np.array([gram.diagonal() for gram in self.grams], dtype=np.float64)

    def traces(self) -> Floats:
        return np.asarray(self._diagonals.sum(axis=1))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return _sums(self._diagonals, shares)

    def take(self, rows: Indices) -> Part:
        return Grams(tuple(gram[np.ix_(rows, rows)] for gram in self.grams))

    def storage_units(self) -> Floats:
        single = np.array([gram.dtype != np.float64 for gram in self.grams])
        # Where a diagonal is no normal number, entries may have no digits at all; but where it is
        # zero, as for rows that lack the source, they are zero.
        lost = (self._diagonals > 0) & (self._diagonals < _SINGLE.tiny)
        error = np.where(lost.any(axis=1), np.inf, float(_SINGLE.eps))
        return np.where(single, error, 0.0)


class Selected(Part):
    """Some kernels of another part."""

    def __init__(self, part: Part, which: Indices) -> None:
        self.part, self.which, self.form = part, which, part.form

    @property
    def n_kernels(self) -> int:
        return len(self.which)

    @property
    def nbytes(self) -> int:
        return self.part.nbytes

    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        return self.part.quadratic_forms(V, self.which[which])

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        return self.part.products(V, self.which[which], rows)

    def weighted(self, weights: Floats, *, coarse: bool = False) -> Weighted:
        spread = np.zeros(self.part.n_kernels)
        spread[self.which] = weights
        return self.part.weighted(spread, coarse=coarse)

    def traces(self) -> Floats:
        return self.part.traces()[self.which]

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.part.diagonal_sums(shares)[self.which]

    def take(self, rows: Indices) -> Part:
        return Selected(self.part.take(rows), self.which)

    def ranks(self) -> list[int | None]:
        ranks = self.part.ranks()
        return [ranks[j] for j in self.which]

    def residual_roots(self) -> Floats | None:
        roots = self.part.residual_roots()
        return None if roots is None else roots[self.which]

    def storage_units(self) -> Floats:
        return self.part.storage_units()[self.which]
