"""Memory that inner solvers use again."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelweave._types import Stored


class Workspace:
    """Memory for a square block of some rows, or of all, used again by inner solves in turn.

    Fresh memory costs more than the kernel values written to it.

    Parameters
    ----------
    n_rows : int
        Rows and columns of the block.
    dtype : dtype
        Of its entries.
    whole : bool
        Whether sums of kernels over all rows fit in memory, for solvers that need every entry.
    """

    def __init__(self, n_rows: int, dtype: Any, *, whole: bool = False) -> None:
        self.n_rows, self.dtype, self.whole = n_rows, dtype, whole
        self._lock = threading.Lock()
        self._memory: Stored | None = None
        self._sum: Stored | None = None
        self._owner: Callable[[], object] = lambda: None  # whose values the sum holds

    @contextmanager
    def borrow(self) -> Iterator[Stored]:
        """Lend the memory as a flat array; another thread waits until it is free again."""
        with self._lock:
            if self._memory is None:
                self._memory = np.empty(self.n_rows**2, dtype=self.dtype)
            yield self._memory

    @contextmanager
    def sum_of(
        self, owner: object, n_rows: int, compute: Callable[[Stored], None]
    ) -> Iterator[Stored]:
        """Lend the matrix of a sum of kernels over all rows, computed where the last was another's.

        Parameters
        ----------
        owner : object
            Whose matrix it is.
        n_rows : int
            Rows and columns.
        compute : callable
            Writes the matrix into an array.
        """
        with self._lock:
            if self._sum is None or len(self._sum) != n_rows:
                self._sum = np.empty((n_rows, n_rows), dtype=self.dtype)
            if self._owner() is not owner:
                self._owner = lambda: None  # until it is complete
                compute(self._sum)
                self._owner = weakref.ref(owner)
            yield self._sum
