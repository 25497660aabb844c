"""The kernel of a bias."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats

from .base import Kernel, Rows, read_table


@dataclass(frozen=True, eq=False, repr=False)
class Constant(Kernel):
    """One for every pair of rows: its function is a bias that the norm counts.

    Parameters
    ----------
    columns : columns, optional
        Not looked at.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> Constant()([[1.0], [5.0]])
    array([[1., 1.],
           [1., 1.]])
    """

    @property
    def view(self) -> Hashable:
        """No column."""
        return "rows"

    def prepare(self, X: Any) -> Rows:
        """Return rows without entries."""
        return np.empty((read_table(X, str(self)).body.shape[0], 0))

    def block(self, A: Rows, B: Rows) -> Floats:
        """Return ones."""
        return np.ones((len(A), len(B)))

    def diagonal(self, A: Rows) -> Floats:
        """Return ones."""
        return np.ones(len(A))
