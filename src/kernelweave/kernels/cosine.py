"""Any kernel with unit self-similarity."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .base import Columns, Kernel, Rows

_ROUNDING = 1e-10  # of squared lengths, relative to the largest
_UNDERFLOW = np.finfo(np.float64).tiny  # positive values below this have lost digits


@dataclass(frozen=True, eq=False, repr=False)
class Cosine(Kernel):
    """The cosine ``k(x, z) / sqrt(k(x, x) k(z, z))``; rows of no length are similar to nothing.

    Parameters
    ----------
    kernel : Kernel
        What to normalise.
    columns : columns, optional
        Binds the kernel to these columns.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> Cosine(Linear())([[3.0, 4.0], [0.0, 2.0]])
    array([[1. , 0.8],
           [0.8, 1. ]])
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        kernel: Any = self.kernel
        if not isinstance(kernel, Kernel):
            raise InputTypeError(f"Cosine: kernel must be a kernel, got {type(kernel).__name__}.")
        super().__post_init__()
        if self.columns is not None:
            object.__setattr__(self, "kernel", kernel.on(self.columns))
            object.__setattr__(self, "columns", None)

    def on(self, columns: Columns) -> Self:
        """Return this kernel on other columns."""
        return self._changed(kernel=self.kernel.on(columns))

    def bound(self, X: Any) -> Self:
        """Return this kernel bound to the columns it picks in ``X``."""
        return self._changed(kernel=self.kernel.bound(X))

    @property
    def view(self) -> Hashable:
        """The inner kernel's view."""
        return self.kernel.view

    def prepare(self, X: Any) -> Rows:
        """Return the inner kernel's rows."""
        return self.kernel.prepare(X)

    def block(self, A: Rows, B: Rows) -> Floats:
        """Divide the inner kernel's block by the lengths of its rows."""
        left = self._inverse_lengths(A)
        right = left if A is B else self._inverse_lengths(B)
        K = self.kernel.block(A, B) * left[:, None] * right
        if A is B:
            K[np.diag_indices_from(K)] = self.diagonal(A)
            return (K + K.T) / 2
        return K

    def diagonal(self, A: Rows) -> Floats:
        """Return ones, zeros for rows of no length."""
        return (self._squared_lengths(A) > 0).astype(np.float64)

    def _squared_lengths(self, A: Rows) -> Floats:
        diagonal = self.kernel.diagonal(A)
        if (diagonal < -_ROUNDING * np.abs(diagonal).max(initial=0.0)).any():
            raise InputError(f"{self.kernel}: k(x, x) is negative, so this is not a valid kernel.")
        if ((diagonal > 0) & (diagonal < _UNDERFLOW)).any():
            raise InputError(
                f"{self.kernel}: some values underflow; rescale the columns first, for example "
                "with scikit-learn's StandardScaler."
            )
        return np.maximum(diagonal, 0.0)

    def _inverse_lengths(self, A: Rows) -> Floats:
        lengths = np.sqrt(self._squared_lengths(A))
        return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)

    def _title(self) -> str:
        return f"cosine of {self.kernel}"
