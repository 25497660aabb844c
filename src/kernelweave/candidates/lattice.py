"""The lattice of all conjunctions of propositions, searched without enumeration.

Node ``(c, d, ...)`` is the conjunction of propositions c, d, ...; its ancestors are all subsets. A
conjunction holds on no more rows than its ancestors, which bounds the price of everything below a
node and lets a depth-first search cut most of the ``2^p`` nodes.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, section 5 (the conjunction lattice) and equation (15).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.rules import Conjunction, PackedRows, RuleBank, RuleKernel, unpack

from .base import Lattice, Priced


class ConjunctionLattice(Lattice):
    """The lattice of conjunctions; the descendants of one add propositions to it.

    Parameters
    ----------
    propositions : PackedRows
        Which row satisfies which proposition.
    base : float
        A conjunction of k propositions costs ``base**k``.
    max_length : int or None
        Longer conjunctions are not part of the lattice.
    max_visited : int
        Conjunctions visited before a search is cut.
    """

    nodes: list[Conjunction]

    def __init__(
        self,
        propositions: PackedRows,
        *,
        base: float = 2.0,
        max_length: int | None = None,
        max_visited: int = 50_000_000,
    ) -> None:
        super().__init__(base)
        self.max_length = propositions.shape[1] if max_length is None else max_length
        self.max_visited = max_visited
        self.bank = RuleBank(propositions)
        # With only the empty conjunction active the dual coefficients are not unique, and the
        # first search would be arbitrary: start from all single propositions.
        singles = [(c,) for c in range(propositions.shape[1])] if self.max_length else []
        self._append([(), *singles])

    def quadratic_forms(self, V: Floats) -> Floats:
        return self.bank.quadratic_forms(V)

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.bank.diagonal_sums(shares)

    def combine(self, weights: Floats, n_related: int = 1) -> GramKernel | RuleKernel:
        return self.bank.combine(weights, n_related)

    def price(self, V: Floats, level: float, limit: int = 1000, effort: float = 1.0) -> Priced:
        found, prices, _, complete = _core.search_conjunctions(
            self.bank.propositions,
            np.ascontiguousarray(V),
            self.base,
            level,
            self.max_length,
            limit,
            max(1, int(effort * self.max_visited)),
            self.nodes,
        )
        return Priced.ordered([tuple(f) for f in found], np.array(prices), level, complete=complete)

    def price_sources(self, V: Floats, level: float, limit: int) -> Priced:
        # The descendants of a conjunction are all subsets of the other propositions, so the sum of
        # equation (15) is a product with one factor 1 + (1 + base)^-2 for each proposition that
        # two rows share.
        rows = np.flatnonzero(V.any(axis=1))
        shared = np.ascontiguousarray(unpack(self.bank.propositions, self.bank.n_samples).T[rows])
        growth = 1.0 + 1.0 / (1.0 + self.base) ** 2
        R = growth ** (shared @ shared.T) * (V[rows] @ V[rows].T)
        nodes: list[Conjunction] = []
        prices: list[float] = []
        for node in self.nodes:
            first = node[-1] + 1 if node else 0
            if len(node) >= self.max_length or first >= shared.shape[1]:
                continue
            inside = np.flatnonzero(shared[:, list(node)].all(axis=1))
            X = shared[inside, first:]
            sums = ((R[np.ix_(inside, inside)] @ X) * X).sum(axis=0)
            sums /= (self.base**2 * growth) ** (len(node) + 1)
            for c, price in enumerate(sums.tolist(), first):
                child = (*node, c)
                if child not in self._place and self.is_source(child):
                    nodes.append(child)
                    prices.append(price)
        return Priced.largest(nodes, np.array(prices), level, limit)

    def _level(self, node: Conjunction) -> int:
        return len(node)

    def _parents(self, node: Conjunction) -> Iterable[Conjunction]:
        return combinations(node, len(node) - 1) if node else ()

    def _ancestors(self, node: Conjunction) -> Iterable[Conjunction]:
        return (part for size in range(len(node) + 1) for part in combinations(node, size))

    def _extend_bank(self, nodes: Sequence[Conjunction]) -> None:
        self.bank.add(nodes)
