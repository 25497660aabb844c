"""Attributions of pipelines, of combinations of models and of functions that are sampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from kernelweave._declaration import declared
from kernelweave._threads import run_each
from kernelweave._types import Bools, Floats
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import InputError, InputTypeError
from kernelweave.estimators.terms import FunctionTerms, MemberTerms

from .coalitions import (
    FEW_ENUMERATED,
    MOST_ENUMERATED,
    Coalitions,
    Enumeration,
    Permutations,
)
from .game import (
    DEFAULT_PERMUTATIONS,
    Game,
    Link,
    Players,
    Shares,
    attribute,
    linked,
    mean_and_error,
    shared_errors,
    signed_changes,
)
from .tables import Mixer, cells, pick_rows

_TRIED = 100  # rows on which steps are tried
_MIXED = 20_000  # mixed rows that a function evaluates at a time, as far as rows are divided


def last_step(model: Any) -> Any:
    """Return the estimator of a pipeline, or of none."""
    return model[-1] if isinstance(model, Pipeline) else model


def check_model(estimator: Any) -> None:
    """Refuse what is no estimator of kernelweave that predicts."""
    if declared(estimator) is None:
        hint = ""
        if hasattr(estimator, "calibrated_classifiers_"):
            hint = " Hint: probabilities do not add up; explain its calibrated_classifiers_."
        raise InputTypeError(
            "model: must be an estimator of kernelweave, or a pipeline or search around one, "
            f"got {type(estimator).__name__}.{hint}"
        )
    if not hasattr(estimator, "_terms"):
        raise InputTypeError(
            f"model: {type(estimator).__name__} has no decision or prediction to explain."
        )


def shares_of(model: Any, game: Game) -> Shares:
    """Return the values of the players of one model, which may be a pipeline."""
    game, _ = through_steps(model, game)
    return attribute(last_step(model)._terms(), game)


def links_of(model: Any, game: Game) -> list[Link]:
    """Return which players the kernels of a model connect."""
    game, _ = through_steps(model, game)
    return linked(last_step(model)._terms(), game)


def through_steps(model: Any, game: Game) -> tuple[Game, bool]:
    """Return the game as it reaches the last step of a pipeline, and whether players are the same.

    Steps that turn each player into columns of its own commute with mixing rows, so that values of
    the derived columns are those of the player. Where steps mix players, the derived columns are
    the players.
    """
    if not isinstance(model, Pipeline) or len(model) == 1:
        return game, True
    steps = model[:-1]
    rows, background = steps.transform(game.rows), steps.transform(game.background)
    depends = _known_dependences(steps, game, rows)
    if depends is None:
        depends = _dependences(steps, game)
    if (depends.sum(axis=1) <= 1).all():
        columns = [tuple(np.flatnonzero(depends[:, p]).tolist()) for p in range(len(game.players))]
        players = Players(game.players.names, tuple(columns))
        return replace(game, rows=rows, background=background, players=players), True
    try:
        names = [str(name) for name in steps.get_feature_names_out()]
    except (AttributeError, ValueError):
        names = [f"derived {j}" for j in range(rows.shape[1])]
    players = Players(tuple(names), tuple((j,) for j in range(len(names))))
    return replace(game, rows=rows, background=background, players=players), False


def _known_dependences(steps: Pipeline, game: Game, derived: Any) -> Bools | None:
    """Return `_dependences` where every step makes each column of the one of its name."""
    if not all(getattr(step, "_one_to_one", False) for step in steps):
        return None
    before, after = (list(nw.from_native(part).columns) for part in (game.rows, derived))
    owner = game.players.owner(len(before))[[before.index(name) for name in after]]
    return np.asarray(owner[:, None] == np.arange(len(game.players)))


def _dependences(steps: Pipeline, game: Game) -> Bools:
    """Return which derived columns change with which players, of shape (n_derived, n_players).

    On some rows, the columns of one player at a time are replaced by those of another row. Every
    derived column that varies at all differs between two of these rows.
    """
    n_players = len(game.players)
    stacked = Mixer(game.rows, game.background).stacked
    derived = steps.transform(stacked)
    known = cells(derived, range(derived.shape[1]))
    some = even_rows(len(known), _TRIED)
    apart = np.unique(_differs(known, known[:1]).argmax(axis=0))  # first row unlike row 0
    rows = np.concatenate([some, np.zeros_like(apart)])
    others = np.concatenate([np.roll(some, -1), apart])
    mixer = Mixer(pick_rows(stacked, rows), pick_rows(stacked, others))
    owner = game.players.owner(game.rows.shape[1])
    size = len(rows)
    index = np.tile(np.arange(size), n_players)
    changed = owner == np.repeat(np.arange(n_players), size)[:, None]
    after = steps.transform(mixer.rows(index, index, ~changed))
    new = cells(after, range(derived.shape[1]))
    differs = _differs(np.tile(known[rows], (n_players, 1)), new)
    return np.asarray(differs.reshape(n_players, size, -1).any(axis=1)).T


def _differs(old: Any, new: Any) -> Bools:
    """Return which cells differ; two missing values do not."""
    missing = (old != old) & (new != new)
    return np.asarray((old != new) & ~missing, dtype=bool)


@linked.register
def _(terms: MemberTerms, game: Game) -> list[Link]:
    return [link for model, _ in terms.members for link in links_of(model, game)]


@attribute.register
def attribute_members(terms: MemberTerms, game: Game) -> Shares:
    """Return the weighted sum of the values of the members; kernels stand side by side."""
    for model, _ in terms.members:
        check_model(last_step(model))
    same = all(through_steps(model, game)[1] for model, _ in terms.members)
    if not same and game.by == "column":  # members have no columns in common but those of the table
        reason = "the steps of a member mix columns"
        return attribute_function(FunctionTerms(partial(_summed, terms), reason), game)
    parts: list[tuple[Any, Floats]] = [
        (shares_of(model, game), slopes) for model, slopes in terms.members
    ]
    base = terms.intercept + sum(slopes @ shares.base for shares, slopes in parts)
    values = [shares.values @ slopes.T for shares, slopes in parts]
    # Standard errors of a sum of dependent estimates are at most the sum of theirs. A background
    # row changes the members alike, where their values have the same sign.
    errors = _joined_errors([(shares.errors, slopes) for shares, slopes in parts], game)
    shared = _joined_errors([(shares.shared, slopes) for shares, slopes in parts], game)
    pairs: Any = None
    names = parts[0][0].names
    if game.by == "column" and game.interactions:
        pairs = sum((shares.interactions @ slopes.T for shares, slopes in parts), np.zeros(1))
    if game.by != "column":
        names = tuple(name for shares, _ in parts for name in shares.names)
    data = [shares.data for shares, _ in parts]
    kept = data[0] is not None and game.by != "column"
    return Shares(
        names,
        _joined(values, game),
        np.asarray(base),
        errors,
        pairs,
        max(shares.nodes for shares, _ in parts),
        sum(float(np.abs(s).sum(axis=0).max()) * shares.error_bound for shares, s in parts),
        max(shares.n_permutations for shares, _ in parts),
        np.concatenate(data, axis=1) if kept else None,
        shared,
    )


def _summed(terms: MemberTerms, X: Any) -> Floats:
    """Return the outputs of a weighted sum of models."""
    total = np.tile(terms.intercept, (X.shape[0], 1))
    for model, slopes in terms.members:
        total += function_of(model)(X) @ slopes.T
    return total


def function_of(model: Any) -> Callable[[Any], Floats]:
    """Return the function that is explained: decision values or predictions of all outputs."""
    tasks = getattr(last_step(model), "tasks_", None)
    own = model.decision_function if is_classifier(last_step(model)) else model.predict

    def outputs(X: Any) -> Floats:
        if tasks is not None:
            return np.column_stack([own(X, task=task) for task in tasks])
        return np.asarray(own(X), dtype=np.float64).reshape(X.shape[0], -1)

    return outputs


def _joined(arrays: list[Any], game: Game) -> Floats:
    if game.by == "column":
        return np.asarray(sum(arrays))
    return np.concatenate(arrays, axis=1)


def _joined_errors(parts: list[tuple[Any, Floats]], game: Game) -> Floats | None:
    if any(errors is None for errors, _ in parts):
        return None
    return _joined([errors @ np.abs(slopes).T for errors, slopes in parts], game)


@attribute.register
def attribute_function(terms: FunctionTerms, game: Game) -> Shares:
    """Return values by evaluating mixed rows: all coalitions of few players, else a sample."""
    if game.by != "column":
        raise InputError(
            f"by: {game.by!r} is not possible for this model, because {terms.reason}; pass "
            "by='column'."
        )
    if game.value != "joint":
        raise InputError(
            f"value: {game.value!r} is not possible for this model, because {terms.reason}; pass "
            "value='joint'."
        )
    n, m, n_players = game.rows.shape[0], len(game.weights), len(game.players)
    exact = n_players <= (FEW_ENUMERATED if game.walked else MOST_ENUMERATED)
    if game.interactions and not exact:
        raise InputError(
            f"interactions: of more than {MOST_ENUMERATED} players are not possible for this "
            f"model, because {terms.reason}; pass interactions=False, or group columns with by=."
        )
    drawn = 0
    if not exact:
        wanted = game.n_permutations or DEFAULT_PERMUTATIONS
        drawn = m if game.walked else 2 * m * max(1, -(-wanted // (2 * m)))
    mixer, owner = Mixer(game.rows, game.background), game.players.owner(game.rows.shape[1])
    size = max(1, _MIXED // (drawn * n_players or m * 2**n_players))

    def of_rows(first: int) -> list[tuple[Floats, Floats | None]]:
        """Evaluate some rows together, since each call of a model has its cost."""
        rows = np.arange(first, min(first + size, n))
        games = [_coalitions(game, drawn, int(row)) for row in rows]
        asked = [one.coalitions for one in games]
        other, present = (np.concatenate(parts) for parts in zip(*asked, strict=True))
        present = np.column_stack([present, np.zeros(len(other), dtype=bool)])
        x = np.repeat(rows, len(other) // len(rows))
        values = terms.function(mixer.rows(x, other, present[:, owner]))
        found = zip(games, np.split(values, len(rows)), strict=True)
        return [
            (one.values(part), one.pairs(part, game.weights) if game.interactions else None)
            for one, part in found
        ]

    by_row = [row for rows in run_each(of_rows, range(0, n, size)) for row in rows]
    parts = np.stack([v for v, _ in by_row])
    mean, errors = mean_and_error(parts, game, axis=1, drawn=drawn)
    shared = shared_errors(signed_changes(parts, mean), game, drawn=drawn)
    base = game.weights @ terms.function(game.background)
    pairs = np.stack([p for _, p in by_row if p is not None]) if game.interactions else None
    names = game.players.names
    return Shares(names, mean, base, errors, pairs, n_permutations=drawn, shared=shared)


def _coalitions(game: Game, drawn: int, row: int) -> Coalitions:
    """Return the coalitions of a row: those of permutations, or all where none are drawn."""
    n_players, m = len(game.players), len(game.weights)
    if not drawn:
        return Enumeration(n_players, m)
    random = np.random.default_rng([game.random_state, row])
    if game.walked:
        return Permutations.draw_one(n_players, m, random)
    return Permutations.draw(n_players, m, drawn // (2 * m), random)
