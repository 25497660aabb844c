"""A directed acyclic graph of kernels, given explicitly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats, Indices
from kernelweave.banks import KernelBank, KernelSum
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel

from .base import KernelDag, Priced


class ExplicitDag(KernelDag):
    """Kernels of a bank, each below its parents in a graph without cycles.

    The nodes without parents are active at first. Pricing evaluates all inactive kernels, so it is
    exact.

    Parameters
    ----------
    bank : KernelBank
        One kernel per node.
    names : sequence of hashable
        The nodes, in the order of the bank.
    parents : mapping
        The nodes directly above each; one that is missing has none.
    costs : ndarray of shape (n_nodes,)
        Cost of each node, positive.
    """

    def __init__(
        self,
        bank: KernelBank,
        names: Sequence[Hashable],
        parents: Mapping[Any, Iterable[Any]],
        costs: Floats,
    ) -> None:
        self.bank = bank
        self.names = list(names)
        self.n_nodes = len(self.names)
        self.all_costs = costs
        self._number = {name: k for k, name in enumerate(self.names)}
        order, self._parents = topological_order(parents, self.names)
        self._above = np.eye(len(self.names), dtype=bool)  # each row holds the ancestors of a node
        for k in order:
            for parent in self._parents[k]:
                self._above[k] |= self._above[parent]
        self.nodes: list[Any] = []
        self._active: list[int] = []
        self._append([k for k, above in enumerate(self._parents) if not above])

    @property
    def costs(self) -> Floats:
        return self.all_costs[self._active]

    @property
    def ancestors(self) -> csr_array[np.float64]:
        inside = self._above[np.ix_(self._active, self._active)]
        return csr_array(inside.astype(np.float64))

    def combine(self, weights: Floats, n_related: int = 1) -> KernelSum:
        spread = np.zeros(len(self.names))
        spread[self._active] = weights
        return self.bank.combine(spread)

    def quadratic_forms(self, V: Floats) -> Floats:
        return self.bank.quadratic_forms(V, np.array(self._active, dtype=np.intp))

    @property
    def is_exact(self) -> bool:
        return self.bank.is_exact

    def form_bounds(self, V: Floats) -> Floats:
        return self._form_bounds(V, np.array(self._active, dtype=np.intp))

    def _form_bounds(self, V: Floats, which: Indices) -> Floats:
        forms = self.bank.exact_forms if self.bank.rounded.any() else self.bank.quadratic_forms
        return forms(V, which) + self.bank.residual_forms(V)[which]

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.bank.diagonal_sums(shares)[self._active]

    def inactive_diagonal_sum(self, shares: Floats) -> float:
        ratios = self.bank.diagonal_sums(shares) / self.all_costs**2
        return float(ratios[self._inactive()].max(initial=0.0))

    def price(self, V: Floats, level: float, limit: int = 1000, effort: float = 1.0) -> Priced:
        inactive = self._inactive()
        prices = self._form_bounds(V, inactive) / self.all_costs[inactive] ** 2
        return Priced.largest([self.names[k] for k in inactive], prices, level, limit)

    def price_sources(self, V: Floats, level: float, limit: int) -> Priced:
        inactive = self._inactive()
        quadratic_forms = np.zeros(len(self.names))
        quadratic_forms[inactive] = self._form_bounds(V, inactive)
        sources = [k for k in inactive.tolist() if self.is_source(self.names[k])]
        prices = []
        for u in sources:
            below = np.flatnonzero(self._above[:, u])
            between = self._above[np.ix_(below, below)] @ self.all_costs[below]
            prices.append(float((quadratic_forms[below] / between**2).sum()))
        return Priced.largest([self.names[k] for k in sources], np.array(prices), level, limit)

    def add(self, nodes: Iterable[Hashable], limit: int | None = None) -> int:
        wanted = np.zeros(len(self.names), dtype=bool)
        for node in nodes:
            wanted |= self._above[self._number[node]]
        wanted[self._active] = False
        missing = np.flatnonzero(wanted)
        # A node has more ancestors than any of them, so this order puts ancestors first.
        above = np.argsort(self._above[missing].sum(axis=1), kind="stable")[:limit]
        self._append(np.sort(missing[above]).tolist())
        return len(above)

    def describe(self, nodes: Iterable[Hashable]) -> tuple[list[Kernel], Floats]:
        """Return the kernels of nodes as written, and the scale that normalises each."""
        numbers = [self._number[node] for node in nodes]
        return [self.bank.kernels[k] for k in numbers], self.bank.scales[numbers]

    def is_source(self, node: Any) -> bool:
        return set(self._parents[self._number[node]]) <= set(self._active)

    def _append(self, numbers: Iterable[int]) -> None:
        for k in numbers:
            self._active.append(k)
            self.nodes.append(self.names[k])

    def _inactive(self) -> Indices:
        return np.setdiff1d(np.arange(len(self.names)), self._active)


def topological_order(
    parents: Mapping[Any, Iterable[Any]], names: Sequence[Hashable]
) -> tuple[list[int], list[list[int]]]:
    """Return the numbers of the nodes with parents first, and those of each node's parents."""
    number = {name: k for k, name in enumerate(names)}
    above = [[number[parent] for parent in parents.get(name, ())] for name in names]
    try:
        return list(TopologicalSorter(dict(enumerate(above))).static_order()), above
    except CycleError as error:
        around = " -> ".join(repr(names[k]) for k in error.args[1])
        raise InputError(
            f"parents: the graph has a cycle, {around}; no node may be above itself."
        ) from None


def depths(parents: Mapping[Any, Iterable[Any]], names: Sequence[Hashable]) -> Floats:
    """Return the length of the longest path to each node from one without parents."""
    order, above = topological_order(parents, names)
    out = np.zeros(len(names))
    for k in order:
        out[k] = max((out[parent] + 1.0 for parent in above[k]), default=0.0)
    return out
