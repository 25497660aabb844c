"""Sources completed from each other: expected features of rows that lack a source.

The rows of a training sample that have a source are its anchors, with features ``phi(x_t)``. A row
without the source gets ``sum_t a_t(x) phi(x_t)`` in place of its features, where the coefficients
``a(x) = (S + ridge I)^-1 s(x)`` are those of kernel ridge regression on the other sources: s is the
mean Gaussian similarity over the sources that both rows have, of the width with the least
leave-one-out error of the features. This estimates the conditional mean
of the features given the other sources, and every value stays an inner product of features.

References
----------
L. Song, J. Huang, A. Smola, K. Fukumizu (2009). Hilbert space embeddings of conditional
distributions with applications to dynamical systems. ICML, equation (6).
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError

from .base import Kernel, RowFormat, Rows, n_rows, take
from .monomials import Monomials
from .wrapper import Wrapper

_CONSTANT = 1e-3  # added to similarities, so that a row without sources is like all anchors


def mean_similarity(
    references: tuple[Kernel, ...], A: tuple[Rows, ...], B: tuple[Rows, ...]
) -> Floats:
    """Return the mean similarity over sources, relative to how many each row has.

    The references, one per source, are zero for rows without it.
    """
    K = sum(ref.block(a, b) for ref, a, b in zip(references, A, B, strict=True))
    left, right = (
        sum(ref.diagonal(rows) for ref, rows in zip(references, side, strict=True))
        for side in (A, B)
    )
    lengths = (np.sqrt(np.maximum(np.asarray(side), 1.0)) for side in (left, right))
    return np.asarray(K / np.multiply.outer(*lengths) + _CONSTANT)


@dataclass(frozen=True, eq=False, repr=False)
class Completion(Kernel):
    """The coefficients by which rows that lack a source are written as rows that have it.

    As a kernel it is the inner product of these coefficients, which are zero for rows with the
    source.

    Parameters
    ----------
    gate : Kernel
        One for rows with the source.
    references : tuple of Kernel
        Similarities in the other sources, of at most one.
    anchors : tuple of prepared rows
        The anchors as each reference sees them.
    inverse : ndarray of shape (n_anchors, n_anchors)
        ``(S + ridge I)^-1`` of the anchors' similarities S.
    columns : None
        The references have the columns.
    missing : {"refuse"}
        Gaps are what it is for.
    """

    row_format: ClassVar[RowFormat] = "numbers"

    gate: Kernel
    references: tuple[Kernel, ...]
    anchors: tuple[Rows, ...]
    inverse: Floats

    def __post_init__(self) -> None:
        super().__post_init__()
        inverse = self.inverse
        square = isinstance(inverse, np.ndarray) and inverse.shape == (len(inverse),) * 2
        kernels = (self.gate, *self.references)
        if not square or not all(isinstance(kernel, Kernel) for kernel in kernels):
            raise InputError("Completion: needs kernels and a square matrix of the anchors.")
        sizes = {n_rows(rows) for rows in self.anchors}
        if len(self.anchors) != len(self.references) or sizes != {len(inverse)}:
            raise InputError("Completion: each reference needs rows of all anchors.")

    @property
    def encodes_gaps(self) -> bool:
        return True

    def n_prepared(self, table: Any) -> int:
        """Return the number of anchors."""
        return len(self.inverse)

    def positions(self, X: Any) -> Indices:
        """Return the columns of all sources."""
        kernels = (self.gate, *self.references)
        return np.unique(np.concatenate([kernel.positions(X) for kernel in kernels]))

    @cached_property
    def digest(self) -> str:
        """A text that equal completions share."""
        parts = hashlib.sha256(repr((self.gate, self.references)).encode())
        parts.update(np.ascontiguousarray(self.inverse).tobytes())
        return parts.hexdigest()

    def _key(self) -> tuple[Hashable, ...]:
        return (self.digest, self.name)

    @property
    def view(self) -> Hashable:
        """The digest."""
        return ("completion", self.digest)

    def prepare(self, X: Any) -> Floats:
        """Return the coefficients, of shape (n_rows, n_anchors)."""
        return self._prepare(X, {})

    def _prepare(self, X: Any, known: dict[Hashable, Rows]) -> Floats:
        gate = self.gate.diagonal(self.gate.prepare_once(X, known))
        out = np.zeros((len(gate), len(self.inverse)))
        lacking = np.flatnonzero(gate == 0)
        if len(lacking):
            rows = tuple(take(ref.prepare_once(X, known), lacking) for ref in self.references)
            out[lacking] = mean_similarity(self.references, rows, self.anchors) @ self.inverse
        return out

    def block(self, A: Rows, B: Rows) -> Floats:
        """Return inner products of coefficients."""
        K = np.asarray(A @ B.T)
        return (K + K.T) / 2 if A is B else K

    def diagonal(self, A: Rows) -> Floats:
        """Return squared lengths of coefficients."""
        return np.asarray(np.einsum("nt,nt->n", A, A))

    def _title(self) -> str:
        return f"completion by {len(self.inverse)} rows"

    def __repr__(self) -> str:
        return f"<Completion {self.digest[:12]}>"


@dataclass(frozen=True, eq=False, repr=False)
class Completed(Wrapper):
    """A kernel of a source, with expected features for rows that lack the source.

    ``views(..., missing="complete")`` makes these.

    Parameters
    ----------
    kernel : Kernel
        Zero for rows without the source.
    completion : Completion
        Writes these rows as combinations of the anchors.
    anchors : prepared rows
        The anchors as the inner kernel sees them.
    columns : None
        The inner kernel and the completion have the columns.
    missing : {"refuse"}
        Gaps are what it is for.
    """

    completion: Completion
    anchors: Rows

    def _check(self) -> None:
        complete = isinstance(self.completion, Completion)
        if not complete or n_rows(self.anchors) != len(self.completion.inverse):
            raise InputError("Completed: the anchors do not belong to the completion.")

    @property
    def encodes_gaps(self) -> bool:
        return True

    @property
    def unwrapped(self) -> Kernel:
        return self

    @property
    def row_parts(self) -> tuple[Kernel, ...]:
        return (self.kernel, self.completion)

    def _key(self) -> tuple[Hashable, ...]:
        return (self.kernel, self.completion.digest, self.name)

    def __repr__(self) -> str:
        return f"Completed({self.kernel!r}, {self.completion!r})"

    @property
    def view(self) -> Hashable:
        """The views of kernel and completion."""
        return ("parts", self.kernel.view, self.completion.view)

    def prepare(self, X: Any) -> Rows:
        """Return the inner kernel's rows and the coefficients."""
        return self._prepare(X, {})

    def _prepare(self, X: Any, known: dict[Hashable, Rows]) -> Rows:
        return (self.kernel.prepare_once(X, known), self.completion.prepare_once(X, known))

    @cached_property
    def _gram(self) -> Floats:
        """Values between anchors."""
        return self.kernel.block(self.anchors, self.anchors)

    def block(self, A: Rows, B: Rows) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        K = self.kernel.block(A[0], B[0])
        a, b = (np.flatnonzero(side[1].any(axis=1)) for side in (A, B))
        if len(a):
            K[a] += A[1][a] @ self.kernel.block(self.anchors, B[0])
        if len(b):
            K[:, b] += (B[1][b] @ self.kernel.block(self.anchors, A[0])).T
        if len(a) and len(b):
            K[np.ix_(a, b)] += A[1][a] @ self._gram @ B[1][b].T
        return (K + K.T) / 2 if A is B else K

    def diagonal(self, A: Rows) -> Floats:
        """Compare every prepared row with itself; the inner kernel is zero where this adds."""
        added = np.einsum("nt,nt->n", A[1] @ self._gram, A[1])
        return np.asarray(self.kernel.diagonal(A[0]) + np.maximum(added, 0.0))

    def linear_rows(self, A: Rows) -> Floats | None:
        """Return the inner kernel's rows, those of anchors combined where it has none."""
        rows, anchors = (self.kernel.linear_rows(part) for part in (A[0], self.anchors))
        return None if rows is None or anchors is None else rows + A[1] @ anchors

    def positions(self, X: Any) -> Indices:
        """Return the columns of all sources."""
        parts = (self.kernel.positions(X), self.completion.positions(X))
        return np.unique(np.concatenate(parts))

    def source_positions(self, X: Any) -> Indices:
        """Return the columns of the source that is completed."""
        return self.kernel.positions(X)

    def monomials(self) -> Monomials:
        """Return the kernel as a whole: coefficients mix the columns of the other sources."""
        return self.opaque()

    def _title(self) -> str:
        return f"completed {self.kernel}"
