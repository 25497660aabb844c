"""A dense Gram matrix with the interface of a weighted kernel sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices, Stored

_PANEL = 256  # rows of a product; fixed, so that sums do not depend on the thread count


@dataclass(frozen=True)
class _Storage:
    dtype: Any


class GramKernel:
    """A symmetric matrix that answers what a `CombinedKernel` answers.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        float64, not changed.
    """

    def __init__(self, gram: Floats) -> None:
        self.gram = gram
        self.bank = _Storage(gram.dtype)

    @property
    def blocks(self) -> list[tuple[Indices, Stored]]:
        """All rows, as (row numbers, rows)."""
        return [(np.arange(len(self.gram)), self.gram)]

    def scaled(self, factor: float) -> GramKernel:
        """Return a multiple of the kernel."""
        return self if factor == 1.0 else GramKernel(factor * self.gram)

    def dense(self) -> Floats:
        """Return the matrix; do not write to it."""
        return self.gram

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return a block of the matrix."""
        return np.asarray(self.gram[np.ix_(rows, columns)])

    def diag(self) -> Floats:
        """Return the diagonal."""
        return np.ascontiguousarray(self.gram.diagonal())

    def exact_product(self, V: Floats) -> Floats:
        """Multiply: nothing is left out."""
        return self @ V

    def __matmul__(self, V: Floats) -> Floats:
        """Multiply."""
        K = self.gram
        return np.concatenate(run_blocks(lambda rows: K[rows] @ V, len(K), _PANEL))
