"""Shapley values from the values of coalitions: all of them, or those of random permutations."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial

import numpy as np

from kernelweave._types import Bools, Floats, Indices

MOST_ENUMERATED = 8  # players of which all coalitions are evaluated


@lru_cache(maxsize=16)
def all_coalitions(n_players: int) -> Bools:
    """Return who is present in each of the ``2^n`` coalitions."""
    numbers = np.arange(2**n_players)
    return np.asarray((numbers[:, None] >> np.arange(n_players)) & 1 == 1)


@lru_cache(maxsize=16)
def value_weights(n_players: int) -> Floats:
    """Return the matrix that maps values of all coalitions to Shapley values."""
    coalitions = all_coalitions(n_players)
    sizes = coalitions.sum(axis=1)
    n = n_players
    # A coalition of size s counts (s - 1)! (n - s)! / n! for its members and
    # -s! (n - s - 1)! / n! for others.
    inside = [factorial(max(s - 1, 0)) * factorial(n - s) / factorial(n) for s in sizes]
    outside = [factorial(s) * factorial(max(n - s - 1, 0)) / factorial(n) for s in sizes]
    return np.where(coalitions.T, np.array(inside), -np.array(outside))


@lru_cache(maxsize=16)
def pair_weights(n_players: int) -> Floats:
    """Return the matrix from values of all coalitions to interaction indices of pairs l < r."""
    coalitions = all_coalitions(n_players)
    n, out = n_players, []
    for left, right in zip(*np.triu_indices(n, 1), strict=True):
        both = coalitions[:, left].astype(int) + coalitions[:, right]
        rest = coalitions.sum(axis=1) - both
        weights = [factorial(s) * factorial(n - s - 2) / factorial(n - 1) for s in rest]
        out.append(np.where(both == 1, -1.0, 1.0) * np.array(weights))
    return np.array(out).reshape(-1, len(coalitions))


def symmetric_pairs(found: Floats, n_players: int) -> Floats:
    """Return indices of pairs l < r, of shape (n_pairs, n_outputs), as symmetric matrices."""
    pairs = np.zeros((n_players, n_players, found.shape[1]))
    left, right = np.triu_indices(n_players, 1)
    pairs[left, right] = pairs[right, left] = found
    return pairs


def sample_values(
    values: Callable[[Indices, Bools], Floats],
    n_players: int,
    n_background: int,
    n_pairs: int,
    random: np.random.Generator,
) -> Floats:
    """Estimate Shapley values by permutations, each used forwards and backwards.

    Every background row has the same number of permutations, so that values sum to the difference
    of the predictions of the row and of each background row.

    Parameters
    ----------
    values : callable
        ``values(other, coalitions)``: values of coalitions against some background rows.
    n_players, n_background : int
        How many there are.
    n_pairs : int
        Pairs of permutations of each background row.
    random : Generator
        Draws them.

    Returns
    -------
    values : ndarray of shape (n_background, n_players, n_outputs)
        Estimates for every background row.
    """
    n, m = n_players, n_background
    orders = np.array([random.permutation(n) for _ in range(m * n_pairs)])
    orders = np.concatenate([orders, orders[:, ::-1]])
    other = np.tile(np.repeat(np.arange(m), n_pairs), 2)
    # rank[k, l] is the place of player l; coalition j of permutation k has the players before j.
    rank = np.argsort(orders, axis=1)
    between = rank[:, None, :] < np.arange(1, n)[:, None]  # (n_orders, n - 1, n)
    inner = values(np.repeat(other, n - 1), between.reshape(-1, n))
    none = values(np.arange(m), np.zeros((m, n), dtype=bool))
    everybody = values(np.zeros(1, dtype=np.intp), np.ones((1, n), dtype=bool))
    chain = np.concatenate(
        [
            none[other][:, None],
            inner.reshape(len(orders), n - 1, -1),
            np.broadcast_to(everybody, (len(orders), 1, everybody.shape[1])),
        ],
        axis=1,
    )
    gains = np.diff(chain, axis=1)  # of the players in the order of the permutation
    own = np.take_along_axis(gains, rank[:, :, None], axis=1)
    return np.asarray(own.reshape(2, m, n_pairs, n, -1).mean(axis=(0, 2)))
