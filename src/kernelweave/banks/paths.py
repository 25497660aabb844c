"""The kernels of a sum-product network over the training rows, as functions of node weights.

With ``u`` the logarithms of the node weights, the weight of path m is ``g_m = exp(sum_v a_mv u_v)``
and its kernel ``K_m`` the product of its leaves. No path has a matrix of its own: paths that share
all leaves but the last share the product of these, and the last leaves of all paths are one matrix
product. A network with too many paths is evaluated as it is, without writing them out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices, Stored
from kernelweave.kernels.network import Network, Path

from .kernel_sum import GramKernel
from .protocol import KernelCollection, KernelOperator
from .triangles import Triangles

_SMALL = 1_000_000  # exponents up to which a dense array is the faster one
_PIECE_BYTES = 1.6e7  # of the products held at a time, per thread


@dataclass(frozen=True)
class PathTable:
    """Which leaves each path multiplies, arranged so that common products are formed once.

    Product k is product ``parents[k]`` times leaf ``factors[k]``; product 0 is one. Path m is
    product ``products[m]`` times leaf ``lasts[m]``.
    """

    n_leaves: int
    parents: Indices
    factors: Indices
    products: Indices
    lasts: Indices

    @classmethod
    def of(cls, leaves: Sequence[tuple[int, ...]], n_leaves: int) -> PathTable:
        """Arrange paths given by the places of their leaves."""
        place: dict[tuple[int, ...], int] = {(): 0}
        parents, factors = [0], [0]
        products, lasts = [], []
        for path in leaves:
            for k in range(1, len(path)):
                if path[:k] not in place:
                    place[path[:k]] = len(parents)
                    parents.append(place[path[: k - 1]])
                    factors.append(path[k - 1])
            products.append(place[path[:-1]])
            lasts.append(path[-1])
        return cls(n_leaves, *(np.array(part) for part in (parents, factors, products, lasts)))

    @property
    def n_paths(self) -> int:
        """Number of paths."""
        return len(self.lasts)

    def subset(self, which: Indices) -> PathTable:
        """Return some of the paths."""
        return replace(self, products=self.products[which], lasts=self.lasts[which])

    @property
    def piece(self) -> int:
        """Entries to work on at a time."""
        return int(max(256, _PIECE_BYTES / (8 * (2 * len(self.parents) + self.n_leaves))))

    def _common(self, leaves: Stored) -> Floats:
        out = np.empty((len(self.parents), leaves.shape[1]))
        out[0] = 1.0
        for k in range(1, len(out)):
            np.multiply(out[self.parents[k]], leaves[self.factors[k]], out=out[k])
        return out

    def quadratic_forms(self, leaves: Stored, weights: Floats) -> Floats:
        """Return ``sum_t weights_t prod leaves_t`` of every path; ``t`` runs over the entries."""

        def part(piece: slice) -> Floats:
            here = leaves[:, piece]
            with np.errstate(over="ignore", invalid="ignore"):  # products of large kernels
                common = self._common(here)
                common *= weights[piece]
                return np.asarray(common @ here.T)

        total = np.zeros((len(self.parents), self.n_leaves))
        for sums in run_blocks(part, leaves.shape[1], self.piece):
            total += sums
        return np.asarray(total[self.products, self.lasts])

    def combine(self, leaves: Stored, weights: Floats) -> Floats:
        """Return ``sum_m weights_m prod leaves_m`` for every entry; ``m`` runs over the paths."""
        spread = sp.coo_array(
            (weights, (self.products, self.lasts)), shape=(len(self.parents), self.n_leaves)
        ).toarray()
        used = np.flatnonzero(spread.any(axis=1))
        out = np.empty(leaves.shape[1])

        def part(piece: slice) -> None:
            here = leaves[:, piece]
            common = self._common(here)[used]
            common *= spread[used] @ here
            np.sum(common, axis=0, out=out[piece])

        run_blocks(part, leaves.shape[1], self.piece)
        return out


class PathForms(ABC):
    """Quadratic forms ``q_m = tr(V' K_m V)`` of all paths, summed for given node weights."""

    @abstractmethod
    def sums(self, u: Floats) -> tuple[float, Floats]:
        """Return ``sum_m g_m q_m``, and ``sum_m a_mv g_m q_m`` of every node."""

    @abstractmethod
    def half_norm(self, old: Floats, u: Floats) -> tuple[float, Floats, Floats | None]:
        """Return ``1/2 sum_m g_m(old)^2 q_m / g_m(u)`` with its gradient and Hessian in u.

        This is half the squared norm of the functions found at ``old``, as weights ``u`` count it.
        The Hessian is None where paths are not written out.
        """


class NetworkBank(ABC):
    """The kernel of a network over training rows, as a function of the weights of its products.

    The weights enter as powers, and paths may be too many to count: this is one parametrised kernel
    rather than a `KernelCollection`, which its paths are where they are written out.
    """

    path_counts: Floats  # sum_m a_mv of every node

    def __init__(self, leaves: Triangles) -> None:
        self.leaves = leaves

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.leaves.n_samples

    @property
    def n_nodes(self) -> int:
        """Number of product nodes, which have weights."""
        return len(self.path_counts)

    @abstractmethod
    def _entries(self, leaves: Floats, u: Floats) -> Floats:
        """Return the weighted sum of all paths from entries of the leaves."""

    @abstractmethod
    def _forms(self, leaves: Floats, weights: Floats) -> PathForms: ...

    @abstractmethod
    def largest_exponents(self, p: Floats) -> Floats:
        """Return ``sum_v a_mv / p_v`` of every path, or the largest of all paths."""

    def gram(self, u: Floats) -> Floats:
        """Return the Gram matrix for weights ``exp(u)``."""
        return self.leaves.square(self._entries(self.leaves.entries, u))

    def kernel(self, u: Floats) -> KernelOperator:
        """Return the kernel for weights ``exp(u)``."""
        return GramKernel(self.gram(u))

    def diagonal(self, u: Floats) -> Floats:
        """Return the diagonal of the Gram matrix for weights ``exp(u)``."""
        return self._entries(self.leaves.diagonals(), u)

    def path_forms(self, V: Floats, added: Floats | None = None) -> PathForms:
        """Return the quadratic forms of coefficients, raised by ``sum_i added_i K_ii`` if given."""
        return self._forms(*self.leaves.weigh(V, added))

    def by_paths(self) -> PathBank | None:
        """Return the kernels of the paths, where these are written out."""
        return None


class ExplicitForms(PathForms):
    """Quadratic forms of paths that are written out, with exponents A (paths by nodes)."""

    def __init__(self, quadratic_forms: Floats, A: Floats | sp.csr_array) -> None:
        self.quadratic_forms, self.A = quadratic_forms, A

    def sums(self, u: Floats) -> tuple[float, Floats]:
        parts = np.exp(self.A @ u) * self.quadratic_forms
        return float(parts.sum()), np.asarray(self.A.T @ parts)

    def half_norm(self, old: Floats, u: Floats) -> tuple[float, Floats, Floats | None]:
        parts = 0.5 * np.exp(self.A @ (2.0 * old - u)) * self.quadratic_forms
        gradient = -np.asarray(self.A.T @ parts)
        if isinstance(self.A, np.ndarray):
            return float(parts.sum()), gradient, (self.A.T * parts) @ self.A
        hessian: Any = self.A.T @ self.A.multiply(parts[:, None]).tocsr()
        return float(parts.sum()), gradient, hessian.toarray()


class PathBank(NetworkBank, KernelCollection):
    """A canonical network with its paths written out; these are its kernels."""

    def __init__(self, leaves: Triangles, network: Network, paths: list[Path]) -> None:
        super().__init__(leaves)
        self.paths = paths
        self.table, self.A, self.counts = arrange(network, paths)
        self.path_counts = np.asarray(self.A.T @ self.counts)

    def path_weights(self, u: Floats) -> Floats:
        """Return the weight of every path, times the number of equal paths."""
        return np.asarray(self.counts * np.exp(self.A @ u))

    def by_paths(self) -> PathBank:
        return self

    @property
    def n_kernels(self) -> int:
        return self.table.n_paths

    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        table = self.table if which is None else self.table.subset(which)
        return np.maximum(table.quadratic_forms(*self.leaves.weigh(V)), 0.0)

    def diagonal_sums(self, shares: Floats) -> Floats:
        return self.table.quadratic_forms(self.leaves.diagonals(), shares)

    def combine(self, weights: Floats) -> GramKernel:
        return GramKernel(self.leaves.square(self.table.combine(self.leaves.entries, weights)))

    def largest_exponents(self, p: Floats) -> Floats:
        return np.asarray(self.A @ (1.0 / p))

    def _entries(self, leaves: Floats, u: Floats) -> Floats:
        return self.table.combine(leaves, self.path_weights(u))

    def _forms(self, leaves: Floats, weights: Floats) -> ExplicitForms:
        quadratic_forms = np.maximum(self.table.quadratic_forms(leaves, weights), 0.0)
        return ExplicitForms(self.counts * quadratic_forms, self.A)


def arrange(network: Network, paths: list[Path]) -> tuple[PathTable, Floats | sp.csr_array, Floats]:
    """Return the table of paths, their exponents (paths by products) and how often each counts."""
    leaf = {i: k for k, i in enumerate(network.leaves)}
    node = {i: k for k, i in enumerate(network.products)}
    table = PathTable.of([tuple(leaf[i] for i in path.leaves) for path in paths], len(leaf))
    cells = [(m, node[v], float(a)) for m, path in enumerate(paths) for v, a in path.exponents]
    rows, columns, values = zip(*cells, strict=True)
    A: Any = sp.csr_array((values, (rows, columns)), shape=(len(paths), len(node)))
    small = len(paths) * len(node) <= _SMALL
    counts = np.array([float(path.count) for path in paths])
    return table, A.toarray() if small else A, counts


class FactoredBank(NetworkBank):
    """A network evaluated as it is: its cost does not depend on the number of paths.

    The network is canonical and has the same exponents on all paths.
    """

    def __init__(self, leaves: Triangles, network: Network) -> None:
        super().__init__(leaves)
        exponents = network.uniform_exponents()
        assert exponents is not None, "exponents differ between paths"
        self.network = network
        self.exponents = np.array([float(exponents[i]) for i in network.products])
        ones = np.ones((len(network.leaves), 1))
        # The derivative of a sum of ones in the logarithm of a weight counts the paths through it.
        through = self.differentiate(ones, np.ones(1), np.zeros(len(exponents)))[1]
        self.path_counts = self.exponents * through

    @cached_property
    def piece(self) -> int:
        """Entries to work on at a time."""
        return int(max(256, _PIECE_BYTES / (16 * len(self.network.nodes))))

    def evaluate(self, leaves: Floats, logs: Floats) -> Floats:
        """Return every node of the network, one row each, for logarithms of the weights."""
        network = self.network
        out = np.empty((len(network.nodes), leaves.shape[1]))
        out[list(network.leaves)] = leaves
        weight = dict(zip(network.products, np.exp(logs), strict=True))
        for i in network.order:
            node = network.nodes[i]
            children = list(node.children)
            if node.kind == "sum":
                np.sum(out[children], axis=0, out=out[i])
            elif node.kind == "product":
                np.prod(out[children], axis=0, out=out[i])
                out[i] *= weight[i]
        return out

    def differentiate(self, leaves: Floats, weights: Floats, logs: Floats) -> tuple[float, Floats]:
        """Return the weighted sum of the root's entries, and its derivatives in the logarithms."""
        network = self.network

        def part(piece: slice) -> tuple[float, Floats]:
            values = self.evaluate(leaves[:, piece], logs)
            slopes = np.zeros_like(values)
            slopes[network.root] = weights[piece]
            out = {}
            for i in reversed(network.order):
                node = network.nodes[i]
                if node.kind == "sum":
                    for c in node.children:
                        slopes[c] += slopes[i]
                elif node.kind == "product":
                    out[i] = float(slopes[i] @ values[i])
                    scale = np.exp(logs[network.products.index(i)])
                    for k, c in enumerate(node.children):
                        others = [d for n, d in enumerate(node.children) if n != k]
                        slopes[c] += slopes[i] * np.prod(values[others], axis=0) * scale
            return float(weights[piece] @ values[network.root]), np.array(
                [out[i] for i in network.products]
            )

        parts = run_blocks(part, leaves.shape[1], self.piece)
        return sum(p[0] for p in parts), np.asarray(np.sum([p[1] for p in parts], axis=0))

    def largest_exponents(self, p: Floats) -> Floats:
        network = self.network
        share = dict(zip(network.products, self.exponents / p, strict=True))
        most: dict[int, float] = {}
        for i in network.order:
            below = [most[c] for c in network.nodes[i].children]
            kind = network.nodes[i].kind
            most[i] = max(below) if kind == "sum" else sum(below) + share.get(i, 0.0)
        return np.array([most[network.root]])

    def _entries(self, leaves: Floats, u: Floats) -> Floats:
        logs, out = self.exponents * u, np.empty(leaves.shape[1])

        def part(piece: slice) -> None:
            out[piece] = self.evaluate(leaves[:, piece], logs)[self.network.root]

        run_blocks(part, leaves.shape[1], self.piece)
        return out

    def _forms(self, leaves: Floats, weights: Floats) -> PathForms:
        return FactoredForms(self, leaves, weights)


class FactoredForms(PathForms):
    """Sums over paths that are not written out, by differentiating the network."""

    def __init__(self, bank: FactoredBank, leaves: Floats, weights: Floats) -> None:
        self.bank, self.leaves, self.weights = bank, leaves, weights

    def sums(self, u: Floats) -> tuple[float, Floats]:
        a = self.bank.exponents
        total, slopes = self.bank.differentiate(self.leaves, self.weights, a * u)
        return total, a * slopes

    def half_norm(self, old: Floats, u: Floats) -> tuple[float, Floats, Floats | None]:
        total, slopes = self.sums(2.0 * old - u)
        return 0.5 * total, -0.5 * slopes, None
