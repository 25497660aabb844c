"""A weighted sum of kernels held as Nystroem features."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats, Indices
from kernelweave.banks.feature_operator import FeatureOperator
from kernelweave.banks.protocol import Features, KernelFunction, WeightedSum

from .blocks import RowBlocks

if TYPE_CHECKING:
    from .bank import NystroemBank

_DESCENT_TOL = 0.05  # largest change of a coefficient, in boxes, at which coordinate descent stops


class NystroemFeatures(Features):
    """Columns of a Nystroem bank, times the roots of the weights of their kernels.

    ``weights`` are those of the normalised kernels, not negative. ``blocks`` hold the columns of
    the kernels with a weight, and perhaps of others; ``columns`` are their numbers in the bank.
    """

    def __init__(
        self, bank: NystroemBank, weights: Floats, blocks: RowBlocks, columns: Indices
    ) -> None:
        self.bank, self.weights, self.blocks = bank, weights, blocks
        self.n_samples = blocks.n_samples
        self.squares = np.ascontiguousarray((weights * bank.scales)[bank.owner()[columns]])
        self.block_columns = columns
        self.used = np.flatnonzero(self.squares)  # columns of the blocks with a weight
        self.columns = columns[self.used]
        self.roots = np.sqrt(self.squares[self.used])

    @property
    def n_features(self) -> int:
        return len(self.roots)

    def times(self, w: Floats) -> Floats:
        spread = np.zeros((self.blocks.n_columns, w.shape[1]))
        spread[self.used] = self.roots[:, None] * w
        return self.blocks.times(spread)

    def sums(self, V: Floats) -> Floats:
        return self.pick(self.scores(V))

    def scores(self, V: Floats) -> Floats:
        return self.blocks.sums(V)

    def pick(self, scores: Floats) -> Floats:
        return self.roots[:, None] * scores[self.used]

    def rows(self, index: Indices) -> Floats:
        return self.blocks.rows(index, self.used) * self.roots

    def gram(self, q: Floats) -> tuple[Floats, Floats]:
        inner, edge = self.blocks.gram(q, self.used)
        inner = inner * self.roots[:, None]
        inner *= self.roots
        return inner, edge * self.roots

    def to_bank(self, w: Floats) -> Floats:
        out = np.zeros((self.bank.blocks.n_columns, w.shape[1]))
        out[self.columns] = self.roots[:, None] * w
        return out

    def from_bank(self, function: Floats) -> tuple[Floats, bool]:
        own = function[self.columns]
        whole = np.count_nonzero(own) == np.count_nonzero(function)
        return np.asarray(own / self.roots[:, None]), bool(whole)

    def moments(
        self, V: Floats, output: int, which: Indices, q: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        values, cross, inner = self.bank.moments(V, output, which, q)
        owner = self.bank.owner()
        return values, cross, inner, self.weights[owner[np.isin(owner, which)]]

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

        None where blocks are not in this process. A multiplier and a penalty of the size of the
        kernel draw the sum of the coefficients to zero (augmented Lagrangian).
        """
        local = self.blocks.local()
        if local is None:
            return None
        t, v = np.zeros(len(target)), np.zeros(local.n_columns)
        size = float(self.squares @ local.mean_squares())
        stiff = size if intercept else 0.0
        bias = total = 0.0
        n_blocks = len(local.blocks)
        for epoch in range(epochs):
            largest = 0.0
            for b, (block, rows) in enumerate(local.read()):
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
            if largest < _DESCENT_TOL:
                break
        return t


class NystroemSum(FeatureOperator, WeightedSum):
    """``sum_j weights_j K_j`` of kernels held as Nystroem features."""

    bank: NystroemBank

    def __init__(self, features: NystroemFeatures) -> None:
        super().__init__(features)
        self._features: NystroemFeatures = features
        self.bank, self.weights = features.bank, features.weights

    def features(self) -> NystroemFeatures:
        return self._features

    def scaled(self, factor: float) -> NystroemSum:
        return self if factor == 1.0 else self.bank.combine(factor * self.weights)

    def start_values(self, dual_coef: Floats) -> Floats:
        return np.zeros_like(dual_coef)

    def moved_values(
        self,
        dual_coef: Floats,
        fitted: Floats,
        weights: Floats,
        products: Callable[[Indices], Floats],
    ) -> Floats:
        return fitted  # of the same function, which does not depend on weights

    def function(
        self,
        dual_coef: Floats,
        fitted: Floats,
        which: Indices,
        quadratic_forms: Floats,
        columns: Floats | None = None,
    ) -> KernelFunction:
        if columns is None:  # the function of the coefficients alone
            w = self._features.sums(dual_coef)
            columns, fitted = self._features.to_bank(w), self._features.times(w)
        norms = self.bank.norms(columns)
        used = self.weights > 0
        squared = float((norms[used] ** 2 / self.weights[used]).sum())
        return KernelFunction(fitted, norms, squared, columns)

    def remember(self, dual_coef: Floats, scores: Floats) -> None:
        self.bank.remember(dual_coef, self._features.block_columns, scores)
