"""Functional ANOVA of sums of products of one-column functions.

With ``f(x) = constant + sum_l g_l(x_l) + sum_i a_i prod_l u_il(x_l)`` and columns drawn on their
own from the background, the terms ``f_T = sum_i a_i prod_{l in T} (u_il - m_il) prod_{l not in T}
m_il``, ``m_il = E u_il``, are orthogonal, so that variances add. With ``A_l = E[u_l u_l']``,
``M_l = m_l m_l'`` and ``C_l = A_l - M_l``, matrices over pairs of terms,

    first order  D_l  = sum_ij a_i a_j (C_l prod_{q != l} M_q)[i, j]
    pair         D_lr = sum_ij a_i a_j (C_l C_r prod_{q != l, r} M_q)[i, j]
    variance          = sum_ij a_i a_j (prod_l A_l - prod_l M_l)[i, j]
    total            = sum_ij a_i a_j (C_l prod_{q != l} A_q)[i, j]
    Shapley          = sum_ij a_i a_j (C_l int_0^1 prod_{q != l} (M_q + tau C_q) dtau)[i, j]

The functions ``g_l`` change first-order terms only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats

from .nodes import quadrature

MOST_TERMS = 4000  # terms of which variances are computed by pairs
_WORK = 2e9  # squares of terms times players: some ten seconds
_BLOCK = 4e6  # numbers at a time: 32 MB

Function: TypeAlias = Callable[[Any], Floats]


@dataclass(frozen=True)
class Products:
    """``sum_i coef_i prod_l u_il(x_l)`` over some terms.

    Parameters
    ----------
    coef : ndarray of shape (n_terms, n_outputs)
        Coefficients.
    factors : dict of callable
        For each player that occurs the function from a table to ``u_il``, (n_terms, n_rows).
    """

    coef: Floats
    factors: Mapping[int, Function]


@dataclass(frozen=True)
class Separable:
    """A model as a sum of products of functions of one player each.

    Parameters
    ----------
    constant : ndarray of shape (n_outputs,)
        The intercept.
    products : sequence of Products
        Terms of several players.
    additive : dict of list of callable
        For each player the functions from a table to ``g_l``, (n_rows, n_outputs).
    """

    constant: Floats
    products: Sequence[Products] = ()
    additive: Mapping[int, list[Function]] = field(default_factory=dict)

    @property
    def n_terms(self) -> int:
        """Terms of all products."""
        return sum(len(part.coef) for part in self.products)

    @property
    def is_additive(self) -> bool:
        """Whether no term has two players."""
        return all(len(part.factors) < 2 for part in self.products)

    def own(self, player: int, table: Any, n_rows: int) -> Floats:
        """Return ``g_l`` of one player at the rows of a table."""
        total = np.zeros((n_rows, len(self.constant)))
        for function in self.additive.get(player, ()):
            total += function(table)
        return total


@dataclass(frozen=True)
class Ice:
    """Predictions of the background, and with one column replaced by the values of its grid."""

    predictions: Floats  # (n_background, n_outputs)
    curves: list[Floats]  # (n_background, n_points, n_outputs) for each column


@dataclass(frozen=True)
class Variances:
    """Variances by player or pair; the last axis is that of the outputs."""

    first_order: Floats
    variance: Floats | None = None
    total: Floats | None = None
    shapley: Floats | None = None
    pairs: Floats | None = None


def conditional_curves(
    model: Separable, table: Any, players: Sequence[int], grids: Sequence[Any]
) -> Ice:
    """Return predictions of a background with single columns replaced; no row is mixed.

    Parameters
    ----------
    model : Separable
        The model.
    table : table
        The background, as the functions of the model take it.
    players : sequence of int
        The columns.
    grids : sequence of tables
        For each of them a table in which the column takes the values of its grid.
    """
    n, sizes = _n_rows(table), [_n_rows(grid) for grid in grids]
    every = sorted(set(model.additive) | {q for part in model.products for q in part.factors})
    own = {q: model.own(q, table, n) for q in every}
    predictions = model.constant + np.zeros((n, 1))
    predictions = predictions + sum(own.values())
    curves = [np.zeros((n, size, len(model.constant))) for size in sizes]
    for player, grid, curve, size in zip(players, grids, curves, sizes, strict=True):
        curve += model.own(player, grid, size)
        if player in own:
            curve -= own[player][:, None]
    changes = [np.zeros_like(curve) for curve in curves]
    for part in model.products:
        names = list(part.factors)
        at_grid = {
            q: part.factors[q](grid) for q, grid in zip(players, grids, strict=True) if q in names
        }
        U = {q: part.factors[q](table) for q in names}
        ahead = [np.ones((len(part.coef), n))]
        for q in names:
            ahead.append(ahead[-1] * U[q])
        whole = ahead[-1].T @ part.coef
        predictions = predictions + whole
        behind = np.ones((len(part.coef), n))
        for k in range(len(names) - 1, -1, -1):
            if names[k] in at_grid:
                rest, place = ahead[k] * behind, players.index(names[k])
                for t in range(part.coef.shape[1]):
                    changes[place][:, :, t] += (rest * part.coef[:, [t]]).T @ at_grid[names[k]]
                changes[place] -= whole[:, None]
            behind = behind * U[names[k]]
    for curve, change in zip(curves, changes, strict=True):
        curve += change + predictions[:, None]
    return Ice(predictions, curves)


def variances(
    model: Separable, table: Any, shares: Floats, players: Sequence[int], *, pairs: bool
) -> Variances:
    """Return first-order, total and Shapley effects, the variance, and effects of pairs.

    Parameters
    ----------
    model : Separable
        The model.
    table : table
        The background.
    shares : ndarray of shape (n_rows,)
        Weights of its rows, which sum to one.
    players : sequence of int
        All players of the model.
    pairs : bool
        Whether to compute pairs; None are computed where there are too many terms.
    """
    n_outputs, d = len(model.constant), len(players)
    place = {player: k for k, player in enumerate(players)}
    main = np.zeros((d, len(shares), n_outputs))
    few = model.n_terms <= MOST_TERMS and (model.n_terms * d) ** 2 <= _WORK
    parts = [_stacked(model, table, players, len(shares))] if few else model.products
    for part in parts:
        U = {q: function(table) for q, function in part.factors.items()}
        means = [matrix @ shares for matrix in U.values()]
        for (q, matrix), m, rest in zip(U.items(), means, _others(means), strict=True):
            reduced = part.coef * np.reshape(rest, (-1, 1))
            main[place[q]] += (matrix - m[:, None]).T @ reduced
    own = np.stack([model.own(player, table, len(shares)) for player in players])
    own -= np.einsum("r,krt->kt", shares, own)[:, None]
    first = np.einsum("r,krt->kt", shares, (main + own) ** 2)
    if not few:
        return Variances(first)
    found = _by_pairs_of_terms(parts[0].coef, [*U.values()], shares, pairs)
    # Functions of one column change the first-order terms, and nothing else.
    change = first - np.einsum("r,krt->kt", shares, main**2)
    return Variances(
        first,
        found.variance + change.sum(axis=0),
        found.total + change,
        found.shapley + change,
        found.pairs,
    )


def factor_means(model: Separable, table: Any, shares: Floats) -> list[dict[int, Floats]]:
    """Return ``m_il`` for the players of each sum of products."""
    return [{q: own(table) @ shares for q, own in part.factors.items()} for part in model.products]


def pair_surface(
    model: Separable,
    means: Sequence[Mapping[int, Floats]],
    pair: tuple[int, int],
    grids: Sequence[Any],
) -> Floats:
    """Return ``f_lr`` on the grid of two columns, (n_first, n_second, n_outputs)."""
    sizes = [_n_rows(grid) for grid in grids]
    surface = np.zeros((*sizes, len(model.constant)))
    for part, mean in zip(model.products, means, strict=True):
        if not set(pair) <= set(part.factors):
            continue
        rest = _product([m for q, m in mean.items() if q not in pair])
        coef = part.coef * np.reshape(rest, (-1, 1))
        first, second = (
            part.factors[q](grid) - mean[q][:, None] for q, grid in zip(pair, grids, strict=True)
        )
        for t in range(coef.shape[1]):
            surface[:, :, t] += (first * coef[:, [t]]).T @ second
    return surface


def _stacked(model: Separable, table: Any, players: Sequence[int], n_rows: int) -> Products:
    """Return all terms as one sum, in which every player occurs; factors are ones elsewhere."""

    def factor(player: int) -> Function:
        parts = [
            part.factors[player](table)
            if player in part.factors
            else np.ones((len(part.coef), n_rows))
            for part in model.products
        ]
        joined = np.concatenate([*parts, np.ones((0, n_rows))])
        return lambda table: joined

    coef = np.concatenate(
        [*(part.coef for part in model.products), np.zeros((0, len(model.constant)))]
    )
    return Products(coef, {player: factor(player) for player in players})


def _by_pairs_of_terms(
    coef: Floats, factors: list[Floats], shares: Floats, pairs: bool
) -> Variances:
    """Return what needs the moments of pairs of terms, in blocks of rows of their matrix."""
    d, (n, n_outputs) = len(factors), coef.shape
    means = [U @ shares for U in factors]
    variance = np.zeros(n_outputs)
    total, shapley = np.zeros((d, n_outputs)), np.zeros((d, n_outputs))
    both = np.zeros((d, d, n_outputs)) if pairs else None
    rule = quadrature((d + 1) // 2)  # exact for degree d - 1
    start, steps = np.ones(1), np.zeros((1, 3), dtype=np.int64)  # plain factors, not series
    step = max(1, int(_BLOCK / (max(1, n) * 4 * max(1, d))))
    for first in range(0, n, step):
        rows = slice(first, first + step)
        M = [m[rows, None] * m for m in means]
        A = [(U[rows] * shares) @ U.T for U in factors]
        C = [a - m for a, m in zip(A, M, strict=True)]

        def form(weights: Floats, left: Floats, right: Floats) -> Floats:
            return np.asarray((left * (weights @ right)).sum(axis=0))

        def quadratic(weights: Floats, rows: slice = rows) -> Floats:
            return form(weights, coef[rows], coef)

        variance += quadratic(_product(A) - _product(M))
        for k, rest in enumerate(_others(A)):
            total[k] += quadratic(C[k] * rest)
        # The product game of each pair of terms, with factors A inside and M outside.
        inside, outside = (np.stack(part).reshape(d, 1, 1, -1) for part in (A, M))
        weights = (coef[rows, None] * coef).reshape(-1, n_outputs)
        out = np.zeros((1, 1, d, n_outputs))
        _core.product_games(inside, outside, weights, start, steps, rule, out)
        shapley += out[0, 0]
        if both is not None:
            for k in range(d):
                for j in range(k):
                    rest = _product([means[q] for q in range(d) if q not in (k, j)])
                    reduced = coef * np.reshape(rest, (-1, 1))
                    both[k, j] += form(C[k] * C[j], reduced[rows], reduced)
                    both[j, k] = both[k, j]
    return Variances(np.zeros((d, n_outputs)), variance, total, shapley, both)


def _product(arrays: Sequence[Floats]) -> Any:
    total: Any = 1.0
    for array in arrays:
        total = total * array
    return total


def _others(arrays: Sequence[Floats]) -> list[Any]:
    """Return for each array the product of the others, without division."""
    ahead: list[Any] = [1.0]
    for array in arrays[:-1]:
        ahead.append(ahead[-1] * array)
    behind: Any = 1.0
    found: list[Any] = []
    for k in range(len(arrays) - 1, -1, -1):
        found.append(ahead[k] * behind)
        behind = behind * arrays[k]
    return found[::-1]


def _n_rows(table: Any) -> int:
    return int(table.shape[0])
