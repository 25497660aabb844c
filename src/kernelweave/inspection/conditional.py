"""Predictions of a background with columns replaced: exact from factors, or by prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats, Indices
from kernelweave._validation import is_frame, pick_rows
from kernelweave.banks.nystroem.build import even_rows

from .anova import (
    Ice,
    Separable,
    Variances,
    conditional_curves,
    factor_means,
    pair_surface,
    variances,
)
from .explain import MOST_BACKGROUND
from .grids import Grid

PREDICTED = 200  # rows of the background where rows are mixed and predicted
_FACTORS = 1e7  # numbers in the factors of all terms: 80 MB
_LEAST_ROWS = 50  # rows of the background however many terms there are
_SHUFFLED = 1000  # rows with shuffled columns for the variance of a model
_PAIRED = 10  # columns of which pairs are predicted, those with the largest effects
_COARSE = 6  # points of each column for them
_COARSE_ROWS = 50  # rows of the background for them

_AGREE = 1e-8  # relative difference of predictions that rounding can make

Points = tuple[NDArray[Any], NDArray[Any]]


def most_rows(form: Separable | None, n_columns: int) -> int:
    """Return how many rows of the background are used."""
    if form is None:
        return PREDICTED
    fitting = int(_FACTORS / max(1, form.n_terms * n_columns))
    return max(_LEAST_ROWS, min(MOST_BACKGROUND, fitting))


def is_manageable(form: Separable | None, n_columns: int) -> bool:
    """Return whether factors cost less than predictions."""
    return form is not None and form.n_terms * n_columns * _LEAST_ROWS <= 10 * _FACTORS


class Conditional(Protocol):
    """Predictions of a background with one or two columns replaced."""

    @property
    def table(self) -> Any:
        """The background."""

    @property
    def grids(self) -> list[Grid]:
        """Values of the columns."""

    @property
    def is_additive(self) -> bool:
        """Whether the model is a sum of functions of single columns."""

    @property
    def ice(self) -> Ice:
        """Predictions, and predictions with each column at the values of its grid."""

    def variances(self, values: Sequence[Floats], pairs: bool, total: bool) -> Variances:
        """Return variances of the columns; ``values`` are their effects on the grids."""

    def surface(self, k: int, j: int) -> tuple[Points, Floats]:
        """Return values of two columns, and their effect beyond those of each."""


def conditional(
    predict: Callable[[Any], Floats],
    form: Separable | None,
    table: Any,
    grids: list[Grid],
    random: Any,
) -> Conditional:
    """Return how a model is evaluated: by its factors where it is a sum of products."""
    predicted = _Predicted(predict, table, grids, random)
    if form is None:
        return predicted
    exact = _Exact(form, table, grids, predicted)
    return exact if exact.agrees() else predicted


@dataclass(frozen=True)
class _Predicted:
    """Rows are mixed and predicted."""

    predict: Callable[[Any], Floats]
    table: Any
    grids: list[Grid]
    random: Any
    is_additive: bool = False

    @cached_property
    def ice(self) -> Ice:
        n = self.table.shape[0]
        curves = []
        for grid in self.grids:
            rows, points = np.tile(np.arange(n), len(grid)), np.repeat(np.arange(len(grid)), n)
            values = self.predict(grid.filled(self.table, rows, points))
            curves.append(values.reshape(len(grid), n, -1).swapaxes(0, 1))
        return Ice(self.predict(self.table), curves)

    def variances(self, values: Sequence[Floats], pairs: bool, total: bool = False) -> Variances:
        """Return the variances of the interpolated curves, and those of coarse surfaces."""
        first = np.stack(
            [_spread(grid, value) for grid, value in zip(self.grids, values, strict=True)]
        )
        both = self.pair_variances(first) if pairs else None
        return Variances(first, self.variance, pairs=both)

    @cached_property
    def variance(self) -> Floats:
        """Variance of the predictions of rows whose columns were drawn on their own."""
        picks = self.random.randint(0, self.table.shape[0], (_SHUFFLED, self.table.shape[1]))
        return np.asarray(self.predict(_mixed(self.table, picks)).var(axis=0))

    def pair_variances(self, first: Floats) -> Floats:
        """Return mean squares of coarse surfaces of the columns with the largest effects."""
        strength = (first / np.maximum(self.variance, 1e-300)).max(axis=1)
        chosen = np.sort(np.argsort(-strength, kind="stable")[:_PAIRED]).tolist()
        both = np.zeros((len(first), *first.shape))
        for k, j in combinations(chosen, 2):
            (_, left), (_, right) = _coarse(self.grids[k]), _coarse(self.grids[j])
            squares = self.surface(k, j)[1] ** 2
            both[k, j] = both[j, k] = np.einsum("a,b,abt->t", left, right, squares)
        return both

    def surface(self, k: int, j: int) -> tuple[Points, Floats]:
        """Return the partial dependence on both columns, centred in both directions."""
        left, right = self.grids[k], self.grids[j]
        (some, shares), (others, weights) = _coarse(left), _coarse(right)
        table = pick_rows(self.table, even_rows(self.table.shape[0], _COARSE_ROWS))
        n, n_left, n_right = table.shape[0], len(some), len(others)
        rows = np.tile(np.arange(n), n_left * n_right)
        filled = left.filled(table, rows, np.repeat(some, n * n_right))
        at_right = np.tile(np.repeat(others, n), n_left)
        filled = right.filled(filled, np.arange(len(rows)), at_right)
        means = self.predict(filled).reshape(n_left, n_right, n, -1).mean(axis=2)
        means = means - np.tensordot(shares, means, 1)
        centred = means - np.einsum("b,abt->at", weights, means)[:, None]
        return (left.values[some], right.values[others]), centred


@dataclass(frozen=True)
class _Exact:
    """The model is a sum of products of functions of single columns."""

    form: Separable
    table: Any
    grids: list[Grid]
    predicted: _Predicted

    @property
    def is_additive(self) -> bool:
        return self.form.is_additive

    @property
    def shares(self) -> Floats:
        n = self.table.shape[0]
        return np.full(n, 1.0 / n)

    @cached_property
    def _means(self) -> list[dict[int, Floats]]:
        return factor_means(self.form, self.table, self.shares)

    def _filled(self, k: int) -> Any:
        """Return a table in which a column takes the values of its grid."""
        grid = self.grids[k]
        return grid.filled(self.table, np.zeros(len(grid), dtype=np.intp), np.arange(len(grid)))

    def agrees(self) -> bool:
        """Return whether the model predicts the same for one mixed row of each column.

        Which derived columns of a pipeline belong to which column is found by trying, and a level
        that is too rare to be tried shows here.
        """
        n, size = self.table.shape[0], np.abs(self.ice.predictions).max(initial=1.0)
        for k, (grid, curve) in enumerate(zip(self.grids, self.ice.curves, strict=True)):
            for point in {0, len(grid) - 1}:
                row = grid.filled(self.table, np.array([k % n]), np.array([point]))
                if np.abs(self.predicted.predict(row) - curve[k % n, point]).max() > _AGREE * size:
                    return False
        return True

    @cached_property
    def ice(self) -> Ice:
        players = [grid.position for grid in self.grids]
        tables = [self._filled(k) for k in range(len(self.grids))]
        return conditional_curves(self.form, self.table, players, tables)

    def variances(self, values: Sequence[Floats], pairs: bool, total: bool = True) -> Variances:
        """Return exact variances; only first-order ones where there are too many terms."""
        if not total:
            return self.predicted.variances(values, pairs)
        everybody = range(
            self.table.shape[1] + 1
        )  # the last one: derived columns that are constant
        found = variances(self.form, self.table, self.shares, everybody, pairs=pairs)
        own = [grid.position for grid in self.grids]
        first = found.first_order[own]
        if found.variance is None or found.total is None or found.shapley is None:
            both = self.predicted.pair_variances(first) if pairs else None
            return Variances(first, self.predicted.variance, pairs=both)
        both = None if found.pairs is None else found.pairs[np.ix_(own, own)]
        return Variances(first, found.variance, found.total[own], found.shapley[own], both)

    def surface(self, k: int, j: int) -> tuple[Points, Floats]:
        """Return the term of both columns in the decomposition."""
        pair, tables = (self.grids[k], self.grids[j]), [self._filled(k), self._filled(j)]
        own = (pair[0].position, pair[1].position)
        values = pair_surface(self.form, self._means, own, tables)
        return (pair[0].values, pair[1].values), values


def _spread(grid: Grid, values: Floats) -> Floats:
    """Return the variance of a curve over the rows of the background, interpolated."""
    known = grid.rows[np.isfinite(grid.rows)]
    if not len(known) or len(grid) < 2:
        return np.zeros(values.shape[1])
    at_rows = np.column_stack([np.interp(known, grid.places, column) for column in values.T])
    return np.asarray(at_rows.var(axis=0))


def _coarse(grid: Grid) -> tuple[Indices, Floats]:
    """Return some points of a grid, and the shares of the rows that are next to each."""
    known = grid.rows[np.isfinite(grid.rows)]
    if grid.kind == "category":
        some = np.arange(min(_COARSE, len(grid)))
    else:
        levels = np.quantile(known, (np.arange(_COARSE) + 0.5) / _COARSE) if len(known) else [0.0]
        some = np.unique([np.argmin(np.abs(grid.places - level)) for level in levels])
    near = np.abs(known[:, None] - grid.places[some]).argmin(axis=1)
    counts = np.bincount(near, minlength=len(some)) + 1e-300
    return some, counts / counts.sum()


def _mixed(table: Any, picks: Indices) -> Any:
    """Return rows whose cells come from the rows ``picks``, each column from its own."""
    if not is_frame(table):
        return table[picks, np.arange(table.shape[1])]
    frame = nw.from_native(table, eager_only=True)
    columns = [frame[:, j][picks[:, j]] for j in range(picks.shape[1])]
    return nw.to_native(frame[np.zeros(len(picks), dtype=np.intp)].with_columns(*columns))
