"""The lattice of all conjunctions of propositions, searched without enumeration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, islice

import numpy as np
from scipy.sparse import csr_array

from kernelweave import _core
from kernelweave._types import Bools, Floats
from kernelweave.banks.kernel_sum import GramKernel
from kernelweave.banks.rules import Conjunction, PackedRows, RuleBank, RuleKernel, unpack

from .base import Growing, Grown


class ConjunctionLattice(Growing):
    """The lattice of conjunctions; below a conjunction stand all that add propositions to it.

    Parameters
    ----------
    propositions : PackedRows, or ndarray of bool, of shape (n_samples, n_propositions)
        Which row satisfies which proposition.
    base : float
        A conjunction of k propositions costs ``base**k``.
    max_length : int or None
        Longer conjunctions are not part of the lattice.
    max_visited : int
        Conjunctions a search looks at before it gives up.
    """

    def __init__(
        self,
        propositions: PackedRows | Bools,
        *,
        base: float = 2.0,
        max_length: int | None = None,
        max_visited: int = 50_000_000,
    ) -> None:
        self.base = base
        self.max_length = propositions.shape[1] if max_length is None else max_length
        self.max_visited = max_visited
        self.bank = RuleBank(propositions)
        self.nodes: list[Conjunction] = []
        self._place: dict[Conjunction, int] = {}
        self._indices: list[int] = []
        self._starts = [0]
        # One proposition alone says little at first: with only the empty conjunction active the
        # dual coefficients are not unique, and the first search is blind.
        singles = [(c,) for c in range(propositions.shape[1])] if self.max_length else []
        self._append([(), *singles])

    @property
    def costs(self) -> Floats:
        return self.base ** np.array([len(node) for node in self.nodes], dtype=np.float64)

    @property
    def ancestors(self) -> csr_array[np.float64]:
        ones = np.ones(len(self._indices))
        shape = (len(self.nodes), len(self.nodes))
        return csr_array((ones, self._indices, self._starts), shape=shape)

    def quadratic_forms(self, V: Floats) -> Floats:
        return np.asarray((self.bank.sums(V) ** 2).sum(axis=1))

    def diagonal_sums(self, shares: Floats) -> Floats:
        return np.asarray(self.bank.sums(shares[:, None])[:, 0])

    def combine(self, weights: Floats, n_related: int = 1) -> GramKernel | RuleKernel:
        return self.bank.combine(weights, n_related)

    def search(self, V: Floats, level: float, most: int, effort: float = 1.0) -> Grown:
        found, ratios, visited, complete = _core.search_conjunctions(
            self.bank.propositions,
            np.ascontiguousarray(V),
            self.base,
            level,
            self.max_length,
            most,
            max(1, int(effort * self.max_visited)),
            self.nodes,
        )
        return Grown([tuple(f) for f in found], np.array(ratios), visited, complete)

    def sufficient(self, V: Floats, level: float, most: int) -> Grown:
        # What lies below a conjunction is all subsets of the other propositions, so the sum over it
        # is a product: one factor for each proposition that two rows share.
        rows = np.flatnonzero(V.any(axis=1))
        shared = np.ascontiguousarray(unpack(self.bank.propositions, self.bank.n_samples).T[rows])
        growth = 1.0 + 1.0 / (1.0 + self.base) ** 2
        R = growth ** (shared @ shared.T) * (V[rows] @ V[rows].T)
        nodes: list[Conjunction] = []
        values: list[float] = []
        for node in self.nodes:
            first = node[-1] + 1 if node else 0
            if len(node) >= self.max_length or first >= shared.shape[1]:
                continue
            inside = np.flatnonzero(shared[:, list(node)].all(axis=1))
            X = shared[inside, first:]
            sums = ((R[np.ix_(inside, inside)] @ X) * X).sum(axis=0)
            sums /= (self.base**2 * growth) ** (len(node) + 1)
            for c, value in enumerate(sums.tolist(), first):
                child = (*node, c)
                if child not in self._place and self.is_source(child):
                    nodes.append(child)
                    values.append(value)
        ratios = np.array(values)
        order = np.argsort(-ratios, kind="stable")
        order = order[ratios[order] > level][:most]
        return Grown([nodes[k] for k in order], ratios[order], len(nodes))

    def add(self, nodes: Iterable[Conjunction], most: int | None = None) -> int:
        missing: dict[Conjunction, None] = {}
        for node in nodes:
            # By length, so that the ancestors of each are there wherever this ends.
            above = (c for size in range(1, len(node) + 1) for c in combinations(node, size))
            fresh = (c for c in above if c not in self._place and c not in missing)
            missing.update(dict.fromkeys(islice(fresh, most and most - len(missing))))
        self._append(sorted(missing, key=lambda node: (len(node), node)))
        return len(missing)

    def is_source(self, node: Conjunction) -> bool:
        """Tell whether all parents of a node are active."""
        return all(parent in self._place for parent in combinations(node, len(node) - 1))

    def _append(self, nodes: Sequence[Conjunction]) -> None:
        for node in nodes:
            self._place[node] = len(self.nodes)
            self.nodes.append(node)
        for node in nodes:
            for size in range(len(node) + 1):
                self._indices.extend(self._place[a] for a in combinations(node, size))
            self._starts.append(len(self._indices))
        self.bank.add(nodes)
