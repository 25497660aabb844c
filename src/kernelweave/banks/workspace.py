"""Memory that inner solvers use again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelweave._types import Stored


class Workspace:
    """Memory for a square block of some rows, used again by one inner solve after the other.

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

    @contextmanager
    def borrow(self) -> Iterator[Stored]:
        """Lend the memory as a flat array; another thread waits until it is free again."""
        with self._lock:
            if self._memory is None:
                self._memory = np.empty(self.n_rows**2, dtype=self.dtype)
            yield self._memory
