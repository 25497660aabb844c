"""All products of one-feature kernels, most of which nobody ever looks at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.banks.gram import GramKernel
from kernelweave.banks.paths import PathTable
from kernelweave.banks.products import ProductBank
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels import RBF, Constant, Kernel, KernelFamily, Overlap, Product
from kernelweave.kernels.base import columns_key, is_number, read_table
from kernelweave.kernels.ladders import typical_distance

from .base import Growing, Grown
from .product_search import Factors, search_products

Node: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of ladder and rung (from 1), ladders increasing; a ladder that is missing is at rung 0."""


@dataclass(frozen=True)
class ProductLattice:
    """All products of kernels that take at most one from each of several ladders.

    Ladder j has rungs ``k_j0 = 1, k_j1, k_j2, ...``. The node ``v`` stands for the kernel
    ``prod_j k_(j, v_j)`` and costs ``base**(v_1 + v_2 + ...)``; above it stand all nodes that are
    no higher on any ladder. Ladders of one kernel each give all subsets of these kernels (an
    analysis of variance, if each looks at one column), ladders of powers give polynomials. The
    lattice is searched, never written out.

    Parameters
    ----------
    ladders : list, KernelFamily or None
        Of each ladder a list of its kernels, or one kernel; a family gives one ladder for all its
        kernels on the same columns, so that ``rbf_ladder([4, 1], per_feature=True)`` gives one of
        two rungs for each column. None: a Gaussian on every numeric column, with the root mean
        squared distance between two rows as width, and `Overlap` on every other.
    base : float
        Positive. What a rung multiplies the cost by; the larger, the lower the order of the
        products that are learned, and the fewer of them are looked at.
    max_order : int or None
        Kernels in a product at most; None for any number.
    max_visited : int
        Products that one search looks at before it gives up. What is learned then has no
        certificate.

    Examples
    --------
    >>> from kernelweave import RBF, Linear, ProductLattice
    >>> lattice = ProductLattice([RBF(1.0, columns=[0]), [Linear(columns=[1]), RBF(columns=[1])]])
    >>> [[str(kernel) for kernel in ladder] for ladder in lattice.expand([[0.0, 1.0]])]
    [['rbf(width=1) on column 0'], ['linear on column 1', 'rbf(width=1) on column 1']]
    """

    ladders: Any = None
    base: float = 2.0
    max_order: int | None = None
    max_visited: int = 1_000_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "ladders", _read_ladders(self.ladders))
        if not is_number(self.base) or not 0 < self.base < np.inf:
            raise InputError(
                f"ProductLattice(base={self.base!r}): base must be a finite number > 0."
            )
        whole = is_number(self.max_order, Integral)
        if self.max_order is not None and not (whole and self.max_order >= 1):
            raise InputError(
                f"ProductLattice(max_order={self.max_order!r}): max_order must be a whole number "
                ">= 1, or None for products of any length."
            )
        if not is_number(self.max_visited, Integral) or self.max_visited < 1:
            raise InputError(
                f"ProductLattice(max_visited={self.max_visited!r}): max_visited must be a whole "
                "number >= 1."
            )

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[list[Kernel]]:
        """Write out the ladders for ``X``.

        Parameters
        ----------
        X : array, sparse matrix, data frame or nested list
            Families take the number of columns and default widths from it.
        sample_weight : ndarray of shape (n_samples,), optional
            How often each row counts in default widths.

        Returns
        -------
        ladders : list of list of Kernel
            Never empty.
        """
        if self.ladders is None:
            return _default_ladders(X, sample_weight)
        out: list[list[Kernel]] = []
        for item in self.ladders:
            if not isinstance(item, KernelFamily):
                out.append([kernel.bound(X) for kernel in item])
                continue
            groups: dict[Hashable, list[Kernel]] = {}
            for kernel in item.expand(X, sample_weight):
                bound = kernel.bound(X)
                groups.setdefault(columns_key(bound.columns), []).append(bound)
            out += groups.values()
        return out

    def __sklearn_clone__(self) -> Self:
        return self


def _read_ladders(ladders: Any) -> tuple[KernelFamily | tuple[Kernel, ...], ...] | None:
    if ladders is None:
        return None
    if isinstance(ladders, Kernel | KernelFamily):
        ladders = [ladders]
    if not isinstance(ladders, list | tuple):
        raise InputTypeError(
            "ProductLattice: ladders must be a list of kernels, of lists of kernels or of families "
            f"such as rbf_ladder(per_feature=True), got {type(ladders).__name__}."
        )
    if not ladders:
        raise InputError("ProductLattice: the list is empty; None gives a default set of kernels.")
    out: list[KernelFamily | tuple[Kernel, ...]] = []
    for j, item in enumerate(ladders):
        if isinstance(item, KernelFamily):
            out.append(item)
            continue
        rungs = (item,) if isinstance(item, Kernel) else item
        if not isinstance(rungs, list | tuple) or not rungs:
            raise InputTypeError(
                f"ProductLattice: ladder {j} must be a kernel, a list of kernels or a family, "
                f"got {item!r}."
            )
        for rung in rungs:
            if not isinstance(rung, Kernel):
                raise InputTypeError(
                    f"ProductLattice: ladder {j} holds {rung!r}, which is not a kernel."
                )
        out.append(tuple(rungs))
    return tuple(out)


def _default_ladders(X: Any, sample_weight: Floats | None) -> list[list[Kernel]]:
    table = read_table(X, "kernels")
    everything = table.positions(None, "kernels")
    out: list[list[Kernel]] = []
    for key, number in zip(table.keys(everything), table.numeric(), strict=True):
        if number:
            rows = RBF(columns=key).prepare(X)
            out.append([RBF(typical_distance(rows, sample_weight), columns=key)])
        else:
            out.append([Overlap(columns=key)])
    return out


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
        self.complete = True  # whether the last search was
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

    def forms(self, V: Floats) -> Floats:
        return self.bank.forms(V)

    def combine(self, weights: Floats) -> GramKernel:
        return self.bank.combine(weights)

    def search(self, V: Floats, level: float, most: int) -> Grown:
        leaves, weights = self.bank.pairs(V)
        found = search_products(
            leaves[1:],
            weights,
            self.factors,
            base=self.base,
            max_order=self.max_order,
            max_visited=self.max_visited,
            known=self._place,
            level=level,
            most=most,
        )
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
        values = PathTable.of(paths, len(ratios)).forms(ratios, weights)
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
        """Return the nodes not in play whose parents all are."""
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

    def add(self, nodes: Iterable[Node]) -> int:
        """Add nodes with all their ancestors; return how many came in."""
        missing = {above for node in nodes for above in _box(node) if above not in self._place}
        self._append(sorted(missing, key=lambda node: (sum(r for _, r in node), node)))
        return len(missing)

    def is_source(self, node: Node) -> bool:
        """Tell whether all parents of a node are in play."""
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
    """Yield a node and all its ancestors."""
    choices = [[(j, k) if k else None for k in range(rung + 1)] for j, rung in node]
    for chosen in product(*choices):
        yield tuple(pair for pair in chosen if pair is not None)
