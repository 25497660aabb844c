"""The lattice of kernel products over the training rows, and its active part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, islice, product
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.paths import PathTable
from kernelweave.banks.products import ProductBank
from kernelweave.kernels import Constant, Kernel, Product

from .base import Growing, Grown
from .product_search import Factors, search_products

Node: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of ladder and rung (from 1), ladders increasing; a ladder that is missing is at rung 0."""


class ProductGraph(Growing):
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

    def __init__(
        self,
        bank: KernelBank,
        sizes: Sequence[int],
        *,
        base: float = 2.0,
        max_order: int | None = None,
        max_visited: int = 1_000_000,
    ) -> None:
        self.base, self.max_visited = float(base), max_visited
        self.max_order = len(sizes) if max_order is None else min(max_order, len(sizes))
        self.factors = Factors.of(sizes)
        self.kernels, self.scales = bank.kernels, bank.scales
        self.bank = ProductBank(bank)
        self.nodes: list[Node] = []
        self.complete = True  # unless the last whole search came to its limit
        self._place: dict[Node, int] = {}
        self._indices: list[int] = []
        self._starts = [0]
        # As with conjunctions, the product of no kernel alone would leave the first search blind.
        self._append([(), *(((j, 1),) for j in range(len(sizes)))])

    @property
    def costs(self) -> Floats:
        levels = [sum(rung for _, rung in node) for node in self.nodes]
        return self.base ** np.array(levels, dtype=np.float64)

    @property
    def ancestors(self) -> csr_array[np.float64]:
        ones = np.ones(len(self._indices))
        shape = (len(self.nodes), len(self.nodes))
        return csr_array((ones, self._indices, self._starts), shape=shape)

    def quadratic_forms(self, V: Floats) -> Floats:
        return self.bank.quadratic_forms(V)

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.bank.diagonal_sums(shares)

    def combine(self, weights: Floats, n_related: int = 1) -> GramKernel:
        return self.bank.combine(weights)

    def search(self, V: Floats, level: float, most: int, effort: float = 1.0) -> Grown:
        leaves, weights = self.bank.pairs(V)
        found = search_products(
            leaves[1:],
            weights,
            self.factors,
            base=self.base,
            max_order=self.max_order,
            max_visited=max(1, int(effort * self.max_visited)),
            known=self._place,
            level=level,
            most=most,
        )
        if effort >= 1.0 or found.complete:
            self.complete = found.complete
        return found

    def sufficient(self, V: Floats, level: float, most: int) -> Grown:
        # What lies below a node is a box, and the sum over it the product of a sum for each ladder.
        leaves, weights = self.bank.pairs(V)
        ratios = np.empty((self.factors.count, leaves.shape[1]))
        weights = weights.copy()
        for numbers in self.factors.ladders:
            sums = [self._below(leaves, numbers, rung) for rung in range(len(numbers) + 1)]
            whole = np.where(sums[0] == 0.0, 1e-300, sums[0])
            weights *= whole
            ratios[numbers] = sums[1:] / whole
        nodes = self._sources()
        if not nodes:
            return Grown([], np.empty(0), 0)
        paths = [tuple(self.factors.number(pair) for pair in node) for node in nodes]
        values = PathTable.of(paths, len(ratios)).quadratic_forms(ratios, weights)
        order = np.argsort(-values, kind="stable")
        order = order[values[order] > level][:most]
        return Grown([nodes[k] for k in order], values[order], len(nodes))

    def _below(self, leaves: Floats, numbers: list[int], rung: int) -> Floats:
        """Return the sum over rungs from this one on, by the costs between."""
        out = np.zeros(leaves.shape[1])
        between = 0.0
        for k in range(rung, len(numbers) + 1):
            between += self.base**k
            out += (leaves[1 + numbers[k - 1]] if k else 1.0) / between**2
        return out

    def _sources(self) -> list[Node]:
        """Return the nodes not active whose parents all are."""
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

    def add(self, nodes: Iterable[Node], most: int | None = None) -> int:
        missing: dict[Node, None] = {}
        for node in nodes:
            fresh = (a for a in _box(node) if a not in self._place and a not in missing)
            missing.update(dict.fromkeys(islice(fresh, most and most - len(missing))))
        self._append(sorted(missing, key=lambda node: (sum(r for _, r in node), node)))
        return len(missing)

    def is_source(self, node: Node) -> bool:
        """Tell whether all parents of a node are active."""
        return all(
            (*node[:k], *([(j, rung - 1)] if rung > 1 else []), *node[k + 1 :]) in self._place
            for k, (j, rung) in enumerate(node)
        )

    def describe(self, nodes: Iterable[Node]) -> tuple[list[Kernel], Floats]:
        """Return the kernels of nodes as written, and what normalises each."""
        kernels: list[Kernel] = []
        scales = []
        for node in nodes:
            numbers = [self.factors.number(pair) for pair in node]
            parts = [self.kernels[k] for k in numbers]
            kernels.append(Product(tuple(parts)) if len(parts) > 1 else (*parts, Constant())[0])
            scales.append(float(np.prod(self.scales[numbers])))
        return kernels, np.array(scales)

    def _append(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._place[node] = len(self.nodes)
            self.nodes.append(node)
        for node in nodes:
            self._indices.extend(self._place[above] for above in _box(node))
            self._starts.append(len(self._indices))
        self.bank.add([tuple(self.factors.number(pair) for pair in node) for node in nodes])


def _box(node: Node) -> Iterable[Node]:
    """Yield a node and all its ancestors, each after its own ancestors."""
    for size in range(len(node) + 1):
        for part in combinations(node, size):
            yield from product(*([(j, k) for k in range(1, rung + 1)] for j, rung in part))
