"""Shapley values and interactions by all coalitions, through a model's own predictions."""

from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import factorial
from typing import Any

import numpy as np
import pandas as pd


def coalitions(n_players: int) -> list[tuple[int, ...]]:
    """Return all subsets of the players."""
    numbers = range(n_players)
    return [S for size in range(n_players + 1) for S in combinations(numbers, size)]


def joint_game(
    predict: Callable[[Any], Any],
    row: pd.DataFrame,
    background: pd.DataFrame,
    groups: Sequence[Sequence[Any]],
) -> dict[tuple[int, ...], Any]:
    """Return the mean prediction of the background with the columns of each coalition replaced."""
    mixed = []
    for S in coalitions(len(groups)):
        rows = background.copy()
        for name in [name for player in S for name in groups[player]]:
            rows[name] = row[name].array.take(np.zeros(len(rows), dtype=int))
        mixed.append(rows)
    values = np.asarray(predict(pd.concat(mixed, ignore_index=True)))
    means = values.reshape(len(mixed), len(background), -1).mean(axis=1)
    return dict(zip(coalitions(len(groups)), means, strict=True))


def grid_of(background: pd.DataFrame, groups: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Return all combinations of the groups' values: the product of their distributions."""
    places = np.array([*product(range(len(background)), repeat=len(groups))])
    parts = [
        background[list(group)].iloc[places[:, k]].reset_index(drop=True)
        for k, group in enumerate(groups)
    ]
    return pd.concat(parts, axis=1)[list(background.columns)]


def shapley(game: dict[tuple[int, ...], Any]) -> np.ndarray[Any, Any]:
    """Return the Shapley value of every player, (n_players, n_outputs)."""
    d = max(map(len, game))
    out = np.zeros((d, *np.shape(game[()])))
    for S, value in game.items():
        for player in range(d):
            if player in S:
                others, sign = len(S) - 1, 1.0
            else:
                others, sign = len(S), -1.0
            weight = factorial(others) * factorial(d - others - 1) / factorial(d)
            out[player] += sign * weight * value
    return out


def interaction_indices(game: dict[tuple[int, ...], Any]) -> np.ndarray[Any, Any]:
    """Return the Shapley interaction index of every pair; zeros on the diagonal."""
    d = max(map(len, game))
    out = np.zeros((d, d, *np.shape(game[()])))
    for S, value in game.items():
        for pair in combinations(range(d), 2):
            within = len(set(pair) & set(S))
            size = len(S) - within
            weight = factorial(size) * factorial(d - size - 2) / factorial(d - 1)
            out[pair] += weight * value * (-1.0 if within == 1 else 1.0)
    return np.asarray(out + out.swapaxes(0, 1))
