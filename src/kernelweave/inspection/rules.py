"""Exact Shapley values of rule ensembles, by tables of truth patterns.

A rule on L players sees a row through L bits: do all of its conditions on this player hold? For a
row and a background row the rule is a product game of bits. The mean over the background is a
contraction with the shares of its patterns, so that each rule becomes one table from patterns to
values, and a row is explained by look-ups, whatever the size of the background. Linear terms are
games of one player.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Bools, Floats, Indices
from kernelweave.errors import InputError
from kernelweave.estimators.terms import RuleTerms
from kernelweave.rules import LinearTerm, Proposition, Rule
from kernelweave.rules.linear import Term, is_linear
from kernelweave.rules.scores import cached_truths, read_terms
from kernelweave.rules.table import read_table

from .game import Game, Link, Shares, attribute, linked, shared_errors

_KEPT = 6  # longest rules whose games of all pairs of patterns are kept
_PAIRS = 200_000  # pairs of patterns at a time for longer ones: 8 MB an array at 5 columns
_SPREAD_WORK = 1e7  # rows x background rows x conditions x outputs for variances
_SPREAD_ROWS = 50  # least background rows for them
_BLOCK = 1024  # rows at a time for them


@attribute.register
def attribute_rules(terms: RuleTerms, game: Game) -> Shares:
    """Return the values of columns, groups of columns or rules."""
    if game.by == "kernel":
        raise InputError("by: 'kernel' needs a model with kernels; this one has rules, for 'rule'.")
    tables = terms.check(game.rows), terms.check(game.background)
    if game.by == "rule":
        names = tuple(rule.name for rule in terms.rules)
        found = explain_each_rule(terms.rules, terms.intercept, *tables, game.weights)
    else:
        if game.value == "functional":
            for term in terms.rules:
                if is_linear(term):
                    raise InputError(
                        "value: 'functional' is defined for products over columns only, which the "
                        f"linear term {term} is not; pass value='joint'."
                    )
        names, owner = game.players.names, game.players.owner(tables[0].n_columns)
        found = explain_rules(
            terms.rules,
            terms.intercept,
            *tables,
            game.weights,
            lambda condition: int(owner[condition.position]),
            len(names),
            value=game.value,
            interactions=game.interactions,
        )
    errors, shared, spread = None, None, found.spread
    if spread is not None:
        few = game.n_background < 2
        n_free = np.nan if few else game.n_background - 1.0
        errors = game.correction * np.sqrt(spread.variances / n_free)
        shared = shared_errors(spread.changes, game, spread.weights)
    return Shares(names, found.values, found.base, errors, found.interactions, shared=shared)


@linked.register
def _(terms: RuleTerms, game: Game) -> list[Link]:
    """Return the players of every rule."""
    owner = game.players.owner(terms.check(game.rows).n_columns)
    return [
        (None, frozenset(int(owner[condition.position]) for condition in rule.conditions))
        for rule in terms.rules
    ]


@dataclass(frozen=True)
class Spread:
    """How values differ among the rows of a background, or among some of them."""

    variances: Floats  # (n_rows, n_players, n_outputs)
    changes: Floats  # (n_used, n_players, n_outputs): see `shared_errors`
    weights: Floats  # (n_used,)


@dataclass(frozen=True)
class RuleValues:
    """Values of rows; the last axis of every array is that of the outputs."""

    values: Floats  # (n_rows, n_players, n_outputs)
    spread: Spread | None  # None where background rows do not come one at a time
    base: Floats  # (n_outputs,)
    interactions: Floats | None = None  # indices I_lr, (n_rows, n_players, n_players, n_outputs)


def explain_rules(
    rules: Sequence[Term],
    intercept: Floats,
    X: Any,
    background: Any,
    shares: Floats,
    player_of: Callable[[Proposition | LinearTerm], int],
    n_players: int,
    *,
    value: str = "joint",
    interactions: bool = False,
) -> RuleValues:
    """Return Shapley values of ``intercept + sum of weight * [rule holds]``.

    Parameters
    ----------
    rules : sequence of Rule or LinearTerm
        Each with as many weights as there are outputs.
    intercept : ndarray of shape (n_outputs,)
        Added to all scores.
    X, background : array-like or data frame
        Rows to explain, and rows to compare them with.
    shares : ndarray of shape (n_background,)
        Weights of the background's rows, which sum to one.
    player_of : callable
        From a condition to the number of its player: a column or a group of columns.
    n_players : int
        Number of players.
    value : {"joint", "independent", "functional"}
        Absent players come from one row of the background, each from a row of its own, or count
        as true.
    interactions : bool
        Whether to return the Shapley interaction indices of pairs too.

    Notes
    -----
    Variances over many background rows are estimated from some of them, spread evenly; values
    never are.
    """
    true, true_behind = cached_truths(read_table(X)), cached_truths(read_table(background))
    n_rows, intercept = read_table(X).n_rows, np.array(intercept, dtype=np.float64)
    values = np.zeros((n_rows, n_players, len(intercept)))
    pairs = np.zeros((n_rows, n_players, n_players, len(intercept))) if interactions else None
    base = intercept.copy()
    seen: list[tuple[_Sight | _Slope, Floats]] = []
    for rule in rules:
        if is_linear(rule):
            slope = _Slope([player_of(rule)], true(rule), true_behind(rule))
            weight = np.array(rule.weights)
            mean = shares @ slope.behind
            values[:, slope.players[0]] += (slope.amounts - mean)[:, None] * weight
            base += mean * weight
            seen.append((slope, weight))
            continue
        sight = _Sight.of(rule, player_of, true, true_behind)
        weight = np.array(rule.weights)
        if not sight.players:
            base += weight  # a rule without conditions is a constant
            continue
        seen.append((sight, weight))
        (found, place), behind = sight.bits(slice(None), slice(None))
        outside, share = _outside(*behind, shares, value)
        base += weight * (outside.prod(axis=1) @ share)
        table = _contract(found, outside, share, pairs=False)[place]
        for k, player in enumerate(sight.players):
            values[:, player] += table[:, k, None] * weight
        if pairs is not None:
            table = _contract(found, outside, share, pairs=True)[place]
            for k, j in np.ndindex(table.shape[1:]):
                pairs[:, sight.players[k], sight.players[j]] += table[:, k, j, None] * weight
    joint = value == "joint"
    return RuleValues(values, _spread(seen, shares, values) if joint else None, base, pairs)


def explain_each_rule(
    rules: Sequence[Term], intercept: Floats, X: Any, background: Any, shares: Floats
) -> RuleValues:
    """Return ``weight * (holds - coverage in the background)`` of every rule: players are rules.

    Of a linear term, the amounts take the place of ``holds``, and their mean that of the coverage.
    """
    weights = np.array([rule.weights for rule in rules]).reshape(len(rules), len(intercept))
    holds = read_terms(rules, background)
    coverage = shares @ holds
    values = (read_terms(rules, X) - coverage)[:, :, None] * weights
    variances = (shares @ (holds - coverage) ** 2)[:, None] * weights**2
    changes = ((coverage - holds)[:, :, None] * weights) * np.sign(values).sum(axis=0)
    spread = Spread(np.broadcast_to(variances, values.shape), changes, shares)
    return RuleValues(values, spread, np.asarray(intercept + coverage @ weights))


@dataclass(frozen=True)
class _Slope:
    """What a linear term reads of rows and of the background; its player is one."""

    players: list[int]
    amounts: Floats
    behind: Floats

    def differences(self, k: int, rows: slice, used: Indices) -> Floats:
        """Return the values of the player for some rows and some rows of the background."""
        return self.amounts[rows, None] - self.behind[used]


@dataclass(frozen=True)
class _Sight:
    """What one rule sees of rows: bit k of a code tells whether player k satisfies it."""

    players: list[int]
    codes: Indices
    behind: Indices  # codes of the background

    @classmethod
    def of(
        cls,
        rule: Rule,
        player_of: Callable[[Proposition], int],
        true: Callable[[Proposition], Bools],
        true_behind: Callable[[Proposition], Bools],
    ) -> _Sight:
        """Return the codes of the rows and of the background."""
        own: dict[int, list[Proposition]] = {}
        for condition in rule.conditions:
            own.setdefault(player_of(condition), []).append(condition)

        def codes(truth: Callable[[Proposition], Bools]) -> Any:
            total: Any = 0
            for k, conditions in enumerate(own.values()):
                total = total + (np.logical_and.reduce([*map(truth, conditions)]).astype(int) << k)
            return total

        return cls(list(own), codes(true), codes(true_behind))

    def bits(self, rows: Any, behind: Any) -> list[tuple[Bools, Indices]]:
        """Return patterns as bits and the place of each row among them; those of the background.

        They are all patterns of a short rule, and those that occur of a longer one.
        """
        length, parts = len(self.players), (self.codes[rows], self.behind[behind])
        if length <= _KEPT:
            return [(_all_patterns(length), codes) for codes in parts]
        found = [np.unique(codes, return_inverse=True) for codes in parts]
        return [((f[:, None] >> np.arange(length) & 1).astype(bool), place) for f, place in found]

    def differences(self, k: int, rows: slice, used: Indices) -> Floats:
        """Return the values of one player for some rows and some rows of the background."""
        length = len(self.players)
        (inside, place), (outside, behind) = self.bits(rows, used)
        games = _kept_games(length, False) if length <= _KEPT else _games(inside, outside, False)
        return np.asarray(games[:, :, k].take(behind, axis=1).take(place, axis=0))


def _outside(
    bits: Bools, place: Indices, shares: Floats, value: str
) -> tuple[Floats | Bools, Floats]:
    """Return rows of factors that stand in for absent players, and the share of each row."""
    if value == "functional":
        return np.ones((1, bits.shape[1])), np.ones(1)
    share = np.bincount(place, shares, minlength=len(bits)).astype(np.float64)
    if value == "joint":
        return bits, share
    means: Floats = share @ bits
    return means[None], np.ones(1)


def _contract(inside: Bools, outside: Floats | Bools, share: Floats, *, pairs: bool) -> Floats:
    """Return the mean over ``outside`` of the values of each row of ``inside``."""
    if inside.shape == outside.shape and outside.dtype == bool and inside.shape[1] <= _KEPT:
        return np.asarray(np.einsum("pq...,q->p...", _kept_games(inside.shape[1], pairs), share))
    step = max(1, _PAIRS // len(outside))
    parts = [
        np.einsum("pq...,q->p...", _games(inside[i : i + step], outside, pairs), share)
        for i in range(0, len(inside), step)
    ]
    return np.concatenate(parts)


@cache
def _all_patterns(length: int) -> Bools:
    return (np.arange(2**length)[:, None] >> np.arange(length) & 1).astype(bool)


@cache
def _kept_games(length: int, pairs: bool) -> Floats:
    return _games(_all_patterns(length), _all_patterns(length), pairs)


def _games(inside: Bools, outside: Floats | Bools, pairs: bool) -> Floats:
    """Return values, or interaction indices, of product games for all pairs of rows.

    With ``delta = u - w`` these are ``delta_l int prod_{q != l} (w_q + tau delta_q) dtau`` and the
    same without two players; Gauss-Legendre nodes make the integrals exact.
    """
    w = outside.astype(np.float64)[None]
    delta = inside.astype(np.float64)[:, None] - w
    length = delta.shape[-1]
    nodes, omegas = np.polynomial.legendre.leggauss(max(1, (length + 1) // 2))
    found = np.zeros((*delta.shape, length)) if pairs else np.zeros(delta.shape)
    for tau, omega in zip((nodes + 1.0) / 2.0, omegas / 2.0, strict=True):
        factors = w + tau * delta
        if not pairs:
            found += omega * delta * _others(factors)
            continue
        for k in range(length):
            rest = np.delete(factors, k, axis=-1)
            both = delta[..., k, None] * np.delete(delta, k, axis=-1) * _others(rest)
            found[..., k, np.arange(length) != k] += omega * both
    return found


def _others(factors: NDArray[Any]) -> Floats:
    """Return for each factor the product of the others, without division."""
    ahead, behind = np.ones_like(factors), np.ones_like(factors)
    np.cumprod(factors[..., :-1], axis=-1, out=ahead[..., 1:])
    behind[..., :-1] = np.cumprod(factors[..., :0:-1], axis=-1)[..., ::-1]
    return np.asarray(ahead * behind)


def _spread(seen: list[tuple[_Sight | _Slope, Floats]], shares: Floats, values: Floats) -> Spread:
    """Return how all values differ among the background's rows, spread evenly if many."""
    n_rows, n_players, n_outputs = values.shape
    work = max(1, n_rows * n_outputs * sum(len(sight.players) for sight, _ in seen))
    n_used = min(len(shares), max(_SPREAD_ROWS, int(_SPREAD_WORK / work)))
    used = np.linspace(0, len(shares) - 1, n_used).astype(int)
    share = shares[used] / shares[used].sum()
    variances, changes = np.zeros_like(values), np.zeros((n_used, n_players, n_outputs))
    for first in range(0, n_rows, _BLOCK):
        rows = slice(first, first + _BLOCK)
        for player in range(n_players):
            own = [(s, s.players.index(player), w) for s, w in seen if player in s.players]
            total = np.zeros((n_outputs, len(values[rows]), n_used))
            for sight, k, weight in own:
                game = sight.differences(k, rows, used)
                for t in range(n_outputs):
                    total[t] += weight[t] * game
            total -= (total @ share)[:, :, None]
            changes[:, player] += np.einsum("oit,io->to", total, np.sign(values[rows, player]))
            variances[rows, player] = (np.square(total, out=total) @ share).T
    return Spread(variances, changes, share)
