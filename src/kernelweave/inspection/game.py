"""What is asked of a model, and what the branches for kernels, rules and others answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError

DEFAULT_PERMUTATIONS = 500  # of each row, where values must be sampled


@dataclass(frozen=True)
class Players:
    """Disjoint groups of columns of a table.

    Parameters
    ----------
    names : tuple of str
        One for each player.
    columns : tuple of tuple of int
        Positions of its columns; columns of no player do not exist.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.names)

    def owner(self, n_columns: int) -> Indices:
        """Return the player of every column, -1 for none."""
        owner = np.full(n_columns, -1)
        for player, columns in enumerate(self.columns):
            owner[list(columns)] = player
        return owner


@dataclass(frozen=True)
class Game:
    """Rows to be explained, and what with.

    Parameters
    ----------
    rows, background : tables
        As they reach the estimator.
    weights : ndarray of shape (n_background,)
        Weights of the background rows, which sum to one.
    n_background : int
        Number of background rows before equal ones were merged.
    correction : float
        Factor of standard errors: below one where the background was drawn from a larger one.
    players : Players
        Groups of the columns; not used where ``by`` is a kernel or a rule.
    by : {"column", "kernel", "rule"}
        What the players are; sources and groups are players of columns.
    value : {"joint", "independent", "functional"}
        How columns that are absent are filled.
    interactions : bool
        Whether pairs are asked for.
    n_permutations : int or None
        Permutations of a sampler, where nothing else is possible; None: about 500. As many as
        background rows, or fewer: see `explain`.
    random_state : int
        Seed of the sampler.
    """

    rows: Any
    background: Any
    weights: Floats
    n_background: int
    correction: float
    players: Players
    by: str = "column"
    value: str = "joint"
    interactions: bool = False
    n_permutations: int | None = None
    random_state: int = 0

    @property
    def walked(self) -> bool:
        """Whether one permutation for each background row is enough."""
        few = self.n_permutations is not None and self.n_permutations <= len(self.weights)
        return few and self.value == "joint" and not self.interactions


@dataclass(frozen=True)
class Shares:
    """Values of all players; arrays have an axis of outputs even where there is one.

    Parameters
    ----------
    names : tuple of str
        Of the players.
    values : ndarray of shape (n_rows, n_players, n_outputs)
        Shapley values.
    base : ndarray of shape (n_outputs,)
        Value of the empty coalition.
    errors : ndarray of the shape of `values`, or None
        Standard errors.
    interactions : ndarray of shape (n_rows, n_players, n_players, n_outputs), or None
        Interaction indices of pairs, zero on the diagonal.
    nodes, error_bound, n_permutations
        As in `Attributions`.
    data : ndarray of shape (n_rows, n_players), or None
        What is shown beside the values; None: the columns of the players.
    shared : ndarray of shape (n_background, n_players, n_outputs), or None
        What each background row adds to the standard errors of the sums of ``|values|``: see
        `shared_errors`.
    """

    names: tuple[str, ...]
    values: Floats
    base: Floats
    errors: Floats | None = None
    interactions: Floats | None = None
    nodes: int = 0
    error_bound: float = 0.0
    n_permutations: int = 0
    data: Any = None
    shared: Floats | None = None


@singledispatch
def attribute(terms: Any, game: Game) -> Shares:
    """Return the values of the players for what ``_terms()`` of an estimator returned.

    A branch for another kind of terms registers itself with ``@attribute.register``.
    """
    raise InputTypeError(f"model: {type(terms).__name__} cannot be explained.")


Link = tuple[str | None, frozenset[int]]
"""The name of a source, where a kernel has one, and the players that the kernel looks at."""


@singledispatch
def linked(terms: Any, game: Game) -> list[Link]:
    """Return which players are connected by the terms of a model, for ``by="source"``."""
    raise InputError(
        "by: 'source' is not known for this model. Hint: in Python groups can be named, as in "
        "by={'blood': ['iron', 'sugar']}."
    )


def layout(values: Floats, interactions: Floats) -> Floats:
    """Return pairs in shap's layout: half of each index, and the rest of a value on the diagonal.

    Rows then sum to the values, and everything to the prediction minus the base.
    """
    pairs = interactions / 2.0
    n = pairs.shape[1]
    pairs[:, np.arange(n), np.arange(n)] = values - pairs.sum(axis=2)
    return pairs


def mean_and_error(
    parts: Floats, game: Game, axis: int = 0, *, drawn: int = 0
) -> tuple[Floats, Floats]:
    """Return the mean over background rows and its standard error, ``sd / sqrt(m)``.

    Where permutations were drawn, their spread is part of that of the rows, and is not reduced
    where these are most of a larger background.
    """
    parts = np.moveaxis(parts, axis, 0)
    mean = np.tensordot(game.weights, parts, 1)
    if game.n_background < 2:
        return mean, np.full_like(mean, np.nan)
    # Merged rows count as often as they occurred, hence m - 1 for all of them.
    variance = np.tensordot(game.weights, (parts - mean) ** 2, 1) / (game.n_background - 1)
    return mean, (1.0 if drawn else game.correction) * np.sqrt(variance)


def shared_errors(
    changes: Floats, game: Game, weights: Floats | None = None, *, drawn: int = 0
) -> Floats | None:
    """Return what each background row adds to the standard errors of the sums of ``|values|``.

    All rows are compared with the same background, so that its error does not average out over
    them. The sum of squares over the background rows is the variance of a sum.

    Parameters
    ----------
    changes : ndarray of shape (n_background, ...)
        Sums over the rows of ``sign(value) * (value against this background row - value)``.
    game : Game
        What was asked.
    weights : ndarray of shape (n_background,), optional
        Weights of the background rows; those of the game by default.
    drawn : int
        As in `mean_and_error`.
    """
    if game.n_background < 2:
        return None
    scales = np.sqrt((game.weights if weights is None else weights) / (game.n_background - 1))
    factor = 1.0 if drawn else game.correction
    return np.asarray(factor * scales.reshape(-1, *(1,) * (changes.ndim - 1)) * changes)


def signed_changes(parts: Floats, values: Floats) -> Floats:
    """Return the changes that `shared_errors` takes.

    Parameters
    ----------
    parts : ndarray of shape (n_rows, n_background, n_players, n_outputs)
        Values against every background row.
    values : ndarray of shape (n_rows, n_players, n_outputs)
        Their means.
    """
    signed = np.einsum("itlo,ilo->tlo", parts, np.sign(values))
    return np.asarray(signed - np.abs(values).sum(axis=0))


def listed_names(names: Sequence[str], most: int = 3) -> str:
    """Return ``a, b, ...`` for messages."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
