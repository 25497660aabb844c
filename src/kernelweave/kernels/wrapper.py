"""The base of kernels that change the values of one inner kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputTypeError

from .base import MISSING, Kernel, Rows
from .monomials import Monomials
from .table import Columns


@dataclass(frozen=True, eq=False, repr=False)
class Wrapper(Kernel):
    """Base of the kernels of one inner kernel, whose columns, rows and view they have.

    Parameters
    ----------
    missing : str, optional
        The rule for missing values of the kernels inside that have none; see `Kernel`.
    """

    rules: ClassVar[tuple[str, ...]] = MISSING  # the inner kernel knows its own

    kernel: Kernel  # the inner kernel; giving ``columns`` binds it to these

    def __post_init__(self) -> None:
        who, kernel = type(self).__name__, self.kernel
        if not isinstance(kernel, Kernel):
            raise InputTypeError(f"{who}: kernel must be a kernel, got {type(kernel).__name__}.")
        self._check()
        super().__post_init__()
        if self.columns is not None:
            object.__setattr__(self, "kernel", kernel.on(self.columns))
            object.__setattr__(self, "columns", None)  # they live in the inner kernel
        if self.missing != "refuse":
            object.__setattr__(self, "kernel", self.kernel.with_missing(self.missing))
            object.__setattr__(self, "missing", "refuse")

    def _check(self) -> None:
        """Refuse parameters of the subclass."""

    def on(self, columns: Columns) -> Self:
        """Return this kernel on other columns."""
        return self._changed(kernel=self.kernel.on(columns))

    def bound(self, X: Any, sample_weight: Floats | None = None) -> Kernel:
        """Return this kernel with the inner one bound to ``X``."""
        return self._changed(kernel=self.kernel.bound(X, sample_weight))

    def with_missing(self, rule: str) -> Self:
        """Return this kernel with a rule for the inner one, unless that has one."""
        return self._changed(missing=rule) if self.unwrapped is not self else self

    @property
    def encodes_gaps(self) -> bool:
        return self.kernel.encodes_gaps

    @property
    def takes_sparse(self) -> bool:
        return self.kernel.takes_sparse

    @property
    def has_learned(self) -> bool:
        return self.kernel.has_learned

    @property
    def unwrapped(self) -> Kernel:
        return self.kernel.unwrapped

    def positions(self, X: Any) -> Indices:
        """Return the inner kernel's columns."""
        return self.kernel.positions(X)

    def monomials(self) -> Monomials:
        """Return the inner kernel's monomials."""
        return self.kernel.monomials()

    @property
    def view(self) -> Hashable:
        """The inner kernel's view."""
        return self.kernel.view

    def prepare(self, X: Any) -> Rows:
        """Return the inner kernel's rows."""
        return self.kernel.prepare(X)

    def _prepare(self, X: Any, known: dict[Hashable, Rows]) -> Rows:
        return self.kernel._prepare(X, known)

    def block(self, A: Rows, B: Rows) -> Floats:
        """Return the inner kernel's block."""
        return self.kernel.block(A, B)

    def diagonal(self, A: Rows) -> Floats:
        """Return the inner kernel's diagonal."""
        return self.kernel.diagonal(A)
