"""A bank of Nystroem features in blocks of rows; no Gram matrix is formed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Bools, Floats, Indices
from kernelweave.banks.row_source import RowSource
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import take

from .blocks import LocalBlocks, RowBlocks
from .landmarks import LandmarkFunction, Landmarks

_REMEMBERED = 3  # vectors whose scores are kept
_MOST = 0.5  # share of columns in use above which a copy of these alone is not worth it


@dataclass(frozen=True)
class FeatureBank:
    """Several kernels over many rows, each by the features of its landmarks.

    Parameters
    ----------
    landmarks : tuple of Landmarks
        Of every kernel, in the user's order.
    blocks : RowBlocks
        Features of all kernels side by side.
    scales : ndarray of shape (n_kernels,)
        A normalised kernel is ``scales_j * K_j``.
    diagonals : ndarray of shape (n_kernels,)
        Traces of the exact kernels as written.
    centred : ndarray of shape (n_kernels,)
        The same after centring.
    kept, left : ndarray of shape (n_kernels,)
        Traces of what the features, and of what all landmarks together, leave out.
    source : RowSource or None
        The rows themselves; None for a part of them, which is not asked about the exact kernels.
    unit : float
        Relative error of the features as they are stored.
    """

    landmarks: tuple[Landmarks, ...]
    blocks: RowBlocks
    scales: Floats
    diagonals: Floats
    centred: Floats
    kept: Floats
    left: Floats
    source: RowSource | None
    unit: float = 2.0**-53
    _compact: dict[str, Any] = field(default_factory=dict, repr=False)

    by_features = True
    leaves_out = False  # what is, is looked at once weights are learned

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels as written."""
        return tuple(item.kernel for item in self.landmarks)

    @property
    def n_kernels(self) -> int:
        """How many kernels there are."""
        return len(self.landmarks)

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return self.blocks.n_samples

    @property
    def nbytes(self) -> int:
        """Memory, or disk space, of the features."""
        return self.blocks.nbytes

    @property
    def offsets(self) -> Indices:
        """Where the columns of each kernel begin."""
        return np.concatenate(([0], np.cumsum([item.rank for item in self.landmarks])))

    def owner(self) -> Indices:
        """Return the kernel of every column."""
        return np.repeat(np.arange(self.n_kernels), np.diff(self.offsets))

    def by_kernel(self, W: Floats) -> Floats:
        """Return the squares of ``W``, of shape (n_columns, n_outputs), summed by kernel."""
        squares = (W * W).sum(axis=1)
        return np.bincount(self.owner(), squares, self.n_kernels).astype(np.float64, copy=False)

    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        """Return ``tr(V' K_j V)`` of the normalised kernels; see `KernelBank.quadratic_forms`."""
        every = np.arange(self.n_kernels) if which is None else which
        return np.asarray((self.scales * self.by_kernel(self._scores(V, every)))[every])

    def products(self, V: Floats, which: Indices, rows: Indices) -> Floats:
        """Return ``K_j[rows] V`` of the normalised kernels; see `KernelBank.products`."""
        blocks, columns = self._columns(which)
        scores, features = self._scores(V, which)[columns], blocks.rows(rows)
        owner = self.owner()[columns]
        out = np.empty((len(which), len(rows), V.shape[1]))
        for k, j in enumerate(which):
            here = np.flatnonzero(owner == j)
            out[k] = self.scales[j] * (features[:, here] @ scores[here])
        return out

    def gram(
        self, V: Floats, output: int, which: Indices, q: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return moments of the values ``K_j v`` of some normalised kernels over weighted rows.

        Nothing is held that has an entry per row and column.

        Parameters
        ----------
        V : ndarray of shape (n_samples, n_outputs)
            Coefficients, whole, so that scores that are known need not be summed again.
        output : int
            The column ``v`` of them.
        which : ndarray of int
            The kernels.
        q : ndarray of shape (n_samples,)
            Weights of rows, mostly zero.

        Returns
        -------
        values : ndarray of shape (n_kernels + 1, n_kernels + 1)
            ``U' diag(q) U``, where the columns of U are the values and a one for every row.
        cross : ndarray of shape (n_columns, n_kernels + 1)
            ``F' diag(q) U`` with the features of these kernels.
        inner : ndarray of shape (n_columns, n_columns)
            ``F' diag(q) F``.
        """
        blocks, columns = self._columns(which)
        owner = self.owner()[columns]
        places = np.flatnonzero(np.isin(owner, which))
        owner = owner[places]
        roots = np.sqrt(self.scales[owner])
        inner, edge = blocks.gram(q, places)
        inner, edge = inner * roots[:, None], edge * roots
        inner *= roots
        scores = roots * self._scores(V, which)[columns[places], output]
        spread = np.where(owner[:, None] == which, scores[:, None], 0.0)
        cross = np.column_stack([inner @ spread, edge])
        values = np.zeros((len(which) + 1, len(which) + 1))
        values[:-1] = spread.T @ cross
        values[-1, :-1], values[-1, -1] = values[:-1, -1], q.sum()
        return values, cross, inner

    def remember(self, V: Floats, columns: Indices, scores: Floats) -> None:
        """Keep ``F' V`` of some columns, for when it is asked for; ``V`` must not be changed."""
        known = np.zeros(self.blocks.n_columns, dtype=bool)
        known[columns] = True
        spread = np.zeros((self.blocks.n_columns, V.shape[1]))
        spread[columns] = scores
        held = self._compact.setdefault("scores", [])
        held.append((V, known, spread))
        del held[:-_REMEMBERED]

    def _scores(self, V: Floats, which: Indices) -> Floats:
        """Return ``F' V``; only the columns of some kernels count."""
        wanted = np.isin(self.owner(), which)
        for vector, known, scores in self._compact.get("scores", ()):
            if vector is V and not (wanted & ~known).any():
                return np.asarray(scores)
        blocks, columns = self._columns(which)
        self.remember(V, columns, blocks.sums(V))
        return np.asarray(self._compact["scores"][-1][-1])

    def norms(self, W: Floats) -> Floats:
        """Return the norm of the part of ``F W`` in the space of every normalised kernel."""
        return np.asarray(np.sqrt(self.by_kernel(W) / self.scales))

    @property
    def is_constant(self) -> Bools:
        """Which kernels are constant; see `KernelBank.is_constant`."""
        return np.asarray(self.centred == 0.0)

    def function(self, W: Floats) -> LandmarkFunction:
        """Return ``F W`` as a function of rows."""
        ends = self.offsets
        parts = {j: W[ends[j] : ends[j + 1]] for j in range(self.n_kernels)}
        used = [j for j, part in parts.items() if part.any()] or [0]
        folded = [self.landmarks[j].fold(parts[j]) for j in used]
        rows = [take(self.landmarks[j].rows, slice(0, self.landmarks[j].rank)) for j in used]
        return LandmarkFunction(np.array(used), tuple(rows), tuple(folded))

    @property
    def is_complete(self) -> bool:
        """Whether landmarks stand for all kernels to rounding, so that bounds can be made exact."""
        return all(item.complete for item in self.landmarks)

    def slack(self, V: Floats, quadratic_forms: Floats) -> Floats:
        """Bound how far `quadratic_forms` may be below those of the exact kernels.

        What is left out has a trace, and no quadratic form exceeds that times the squared norm.
        Storage rounds the features F by a share `unit`, and so ``|F'V|``, the root of a form, by
        no more than ``unit |V| sqrt(trace)``.
        """
        size = float(np.vdot(V, V))
        rounded = self.unit * np.sqrt(size * self.scales * self.diagonals)
        rounding = rounded * (2.0 * np.sqrt(quadratic_forms) + rounded)
        return np.asarray(self.scales * self.kept * size + rounding)

    def value_rounding(self, W: Floats, slopes: Floats) -> float:
        """Bound ``sum_i slopes_i |f_i - g_i|``, g the values ``F W`` that storage rounded."""
        sizes = np.sqrt(self.scales * self.diagonals)
        return float(self.unit * np.linalg.norm(slopes) * (self.norms(W) @ sizes))

    def exact_form(self, V: Floats, j: int) -> float:
        """Bound ``tr(V' K_j V)`` of one exact kernel from above, by all of its landmarks."""
        item = self.landmarks[j]
        assert self.source is not None
        score = self.source.sums(j, item, V)
        rest = float(self.left[j]) * float(np.vdot(V, V))
        return float(self.scales[j]) * (float(np.vdot(score, score)) + rest)

    def trace_bounds(self, *, centred: bool) -> Floats:
        """Return the traces of the normalised kernels, centred or not."""
        return self.scales * (self.centred if centred else self.diagonals)

    def take(self, rows: Indices) -> FeatureBank:
        """Return the same kernels over some of the rows, in memory."""
        share = len(rows) / self.n_samples
        features = self.blocks.rows(rows).astype(np.float32)
        return replace(
            self,
            blocks=LocalBlocks([features]),
            diagonals=share * self.diagonals,
            # A bound of what a part of the rows has is that of all.
            centred=self.centred,
            source=None,
            _compact={},
        )

    def combine(self, weights: Floats, *, coarse: bool = False) -> FeatureSum:
        """Return the weighted sum of the normalised kernels."""
        blocks, columns = self._columns(np.flatnonzero(weights))
        return FeatureSum(self, weights, blocks, columns)

    def _columns(self, which: Indices) -> tuple[RowBlocks, Indices]:
        """Return blocks that hold the columns of some kernels, and which columns these are."""
        owner = self.owner()
        wanted = np.isin(owner, which)
        held = self._compact.get("columns")
        if held is not None and np.isin(np.flatnonzero(wanted), held).all():
            return self._compact["blocks"], held
        if wanted.sum() > _MOST * len(owner):
            return self.blocks, np.arange(len(owner))
        columns = np.flatnonzero(wanted)
        blocks = self.blocks.select(columns)
        self._compact.update(columns=columns, blocks=blocks)
        return blocks, columns


class FeatureSum:
    """``sum_j weights_j K_j`` of kernels held as features.

    Parameters
    ----------
    bank : FeatureBank
        Where the kernels are.
    weights : ndarray of shape (n_kernels,)
        Non-negative weights of the normalised kernels.
    blocks : RowBlocks
        Features of those with a weight, and perhaps of others.
    columns : ndarray of int
        Which columns of the bank these are.
    """

    def __init__(
        self, bank: FeatureBank, weights: Floats, blocks: RowBlocks, columns: Indices
    ) -> None:
        self.bank, self.weights, self.blocks = bank, weights, blocks
        self.squares = np.ascontiguousarray((weights * bank.scales)[bank.owner()[columns]])
        self.at_hand = columns
        self.used = np.flatnonzero(self.squares)  # columns of the blocks that are features
        self.columns = columns[self.used]
        self.roots = np.sqrt(self.squares[self.used])

    @property
    def n_samples(self) -> int:
        """How many rows there are."""
        return self.blocks.n_samples

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.roots)

    def times(self, w: Floats) -> Floats:
        """Return the features times vectors."""
        spread = np.zeros((self.blocks.n_columns, w.shape[1]))
        spread[self.used] = self.roots[:, None] * w
        return self.blocks.times(spread)

    def sums(self, V: Floats) -> Floats:
        """Return the transposed features times vectors of one value per row."""
        return self.pick(self.scores(V))

    def scores(self, V: Floats) -> Floats:
        """Return the same of all columns at hand, as they are in the bank."""
        return self.blocks.sums(V)

    def pick(self, scores: Floats) -> Floats:
        """Return what `sums` would have, from `scores`."""
        return self.roots[:, None] * scores[self.used]

    def rows(self, index: Indices) -> Floats:
        """Return the features of some rows."""
        return self.blocks.rows(index, self.used) * self.roots

    def gram(self, q: Floats) -> tuple[Floats, Floats]:
        """Return ``Z' diag(q) Z`` and ``Z' q``."""
        inner, edge = self.blocks.gram(q, self.used)
        inner = inner * self.roots[:, None]
        inner *= self.roots
        return inner, edge * self.roots

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the Gram matrix."""
        left = self.rows(rows)
        return left @ (left if columns is rows else self.rows(columns)).T

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply."""
        return self.times(self.sums(V))

    def raise_weights(self, w: Floats) -> Floats:
        """Return weights of all columns of the bank that give the same function."""
        out = np.zeros((self.bank.blocks.n_columns, w.shape[1]))
        out[self.columns] = self.roots[:, None] * w
        return out

    def lower_weights(self, W: Floats) -> Floats:
        """Return weights of the features for a function by all columns, as far as it has them."""
        return np.asarray(W[self.columns] / self.roots[:, None])

    def holds(self, W: Floats) -> bool:
        """Tell whether the features have all of a function."""
        return bool(np.count_nonzero(W[self.columns]) == np.count_nonzero(W))

    def descend(
        self,
        target: Floats,
        lower: Floats,
        upper: Floats,
        ridge: Floats,
        *,
        dead_zone: float,
        intercept: bool,
        epochs: int,
    ) -> Floats | None:
        """Return rough dual coefficients of one output by coordinate descent.

        None where blocks are not at hand. The sum of the coefficients is drawn to zero by a
        multiplier and a penalty of the size of the kernel.
        """
        if not isinstance(self.blocks, LocalBlocks):
            return None
        t, v = np.zeros(len(target)), np.zeros(self.blocks.n_columns)
        size = float(self.squares @ self.blocks.mean_squares())
        stiff = size if intercept else 0.0
        bias = total = 0.0
        n_blocks = len(self.blocks.blocks)
        for epoch in range(epochs):
            largest = 0.0
            for b, (block, rows) in enumerate(self.blocks.read()):
                total, moved = _core.descend_box(
                    block,
                    self.squares,
                    target[rows],
                    lower[rows],
                    upper[rows],
                    ridge[rows],
                    dead_zone=dead_zone,
                    stiff=stiff,
                    bias=bias,
                    seed=1 + b + epoch * n_blocks,
                    total=total,
                    t=t[rows],
                    v=v,
                )
                largest = max(largest, moved)
            bias += stiff * total
            if largest < 0.05:
                break
        return t
