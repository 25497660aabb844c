"""Attributions of kernel models."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.estimators.terms import KernelTerm, KernelTerms
from kernelweave.kernels.base import Rows, take
from kernelweave.kernels.table import is_sparse

from .game import (
    Game,
    Link,
    Shares,
    attribute,
    linked,
    mean_and_error,
    shared_errors,
    signed_changes,
)
from .games import Board
from .pieces import Piece, make_pieces
from .series import PowerSeries
from .tables import Mixer

_TOL = 1e-10  # quadrature error of all values of a row, relative to the range of the predictions
_ROUNDING = 1e-15  # the same relative to the sum of the coefficients: never less is asked for
_KEPT = 2_000_000  # values of rows, background rows, players and outputs that are held
_MOST_WORK = 1e12  # terms times rows times background rows times players times nodes
_MOST_SPARSE = 2000  # columns of a sparse table that are players


@attribute.register
def attribute_kernels(terms: KernelTerms, game: Game) -> Shares:
    """Return the values of columns or of kernels."""
    if game.by == "rule":
        raise InputError(
            "by: 'rule' needs a model that consists of rules, such as RuleEnsembleClassifier."
        )
    X, Z = terms.check(game.rows), terms.check(game.background)
    if game.by == "kernel":
        return _by_kernel(terms, X, Z, game)
    if is_sparse(X) and len(game.players) > _MOST_SPARSE:
        raise InputError(
            f"X: is sparse with {len(game.players)} columns, of which at most {_MOST_SPARSE} are "
            "explained one by one. Hint: group columns with by=."
        )
    pieces = make_pieces(terms, X, Z, game.players, walked=game.walked)
    _check_value(pieces, game)
    n_outputs = len(terms.intercept)
    constant = np.zeros((Z.shape[0], n_outputs)) + terms.intercept
    at_background = sum((_values(term, Z, {}) for term in terms.terms), constant)
    base = np.asarray(game.weights @ at_background)
    joint = game.value == "joint"
    width = len(game.weights) if joint else 1
    players, n = len(game.players), X.shape[0]
    _check_work(pieces, n, width)
    scales = _scales(at_background, pieces)
    tol = max(_TOL, _ROUNDING * sum(float(np.abs(p.coef / scales).sum()) for p in pieces))
    size = int(max(1, _KEPT // (width * (players + 1) * n_outputs)))
    mixer = Mixer(X, Z)
    owner = game.players.owner(X.shape[1])
    owner[owner < 0] = players
    found: list[Any] = []
    nodes, bound, n_permutations = 0, 0.0, 0
    changes: Any = 0.0
    for first in range(0, n, size):
        index = np.arange(first, min(first + size, n))
        shape = (len(index), width, players + 1, n_outputs)
        pairs = None
        if game.interactions:
            pairs = np.zeros((len(index), players + 1, players + 1, n_outputs))
        share = tol / max(1, len(pieces))
        board = Board(game, index, np.zeros(shape), pairs, scales, share, mixer, owner)
        board.bounds, board.empty = np.zeros(len(index)), np.zeros(n_outputs)
        for piece in pieces:
            board.play(piece)
        board.finish()
        values, errors = board.values[:, 0], None
        if joint:
            values, errors = mean_and_error(board.values, game, axis=1, drawn=board.n_permutations)
            changes = changes + signed_changes(board.values, values)[:, :-1]
        found.append((values[:, :-1], errors, pairs))
        nodes, bound = max(nodes, board.nodes), max(bound, float(board.bounds.max()))
        n_permutations = max(n_permutations, board.n_permutations)
        if not joint:
            base = terms.intercept + board.empty
    # A kernel off by e moves each coalition by e sum |a|, and all values by 2 d times that.
    bound += 2.0 * players * sum(piece.error for piece in pieces)
    return Shares(
        game.players.names,
        np.concatenate([values for values, _, _ in found]),
        np.asarray(base),
        np.concatenate([errors[:, :-1] for _, errors, _ in found]) if joint else None,
        np.concatenate([pairs[:, :-1, :-1] for _, _, pairs in found])
        if game.interactions
        else None,
        nodes,
        bound,
        n_permutations,
        shared=shared_errors(changes, game, drawn=n_permutations) if joint else None,
    )


@linked.register
def _(terms: KernelTerms, game: Game) -> list[Link]:
    """Return the players of every kernel; names of `views` stand before a colon."""
    X = terms.check(game.rows)
    owner = game.players.owner(X.shape[1])
    found: list[Link] = []
    for term in terms.terms:
        places = np.concatenate([kernel.source_positions(X) for kernel, _ in term.factors])
        players = frozenset(int(p) for p in owner[places] if p >= 0)
        name, colon, _ = term.name.partition(": ")
        found.append((name if colon else None, players))
    return found


def _scales(at_background: Floats, pieces: list[Piece]) -> Floats:
    """Return the range of every output over the background, or its coefficients where it is 0."""
    ranges = np.ptp(at_background, axis=0)
    sizes = sum((np.abs(piece.coef).sum(axis=0) for piece in pieces), np.zeros(len(ranges)))
    return np.where(ranges > 0, ranges, np.where(sizes > 0, sizes, 1.0))


def _check_value(pieces: list[Piece], game: Game) -> None:
    if game.value != "functional":
        return
    for piece in pieces:
        if piece.sums or piece.opaque:
            raise InputError(
                "value: 'functional' is defined for products over columns only, which "
                f"{piece.name} is not; pass value='joint'."
            )


def _check_work(pieces: list[Piece], n_rows_explained: int, width: int) -> None:
    work = 0.0
    for piece in pieces:
        series, d = PowerSeries.of(piece), len(piece.players)
        if d > 1:
            nodes = min(16, (series.degree(d) + 1) // 2)
            work += float(piece.n_terms) * d * nodes * len(series.steps)
    if work * n_rows_explained * width > _MOST_WORK:
        raise InputError(
            f"X: {n_rows_explained} rows take {work * n_rows_explained * width:.1g} steps, more "
            f"than {_MOST_WORK:.0g}; explain fewer rows, fewer background rows, or with "
            "value='independent'."
        )


def _by_kernel(terms: KernelTerms, X: Any, Z: Any, game: Game) -> Shares:
    """Return ``f_j(x) - mean f_j(z)``: the model is a sum over its kernels."""
    values, errors, changes, base = [], [], [], terms.intercept.astype(np.float64)
    at_rows: dict[Hashable, Rows] = {}
    at_background: dict[Hashable, Rows] = {}
    for term in terms.terms:
        behind = _values(term, Z, at_background)
        mean, error = mean_and_error(behind, game)
        values.append(_values(term, X, at_rows) - mean)
        errors.append(np.broadcast_to(error, values[-1].shape))
        changes.append((mean - behind) * np.sign(values[-1]).sum(axis=0))
        base = base + mean
    names = tuple(term.name for term in terms.terms)
    pairs = None
    if game.interactions:
        pairs = np.zeros((X.shape[0], len(names), len(names), len(base)))
    shared = shared_errors(np.stack(changes, axis=1), game)
    stacked = np.stack(values, axis=1), base, np.stack(errors, axis=1)
    return Shares(names, *stacked, pairs, shared=shared)


def _values(term: KernelTerm, X: Any, known: dict[Hashable, Rows]) -> Floats:
    """Return the values of a term at the rows of a table, in blocks of its own rows."""
    sides = [kernel.prepare_once(X, known) for kernel, _ in term.factors]
    out = np.zeros((X.shape[0], term.coef.shape[1]))
    size = max(1, 500_000 // max(1, X.shape[0]))
    for first in range(0, len(term.coef), size):
        some = slice(first, first + size)
        block: Any = 1.0
        for (kernel, rows), side in zip(term.factors, sides, strict=True):
            block = block * kernel.block(side, take(rows, some))
        out += block @ term.coef[some]
    return out
