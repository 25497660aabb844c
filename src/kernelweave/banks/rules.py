"""Conjunctions of propositions over the training rows, as bits.

A rule is one bit per row, and its kernel ``phi phi'`` has rank one. Sums over the rows of a rule
and counts of rows that satisfy two rules are bit operations on words of 64 rows.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelweave import _core
from kernelweave._types import Bools, Floats, Indices

from .feature_operator import FeatureOperator
from .kernel_sum import GramKernel
from .protocol import Features, KernelCollection

Bits = NDArray[np.uint64]
# Numbers of propositions, increasing. A column of numbers is a conjunction of one number, which
# comes after those of the propositions.
Conjunction = tuple[int, ...]


@dataclass(frozen=True)
class RuleOptions:
    """When rules are numbers and when bits; chosen by hand."""

    few_rows: int = 1500  # rows up to which a Gram matrix is cheap whatever the number of rules
    chunk: int = 4096  # rows multiplied at a time
    unpacked: int = 65_536  # rows unpacked at a time, a multiple of 64
    rows_per_level: int = 64  # rows of equal weight from which they are counted, not multiplied


OPTIONS = RuleOptions()


@dataclass(frozen=True)
class PackedRows:
    """Truth values of propositions, eight to a byte, row by row."""

    # (n_samples, ceil(n_propositions / 8)): the first proposition is the highest bit of the first
    # byte, as in ``numpy.packbits``.
    rows: NDArray[np.uint8]
    n_propositions: int
    linear: Floats | None = None  # (n_samples, n_linear): columns of numbers beside them

    @classmethod
    def of(cls, propositions: Bools) -> PackedRows:
        """Pack a table of truth values."""
        return cls(np.packbits(propositions, axis=1), propositions.shape[1])

    @classmethod
    def join(cls, parts: Sequence[PackedRows]) -> PackedRows:
        """Put blocks of rows below each other."""
        linear = [part.linear for part in parts if part.linear is not None]
        return cls(
            np.concatenate([part.rows for part in parts]),
            parts[0].n_propositions,
            np.concatenate(linear) if linear else None,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and propositions."""
        return len(self.rows), self.n_propositions

    def __getitem__(self, index: Indices | slice) -> PackedRows:
        """Return some of the rows."""
        linear = None if self.linear is None else self.linear[index]
        return PackedRows(self.rows[index], self.n_propositions, linear)

    def unpack(self) -> Bools:
        """Return the table of truth values."""
        flat = np.unpackbits(self.rows, axis=1, count=self.n_propositions)
        return np.ascontiguousarray(flat).view(bool)

    def columns(self) -> Bits:
        """Return the propositions as columns of bits, unpacking few rows at a time."""
        n, p = self.shape
        out = np.empty((p, -(-n // 64)), dtype=np.uint64)
        for first in range(0, n, OPTIONS.unpacked):
            words = _core.pack_bits(self[first : first + OPTIONS.unpacked].unpack())
            out[:, first // 64 : first // 64 + words.shape[1]] = words
        return out


class RuleBank(KernelCollection):
    """Zero-one features of rules, each the kernel ``phi phi'`` of rank one.

    No Gram matrix of a rule is ever formed: a rule is one bit per row. Columns of numbers beside
    the rules have no bits; their propositions never hold.
    """

    def __init__(self, propositions: PackedRows) -> None:
        self._n_samples, self.n_propositions = propositions.shape
        self.propositions = propositions.columns()
        linear = propositions.linear
        self.linear = np.empty((self.n_samples, 0)) if linear is None else linear
        if n_linear := self.linear.shape[1]:
            never = np.zeros((n_linear, self.propositions.shape[1]), dtype=np.uint64)
            self.propositions = np.concatenate([self.propositions, never])
        self.bits: Bits = np.empty((0, self.propositions.shape[1]), dtype=np.uint64)
        self._dense = np.empty((0, self.n_samples))

    @property
    def n_samples(self) -> int:
        return self._n_samples

    @property
    def n_kernels(self) -> int:
        return len(self.bits)

    def add(self, rules: Sequence[Conjunction]) -> None:
        """Append rules; the empty conjunction holds everywhere."""
        self.bits = np.concatenate([self.bits, self.columns_of(rules)])

    def columns_of(self, rules: Sequence[Conjunction]) -> Bits:
        """Return the rows of rules as bits, one row per rule, without keeping them."""
        new = np.empty((len(rules), self.propositions.shape[1]), dtype=np.uint64)
        for row, rule in zip(new, rules, strict=True):
            if rule:
                np.bitwise_and.reduce(self.propositions[list(rule)], axis=0, out=row)
            else:
                row[:] = _core.pack_bits(np.ones((self.n_samples, 1), dtype=bool))[0]
        return new

    def is_linear(self, rule: Conjunction) -> bool:
        """Return whether the conjunction is a column of numbers."""
        return bool(rule) and rule[0] >= self.n_propositions

    def features(self, rules: Sequence[Conjunction], bits: Bits | None = None) -> NodeFeatures:
        """Return rules and columns of numbers as features; ``bits`` are those of `columns_of`."""
        bits = self.columns_of(rules) if bits is None else bits
        n_linear = self.linear.shape[1]
        places = [k for k, rule in enumerate(rules) if self.is_linear(rule)] if n_linear else []
        numbers = [rules[k][0] - self.n_propositions for k in places]
        columns = self.linear
        if numbers != list(range(n_linear)):  # else without a copy
            columns = columns[:, numbers]
        return NodeFeatures(bits, columns, np.array(places, dtype=np.intp), self.n_samples)

    def restricted(self, allowed: Bools) -> RuleBank:
        """Return a bank without rules, in which what is not allowed never holds or is zero."""
        other = copy.copy(self)
        other.propositions = self.propositions * allowed[:, None].astype(np.uint64)
        other.linear = self.linear * allowed[self.n_propositions :]
        other.bits, other._dense = self.bits[:0], self._dense[:0]
        return other

    def sums(self, V: Floats) -> Floats:
        """Return the sum of ``V`` over the rows of every rule."""
        if self._is_small:
            return self.dense() @ V
        return _core.bit_sums(self.bits, np.ascontiguousarray(V))

    def values(self, weights: Floats) -> Floats:
        """Return for every row the sum of the weights of its rules."""
        if self._is_small:
            return self.dense().T @ weights
        return _core.bit_products(self.bits, np.ascontiguousarray(weights), self.n_samples)

    def quadratic_forms(self, V: Floats, which: Indices | None = None) -> Floats:
        forms = np.asarray((self.sums(V) ** 2).sum(axis=1))
        return forms if which is None else forms[which]

    def diagonal_sums(self, shares: Floats) -> Floats:
        return np.asarray(self.sums(shares[:, None])[:, 0])

    @property
    def _is_small(self) -> bool:
        return bool(self.n_samples <= OPTIONS.few_rows)

    def dense(self) -> Floats:
        """Return the features as numbers, one row per rule; kept, so only for few rows."""
        if len(self._dense) < self.n_kernels:
            new = unpack(self.bits[len(self._dense) :], self.n_samples)
            self._dense = np.concatenate([self._dense, new])
        return self._dense

    def combine(self, weights: Floats, n_related: int = 1) -> GramKernel | RuleKernel:
        """Return ``sum_w weights_w phi_w phi_w'``.

        Where several outputs are related, features are better than a matrix already for few rows.
        """
        used = np.flatnonzero(weights)
        roots = np.sqrt(weights[used])
        large = n_related > 1 or not self._is_small
        if large and len(used) < self.n_samples:
            bits = np.ascontiguousarray(self.bits[used])
            return RuleKernel(RuleFeatures(bits, roots, self.n_samples))
        features = self.dense() if self._is_small else unpack(self.bits, self.n_samples)
        half = features[used] * roots[:, None]
        return GramKernel(half.T @ half)


class RuleKernel(FeatureOperator):
    """A weighted sum of rules that is applied through its features and never formed."""

    def __init__(self, features: RuleFeatures) -> None:
        super().__init__(features)
        self._features: RuleFeatures = features

    def features(self) -> RuleFeatures:
        return self._features

    def diag(self) -> Floats:
        return self._features.squares()

    def scaled(self, factor: float) -> RuleKernel:
        Z = self._features
        return RuleKernel(RuleFeatures(Z.bits, np.sqrt(factor) * Z.roots, self.n_samples))


class RuleFeatures(Features):
    """Columns of zeros and ones, one per rule, times the square roots of their weights.

    ``bits`` has one row of words per rule.
    """

    def __init__(self, bits: Bits, roots: Floats, n_samples: int) -> None:
        self.bits, self.roots, self.n_samples = bits, roots, n_samples
        self._last: tuple[Bools, Floats] | None = None

    @property
    def n_features(self) -> int:
        return len(self.roots)

    def times(self, w: Floats) -> Floats:
        weighted = np.ascontiguousarray(self.roots[:, None] * w)
        return _core.bit_products(self.bits, weighted, self.n_samples)

    def sums(self, V: Floats) -> Floats:
        return self.roots[:, None] * _core.bit_sums(self.bits, np.ascontiguousarray(V))

    def rows(self, index: Indices) -> Floats:
        return _core.bit_rows(self.bits, index) * self.roots

    def squares(self) -> Floats:
        """Return the sum of the squared features of every row."""
        return self.times(self.roots[:, None])[:, 0]

    def gram(self, q: Floats) -> tuple[Floats, Floats]:
        """Return ``Z' diag(q) Z`` and ``Z' q`` of the features Z; rows without q cost nothing.

        Where many rows share few values of q, as with losses without curvature, the product is a
        count of rows for every pair of rules: whole numbers, from words of 64 rows.
        """
        used = np.flatnonzero(q)
        levels = np.unique(q[used])
        if len(levels) * OPTIONS.rows_per_level <= len(used):
            return self._counted(q, levels)
        out, edge = np.zeros((self.n_features, self.n_features)), np.zeros(self.n_features)
        for k in range(0, len(used), OPTIONS.chunk):
            index = used[k : k + OPTIONS.chunk]
            root = np.sqrt(q[index])
            Z = self.rows(index) * root[:, None]
            out += Z.T @ Z  # a symmetric product: half the work
            edge += root @ Z
        return out, edge

    def _counted(self, q: Floats, levels: Floats) -> tuple[Floats, Floats]:
        out = np.zeros((self.n_features, self.n_features))
        for level in levels.tolist():
            rows = q == level
            counts = self._recounted(rows) if len(levels) == 1 else self._count(rows)
            out += level * counts
        edge = self.roots * out.diagonal()  # a feature is its own square
        out *= self.roots
        out *= self.roots[:, None]
        return out, edge

    def _count(self, rows: Bools) -> Floats:
        """Return how many of the rows satisfy both of any two rules."""
        return _core.bit_counts(self.bits, pack_mask(rows))

    def _recounted(self, rows: Bools) -> Floats:
        """Do the same from the last counts: few rows change between Newton steps."""
        if self._last is not None:
            before, counts = self._last
            new, gone = rows & ~before, before & ~rows
            if 2 * (np.count_nonzero(new) + np.count_nonzero(gone)) < np.count_nonzero(rows):
                counts = counts + self._count(new)
                counts -= self._count(gone)
                self._last = rows, counts
                return counts
        counts = self._count(rows)
        self._last = rows, counts
        return counts


class NodeFeatures(RuleFeatures):
    """Features of rules and of columns of numbers, whose weights are the function itself.

    Parameters
    ----------
    bits : ndarray of uint64
        One row of words per feature; those of columns of numbers are zero.
    columns : ndarray of shape (n_samples, n_columns)
        The columns of numbers.
    places : ndarray of int of shape (n_columns,)
        Which features they are.
    n_samples : int
        Number of rows.
    """

    def __init__(self, bits: Bits, columns: Floats, places: Indices, n_samples: int) -> None:
        super().__init__(bits, np.ones(len(bits)), n_samples)
        self.columns, self.places = columns, places

    def times(self, w: Floats) -> Floats:
        out = super().times(w)
        if len(self.places):
            out += self.columns @ w[self.places]
        return out

    def sums(self, V: Floats) -> Floats:
        out = super().sums(V)
        if len(self.places):
            out[self.places] = self.columns.T @ V
        return out

    def rows(self, index: Indices) -> Floats:
        out = super().rows(index)
        out[:, self.places] = self.columns[index]
        return out

    def squares(self) -> Floats:
        out = super().times(np.ones((self.n_features, 1)))[:, 0]
        return np.asarray(out + (self.columns**2).sum(axis=1)) if len(self.places) else out

    def _counted(self, q: Floats, levels: Floats) -> tuple[Floats, Floats]:
        out, edge = super()._counted(q, levels)
        if len(self.places):
            cross = self.sums(q[:, None] * self.columns)
            out[:, self.places], out[self.places] = cross, cross.T
            edge[self.places] = q @ self.columns
        return out, edge

    def to_bank(self, w: Floats) -> Floats:
        return w

    def deviations(self, counts: Floats) -> Floats:
        """Return the standard deviation of every feature; ``counts`` are the weights of rows."""
        total = counts.sum()
        means = self.sums(counts[:, None])[:, 0] / total
        variances = means * (1.0 - means)  # a rule is its own square
        variances[self.places] = counts @ (self.columns - means[self.places]) ** 2 / total
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)))


def pack_mask(rows: Bools) -> NDArray[np.uint64]:
    """Return truth values as the words of one column of bits."""
    words = np.zeros(-(-len(rows) // 64), dtype=np.uint64)
    packed = np.packbits(rows, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return words


def unpack(bits: Bits, n_samples: int) -> Floats:
    """Return bits as numbers, one row per column of bits."""
    flat = np.unpackbits(bits.view(np.uint8), axis=1, count=n_samples, bitorder="little")
    return flat.astype(np.float64)
