"""A Laplacian kernel on a mixed table in a learned metric."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats, Indices, Stored
from kernelweave.errors import InputError

from .base import Kernel
from .distances import squared_distances
from .encoding import TableEncoding
from .monomials import Monomial, Monomials, decay_part
from .table import columns_key, read_table

_FIRST, _LAST, _STEP = -5.2, 33.0, 1.0 / 3.0  # logarithms of the rates of Gaussians in a mixture


@dataclass(frozen=True)
class Metric:
    """Weights of the encoded columns and a root of a Mahalanobis metric."""

    weights: Floats  # (n_columns,): weights w of absolute differences, with mean square one
    # (n_columns, n_columns): symmetric root R of the metric ``M = R R``, whose trace is the number
    # of columns.
    root: Floats

    def __post_init__(self) -> None:
        for array in (self.weights, self.root):
            if getattr(array, "dtype", None) != np.float64 or not np.isfinite(array).all():
                raise ValueError("a metric consists of finite numbers")
        n = self.weights.size
        if self.weights.shape != (n,) or self.root.shape != (n, n) or (self.weights < 0).any():
            raise ValueError("a metric needs a weight for each column, and a square root")

    @classmethod
    def identity(cls, n_columns: int) -> Metric:
        """Return the metric in which all columns count alike."""
        return cls(np.ones(n_columns), np.eye(n_columns))

    def distances(self, A: Floats, B: Floats) -> tuple[Floats, Floats]:
        """Return ``sum_j w_j |a_j - b_j|`` and ``|R (a - b)|`` between rows."""
        return self.absolute(A, B), self.euclidean(A, B)

    def absolute(self, A: Floats, B: Floats) -> Floats:
        """Return ``sum_j w_j |a_j - b_j|`` between rows."""
        sizes = B.max(axis=0, initial=0.0)
        binary = ((B == 0) | (B == sizes)).all(axis=0) & ((A == 0) | (A == sizes)).all(axis=0)
        D1 = np.empty((len(A), len(B)))
        a, b = (np.ascontiguousarray((rows * self.weights)[:, ~binary]) for rows in (A, B))
        _core.absolute_distances(a, b, D1)
        if binary.any():
            # Indicators: |t - 0| = (t - 0)^2 / t, so that products of matrices do all at once.
            known = binary & (sizes != 0)
            scales = np.sqrt(self.weights[known] / np.abs(sizes[known]))
            a, b = A[:, known], B[:, known]
            D1 += squared_distances(a, a if A is B else b, scales=scales)
        return D1

    def euclidean(self, A: Floats, B: Floats) -> Floats:
        """Return ``|R (a - b)|`` between rows."""
        a = A @ self.root
        D = np.asarray(squared_distances(a, a if A is B else B @ self.root))
        return np.sqrt(D, out=D)


@dataclass(frozen=True, eq=False, repr=False)
class MetricLaplacian(Kernel):
    """Mixture of two Laplacians on the encoded columns of a table, in a learned metric.

    ``k(x, z) = h exp(-sum_j w_j |x_j - z_j| / L1) + (1 - h) exp(-|R (x - z)| / L2)`` on rows that
    `TableEncoding` makes of numbers, categories, dates and gaps. The learned-metric estimators
    return one as ``kernel_``; it can be combined with other kernels on the same table.

    Parameters
    ----------
    encoding : TableEncoding
        Makes numbers of the columns.
    metric : Metric
        Weights w and root R.
    widths : tuple of float
        ``L1`` and ``L2``.
    share : float
        Share h of the product Laplacian, between 0 and 1.
    columns : None
        The encoding has the columns.
    missing : {"refuse"}
        The encoding takes gaps.
    """

    encoding: TableEncoding
    metric: Metric
    widths: tuple[float, float]
    share: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.columns is not None:
            raise InputError(
                "MetricLaplacian: its encoding says which columns it has; omit columns."
            )

    @property
    def view(self) -> Hashable:
        """The encoding."""
        return ("vector", columns_key(self.encoding))

    def _key(self) -> tuple[Hashable, ...]:
        arrays = (self.metric.weights.tobytes(), self.metric.root.tobytes())
        return (self.encoding.key, *arrays, self.widths, self.share, self.name)

    def prepare(self, X: Any) -> Floats:
        """Return the encoded rows."""
        return self.encoding.encode(X)

    def block(self, A: Floats, B: Floats) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        if self.share == 0.0:
            return _laplacian(self.metric.euclidean(A, B), self.widths[1])
        K = _laplacian(self.metric.absolute(A, B), self.widths[0])
        if self.share < 1.0:
            K *= self.share
            K2 = _laplacian(self.metric.euclidean(A, B), self.widths[1])
            K2 *= 1.0 - self.share
            K += K2
        return K

    @property
    def has_unit_diagonal(self) -> bool:
        return True

    def positions(self, X: Any) -> Indices:
        """Return the column of ``X`` of every encoded column."""
        table = read_table(X, str(self))
        return np.array(table.positions(self.encoding, str(self)))[self.encoding.owners]

    def monomials(self) -> Monomials:
        """Return the product Laplacian, and Gaussians for the other where its metric is diagonal.

        ``exp(-D)`` is a mixture of the Gaussians ``exp(-u D^2)``, which are products over columns
        where D^2 is a sum over them. A full metric compares all columns together.
        """
        found: list[Monomial] = []
        first, second = self.widths
        weights, root = self.metric.weights / first, np.diagonal(self.metric.root) / second
        if self.share > 0.0:
            part = _picked(partial(decay_part, squared=False), weights)
            whole = partial(_scaled, self.metric.absolute, first)
            atom = self._atom("product", part=part)
            found.append(Monomial(self.share, (replace(atom, whole=whole),)))
        if self.share == 1.0:
            return tuple(found)
        if np.count_nonzero(self.metric.root) > np.count_nonzero(root):
            whole = partial(_scaled, self.metric.euclidean, second)
            atom = replace(self._atom("opaque"), whole=whole)
            return (*found, Monomial(1.0 - self.share, (atom,)))
        rates, masses, error = laplacian_mixture()
        for rate, mass in zip(np.sqrt(rates), masses * (1.0 - self.share), strict=True):
            part = _picked(partial(decay_part, squared=True), rate * root)
            atom = replace(self._atom("product", part=part), whole=partial(_every_column, part))
            found.append(Monomial(float(mass), (atom,), vanishes=bool(rate > 1.0)))
        return (*found[:-1], replace(found[-1], error=(1.0 - self.share) * error))

    def opaque(self) -> Monomials:
        """Return the kernel as one part, whose values are updated as columns change."""
        walks = partial(_walks, self) if self.share < 1.0 else None  # else a product
        return (Monomial(1.0, (self._atom("opaque", walks=walks),)),)

    def diagonal(self, A: Floats) -> Floats:
        """Return ones."""
        return np.ones(len(A))

    def _title(self) -> str:
        part = {0.0: " (l2)", 1.0: " (l1)"}.get(self.share, "")
        return f"learned metric{part} on {len(self.encoding.keys)} columns"

    def __repr__(self) -> str:
        return f"<MetricLaplacian on {', '.join(map(str, self.encoding.keys))}>"


def _picked(part: Any, scales: Floats) -> Any:
    """Return a part whose scales are those of the columns asked for."""
    return lambda A, B, columns: part(A, B, columns, scales=scales[columns])


def _every_column(part: Any, A: Floats, B: Floats) -> Floats:
    return np.asarray(part(A, B, np.arange(A.shape[1])))


def _walks(
    kernel: MetricLaplacian,
    terms: Floats,
    coef: Floats,
    rows: Floats,
    starts: Floats,
    columns: list[Indices],
) -> Callable[[int, Indices], Floats]:
    """Return a function that moves all rows away from a start, a group of columns at a time.

    A step costs as much as the exponentials of a prediction, whatever the number of columns: in
    ``|R (c - t)|^2 = c' M c + t' M t - 2 c' M t`` and in the absolute distance, a group of columns
    of c changes one summand. Single precision: values are sampled, with errors of per cents.

    Parameters
    ----------
    kernel : MetricLaplacian
        The kernel.
    terms, coef : ndarrays of shape (n_terms, n_columns) and (n_terms, n_outputs)
        Rows compared with, and their coefficients.
    rows, starts : ndarrays of shape (n_rows, n_columns) and (n_starts, n_columns)
        Where walks end and start.
    columns : list of ndarray
        Groups of columns.
    """
    share, weights = kernel.share, kernel.metric.weights / kernel.widths[0]
    M = kernel.metric.root @ kernel.metric.root / kernel.widths[1] ** 2
    sides = 2.0 * M @ terms.T
    own = (0.5 * np.einsum("ij,ji->i", terms, sides)).astype(np.float32)
    first, second = ((part * coef).astype(np.float32) for part in (share, 1.0 - share))

    def summands(side: Floats) -> tuple[Stored, Stored]:
        """Return minus the absolute distances, and the products, by group, row and term."""
        near = np.zeros((len(columns), len(side), len(terms)), dtype=np.float32)
        products = np.empty_like(near)
        for total, product, group in zip(near, products, columns, strict=True):
            product[...] = side[:, group] @ sides[group]
            for j in group[weights[group] > 0]:
                total -= weights[j] * np.abs(np.subtract.outer(side[:, j], terms[:, j]))
        return near, products

    near, products = summands(rows)
    near_starts, products_starts = summands(starts)

    def walk(start: int, order: Indices) -> Floats:
        """Return the values after all groups of ``order`` but the last, of all rows."""
        mixed, Mc = (np.tile(side, (len(rows), 1)) for side in (starts[start], M @ starts[start]))
        N = np.tile(near_starts[:, start].sum(axis=0), (len(rows), 1))
        P = np.tile(products_starts[:, start].sum(axis=0), (len(rows), 1))
        K, found = np.empty_like(P), np.zeros((len(order) - 1, len(rows), coef.shape[1]))
        for values, k in zip(found, order[:-1], strict=True):
            if share > 0.0:
                N += near[k]
                N -= near_starts[k, start]
                values += np.exp(N, out=K) @ first
            if share < 1.0:
                group = columns[k]
                Mc += (rows[:, group] - mixed[:, group]) @ M[group]
                mixed[:, group] = rows[:, group]
                P += products[k]
                P -= products_starts[k, start]
                np.subtract(own, P, out=K)
                K += np.einsum("ij,ij->i", mixed, Mc).astype(np.float32)[:, None]
                np.sqrt(np.maximum(K, 0.0, out=K), out=K)
                values += np.exp(np.negative(K, out=K), out=K) @ second
        return found

    return walk


def _scaled(distances: Any, width: float, A: Floats, B: Floats) -> Floats:
    return _laplacian(distances(A, B), width)


@lru_cache(maxsize=1)
def laplacian_mixture() -> tuple[Floats, Floats, float]:
    """Return rates u, masses c and a bound e with ``|exp(-D) - sum c exp(-u D^2)| <= e``.

    The trapezoidal rule in ``v = log u`` for ``exp(-sqrt t) = int (4 pi)^(-1/2) u^(-3/2)
    exp(-1/(4u) - u t) du``. The integrand is analytic for ``|Im v| < pi/2``, so that a step h costs
    ``exp(-pi^2 / h)``. Masses beyond the last rate U are given to it, which is right for D = 0 and
    wherever ``U D^2`` is large, and wrong by ``(pi U)^(-1/2)`` at most in between.
    """
    v = np.arange(_FIRST, _LAST, _STEP)
    rates = np.exp(v)
    masses = _STEP * np.exp(-v / 2.0 - 0.25 / rates) / np.sqrt(4.0 * np.pi)
    masses[-1] += 1.0 - masses.sum()
    return rates, masses, float(1.0 / np.sqrt(np.pi * rates[-1])) + 1e-13


def _laplacian(D: Floats, width: float) -> Floats:
    """Return ``exp(-D / width)``, in place."""
    D /= -width
    return np.exp(D, out=D)
