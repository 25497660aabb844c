"""The lattice of kernel products over the training rows, and its active part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.paths import PathTable
from kernelweave.banks.products import ProductBank
from kernelweave.kernels import Constant, Kernel, Product

from .base import Lattice, Priced
from .product_search import Factors, search_products

_QUICK_ENTRIES = 1.5e8  # evaluated by a search that only has to find nodes: about 0.3 s
Node: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of ladder and rung (from 1), ladders increasing; a ladder that is missing is at rung 0."""


class ProductGraph(Lattice):
    """The products of a lattice over training rows.

    Parameters
    ----------
    bank : KernelBank
        The kernels of all ladders, one ladder after the other.
    sizes : sequence of int
        How many kernels each ladder has.
    base, max_order, max_visited
        As in `ProductLattice`.
    """

    nodes: list[Node]

    def __init__(
        self,
        bank: KernelBank,
        sizes: Sequence[int],
        *,
        base: float = 2.0,
        max_order: int | None = None,
        max_visited: int = 1_000_000,
    ) -> None:
        super().__init__(float(base))
        self.max_visited = max_visited
        self.max_order = len(sizes) if max_order is None else min(max_order, len(sizes))
        self.factors = Factors.of(sizes)
        self.kernels, self.scales = bank.kernels, bank.scales
        self.bank = ProductBank(bank)
        # As with conjunctions: the constant alone would make the first search arbitrary.
        self._append([(), *(((j, 1),) for j in range(len(sizes)))])

    def quadratic_forms(self, V: Floats) -> Floats:
        return self.bank.quadratic_forms(V)

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.bank.diagonal_sums(shares)

    def combine(self, weights: Floats, n_related: int = 1) -> GramKernel:
        return self.bank.combine(weights)

    def price(self, V: Floats, level: float, limit: int = 1000, effort: float = 1.0) -> Priced:
        leaves, weights = self.bank.pairs(V)
        most = effort * self.max_visited
        if effort < 1.0:  # each visit costs as much as there are entries
            most = min(most, _QUICK_ENTRIES / max(1, len(weights)))
        found = search_products(
            leaves[1:],
            weights,
            self.factors,
            base=self.base,
            max_order=self.max_order,
            max_visited=max(1, int(most)),
            known=self._place,
            level=level,
            limit=limit,
        )
        if effort >= 1.0 or found.complete:
            self.cut_after = None if found.complete else self.max_visited
        return found

    def price_sources(self, V: Floats, level: float, limit: int) -> Priced:
        # The descendants of a node form a box, so the sum of equation (15) is the product of one
        # sum for each ladder.
        leaves, weights = self.bank.pairs(V)
        ratios = np.empty((self.factors.count, leaves.shape[1]))
        weights = weights.copy()
        for numbers in self.factors.ladders:
            sums = [self._sum_from(leaves, numbers, rung) for rung in range(len(numbers) + 1)]
            whole = np.where(sums[0] == 0.0, 1e-300, sums[0])
            weights *= whole
            ratios[numbers] = sums[1:] / whole
        nodes = self._sources()
        if not nodes:
            return Priced.ordered([], np.empty(0), level)
        paths = [self._numbers(node) for node in nodes]
        prices = PathTable.of(paths, len(ratios)).quadratic_forms(ratios, weights)
        return Priced.largest(nodes, prices, level, limit)

    def _sum_from(self, leaves: Floats, numbers: list[int], rung: int) -> Floats:
        """Return the sum over rungs from this one on, each divided by its squared cost between."""
        out = np.zeros(leaves.shape[1])
        between = 0.0
        for k in range(rung, len(numbers) + 1):
            between += self.base**k
            out += (leaves[1 + numbers[k - 1]] if k else 1.0) / between**2
        return out

    def _sources(self) -> list[Node]:
        """Return the inactive nodes whose parents are all active."""
        found: dict[Node, None] = {}
        for node in self.nodes:
            rungs = dict(node)
            for j, numbers in enumerate(self.factors.ladders):
                rung = rungs.get(j, 0) + 1
                if rung > len(numbers) or len({*rungs, j}) > self.max_order:
                    continue
                child = tuple(sorted({**rungs, j: rung}.items()))
                if child not in self._place and self.is_source(child):
                    found[child] = None
        return list(found)

    def describe(self, nodes: Iterable[Node]) -> tuple[list[Kernel], Floats]:
        """Return the kernels of nodes as written, and the scale that normalises each."""
        kernels: list[Kernel] = []
        scales = []
        for node in nodes:
            numbers = list(self._numbers(node))
            parts = [self.kernels[k] for k in numbers]
            kernels.append(Product(tuple(parts)) if len(parts) > 1 else (*parts, Constant())[0])
            scales.append(float(np.prod(self.scales[numbers])))
        return kernels, np.array(scales)

    def _numbers(self, node: Node) -> tuple[int, ...]:
        return tuple(self.factors.number(pair) for pair in node)

    def _level(self, node: Node) -> int:
        return sum(rung for _, rung in node)

    def _parents(self, node: Node) -> Iterable[Node]:
        for k, (j, rung) in enumerate(node):
            yield (*node[:k], *([(j, rung - 1)] if rung > 1 else []), *node[k + 1 :])

    def _ancestors(self, node: Node) -> Iterable[Node]:
        for size in range(len(node) + 1):
            for part in combinations(node, size):
                yield from product(*([(j, k) for k in range(1, rung + 1)] for j, rung in part))

    def _extend_bank(self, nodes: Sequence[Node]) -> None:
        self.bank.add([self._numbers(node) for node in nodes])
