"""Second moments of Nystroem features, and the basis in which they are diagonal."""

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
from kernelweave.banks.row_source import Pass, RowSource, fill_block, pass_pieces, row_slices
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import Rows, take

from .spectrum import Directions

_TOL = 1e-9  # tolerance of the landmarks
_MISSED = 1e-6  # mean residual of a kernel of low rank, relative, that would change the average
_FLAT = 1e-12  # centred trace, relative to the plain one, that is rounding
_SETS = 10  # products of blocks that are held at once while they are summed
_STEADY = 1e-4  # last pivot, relative to the first, down to which a triangle may be inverted


@dataclass(frozen=True)
class Moments:
    """Sums over all rows of the Nystroem features of one kernel."""

    item: Landmarks  # the landmarks
    # (n_landmarks,): subtracted from the features: a common offset would cost digits of their
    # products.
    centre: Floats
    # (4,): sums of the diagonal of the exact kernel, of what the features leave out of it (twice:
    # all are kept), and of their squares.
    totals: Floats
    sums: Floats  # (n_landmarks,): sums of the features
    # (n_landmarks, n_landmarks): products of the features; of shape (1, 1) if not requested.
    products: Floats
    cross: Floats  # (n_landmarks, n_outputs): products of the features with centred targets
    worst: list[int]  # rows with the largest residuals

    def size(self, n: int) -> float:
        """Return the mean of the centred diagonal, 0 for a constant kernel."""
        spread = float(self.totals[3] - self.sums @ self.sums / n + self.totals[2])
        return spread / n if spread > _FLAT * self.totals[0] else 0.0

    def diagonalise(self, scale: float, n: int) -> tuple[EigenFeatures, Floats]:
        """Return the features along their principal axes, and targets along these."""
        root, shift = float(np.sqrt(scale)), self.sums / n
        C = scale * (self.products - np.outer(self.sums, shift))
        values, turn = scipy.linalg.eigh(C, driver="evd", check_finite=False)
        kept = values > 1e-16 * max(float(values.max(initial=0.0)), 1e-300)
        turn = np.ascontiguousarray(root * turn[:, kept])
        pivots = self.item.triangle.diagonal()
        steady = pivots.min() > _STEADY * pivots.max()
        found = EigenFeatures(
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
class EigenFeatures:
    """``Z W``: centred Nystroem features Z of a normalised kernel, ``Z' Z = W diag(d) W'``."""

    item: Landmarks  # the landmarks
    scale: float  # normalises the kernel
    shift: Floats  # (rank,): mean of the features along W
    turn: Floats  # (n_landmarks, rank): W, times the root of the scale
    values: Floats  # (rank,): eigenvalues d, positive
    # (n_landmarks, rank): maps kernel values to ``Z W`` at once, where no digits are lost by that.
    fold: Floats | None

    def rows(self, part: Rows) -> Floats:
        """Return some rows of ``Z W``."""
        if self.fold is None:
            return self.item.features(part) @ self.turn - self.shift
        return self.item.kernel.block(part, self.item.rows) @ self.fold - self.shift

    def directions(self) -> Directions:
        """Return the expansion of functions in the landmarks."""
        length = np.sqrt(self.values)
        return Directions(
            values=self.values,
            rows=self.item.index,
            basis=self.item.fold(self.turn * length) / self.scale,
            offsets=self.shift * length,
        )


def measure(
    kernels: Sequence[Kernel],
    source: RowSource,
    V: Floats,
    *,
    products: bool,
    memory: float = np.inf,
) -> list[Moments]:
    """Find landmarks of kernels, and sum their features over all rows.

    ``V`` are centred targets. Products of features are summed where asked for, in as many passes
    over the rows as the memory requires.
    """
    samples, landmarks = begin(kernels, source, _TOL)
    _check_memory(landmarks, source.n_samples, memory)
    known: dict[int, tuple[Landmarks, Moments]] = {}  # by kernel, of its last landmarks

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
    """Return kernels in groups whose products, `_SETS` of them at once, fit in the memory."""
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
    """Yield the rows of a kernel in pieces of the size of a cache, with their places."""
    for rows in row_slices(views.n_samples, size, float):
        yield rows, take(views[k], rows)


def _sum_up(views: Views, V: Floats, first_row: int, known: Any) -> tuple[Any, ...]:
    """Return the moments of some kernels over a block of rows."""
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
