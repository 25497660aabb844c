"""Models as sums of products of functions of single columns of the table that users have."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from math import prod
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave._types import Floats, Indices
from kernelweave.estimators.terms import KernelTerms, MemberTerms, RuleTerms
from kernelweave.rules import LinearTerm, Proposition, score_rules
from kernelweave.rules.linear import Term, is_linear
from kernelweave.rules.scores import cached_truths

from .anova import Function, Products, Separable
from .game import Game, Players
from .models import last_step, through_steps
from .pieces import Piece, make_pieces

_FACTORS = 10_000  # terms times players of a block: 40 MB with 500 rows

Prepare = Callable[[Any], Any]


def separable_form(model: Any, table: Any) -> Separable | None:
    """Return a model as a sum of products of functions of columns; None where it is none.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model. Steps before the last turn each column into columns of its own, or the
        model is no such sum.
    table : table
        Some rows, with the columns of the model.
    """
    n = table.shape[0]
    players = Players(
        tuple(map(str, range(table.shape[1]))), tuple((j,) for j in range(table.shape[1]))
    )
    game = Game(table, table, np.full(n, 1.0 / n), n, 1.0, players)
    inner, same = through_steps(model, game)
    if not same:
        return None
    owner = inner.players.owner(inner.rows.shape[1])
    steps = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None
    prepare = _identity if steps is None else steps.transform
    return separate(last_step(model)._terms(), owner, prepare, table)


def _identity(table: Any) -> Any:
    return table


@singledispatch
def separate(terms: Any, owner: Indices, prepare: Prepare, table: Any) -> Separable | None:
    """Return what ``_terms()`` of an estimator returned as a sum of products, if it is one.

    Parameters
    ----------
    terms : object
        Terms of a model.
    owner : ndarray of int
        For each column that the estimator sees the column of the user's table it comes from, -1
        for a constant.
    prepare : callable
        From the user's table to that of the estimator.
    table : table
        Some rows of the user's table.
    """
    return None


@separate.register
def separate_kernels(
    terms: KernelTerms, owner: Indices, prepare: Prepare, table: Any
) -> Separable | None:
    """Return kernels that are products or sums over columns, or products of both."""
    pieces = _Pieces(terms, owner, prepare)
    constant = np.array(terms.intercept, dtype=np.float64)
    products: list[Products] = []
    additive: dict[int, list[Function]] = {}
    for place, piece in enumerate(pieces.at(table)):
        sums = [bound for bound, _ in piece.sums]
        if not piece.players:
            constant += piece.coef.sum(axis=0) * prod(b.atom.constant**p for b, p in piece.sums)
        elif len(piece.players) == 1:
            additive.setdefault(piece.players[0], []).append(pieces.values(place))
        elif piece.opaque or sum(power for _, power in piece.sums) > 1:
            return None
        elif not sums:
            products += pieces.products(place, piece)
        elif not piece.products:
            constant += sums[0].atom.constant * piece.coef.sum(axis=0)
            for player in sums[0].columns:
                additive.setdefault(player, []).append(pieces.summand(place, player))
        else:  # a product times a sum is a sum of products
            if sums[0].atom.constant:
                products += pieces.products(place, piece, scale=sums[0].atom.constant)
            for player in sums[0].columns:
                products += pieces.products(place, piece, summand=player)
    return Separable(constant, products, additive)


class _Pieces:
    """The pieces of a kernel model, with the rows of one table after another."""

    def __init__(self, terms: KernelTerms, owner: Indices, prepare: Prepare) -> None:
        self.owner, self.terms, self.prepare = owner, terms, prepare
        self.last: dict[int, tuple[Any, list[Piece]]] = {}

    def at(self, table: Any) -> list[Piece]:
        """Return the pieces with the rows of a table, which is kept with them."""
        if id(table) not in self.last:
            rows = self.terms.check(self.prepare(table))
            numbers = range(table.shape[1])
            columns = tuple(tuple(np.flatnonzero(self.owner == q).tolist()) for q in numbers)
            players = Players(tuple(map(str, numbers)), columns)
            self.last[id(table)] = table, make_pieces(self.terms, rows, rows, players)
        return self.last[id(table)][1]

    def values(self, place: int) -> Function:
        """Return the function of a piece of one player."""

        def function(table: Any) -> Floats:
            piece = self.at(table)[place]
            return piece.values([bound.rows for bound in piece.atoms])

        return function

    def summand(self, place: int, player: int) -> Function:
        """Return the part of one player in a sum."""

        def function(table: Any) -> Floats:
            piece = self.at(table)[place]
            ((bound, _),) = piece.sums
            return np.asarray(bound.part(bound.rows, player, slice(None)) @ piece.coef)

        return function

    def products(
        self, place: int, piece: Piece, *, summand: int | None = None, scale: float = 1.0
    ) -> list[Products]:
        """Return blocks of terms of a piece; ``summand`` is the one that is taken of its sum."""
        own = {q for bound in piece.products for q in bound.columns}
        players = sorted(own if summand is None else own | {summand})
        size = max(32, int(_FACTORS / len(players)))
        blocks = [slice(i, i + size) for i in range(0, piece.n_terms, size)]

        def factor(player: int, some: slice) -> Function:
            def function(table: Any) -> Floats:
                piece = self.at(table)[place]
                bounds = [b for b in piece.products if player in b.columns]
                if player == summand:
                    bounds += [bound for bound, _ in piece.sums]
                return np.asarray(prod(b.part(b.rows, player, some) for b in bounds)).T

            return function

        return [
            Products(scale * piece.coef[some], {q: factor(q, some) for q in players})
            for some in blocks
        ]


@separate.register
def separate_members(
    terms: MemberTerms, owner: Indices, prepare: Prepare, table: Any
) -> Separable | None:
    """Return a weighted sum of models."""
    constant = np.array(terms.intercept, dtype=np.float64)
    products: list[Products] = []
    additive: dict[int, list[Function]] = {}
    for model, slopes in terms.members:
        form = separable_form(model, prepare(table)) if (owner >= 0).all() else None
        if form is None or not np.array_equal(owner, np.arange(len(owner))):
            return None
        constant += slopes @ form.constant
        products += [
            Products(part.coef @ slopes.T, {q: _after(prepare, f) for q, f in part.factors.items()})
            for part in form.products
        ]
        for player, functions in form.additive.items():
            scaled = [_after(prepare, function, slopes) for function in functions]
            additive.setdefault(player, []).extend(scaled)
    return Separable(constant, products, additive)


def _after(prepare: Prepare, function: Function, slopes: Floats | None = None) -> Function:
    """Return a function of prepared tables as one of those of users, scaled."""
    if prepare is _identity and slopes is None:
        return function

    def composed(table: Any) -> Floats:
        values = function(prepare(table))
        return values if slopes is None else np.asarray(values @ slopes.T)

    return composed


@separate.register
def separate_rules(terms: RuleTerms, owner: Indices, prepare: Prepare, table: Any) -> Separable:
    """Return rules on several columns as products of truth values, other terms as sums."""
    constant = np.array(terms.intercept, dtype=np.float64)
    single: dict[int, list[Term]] = {}
    several: list[dict[int, list[Proposition | LinearTerm]]] = []
    weights: list[tuple[float, ...]] = []
    for rule in terms.rules:
        parts: dict[int, list[Proposition | LinearTerm]] = {}
        for condition in rule.conditions:
            parts.setdefault(int(owner[condition.position]), []).append(condition)
        if not parts:
            constant += rule.weights
        elif len(parts) == 1:
            single.setdefault(next(iter(parts)), []).append(rule)
        else:
            several.append(parts)
            weights.append(rule.weights)

    def factor(player: int) -> Function:
        def truths(table: Any) -> Floats:
            checked = terms.check(prepare(table))
            true = cached_truths(checked)
            out = np.ones((len(several), checked.n_rows))
            for row, parts in zip(out, several, strict=True):
                for condition in parts.get(player, ()):
                    row *= true(condition)
            return out

        return truths

    def own(rules: list[Term]) -> Function:
        zeros = np.zeros(len(constant))
        return lambda table: score_rules(rules, zeros, terms.check(prepare(table)))

    players = sorted({player for parts in several for player in parts})
    products = Products(
        np.array(weights).reshape(len(several), len(constant)), {q: factor(q) for q in players}
    )
    return Separable(
        constant, [products] if several else [], {q: [own(r)] for q, r in single.items()}
    )


def thresholds(model: Any) -> dict[int, list[float]]:
    """Return the numbers at which rules cut each column; none behind the steps of a pipeline.

    Those of a linear term are its ends, between which it is a straight line.
    """
    found: dict[int, list[float]] = {}
    rules = () if isinstance(model, Pipeline) and len(model) > 1 else last_step(model)
    for rule in getattr(rules, "_added", ()):
        for condition in rule.conditions:
            if is_linear(condition):
                found.setdefault(condition.position, []).extend([condition.low, condition.high])
            elif condition.is_numeric:
                found.setdefault(condition.position, []).append(float(condition.value))
    return found
