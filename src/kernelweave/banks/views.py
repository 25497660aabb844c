"""Prepared rows of a table, one copy per distinct choice of columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kernelweave.errors import InputError
from kernelweave.kernels import RBF, Kernel
from kernelweave.kernels.base import Rows, is_sparse, n_rows, take


def is_plain_gaussian(kernel: Kernel, *rows: Rows) -> bool:
    """Tell whether the fused loops serve: a Gaussian on dense rows without overflow."""
    return (
        isinstance(kernel, RBF)
        and 1e-100 < kernel.width < 1e100
        and not any(is_sparse(part) for part in rows)
        and all(float(np.abs(part).max(initial=0.0)) < 1e100 for part in rows)
    )


class Views:
    """The rows that each kernel of a list looks at.

    Parameters
    ----------
    keys : sequence of hashable
        The view of each kernel.
    rows : dict
        Prepared rows by view.
    """

    def __init__(self, keys: Sequence[Hashable], rows: dict[Hashable, Rows]) -> None:
        self.keys = tuple(keys)
        self.rows = rows
        self.n_samples = n_rows(next(iter(rows.values())))

    @classmethod
    def of(cls, kernels: Sequence[Kernel], X: Any) -> Views:
        """Prepare the rows of ``X`` for every kernel."""
        keys = [kernel.view for kernel in kernels]
        rows: dict[Hashable, Rows] = {}
        for key, kernel in zip(keys, kernels, strict=True):
            if key not in rows:
                rows[key] = kernel.prepare(X)
        sizes = {n_rows(part) for part in rows.values()}
        if len(sizes) > 1:
            raise InputError(f"The kernels see different numbers of rows in X: {sorted(sizes)}.")
        return cls(keys, rows)

    def __getitem__(self, kernel: int) -> Rows:
        return self.rows[self.keys[kernel]]

    def take(self, index: Any) -> Views:
        """Keep some rows."""
        return Views(self.keys, {key: take(rows, index) for key, rows in self.rows.items()})

    def subset(self, which: Sequence[int]) -> Views:
        """Keep some kernels, and only the views they need."""
        keys = [self.keys[j] for j in which]
        return Views(keys, {key: self.rows[key] for key in keys})
