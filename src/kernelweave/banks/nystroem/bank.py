"""A bank of Nystroem features in blocks of rows; no Gram matrix is formed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave._types import Bools, Floats, Indices
from kernelweave.banks.protocol import Bank, Predictor
from kernelweave.banks.row_source import RowSource
from kernelweave.banks.storage import precision
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import take

from .blocks import ColumnBlocks, LocalBlocks, RowBlocks
from .features import NystroemFeatures, NystroemSum
from .landmarks import LandmarkFunction, Landmarks

_REMEMBERED = 3  # vectors of which F' V is kept
_BY_KERNEL = ("scales", "diagonals", "centred", "kept", "left")
_MOST = 0.5  # share of columns in use above which a copy of these alone is not worth it


@dataclass(frozen=True)
class NystroemBank(Bank):
    """Several kernels, each held as the Nystroem features of its landmarks."""

    landmarks: tuple[Landmarks, ...]  # of every kernel, in the user's order
    blocks: RowBlocks  # Nystroem features F of all kernels side by side
    scales: Floats  # (n_kernels,): a normalised kernel is ``scales_j * K_j``
    diagonals: Floats  # (n_kernels,): traces of the exact kernels as written
    centred: Floats  # (n_kernels,): the same after centring
    # kept, left (n_kernels,): traces that the features, and that all landmarks together, leave out
    kept: Floats
    left: Floats
    source: RowSource | None  # the rows themselves, for `exact_forms`; None for a part of them
    unit: float = 2.0**-53  # relative rounding error of stored features
    _compact: dict[str, Any] = field(default_factory=dict, repr=False)

    leaves_out = False  # what landmarks leave out is in `form_errors`
    correction_share = 0.1  # of the tolerance; chosen by hand

    @property
    def kernels(self) -> tuple[Kernel, ...]:  # type: ignore[override]
        """The kernels as written."""
        return tuple(item.kernel for item in self.landmarks)

    @property
    def n_samples(self) -> int:
        return self.blocks.n_samples

    @property
    def n_features(self) -> int:
        return self.blocks.n_columns

    @property
    def nbytes(self) -> int:
        return self.blocks.nbytes

    @property
    def dtype(self) -> Any:
        return np.float64 if self.unit < 2.0**-50 else np.float32

    def summary(self) -> list[dict[str, Any]]:
        left = self.kept / np.maximum(self.diagonals, 1e-300)
        return [
            {
                "kernel": str(item.kernel),
                "form": "nystroem",
                "rank": item.rank,
                "left_out": float(share),
            }
            for item, share in zip(self.landmarks, left, strict=True)
        ]

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
        every = np.arange(self.n_kernels) if which is None else which
        return np.asarray((self.scales * self.by_kernel(self._scores(V, every)))[every])

    def products(self, V: Floats, which: Indices, rows: Indices | None = None) -> Floats:
        blocks, columns = self._columns(which)
        scores, owner = self._scores(V, which)[columns], self.owner()[columns]
        features = blocks.rows(np.arange(self.n_samples) if rows is None else rows)
        out = np.empty((len(which), len(features), V.shape[1]))
        for k, j in enumerate(which):
            here = np.flatnonzero(owner == j)
            out[k] = self.scales[j] * (features[:, here] @ scores[here])
        return out

    def moments(
        self, V: Floats, output: int, which: Indices, q: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return the first three of `Features.moments`, in one pass without U or F of all rows.

        All of ``V`` is passed, so that a known ``F' V`` is not summed again.
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
        """Keep ``F' V`` of some columns for `quadratic_forms`."""
        known = np.zeros(self.blocks.n_columns, dtype=bool)
        known[columns] = True
        spread = np.zeros((self.blocks.n_columns, V.shape[1]))
        spread[columns] = scores
        held = self._compact.setdefault("scores", [])
        held.append((V, known, spread))
        del held[:-_REMEMBERED]

    def _scores(self, V: Floats, which: Indices) -> Floats:
        """Return ``F' V``, of which only the columns of some kernels are valid."""
        wanted = np.isin(self.owner(), which)
        for vector, known, scores in self._compact.get("scores", ()):
            if np.array_equal(vector, V) and not (wanted & ~known).any():
                return np.asarray(scores)
        blocks, columns = self._columns(which)
        self.remember(V, columns, blocks.sums(V))
        return np.asarray(self._compact["scores"][-1][-1])

    def norms(self, W: Floats) -> Floats:
        """Return the norm of the part of ``F W`` in the space of every normalised kernel."""
        return np.asarray(np.sqrt(self.by_kernel(W) / self.scales))

    @property
    def is_constant(self) -> Bools:
        return np.asarray(self.centred == 0.0)

    def values(self, columns: Floats) -> Floats:
        return self.blocks.times(columns)

    def predictor(
        self, support: Indices, which: Indices, columns: Floats | None = None
    ) -> Predictor:
        if columns is None:
            raise ValueError("a Nystroem bank predicts by a function of its columns.")
        return Predictor(function=self.function(columns))

    def function(self, W: Floats) -> LandmarkFunction:
        """Return ``F W`` as a kernel expansion in the landmarks."""
        ends = self.offsets
        parts = {j: W[ends[j] : ends[j + 1]] for j in range(self.n_kernels)}
        used = [j for j, part in parts.items() if part.any()] or [0]
        folded = [self.landmarks[j].fold(parts[j]) for j in used]
        rows = [take(self.landmarks[j].rows, slice(0, self.landmarks[j].rank)) for j in used]
        return LandmarkFunction(np.array(used), tuple(rows), tuple(folded))

    @property
    def complete(self) -> Bools:
        return np.array([item.complete for item in self.landmarks])

    @property
    def refinement(self) -> float | None:
        return 100.0 if self.complete.all() else None

    def residual_forms(self, V: Floats) -> Floats:
        return np.zeros(self.n_kernels)

    def form_errors(self, V: Floats, quadratic_forms: Floats) -> Floats:
        """Bound how far `quadratic_forms` may be below those of the exact kernels.

        ``tr(V' E V) <= trace(E) |V|^2`` for what is left out. Storage rounds F by a share `unit`,
        and so ``|F'V|``, the root of a quadratic form, by at most ``unit |V| sqrt(trace)``.
        """
        size = float(np.vdot(V, V))
        rounded = self.unit * np.sqrt(size * self.scales * self.diagonals)
        rounding = rounded * (2.0 * np.sqrt(quadratic_forms) + rounded)
        return np.asarray(self.scales * self.kept * size + rounding)

    def value_rounding(self, columns: Floats, slopes: Floats) -> float:
        sizes = np.sqrt(self.scales * self.diagonals)
        return float(self.unit * np.linalg.norm(slopes) * (self.norms(columns) @ sizes))

    def exact_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        """Bound the quadratic forms of the exact kernels from above, by all of their landmarks."""
        assert self.source is not None
        which = np.arange(self.n_kernels) if which is None else which
        size, out = float(np.vdot(V, V)), []
        for j in which.tolist():
            score = self.source.sums(j, self.landmarks[j], V)
            rest = float(self.left[j]) * size
            out.append(float(self.scales[j]) * (float(np.vdot(score, score)) + rest))
        return np.array(out)

    def exact_product(
        self, weights: Floats, V: Floats, quadratic_forms: Floats | None = None
    ) -> Floats:
        """Multiply by the Nystroem kernels; none of them is `rounded`."""
        return self.combine(weights) @ V

    def traces(self, *, centred: bool = False) -> Floats:
        return self.scales * (self.centred if centred else self.diagonals)

    def diagonal_sums(self, shares: Floats) -> Floats:
        inner, _ = self.blocks.gram(shares, np.arange(self.blocks.n_columns))
        held = np.bincount(self.owner(), inner.diagonal(), self.n_kernels)
        return np.asarray(self.scales * held)

    def subset(self, which: Indices) -> NystroemBank:
        starts = self.offsets
        columns = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in which])
        landmarks = tuple(self.landmarks[j] for j in which)
        kernels = [item.kernel for item in landmarks]
        return replace(
            self,
            landmarks=landmarks,
            blocks=ColumnBlocks(self.blocks, columns),
            source=None if self.source is None else self.source.prepared_for(kernels),
            **{name: getattr(self, name)[which] for name in _BY_KERNEL},
            _compact={},
        )

    def take(self, rows: Indices) -> NystroemBank:
        share = len(rows) / self.n_samples
        features = self.blocks.rows(rows).astype(precision(self.diagonals, 1.0))
        return replace(
            self,
            blocks=LocalBlocks([features]),
            diagonals=share * self.diagonals,
            centred=self.centred,  # that of all rows bounds that of a part
            source=None,
            _compact={},
        )

    def combine(self, weights: Floats, *, coarse: bool = False) -> NystroemSum:
        blocks, columns = self._columns(np.flatnonzero(weights))
        return NystroemSum(NystroemFeatures(self, weights, blocks, columns))

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
