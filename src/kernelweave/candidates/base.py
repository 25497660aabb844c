"""Kernels that are not active, and their price (as in column generation).

A solver keeps a small set of active kernels and asks a `Candidates` object which of the others
exceed a level for its dual coefficients. None above the level proves a lower bound over all
kernels; otherwise the returned kernels enter the working set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats
from kernelweave.banks import KernelOperator


@dataclass(frozen=True)
class Priced:
    """Candidates whose price exceeds a level, largest first.

    Parameters
    ----------
    ids : sequence
        The candidates; perhaps only those with the largest prices.
    prices : ndarray
        ``tr(V' K V)`` of each; in a graph divided by its squared cost.
    bound : float
        No candidate, evaluated or not, has a larger price.
    complete : bool
        Whether `bound` really covers every candidate; False forbids certifying.
    """

    ids: Any
    prices: Floats
    bound: float
    complete: bool = True

    @classmethod
    def largest(cls, ids: Sequence[Any], prices: Floats, level: float, limit: int) -> Priced:
        """Keep at most ``limit`` candidates with a price above the level."""
        order = np.argsort(-prices, kind="stable")
        order = order[prices[order] > level][:limit]
        return cls.ordered([ids[k] for k in order], prices[order], level)

    @classmethod
    def ordered(
        cls, ids: Sequence[Any], prices: Floats, level: float, *, complete: bool = True
    ) -> Priced:
        """Wrap candidates that are in order already."""
        return cls(ids, prices, max(level, float(prices.max(initial=0.0))), complete)


class Candidates(ABC):
    """A source of kernels that prices those not active."""

    @abstractmethod
    def price(self, V: Floats, level: float) -> Priced:
        """Find the kernels with ``tr(V' K_j V) > level``."""


class KernelDag(Candidates):
    """A directed acyclic graph of kernels; the active nodes are closed under ancestors."""

    nodes: list[Any]
    n_nodes: float = np.inf  # of the whole graph, where it is written out
    cut_after: int | None = None  # nodes visited where the last full search was cut

    @property
    def is_exact(self) -> bool:
        """Whether quadratic forms and weighted sums are exact up to rounding."""
        return True

    @property
    @abstractmethod
    def costs(self) -> Floats:
        """Cost of every active node."""

    @property
    @abstractmethod
    def ancestors(self) -> csr_array[np.float64]:
        """Ones at ``[w, v]`` where ``v`` is ``w`` or an ancestor of it."""

    @abstractmethod
    def combine(self, weights: Floats, n_related: int = 1) -> KernelOperator:
        """Return the weighted sum of the active kernels for a number of related outputs."""

    @abstractmethod
    def quadratic_forms(self, V: Floats) -> Floats:
        """Return ``tr(V' K_w V)`` of the active kernels."""

    def form_bounds(self, V: Floats) -> Floats:
        """Bound ``tr(V' K_w V)`` of the exact active kernels, rounding excluded."""
        return self.quadratic_forms(V)

    @abstractmethod
    def diagonal_sums(self, shares: Floats) -> Floats:
        """Return ``sum_i shares_i K_w[i, i]`` of the active kernels."""

    def inactive_diagonal_sum(self, shares: Floats) -> float:
        """Bound ``sum_i shares_i K_w[i, i] / cost_w^2`` of the inactive nodes.

        Zero by default: it is no larger than that of the active nodes.
        """
        return 0.0

    @abstractmethod
    def price(self, V: Floats, level: float, limit: int = 1000, effort: float = 1.0) -> Priced:
        """Find inactive nodes whose ``tr(V' K_w V) / cost_w^2`` exceeds the level.

        ``effort`` is the share of the limit on visited nodes, where there is one, that may be used.
        """

    @abstractmethod
    def price_sources(self, V: Floats, level: float, limit: int) -> Priced:
        """Find inactive nodes, with all parents active, by the published sufficient condition.

        The price of such a node ``u`` is the sum of ``tr(V' K_w V) / (sum of costs between u and
        w)^2`` over all descendants ``w``, equation (15) of [1]_. None above the level proves as
        much as an empty `price`, but these prices are far larger.

        References
        ----------
        .. [1] P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel
               learning", JMLR 16, 2015.
        """

    @abstractmethod
    def add(self, nodes: Iterable[Any], limit: int | None = None) -> int:
        """Activate at most ``limit`` nodes and ancestors, these first; return their number."""

    @abstractmethod
    def is_source(self, node: Any) -> bool:
        """Tell whether all parents of a node are active."""


class Lattice(KernelDag):
    """A graph too large to enumerate, whose nodes are tuples and cost ``base**level``."""

    def __init__(self, base: float) -> None:
        self.base = base
        self.nodes: list[tuple[Any, ...]] = []
        self._place: dict[tuple[Any, ...], int] = {}
        self._indices: list[int] = []  # rows of `ancestors`, in CSR form
        self._starts = [0]

    @abstractmethod
    def _level(self, node: tuple[Any, ...]) -> int:
        """Return the length of a path from the root to a node."""

    @abstractmethod
    def _parents(self, node: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        """Yield the parents of a node."""

    @abstractmethod
    def _ancestors(self, node: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        """Yield all ancestors of a node and itself, each after its own ancestors."""

    @abstractmethod
    def _extend_bank(self, nodes: Sequence[Any]) -> None:
        """Append the kernels of nodes to the bank."""

    @property
    def costs(self) -> Floats:
        levels = np.array([self._level(node) for node in self.nodes], dtype=np.float64)
        return np.asarray(self.base**levels)

    @property
    def ancestors(self) -> csr_array[np.float64]:
        ones, n = np.ones(len(self._indices)), len(self.nodes)
        return csr_array((ones, self._indices, self._starts), shape=(n, n))

    def add(self, nodes: Iterable[Any], limit: int | None = None) -> int:
        missing: dict[tuple[Any, ...], None] = {}
        for node in nodes:
            # In this order the active nodes stay closed under ancestors wherever the limit ends it.
            above = self._ancestors(node)
            fresh = (a for a in above if a not in self._place and a not in missing)
            missing.update(dict.fromkeys(islice(fresh, limit and limit - len(missing))))
        self._append(sorted(missing, key=lambda node: (self._level(node), node)))
        return len(missing)

    def is_source(self, node: Any) -> bool:
        return all(parent in self._place for parent in self._parents(node))

    def _append(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            self._place[node] = len(self.nodes)
            self.nodes.append(node)
        for node in nodes:
            self._indices.extend(self._place[above] for above in self._ancestors(node))
            self._starts.append(len(self._indices))
        self._extend_bank(nodes)
