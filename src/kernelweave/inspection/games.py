"""Values of the players of one piece of a kernel model, for some rows.

Pieces of one player and plain sums are differences; products and powers of sums go to the compiled
core; kernels that know no parts are enumerated over all coalitions, or sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_each
from kernelweave._types import Bools, Floats, Indices
from kernelweave.errors import InputError
from kernelweave.kernels.base import n_rows, take

from .coalitions import MOST_ENUMERATED, Permutations, all_coalitions, pair_weights, value_weights
from .game import DEFAULT_PERMUTATIONS, Game, listed_names
from .nodes import EXACT, N_BINS, enough_nodes, quadrature
from .pieces import Piece
from .series import PowerSeries, outside_factors
from .tables import Mixer

_LANES = 32  # terms that the core handles together
_VANISHING = 1e-18  # value of a term, relative to its coefficient, that is below rounding
_FACTORS = 1_000_000  # numbers in an array of factors
_WALKED = 4_000_000  # numbers in an array of summands of walks
_MIXED = 1_000_000  # entries of blocks between mixed rows and terms


@dataclass
class Board:
    """Sums over the pieces of a model, for some rows.

    Parameters
    ----------
    game : Game
        What is asked.
    rows : ndarray of int
        The rows.
    values : ndarray of shape (n_rows, n_background, n_players + 1, n_outputs)
        Values by background row; one for all where these are averaged first.
    pairs : ndarray of shape (n_rows, n_players + 1, n_players + 1, n_outputs), or None
        Interaction indices.
    scales : ndarray of shape (n_outputs,)
        Sizes of the outputs, for the tolerance of the quadrature.
    tol : float
        Tolerance of one piece, in units of these.
    mixer : Mixer
        Makes mixed rows of the table.
    empty : ndarray of shape (n_outputs,)
        Value of the empty coalition of the games with averaged factors.
    together : dict
        Pieces that `finish` evaluates at mixed rows, by their players.
    """

    game: Game
    rows: Indices
    values: Floats
    pairs: Floats | None
    scales: Floats
    tol: float
    mixer: Mixer
    owner: Indices
    nodes: int = 0
    bounds: Floats = field(default_factory=lambda: np.zeros(0))
    n_permutations: int = 0
    empty: Floats = field(default_factory=lambda: np.zeros(1))
    together: dict[tuple[int, ...], list[Piece]] = field(default_factory=dict)

    @property
    def joint(self) -> bool:
        """Whether absent players come together from one row."""
        return self.game.value == "joint"

    @property
    def weights(self) -> Floats:
        """Weights of the rows that `values` has."""
        return self.game.weights if self.joint else np.ones(1)

    def play(self, piece: Piece) -> None:
        """Add the values of a piece, at once or in `finish`."""
        players = piece.players
        if not players:
            constants = [bound.atom.constant**power for bound, power in piece.sums]
            self.empty += prod(constants) * piece.coef.sum(axis=0)
            return
        powers = sum(power for _, power in piece.sums)
        if piece.opaque and len(players) > 1:
            self._play_opaque(piece)
        elif len(players) == 1:
            self._add_differences(piece, _whole)
        elif not piece.products and powers == 1:
            self._add_differences(piece, _summands)
        else:
            self._play_products(piece)

    def _add_differences(self, piece: Piece, parts: Callable[[Piece, str, Any], Floats]) -> None:
        """Add a sum over players: the value is the part at the row minus that at the background."""
        outside = outside_parts(piece, self.game, parts)
        inside = parts(piece, "rows", self.rows)
        self.values[:, :, piece.players] += inside[:, None] - outside
        if not self.joint:
            constant = sum(bound.atom.constant for bound, _ in piece.sums if parts is _summands)
            self.empty += outside[0].sum(axis=0) + constant * piece.coef.sum(axis=0)

    def _play_products(self, piece: Piece) -> None:
        series = PowerSeries.of(piece)
        for some in _blocks(piece.n_terms, self._block_size(piece, series)):
            inside = series.factors(piece, "rows", self.rows, some)
            for other in self._background_blocks(inside):
                outside = outside_factors(series, piece, self.game, other, some)
                self._play_block(piece, series, some, other, inside, outside)
                if not self.joint:
                    self.empty += product_value(series, outside, piece.coef[some])

    def _block_size(self, piece: Piece, series: PowerSeries) -> int:
        """Return the number of terms at a time: what fits, in multiples of the core's lanes."""
        width = len(piece.players) * len(series.exponents)
        n = max(len(self.rows), len(self.weights) if self.joint else 1)
        return int(min(16, max(1, _FACTORS // (width * n * _LANES)))) * _LANES

    def _background_blocks(self, inside: Floats) -> list[slice]:
        if not self.joint:
            return [slice(None)]
        width = inside.shape[0] * inside.shape[1] * inside.shape[3]
        return _blocks(len(self.game.weights), max(1, _FACTORS // width))

    def _play_block(
        self,
        piece: Piece,
        series: PowerSeries,
        some: slice,
        other: slice,
        inside: Floats,
        outside: Floats,
        extra: Floats | None = None,
    ) -> None:
        coef = np.ascontiguousarray(piece.coef[some] * series.scale)
        weights = np.ascontiguousarray(self.weights[other])
        exact = extra is not None  # the certificate knows no further factor
        rule = quadrature(self._n_nodes(piece, series, coef, weights, inside, outside, exact))
        players = np.array(piece.players)
        out = np.zeros((len(self.rows), outside.shape[2], len(players), coef.shape[1]))
        least = _VANISHING if piece.vanishes else 0.0
        _core.product_games(
            inside, outside, coef, series.start, series.steps, rule, out, extra, least
        )
        self.values[:, other, players] += out
        if self.pairs is not None:
            n_pairs = len(players) * (len(players) - 1) // 2
            found = np.zeros((len(self.rows), n_pairs, coef.shape[1]))
            _core.product_interactions(
                inside, outside, coef, series.start, series.steps, rule, weights, found, extra
            )
            self._add_pairs(players, found)

    def _add_pairs(self, players: Indices, found: Floats) -> None:
        assert self.pairs is not None
        left, right = (players[side] for side in np.triu_indices(len(players), 1))
        self.pairs[:, left, right] += found
        self.pairs[:, right, left] += found

    def _n_nodes(
        self,
        piece: Piece,
        series: PowerSeries,
        coef: Floats,
        weights: Floats,
        inside: Floats,
        outside: Floats,
        exact: bool,
    ) -> int:
        """Return the number of nodes: exact, or certified to be enough for these terms."""
        n_players = len(piece.players)
        n_nodes = (series.degree(n_players) + 1) // 2
        # The certificate is that of values, for plain factors that are not negative.
        certifiable = len(series.exponents) == 1 and not piece.signed and self.pairs is None
        if n_players > EXACT and certifiable and not exact:
            spreads = np.zeros((len(self.rows), N_BINS))
            sizes = np.abs(coef / self.scales).max(axis=1)
            _core.product_game_spreads(inside, outside, weights, sizes, spreads)
            share = len(coef) / piece.n_terms * float(weights.sum())
            n_nodes, bounds = enough_nodes(n_players, spreads, share * self.tol)
            self.bounds = self.bounds + bounds * float(self.scales.max())
        self.nodes = max(self.nodes, n_nodes)
        return n_nodes

    def _play_opaque(self, piece: Piece) -> None:
        """Add a piece with kernels that compare several players together."""
        hidden = sorted({p for atom in piece.opaque for p in atom.columns})
        names = [self.game.players.names[p] for p in hidden if p < len(self.game.players)]
        if not self.joint:
            raise InputError(
                f"value: {self.game.value!r} needs kernels that are products or sums over columns, "
                f"but {piece.name} compares {listed_names(names)} together; pass value='joint'."
            )
        if self.game.walked and piece.opaque[0].atom.walks is not None:
            self._walk(piece)
        elif len(hidden) <= MOST_ENUMERATED < len(piece.players):
            self._play_hidden(piece, hidden)
        else:
            self.together.setdefault(tuple(piece.players), []).append(piece)

    def finish(self) -> None:
        """Add the pieces that are evaluated at mixed rows, which those of equal players share."""
        for players, pieces in self.together.items():
            if len(players) <= MOST_ENUMERATED:
                self._enumerate(pieces, list(players))
            else:
                self._sample(pieces, list(players))

    def _enumerate(self, pieces: list[Piece], players: list[int]) -> None:
        """Evaluate pieces for all coalitions."""
        coalitions = all_coalitions(len(players))
        weights = value_weights(len(players))

        def of_row(k: int) -> tuple[Floats, Floats | None]:
            values = self._coalition_values(pieces, int(self.rows[k]), players, coalitions)
            pairs = None
            if self.pairs is not None:
                mean = np.tensordot(self.game.weights, values, (0, 1))
                pairs = pair_weights(len(players)) @ mean
            return np.einsum("ls,sto->tlo", weights, values), pairs

        for k, (found, pairs) in enumerate(run_each(of_row, range(len(self.rows)))):
            self.values[k][:, players] += found
            if pairs is not None:
                self._row(k)._add_pairs(np.array(players), pairs[None])

    def _coalition_values(
        self, pieces: list[Piece], row: int, players: list[int], coalitions: Bools
    ) -> Floats:
        """Return values of shape (n_coalitions, n_background, n_outputs)."""
        m = len(self.game.weights)
        which = np.repeat(np.arange(len(coalitions)), m)
        other = np.tile(np.arange(m), len(coalitions))
        present = np.zeros((len(coalitions), len(self.game.players) + 1), dtype=bool)
        present[:, players] = coalitions
        out = self._mixed_values(pieces, row, other, present[which])
        return out.reshape(len(coalitions), m, -1)

    def _mixed_values(
        self, pieces: list[Piece], row: int, other: Indices, present: Bools
    ) -> Floats:
        """Return values of rows of which the players present are those of a row explained."""
        n_terms = max(piece.n_terms for piece in pieces)
        size = max(1, _MIXED // max(n_terms, present.shape[1]))
        parts = []
        for some in _blocks(len(other), size):
            known: dict[Any, Any] = {}
            total: Any = 0.0
            for piece in pieces:
                sides = [
                    self._mixed_rows(atom, row, other[some], present[some], known)
                    for atom in piece.atoms
                ]
                total = total + piece.values(sides)
            parts.append(total)
        return np.concatenate(parts)

    def _mixed_rows(
        self, bound: Any, row: int, other: Indices, present: Bools, known: dict[Any, Any]
    ) -> Any:
        """Return mixed rows as an atom needs them: columns of its own rows, or of the table."""
        if bound.atom.mixable and isinstance(bound.rows, np.ndarray) and bound.rows.ndim == 2:
            return np.where(present[:, bound.owner], bound.rows[row], bound.background[other])
        if "table" not in known:
            x = np.full(len(other), row)
            known["table"] = self.mixer.rows(x, other, present[:, self.owner])
        return bound.atom.prepare(known["table"], known)

    def _play_hidden(self, piece: Piece, hidden: list[int]) -> None:
        """Add a product of opaque kernels of a few players and of known parts of others.

        A function of the players ``hidden`` is the sum over their coalitions T of its value at T
        times the product game "exactly T is present", whose factors are zero and one.
        """
        rest = Piece(piece.products, piece.sums, (), piece.coef)
        opaque = Piece((), (), piece.opaque, piece.coef)
        series = PowerSeries.of(rest)
        players = np.array(piece.players)
        place = np.searchsorted(players, hidden)
        size = self._block_size(piece, series)
        for some in _blocks(piece.n_terms, size):
            for k, row in enumerate(self.rows):
                one = self._row(k)
                inside = series.factors(piece, "rows", one.rows, some)
                for other in self._background_blocks(inside):
                    outside = outside_factors(series, piece, self.game, other, some)
                    index = np.arange(len(self.game.weights))[other]
                    for coalition in all_coalitions(len(hidden)):
                        present = np.zeros((len(index), len(self.game.players) + 1), dtype=bool)
                        present[:, hidden] = coalition
                        extra = one._mixed_block(opaque, int(row), index, present, some)
                        left, right = inside.copy(), outside.copy()
                        left[place[~coalition]] = 0.0
                        right[place[coalition]] = 0.0
                        one._play_block(piece, series, some, other, left, right, extra[None])
                self.nodes = max(self.nodes, one.nodes)

    def _row(self, k: int) -> Board:
        """Return the board of one row, which shares its arrays."""
        one = slice(k, k + 1)
        pairs = None if self.pairs is None else self.pairs[one]
        return replace(self, rows=self.rows[one], values=self.values[one], pairs=pairs)

    def _mixed_block(
        self, piece: Piece, row: int, other: Indices, present: Bools, some: slice
    ) -> Floats:
        known: dict[Any, Any] = {}
        block: Any = 1.0
        for atom in piece.atoms:
            rows = self._mixed_rows(atom, row, other, present, known)
            block = block * atom.atom.whole(rows, take(atom.terms, some))
        return np.ascontiguousarray(block)

    def _sample(self, pieces: list[Piece], players: list[int]) -> None:
        """Estimate the values of pieces by permutations of their players."""
        if self.pairs is not None:
            raise InputError(
                f"interactions: {pieces[0].name} compares its columns together, so that its values "
                "are sampled and have no pairs; pass interactions=False."
            )
        m = len(self.game.weights)
        wanted = self.game.n_permutations or DEFAULT_PERMUTATIONS
        n_pairs = max(1, -(-wanted // (2 * m)))
        self.n_permutations = max(self.n_permutations, 2 * n_pairs * m)

        def of_row(k: int) -> Floats:
            row = int(self.rows[k])

            random = np.random.default_rng([self.game.random_state, row])
            drawn = Permutations.draw(len(players), m, n_pairs, random)
            other, coalitions = drawn.coalitions
            present = np.zeros((len(other), len(self.game.players) + 1), dtype=bool)
            present[:, players] = coalitions
            return drawn.values(self._mixed_values(pieces, row, other, present))

        for k, found in enumerate(run_each(of_row, range(len(self.rows)))):
            self.values[k][:, players] += found

    def _walk(self, piece: Piece) -> None:
        """Estimate the values of a piece by one permutation for each background row.

        The permutations are the same for all rows, and every second one is the one before in
        reverse. The ends of all walks are exact, so that values sum to the change.
        """
        (bound,), players, m = piece.opaque, piece.players, len(self.game.weights)
        walks, rows = bound.atom.walks, take(bound.rows, self.rows)
        assert walks is not None
        random = np.random.default_rng(self.game.random_state)
        drawn = [random.permutation(len(players)) for _ in range((m + 1) // 2)]
        orders = [order[::step] for order in drawn for step in (1, -1)][:m]
        columns = [bound.columns[player] for player in players]

        def of_terms(some: slice) -> Floats:
            terms, coef = take(bound.terms, some), piece.coef[some]
            walk = walks(terms, coef, rows, bound.background, columns)
            return np.stack([walk(t, order) for t, order in enumerate(orders)])

        size = max(1, _WALKED // (len(players) * (len(rows) + m)))
        inner = sum(run_each(of_terms, _blocks(piece.n_terms, size)))
        last, first = piece.values([rows])[None], piece.values([bound.background])
        for t, order in enumerate(orders):
            chain = np.concatenate([np.broadcast_to(first[t], last.shape), inner[t], last])
            self.values[:, t, np.array(players)[order]] += np.diff(chain, axis=0).swapaxes(0, 1)
        self.n_permutations = max(self.n_permutations, m)


def _blocks(n: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def _whole(piece: Piece, side: str, index: Any) -> Floats:
    """Return the values of a piece of one player, of shape (n_rows, 1, n_outputs)."""
    return piece.values([take(getattr(atom, side), index) for atom in piece.atoms])[:, None]


def _summands(piece: Piece, side: str, index: Any) -> Floats:
    """Return the parts of the players of a sum, of shape (n_rows, n_players, n_outputs)."""
    ((bound, _),) = piece.sums
    rows = take(getattr(bound, side), index)
    size = max(1, _MIXED // max(1, n_rows(rows)))
    out = np.zeros((n_rows(rows), len(piece.players), piece.coef.shape[1]))
    for some in _blocks(piece.n_terms, size):
        for k, player in enumerate(piece.players):
            out[:, k] += bound.part(rows, player, some) @ piece.coef[some]
    return out


def outside_parts(piece: Piece, game: Game, parts: Callable[[Piece, str, Any], Floats]) -> Floats:
    """Return the parts of absent players of a sum, for every background row or averaged."""
    if game.value == "functional":
        return np.broadcast_to(piece.coef.sum(axis=0), (1, 1, piece.coef.shape[1]))
    if "outside" not in piece.known:
        found = parts(piece, "background", slice(None))
        if game.value == "independent":
            found = np.tensordot(game.weights, found, 1)[None]
        piece.known["outside"] = found
    return np.asarray(piece.known["outside"])


def product_value(series: PowerSeries, factors: Floats, coef: Floats) -> Floats:
    """Return the sum over terms of products of averaged factors, the value of one coalition."""
    value = np.tile(series.start[:, None], factors.shape[3])
    for factor in factors[:, :, 0]:
        after = np.zeros_like(value)
        for a, b, to in series.steps:
            after[to] += value[a] * factor[b]
        value = after
    return np.asarray(series.scale * (value[-1] @ coef))
