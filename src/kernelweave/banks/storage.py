"""Storage forms of kernels in a bank: factors, shared distances, Gram matrices.

Each part holds several kernels of one form and answers the same questions about them. Numbers
are those of the kernels as written; the bank applies normalising scales.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices, Stored

_PANEL = 256  # rows of a block product; fixed, so that sums do not depend on the thread count
_SINGLE = np.finfo(np.float32)  # its eps is twice the largest rounding error, for what is on top


def support(V: Floats) -> Indices:
    """Return the rows of ``V`` that are not zero."""
    return np.flatnonzero(V.any(axis=1))


class Weighted(ABC):
    """A weighted sum of the kernels of a part, ready to be added to what others hold."""

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


class Part(ABC):
    """Several kernels over the same rows, held in one form.

    ``which`` is always an increasing array of positions within the part.
    """

    form: str

    @property
    @abstractmethod
    def n_kernels(self) -> int:
        """How many kernels the part holds."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory the part holds."""

    @abstractmethod
    def quadratic_forms(self, V: Floats, which: Indices) -> Floats:
        """Return ``tr(V' K_j V)`` for each kernel."""

    @abstractmethod
    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        """Return ``K_j[rows] V``, of shape (n_kernels, n_rows, n_outputs); all rows by default."""

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
        """Return the rank of every kernel where the form knows it."""
        return [None] * self.n_kernels

    def residual_roots(self) -> Floats | None:
        """Return square roots of the diagonals of what the form leaves out; None if nothing is."""
        return None

    def storage_units(self) -> Floats:
        """Bound the storage error of ``K[i, k]`` relative to ``sqrt(K[i, i] K[k, k])``."""
        return np.zeros(self.n_kernels)


def _sums(diagonals: Floats, shares: Floats) -> Floats:
    # One by one: a product with all of them would round each by its place.
    return np.array([float(diagonal @ shares) for diagonal in diagonals])


@dataclass(frozen=True)
class Factors(Part):
    """Low-rank kernels, ``K_j ~ L_j L_j'``, all factor columns in one array.

    Parameters
    ----------
    columns : ndarray of shape (total rank, n_samples)
        Factor columns, one per row, kernel by kernel.
    offsets : ndarray of shape (n_kernels + 1,)
        Where the columns of each kernel begin.
    roots : ndarray of shape (n_kernels, n_samples)
        Square roots of the diagonals of ``K_j - L_j L_j'``.
    diagonals : ndarray of shape (n_kernels, n_samples)
        Those of the kernels themselves: a pass over all columns costs as much as quadratic forms.
    """

    columns: Floats
    offsets: Indices
    roots: Floats
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
                run_blocks(lambda block: self.columns[block] @ V, len(self.columns), _PANEL)
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
        """How many leading columns of each factor hold all but a twentieth of its trace."""
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

    Computing an exponential is hardly dearer than reading a stored number, so that hundreds of
    widths cost the memory of one Gram matrix.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Squared Euclidean or absolute distances.
    rates : ndarray of shape (n_kernels,)
        Positive rates.
    """

    distances: Stored
    rates: Floats
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
        return WeightedLadder(self.distances, self.rates[active], weights[active])

    def traces(self) -> Floats:
        return np.full(self.n_kernels, float(self.distances.shape[0]))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return np.full(self.n_kernels, float(shares.sum()))

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
    """Kernels whose Gram matrices are stored.

    Parameters
    ----------
    grams : tuple of ndarray of shape (n_samples, n_samples)
        Symmetric matrices, float64 or float32; read only.
    """

    grams: tuple[Stored, ...]
    form: str = field(default="dense", init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.grams)

    @property
    def nbytes(self) -> int:
        return sum(gram.nbytes for gram in self.grams)

    def _alike(self, which: Indices) -> list[tuple[Indices, list[Stored]]]:
        """Return the matrices asked for by their type, with their places in ``which``."""
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
        """The diagonals one below the other; picking them out takes a cache line per entry."""
        return np.array([gram.diagonal() for gram in self.grams], dtype=np.float64)

    def traces(self) -> Floats:
        return np.asarray(self._diagonals.sum(axis=1))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return _sums(self._diagonals, shares)

    def take(self, rows: Indices) -> Part:
        return Grams(tuple(gram[np.ix_(rows, rows)] for gram in self.grams))

    def storage_units(self) -> Floats:
        single = np.array([gram.dtype != np.float64 for gram in self.grams])
        # Where a diagonal is no normal number, entries may have no digits at all.
        error = np.where(self._diagonals.min(axis=1) < _SINGLE.tiny, np.inf, float(_SINGLE.eps))
        return np.where(single, error, 0.0)


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
            run_blocks(panel, len(out), _PANEL)

    def add_rows(self, index: Indices, out: Stored) -> None:
        picked = np.ascontiguousarray(self.Z[:, index].T)

        def panel(columns: slice) -> None:
            out[:, columns] += picked @ self.Z[:, columns]

        if len(self.Z):
            run_blocks(panel, out.shape[1], 4 * _PANEL)

    def add_block(self, index: Indices, out: Floats) -> None:
        Z = self.Z[:, index]

        def panel(rows: slice) -> None:
            out[rows, rows.start :] += Z[:, rows].T @ Z[:, rows.start :]

        run_blocks(panel, len(out), _PANEL)

    def add_diagonal(self, out: Floats) -> None:
        out += np.einsum("rn,rn->n", self.Z, self.Z)


@dataclass(frozen=True)
class WeightedLadder(Weighted):
    """Weights of kernels that share a distance matrix."""

    distances: Stored
    rates: Floats
    weights: Floats

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
        out += self.weights.sum()


@dataclass(frozen=True)
class WeightedGrams(Weighted):
    """Weights of stored matrices.

    Parameters
    ----------
    groups : list of (ndarray, list of ndarray)
        Weights and matrices, one pair per type of storage.
    diagonal : ndarray of shape (n_samples,)
        Diagonal of the weighted sum.
    """

    groups: list[tuple[Floats, list[Stored]]]
    diagonal: Floats

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
