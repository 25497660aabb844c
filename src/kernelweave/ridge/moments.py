"""Second moments of Nystroem features, in the basis in which ridge models are diagonal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from kernelweave._types import Floats, Indices
from kernelweave.banks import Views, check_memory
from kernelweave.banks.nystroem.build import begin, settle
from kernelweave.banks.nystroem.landmarks import Landmarks
from kernelweave.banks.row_source import (
    Pass,
    fill_block,
    pass_pieces,
    row_slices,
)
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import Rows, take

from .spectrum import Directions

_TOL = 1e-9  # as tight as landmarks are looked for
_MISSED = 1e-6  # mean residual of a kernel of low rank, relative, that the average would notice
_FLAT = 1e-12  # centred trace, relative to the plain one, that is rounding
_SETS = 10  # products of blocks that are there at once while they are added up
_STEADY = 1e-4  # last pivot, relative to the first, down to which a triangle may be inverted


@dataclass(frozen=True)
class Moments:
    """What a pass over all rows sums up of one kernel.

    Attributes
    ----------
    item : Landmarks
        Whose features are summed.
    centre : ndarray of shape (n_landmarks,)
        What was taken off them: a common offset would take digits of their products.
    totals : ndarray of shape (4,)
        Diagonal of the exact kernel, what the features leave out of it (twice: all are kept), and
        their squares.
    sums : ndarray of shape (n_landmarks,)
        Of the features.
    products : ndarray of shape (n_landmarks, n_landmarks)
        Of the features with each other; of shape (1, 1) if not requested.
    cross : ndarray of shape (n_landmarks, n_outputs)
        Of the features with centred targets.
    worst : list of int
        Rows that the landmarks serve worst.
    """

    item: Landmarks
    centre: Floats
    totals: Floats
    sums: Floats
    products: Floats
    cross: Floats
    worst: list[int]

    def size(self, n: int) -> float:
        """Return the mean of the centred diagonal, 0 for a constant kernel."""
        spread = float(self.totals[3] - self.sums @ self.sums / n + self.totals[2])
        return spread / n if spread > _FLAT * self.totals[0] else 0.0

    def turned(self, scale: float, n: int) -> tuple[Turned, Floats]:
        """Return the kernel along its eigenvectors, and targets along its features there."""
        root, shift = float(np.sqrt(scale)), self.sums / n
        C = scale * (self.products - np.outer(self.sums, shift))
        values, turn = scipy.linalg.eigh(C, driver="evd", check_finite=False)
        kept = values > 1e-16 * max(float(values.max(initial=0.0)), 1e-300)
        turn = np.ascontiguousarray(root * turn[:, kept])
        pivots = self.item.triangle.diagonal()
        steady = pivots.min() > _STEADY * pivots.max()
        found = Turned(
            item=self.item,
            scale=scale,
            shift=(self.centre + shift) @ turn,
            turn=turn,
            values=values[kept],
            fold=self.item.fold(turn) if steady else None,
        )
        # Targets are centred, so that a shift of the features changes nothing.
        return found, turn.T @ self.cross


@dataclass(frozen=True)
class Turned:
    """The centred features ``Z`` of a normalised kernel along the eigenvectors W of ``Z' Z``.

    Attributes
    ----------
    item : Landmarks
        Whose features they are.
    scale : float
        What normalises the kernel.
    shift : ndarray of shape (rank,)
        What centring takes off.
    turn : ndarray of shape (n_landmarks, rank)
        W, times the root of the scale.
    values : ndarray of shape (rank,)
        Eigenvalues, positive.
    fold : ndarray of shape (n_landmarks, rank) or None
        Takes kernel values to ``Z W`` at once, where no digits are lost by that.
    """

    item: Landmarks
    scale: float
    shift: Floats
    turn: Floats
    values: Floats
    fold: Floats | None

    def rows(self, part: Rows) -> Floats:
        """Return some rows of ``Z W``."""
        if self.fold is None:
            return self.item.features(part) @ self.turn - self.shift
        return self.item.kernel.block(part, self.item.rows) @ self.fold - self.shift

    def directions(self) -> Directions:
        """Return how functions are written with the landmarks."""
        length = np.sqrt(self.values)
        return Directions(
            values=self.values,
            rows=self.item.index,
            basis=self.item.fold(self.turn * length) / self.scale,
            offsets=self.shift * length,
        )


def measure(
    kernels: Sequence[Kernel], X: Any, V: Floats, *, products: bool, memory: float = np.inf
) -> list[Moments]:
    """Find landmarks of kernels, and sum up their features over all rows.

    Parameters
    ----------
    kernels : sequence of Kernel
        As written.
    X : array, sparse matrix, data frame or PartedTable
        The rows.
    V : ndarray of shape (n_samples, n_outputs)
        Centred targets.
    products : bool
        Whether products of features are wanted.
    memory : float
        Bytes that these may take while they are summed up; with less, rows are read more often.
    """
    source, samples, landmarks = begin(kernels, X, _TOL)
    _check_memory(landmarks, source.n_samples, memory)
    known: dict[int, tuple[Landmarks, Moments]] = {}  # by kernel, of the landmarks last seen

    def compute(landmarks: Sequence[Landmarks]) -> tuple[list[Moments], Pass]:
        places = range(len(landmarks))
        fresh = [k for k in places if k not in known or known[k][0] is not landmarks[k]]
        for some in _groups(fresh, landmarks, memory if products else np.inf):
            items = [replace(landmarks[k], rank=landmarks[k].size) for k in some]
            centres = [item.features(item.rows).mean(axis=0) for item in items]
            sums = source.add_up(_sum_up, V, (some, items, centres, products))
            for i, k in enumerate(some):
                known[k] = landmarks[k], Moments(items[i], centres[i], *sums[5 * i : 5 * i + 5])
        every = [known[k][1] for k in places]
        totals = np.array([moments.totals for moments in every])
        return every, Pass(
            diagonals=totals[:, 0],
            kept=totals[:, 1],
            left=totals[:, 2],
            weighted=totals[:, 0] / len(V),
            means=[moments.sums / len(V) for moments in every],
            worst=[np.array(moments.worst, dtype=np.intp) for moments in every],
        )

    return settle(source, samples, landmarks, _TOL, compute, missed=_MISSED)[1]


def _check_memory(landmarks: Sequence[Landmarks], n: int, memory: float) -> None:
    sizes = np.array([item.size for item in landmarks])
    check_memory(
        f"Landmarks of {len(sizes)} kernels over {n} rows need",
        pass_pieces(sizes, int(sizes.max()), n),
        memory,
        "use fewer kernels, or kernels on one or two columns (their rank is small)",
    )


def _groups(which: list[int], landmarks: Sequence[Landmarks], memory: float) -> list[list[int]]:
    """Return kernels in groups whose products, a few sets of them at once, fit in the memory."""
    groups: list[list[int]] = []
    room = 0.0
    for k in which:
        need = 8.0 * _SETS * landmarks[k].size ** 2
        if need > room:
            groups.append([])
            room = memory
        groups[-1].append(k)
        room -= need
    return groups


def pieces(views: Views, k: int, size: int) -> Iterator[tuple[slice, Rows]]:
    """Yield the rows of a kernel in pieces that a processor likes, with their places."""
    for rows in row_slices(views.n_samples, size, float):
        yield rows, take(views[k], rows)


def _sum_up(views: Views, V: Floats, first_row: int, known: Any) -> tuple[Any, ...]:
    """Return what a block of rows adds to the moments of some kernels."""
    which, landmarks, centres, wanted = known
    answer: list[Any] = []
    for k, item, centre in zip(which, landmarks, centres, strict=True):
        r = item.size
        totals, sums, cross = np.zeros(4), np.zeros(r), np.zeros((r, V.shape[1]))
        products = np.zeros((r, r) if wanted else (1, 1))
        worst: list[int] = []
        for rows, part in pieces(views, k, r):
            Z = np.empty((rows.stop - rows.start, max(1, r)))
            every = np.ones(len(Z))
            found = fill_block(Z, [item], [part], every, first_row + rows.start)[0]
            Z = Z[:, :r] - centre
            totals += [*found[0][:3], float(np.einsum("nr,nr->", Z, Z))]
            worst += _listed(found[2])
            sums += Z.sum(axis=0)
            cross += Z.T @ V[rows]
            if wanted:
                products += Z.T @ Z
        answer += [totals, sums, products, cross, worst]
    return tuple(answer)


def _listed(rows: Indices) -> list[int]:
    return [int(row) for row in rows]  # lists are joined where arrays are added
