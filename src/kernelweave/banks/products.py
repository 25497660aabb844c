"""Products of a few kernels: each factor is evaluated once, however many products it is part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.kernels import Kernel

from .base import KernelBank
from .cross import cross_block
from .kernel_sum import GramKernel
from .paths import PathTable
from .protocol import KernelCollection
from .triangles import Triangles
from .views import Views


class ProductBank(KernelCollection):
    """Products of the kernels of a bank; none has a matrix of its own."""

    def __init__(self, bank: KernelBank) -> None:
        # A matrix of ones first: the product of no kernel is one of the products too.
        self.leaves = Triangles.of(bank, range(bank.n_kernels), n_ones=1)
        self.products: list[tuple[int, ...]] = []

    @property
    def n_samples(self) -> int:
        return self.leaves.n_samples

    @property
    def n_kernels(self) -> int:
        return len(self.products)

    @staticmethod
    def memory(n_factors: int, n_samples: int) -> dict[str, float]:
        """Return the bytes it takes, by what takes them."""
        square = 8.0 * n_samples**2
        return {
            f"{n_factors} Gram matrices of {n_samples} rows": 0.75 * square * (n_factors + 1),
            "the combined kernel": 4.0 * square,
        }

    @cached_property
    def _table(self) -> PathTable:
        paths = [tuple(1 + j for j in product) or (0,) for product in self.products]
        return PathTable.of(paths, len(self.leaves.entries))

    def add(self, products: Sequence[tuple[int, ...]]) -> None:
        """Append products, given by the numbers of their factors."""
        self.products += products
        self.__dict__.pop("_table", None)

    def pairs(self, V: Floats) -> tuple[Floats, Floats]:
        """Return entries of all factors, after a row of ones, and their weights."""
        return self.leaves.weigh(V)

    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        table = self._table if which is None else self._table.subset(which)
        return np.maximum(table.quadratic_forms(*self.pairs(V)), 0.0)

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self._table.quadratic_forms(self.leaves.diagonals(), shares)

    def combine(self, weights: Floats) -> GramKernel:
        return GramKernel(self.leaves.square(self._table.combine(self.leaves.entries, weights)))


@dataclass(frozen=True)
class ProductSum:
    """Kernels some of which are products, for their weighted sum on new rows."""

    factors: tuple[Kernel, ...]  # all factors, each once
    table: PathTable  # which factors every kernel multiplies

    @classmethod
    def of(cls, kernels: Sequence[Kernel]) -> ProductSum:
        """Take kernels apart."""
        place: dict[Kernel, int] = {}
        paths = []
        for kernel in kernels:
            paths.append(tuple(place.setdefault(part, len(place)) for part in kernel.factors))
        return cls(tuple(place), PathTable.of(paths, len(place)))

    def block(self, weights: Floats, A: Views, B: Views, V: Floats | None = None) -> Floats:
        """Return the weighted sum between rows prepared for the factors; see `cross_block`."""
        if len(self.table.parents) == 1:  # no product, and Gaussians share their distances
            spread = np.zeros(len(self.factors))
            np.add.at(spread, self.table.lasts, weights)
            return cross_block(self.factors, spread, A, B, V)
        one = np.ones(1)
        leaves = np.array(
            [
                cross_block([factor], one, A.subset([j]), B.subset([j])).ravel()
                for j, factor in enumerate(self.factors)
            ]
        )
        out = self.table.combine(leaves, weights).reshape(A.n_samples, B.n_samples)
        return out if V is None else out @ V
