"""Shapley values from the values of coalitions: all of them, or those of random permutations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import Protocol

import numpy as np

from kernelweave._types import Bools, Floats, Indices

MOST_ENUMERATED = 8  # players of which all coalitions are evaluated
FEW_ENUMERATED = 4  # the same where a rough sample is enough, which more coalitions than these cost


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


class Coalitions(Protocol):
    """Which coalitions of players are evaluated, and what follows from their values."""

    @property
    def coalitions(self) -> tuple[Indices, Bools]:
        """Background rows, and who is present."""

    def values(self, found: Floats) -> Floats:
        """Return Shapley values for every background row from the values of `coalitions`."""

    def pairs(self, found: Floats, weights: Floats) -> Floats:
        """Return interaction indices, averaged over background rows with these weights."""


@dataclass(frozen=True)
class Enumeration:
    """All coalitions of a few players against every background row.

    Parameters
    ----------
    n_players, n_background : int
        How many there are.
    """

    n_players: int
    n_background: int

    @property
    def coalitions(self) -> tuple[Indices, Bools]:
        """Background rows and coalitions to evaluate."""
        everyone = all_coalitions(self.n_players)
        other = np.tile(np.arange(self.n_background), len(everyone))
        return other, np.repeat(everyone, self.n_background, axis=0)

    def _by_coalition(self, found: Floats) -> Floats:
        return found.reshape(2**self.n_players, self.n_background, -1)

    def values(self, found: Floats) -> Floats:
        """Return exact values, of shape (n_background, n_players, n_outputs)."""
        weights = value_weights(self.n_players)
        return np.asarray(np.einsum("ls,sto->tlo", weights, self._by_coalition(found)))

    def pairs(self, found: Floats, weights: Floats) -> Floats:
        """Return exact indices, of shape (n_players, n_players, n_outputs)."""
        mean = np.tensordot(weights, self._by_coalition(found), (0, 1))
        out = np.zeros((self.n_players, self.n_players, mean.shape[1]))
        left, right = np.triu_indices(self.n_players, 1)
        out[left, right] = out[right, left] = pair_weights(self.n_players) @ mean
        return out


@dataclass(frozen=True)
class Permutations:
    """Random permutations of the players against every background row, forwards and backwards.

    Every background row has the same number of permutations, so that values sum to the difference
    of the predictions of the row and of each background row.

    Parameters
    ----------
    ranks : ndarray of shape (n_permutations, n_players)
        The place of each player in each permutation.
    others : ndarray of shape (n_permutations,)
        The background row of each.
    n_background : int
        How many background rows there are.
    """

    ranks: Indices
    others: Indices
    n_background: int

    @classmethod
    def draw(
        cls, n_players: int, n_background: int, n_pairs: int, random: np.random.Generator
    ) -> Permutations:
        """Draw pairs of permutations for each background row."""
        drawn = [random.permutation(n_players) for _ in range(n_background * n_pairs)]
        orders = np.array(drawn)
        orders = np.concatenate([orders, orders[:, ::-1]])
        others = np.tile(np.repeat(np.arange(n_background), n_pairs), 2)
        return cls(np.argsort(orders, axis=1), others, n_background)

    @classmethod
    def draw_one(
        cls, n_players: int, n_background: int, random: np.random.Generator
    ) -> Permutations:
        """Draw one permutation for each background row; every second is the one before reversed."""
        drawn = [random.permutation(n_players) for _ in range((n_background + 1) // 2)]
        orders = np.array([order[::step] for order in drawn for step in (1, -1)][:n_background])
        return cls(np.argsort(orders, axis=1), np.arange(n_background), n_background)

    @property
    def coalitions(self) -> tuple[Indices, Bools]:
        """Background rows and coalitions to evaluate: the empty ones, the full one, the others."""
        n, m = self.ranks.shape[1], self.n_background
        # Coalition j of a permutation has the players before place j.
        between = self.ranks[:, None, :] < np.arange(1, n)[:, None]
        other = [np.arange(m), np.zeros(1, dtype=np.intp), np.repeat(self.others, n - 1)]
        present = [np.zeros((m, n), dtype=bool), np.ones((1, n), dtype=bool)]
        return np.concatenate(other), np.concatenate([*present, between.reshape(-1, n)])

    def values(self, found: Floats) -> Floats:
        """Return estimates for every background row from the values of `coalitions`.

        Parameters
        ----------
        found : ndarray of shape (n_coalitions, n_outputs)
            Values of the coalitions.

        Returns
        -------
        values : ndarray of shape (n_background, n_players, n_outputs)
            Means of the gains of every player.
        """
        (n_orders, n), m = self.ranks.shape, self.n_background
        none, full, inner = found[:m], found[m], found[m + 1 :].reshape(n_orders, n - 1, -1)
        ends = np.broadcast_to(full, (n_orders, 1, len(full)))
        chain = np.concatenate([none[self.others][:, None], inner, ends], axis=1)
        gains = np.diff(chain, axis=1)  # of the players in the order of the permutation
        own = np.take_along_axis(gains, self.ranks[:, :, None], axis=1)
        sums = np.zeros((m, n, len(full)))
        np.add.at(sums, self.others, own)
        return np.asarray(sums * (m / n_orders))

    def pairs(self, found: Floats, weights: Floats) -> Floats:
        """Permutations have no pairs."""
        raise NotImplementedError
