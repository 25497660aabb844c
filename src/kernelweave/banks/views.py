"""Prepared rows of a table, one copy per distinct choice of columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import HUGE, Rows, is_sparse, n_rows, take


def is_plain_gaussian(kernel: Kernel, rows: Rows) -> bool:
    """Whether the fused loops of the core serve: a Gaussian on dense rows without overflow."""
    return _has_plain_width(kernel) and _is_moderate(rows)


def gaussian_rate(kernel: Kernel) -> float:
    """Return the rate r of ``exp(-r |x - z|^2)``."""
    decay = kernel.decay
    assert decay is not None
    return decay.rate


def _has_plain_width(kernel: Kernel) -> bool:
    decay = kernel.decay
    return decay is not None and decay.distance == "squared" and decay.has_moderate_width


def _is_moderate(rows: Rows) -> bool:
    return not is_sparse(rows) and float(np.abs(rows).max(initial=0.0)) < HUGE


def ungated(kernel: Kernel, rows: Rows) -> tuple[Kernel, Rows, Floats | None]:
    """Return the kernel inside a product with gates, its rows, and which rows are not off.

    Of other kernels: the kernel itself, its rows and None.
    """
    inner = [k for k, factor in enumerate(kernel.factors) if not factor.is_gate]
    if len(inner) != 1 or len(kernel.factors) == 1:
        return kernel, rows, None
    gate = np.ones(n_rows(rows))
    for factor, own in zip(kernel.factors, rows, strict=True):
        if factor.is_gate:
            gate *= factor.diagonal(own)
    return kernel.factors[inner[0]], rows[inner[0]], gate


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
    def of(cls, kernels: Sequence[Kernel], X: Any, known: Views | None = None) -> Views:
        """Prepare the rows of ``X`` for every kernel, each view once; ``known`` ones are shared.

        Prepared rows are returned as they are.
        """
        if isinstance(X, Views):
            return X
        prepared = {} if known is None else dict(known.rows)
        rows = {kernel.view: kernel.prepare_once(X, prepared) for kernel in kernels}
        sizes = {n_rows(part) for part in rows.values()}
        if len(sizes) > 1:
            raise InputError(f"The kernels see different numbers of rows in X: {sorted(sizes)}.")
        return cls([kernel.view for kernel in kernels], rows)

    def __getitem__(self, kernel: int) -> Rows:
        return self.rows[self.keys[kernel]]

    def __getstate__(self) -> dict[str, Any]:
        # Lists, because skops stores mappings as JSON, whose keys cannot be tuples.
        return {
            "keys": list(self.keys),
            "views": list(self.rows),
            "rows": list(self.rows.values()),
            "n_samples": self.n_samples,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.keys = tuple(state["keys"])
        self.rows = dict(zip(state["views"], state["rows"], strict=True))
        self.n_samples = state["n_samples"]

    def is_plain_gaussian(self, kernel: Kernel, j: int) -> bool:
        """Whether the fused loops serve the j-th kernel; each view is scanned once."""
        return _has_plain_width(kernel) and self.is_moderate(j)

    def is_moderate(self, j: int) -> bool:
        """Whether the rows of the j-th kernel are dense and far from overflow."""
        known = self.__dict__.setdefault("_moderate", {})
        key = self.keys[j]
        if key not in known:
            known[key] = _is_moderate(self.rows[key])
        return bool(known[key])

    def take(self, index: Any) -> Views:
        """Return some of the rows."""
        return Views(self.keys, {key: take(rows, index) for key, rows in self.rows.items()})

    def subset(self, which: Sequence[int]) -> Views:
        """Return some of the kernels, and only the views they need."""
        keys = [self.keys[j] for j in which]
        return Views(keys, {key: self.rows[key] for key in keys})
