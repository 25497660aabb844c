"""The forms in which a bank holds kernels: factors, shared distances, stored Gram matrices.

Each part holds several kernels of one form and answers the same questions about them. Numbers
are those of the kernels as written; the bank applies normalising scales.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks, run_each
from kernelweave._types import Floats, Indices, Stored

_PANEL = 256  # rows of a block product; fixed, so that sums do not depend on the thread count


def support(V: Floats) -> Indices:
    """Return the rows of ``V`` that are not zero."""
    return np.flatnonzero(V.any(axis=1))


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
    def forms(self, V: Floats, which: Indices) -> Floats:
        """Return ``tr(V' K_j V)`` for each kernel."""

    @abstractmethod
    def products(self, V: Floats, which: Indices) -> Floats:
        """Return ``K_j V``, of shape (n_kernels, n_samples, n_outputs)."""

    @abstractmethod
    def add_square(self, weights: Floats, out: Stored) -> None:
        """Add ``sum_j weights_j K_j`` to ``out``; zero weights cost nothing."""

    @abstractmethod
    def add_rows(self, weights: Floats, index: Indices, out: Stored) -> None:
        """Add those rows of ``sum_j weights_j K_j`` to ``out``."""

    @abstractmethod
    def add_diagonal(self, weights: Floats, out: Floats) -> None:
        """Add the diagonal of ``sum_j weights_j K_j`` to ``out``."""

    @abstractmethod
    def traces(self) -> Floats:
        """Return the exact trace of every kernel."""

    def ranks(self) -> list[int | None]:
        """Return the rank of every kernel where the form knows it."""
        return [None] * self.n_kernels

    def residual_roots(self) -> Floats | None:
        """Return square roots of the diagonals of what the form leaves out; None if nothing is."""
        return None


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
    """

    columns: Floats
    offsets: Indices
    roots: Floats
    form: str = field(default="factor", init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return self.columns.nbytes + self.roots.nbytes

    def _of(self, kernel: int) -> Floats:
        return self.columns[self.offsets[kernel] : self.offsets[kernel + 1]]

    def _scores(self, V: Floats, which: Indices) -> list[Floats]:
        """Return ``L_j' V`` for each kernel; one pass over the array when most are asked for."""
        if 2 * len(which) > self.n_kernels:
            everything = np.concatenate(
                run_blocks(lambda block: self.columns[block] @ V, len(self.columns), _PANEL)
            )
            return [everything[self.offsets[j] : self.offsets[j + 1]] for j in which]
        return [self._of(j) @ V for j in which]

    def forms(self, V: Floats, which: Indices) -> Floats:
        return np.array([np.vdot(score, score) for score in self._scores(V, which)])

    def products(self, V: Floats, which: Indices) -> Floats:
        out = np.empty((len(which), *V.shape))
        for k, (j, score) in enumerate(zip(which, self._scores(V, which), strict=True)):
            np.matmul(self._of(j).T, score, out=out[k])
        return out

    def scaled(self, weights: Floats) -> Floats:
        """Return the factor of the weighted sum, one column per row, zero weights left out."""
        return np.concatenate(
            [np.sqrt(weights[j]) * self._of(j) for j in np.flatnonzero(weights)]
            or [np.empty((0, self.columns.shape[1]))]
        )

    def add_square(self, weights: Floats, out: Stored) -> None:
        Z = self.scaled(weights).astype(out.dtype, copy=False)
        if not len(Z):
            return

        def panel(rows: slice) -> None:
            # The lower triangle by panels, then mirrored: half the work of the full product.
            out[rows, : rows.stop] += Z[:, rows].T @ Z[:, : rows.stop]

        def mirror(rows: slice) -> None:
            out[: rows.start, rows] = out[rows, : rows.start].T

        run_blocks(panel, len(out), _PANEL)
        run_blocks(mirror, len(out), _PANEL)

    def add_rows(self, weights: Floats, index: Indices, out: Stored) -> None:
        Z = self.scaled(weights).astype(out.dtype, copy=False)
        if len(Z):
            picked = np.ascontiguousarray(Z[:, index].T)
            n = out.shape[1]
            run_blocks(lambda cols: np.add(out[:, cols], picked @ Z[:, cols], out=out[:, cols]), n, 1024)

    def add_diagonal(self, weights: Floats, out: Floats) -> None:
        Z = self.scaled(weights)
        out += np.einsum("rn,rn->n", Z, Z)

    def traces(self) -> Floats:
        kept = [np.vdot(self._of(j), self._of(j)) for j in range(self.n_kernels)]
        return np.array(kept) + np.einsum("kn,kn->k", self.roots, self.roots)

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

    def forms(self, V: Floats, which: Indices) -> Floats:
        rows = support(V)
        picked = np.ascontiguousarray(V[rows])
        return _core.ladder_forms(self.distances, self.rates[which], rows, picked)

    def products(self, V: Floats, which: Indices) -> Floats:
        rows = support(V)
        picked = np.ascontiguousarray(V[rows])
        return _core.ladder_products(self.distances, self.rates[which], rows, picked)

    def add_square(self, weights: Floats, out: Stored) -> None:
        active = np.flatnonzero(weights)
        if len(active):
            _core.ladder_combine_square(self.distances, self.rates[active], weights[active], out)

    def add_rows(self, weights: Floats, index: Indices, out: Stored) -> None:
        active = np.flatnonzero(weights)
        if len(active):
            _core.ladder_combine_rows(
                self.distances, self.rates[active], weights[active], index, out
            )

    def add_diagonal(self, weights: Floats, out: Floats) -> None:
        out += weights.sum()

    def traces(self) -> Floats:
        return np.full(self.n_kernels, float(self.distances.shape[0]))


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

    def _product(self, kernel: int, V: Floats) -> Floats:
        gram = self.grams[kernel]
        if gram.dtype == np.float64:
            return np.asarray(gram @ V)
        # float32 is only storage: sums are taken in float64, a panel at a time.
        panels = run_blocks(lambda rows: gram[rows].astype(np.float64) @ V, len(gram), _PANEL)
        return np.concatenate(panels)

    def forms(self, V: Floats, which: Indices) -> Floats:
        return np.array(run_each(lambda j: float(np.vdot(V, self._product(j, V))), which))

    def products(self, V: Floats, which: Indices) -> Floats:
        return np.array([self._product(j, V) for j in which]).reshape(len(which), *V.shape)

    def add_square(self, weights: Floats, out: Stored) -> None:
        active = np.flatnonzero(weights)

        def panel(rows: slice) -> None:
            for j in active:
                out[rows] += weights[j] * self.grams[j][rows]

        run_blocks(panel, len(out), _PANEL)

    def add_rows(self, weights: Floats, index: Indices, out: Stored) -> None:
        for j in np.flatnonzero(weights):
            out += weights[j] * self.grams[j][index]

    def add_diagonal(self, weights: Floats, out: Floats) -> None:
        for j in np.flatnonzero(weights):
            out += weights[j] * self.grams[j].diagonal()

    def traces(self) -> Floats:
        return np.array([float(np.trace(gram, dtype=np.float64)) for gram in self.grams])
