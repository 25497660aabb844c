"""Branch and bound search for kernel products with the largest quadratic forms.

Products are extended by kernels of later ladders only, so that each is reached once. Two bounds
prune the descendants of a product: the sum of all prices there, none of which is negative, and the
sum over pairs of rows of the largest value that any of the products takes.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices

from .base import Priced

_PIECE = 4096  # entries worked on at a time; fixed, so that sums do not depend on the thread count
_BATCH = 256  # products expanded together
_TOGETHER = 32  # products written out at a time, so that they stay in the cache
_EXACT_ORDERS = 4  # further factors up to which bounds count them; more count as any number

Numbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Factors:
    """The kernels of several ladders, numbered one ladder after the other."""

    ladders: list[list[int]]  # numbers of the rungs of each ladder
    ladder: Indices  # of each kernel, from 0
    rung: Indices  # of each kernel, from 1

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Factors:
        """Return the numbers for ladders of these sizes."""
        ends = np.cumsum(sizes).tolist()
        ladders = [list(range(e - s, e)) for e, s in zip(ends, sizes, strict=True)]
        rungs = [1 + k for size in sizes for k in range(size)]
        return cls(ladders, np.repeat(np.arange(len(sizes)), sizes), np.array(rungs))

    @property
    def count(self) -> int:
        """Number of kernels."""
        return len(self.ladder)

    def number(self, pair: tuple[int, int]) -> int:
        """Return the number of a kernel given by ladder and rung."""
        return self.ladders[pair[0]][pair[1] - 1]

    def node(self, numbers: Numbers) -> Any:
        """Return the pairs of ladder and rung for numbers of kernels."""
        return tuple((int(self.ladder[k]), int(self.rung[k])) for k in numbers)


def search_products(
    leaves: Floats,
    weights: Floats,
    factors: Factors,
    *,
    base: float,
    max_order: int,
    max_visited: int,
    known: Container[Any],
    level: float,
    limit: int,
) -> Priced:
    """Find the products with the largest quadratic form divided by the squared cost.

    Parameters
    ----------
    leaves : ndarray of shape (n_factors, n_entries)
        Entries of the factors.
    weights : ndarray of shape (n_entries,)
        With which the entries of a product sum up to its quadratic form.
    known : container of nodes
        Active nodes, which are not reported.
    level : float
        Only larger prices matter; rises to the smallest of ``limit`` found.
    """
    if not len(weights):  # all coefficients are zero: so is every form and every bound
        return _sorted([], factors, level, limit, complete=True)
    walk = _Walk(leaves, weights, factors, base)
    found: list[tuple[float, Numbers]] = []
    visited, order = 0, 0
    frontier: list[tuple[float, Numbers]] = [(np.inf, ())]
    while frontier:
        rest = max_order - order - 1  # factors that may follow a successor
        ahead: list[tuple[float, Numbers]] = []
        for start in range(0, len(frontier), _BATCH):
            batch = [
                numbers for bound, numbers in frontier[start : start + _BATCH] if bound > level
            ]
            # Neighbours use the same last ladder, so that the same factors may follow them.
            batch.sort(key=lambda numbers: (walk.last(numbers), numbers))
            allowed = factors.ladder > np.array([walk.last(numbers) for numbers in batch])[:, None]
            if visited + allowed.sum() > max_visited:
                return _sorted(found, factors, level, limit, complete=False)
            visited += int(allowed.sum())
            if not allowed.any():
                continue
            prices, bounds = walk.successors(batch, rest)
            for k, f in np.argwhere(allowed & (prices > level)).tolist():
                child = (*batch[k], f)
                if factors.node(child) not in known:
                    found.append((float(prices[k, f]), child))
            if len(found) > limit:
                found = sorted(found, key=_largest_first)[:limit]
                level = max(level, found[-1][0])
            if rest > 0:
                for k, f in np.argwhere(allowed & (bounds > level)).tolist():
                    ahead.append((float(bounds[k, f]), (*batch[k], f)))
        frontier = sorted(ahead, key=_largest_first)
        order += 1
    return _sorted(found, factors, level, limit, complete=True)


def _largest_first(item: tuple[float, Numbers]) -> tuple[float, Numbers]:
    return -item[0], item[1]


def _sorted(
    found: list[tuple[float, Numbers]],
    factors: Factors,
    level: float,
    limit: int,
    *,
    complete: bool,
) -> Priced:
    best = sorted(found, key=_largest_first)[:limit]
    prices = np.array([price for price, _ in best])
    nodes = [factors.node(numbers) for _, numbers in best]
    return Priced.ordered(nodes, prices, level, complete=complete)


class _Walk:
    """Prices of the successors of products, and bounds of those of their descendants."""

    def __init__(self, leaves: Floats, weights: Floats, factors: Factors, base: float) -> None:
        self.leaves, self.weights, self.factors = leaves, weights, factors
        self.discounts = base ** (-2.0 * factors.rung)[:, None]
        self.positive = bool((leaves >= 0.0).all())

    def last(self, numbers: Numbers) -> int:
        """Return the last ladder that a product uses."""
        return int(self.factors.ladder[numbers[-1]]) if numbers else -1

    def successors(self, batch: list[Numbers], rest: int) -> tuple[Floats, Floats]:
        """Return the price of each product times each later factor, and a bound for descendants.

        Products should be in the order of their last ladders.
        """
        last = [self.last(numbers) for numbers in batch]
        cuts = [k for k in range(1, len(batch)) if last[k] != last[k - 1]]
        runs = [
            slice(start, min(start + _TOGETHER, end))
            for begin, end in zip([0, *cuts], [*cuts, len(batch)], strict=True)
            for start in range(begin, end, _TOGETHER)
        ]
        parts = run_blocks(
            lambda piece: self._piece(batch, runs, rest, piece), self.leaves.shape[1], _PIECE
        )
        prices, sums, reaches = np.sum(parts, axis=0)
        return prices, np.minimum(sums, reaches)

    def _piece(self, batch: list[Numbers], runs: list[slice], rest: int, piece: slice) -> Floats:
        here = self.discounts * self.leaves[:, piece]
        if rest > 0:
            sums, tops = self._following(here, min(rest, len(self.factors.ladders)))
            sums *= here
            tops *= np.abs(here)
        out = np.zeros((3, len(batch), len(here)))
        buffer = np.empty((_TOGETHER, here.shape[1]))
        for run in runs:
            P = self._products(batch[run], here, self.weights[piece], buffer)
            # Only factors of later ladders follow.
            first = int(np.searchsorted(self.factors.ladder, self.last(batch[run][0]), "right"))
            out[0, run, first:] = P @ here[first:].T
            if rest > 0:
                out[1, run, first:] = P @ sums[first:].T
                # With nonnegative factors, entries of negative weight only lower a quadratic form.
                P = np.maximum(P, 0.0, out=P) if self.positive else np.abs(P, out=P)
                out[2, run, first:] = P @ tops[first:].T
        return out

    @staticmethod
    def _products(batch: list[Numbers], here: Floats, weights: Floats, out: Floats) -> Floats:
        """Write the weighted entries of products, each with at least as many factors as before."""
        # Row k is the product of the first k factors; neighbours share most of them.
        shared = np.empty((len(batch[0]) + 1, len(weights)))
        shared[0] = weights
        before: Numbers = ()
        for row, numbers in zip(out, batch, strict=False):
            k = 0
            while k < len(before) and numbers[k] == before[k]:
                k += 1
            for j in range(k, len(numbers) - 1):
                np.multiply(shared[j], here[numbers[j]], out=shared[j + 1])
            if numbers:
                np.multiply(shared[len(numbers) - 1], here[numbers[-1]], out=row)
            else:
                row[:] = weights
            before = numbers
        return out[: len(batch)]

    def _following(self, here: Floats, rest: int) -> tuple[Floats, Floats]:
        """Return the sum, and the largest, of the products of one up to ``rest`` kernels.

        The kernels come from the ladders after that of each factor.
        """
        exact = rest <= _EXACT_ORDERS
        # One row for at most each number of kernels; or a single one for any number of them.
        total = np.zeros((rest if exact else 1, here.shape[1]))
        top = np.zeros_like(total)
        sums, tops = np.empty_like(here), np.empty_like(here)
        for numbers in reversed(self.factors.ladders):
            sums[numbers], tops[numbers] = total[-1], top[-1]
            added, most = here[numbers].sum(axis=0), np.abs(here[numbers]).max(axis=0)
            others, largest = (_one_less(total), _one_less(top)) if exact else (total, top)
            total = total + added * (1.0 + others)
            top = np.maximum(top, most * np.maximum(1.0, largest))
        return sums, tops


def _one_less(values: Floats) -> Floats:
    """Return the rows for one kernel less; the sum of no product is zero."""
    return np.concatenate([np.zeros_like(values[:1]), values[:-1]])
