"""Sums, products and multiples of kernels, as ``+`` and ``*`` build them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError

from .base import Columns, Kernel, Rows, finite, positive


@dataclass(frozen=True, eq=False, repr=False)
class Composite(Kernel):
    """Base of `Sum` and `Product`; nested ones of the same type are flattened unless named.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one. Each looks at its own columns; giving ``columns`` binds all of them.
    """

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        who = type(self).__name__
        parts: Any = self.parts
        if not isinstance(parts, list | tuple):
            raise InputTypeError(
                f"{who}: parts must be a list of kernels, got {type(parts).__name__}."
            )
        flat: list[Kernel] = []
        for i, part in enumerate(parts):
            if not isinstance(part, Kernel):
                raise InputTypeError(
                    f"{who}: parts[{i}] must be a kernel, got {type(part).__name__}."
                )
            if isinstance(part, type(self)) and part.name is None:
                flat += part.parts
            else:
                flat.append(part)
        if not flat:
            raise InputError(f"{who}: parts must not be empty.")
        super().__post_init__()
        if self.columns is not None:
            flat = [part.on(self.columns) for part in flat]
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "columns", None)  # they live in the parts

    def on(self, columns: Columns) -> Self:
        """Return this kernel with every part on other columns."""
        return self._changed(parts=tuple(part.on(columns) for part in self.parts))

    def bound(self, X: Any) -> Self:
        """Return this kernel with every part bound to what it picks in ``X``."""
        return self._changed(parts=tuple(part.bound(X) for part in self.parts))

    @property
    def view(self) -> Hashable:
        """The parts' views."""
        return ("parts", *(part.view for part in self.parts))

    def prepare(self, X: Any) -> Rows:
        """Return a tuple of the parts' rows; parts with one view share theirs."""
        rows: dict[Hashable, Rows] = {}
        for part in self.parts:
            if part.view not in rows:
                rows[part.view] = part.prepare(X)
        return tuple(rows[part.view] for part in self.parts)

    def block(self, A: Rows, B: Rows) -> Floats:
        """Combine the parts' blocks."""
        return self._fold(p.block(a, b) for p, a, b in zip(self.parts, A, B, strict=True))

    def diagonal(self, A: Rows) -> Floats:
        """Combine the parts' diagonals."""
        return self._fold(p.diagonal(a) for p, a in zip(self.parts, A, strict=True))

    def _fold(self, blocks: Iterator[Floats]) -> Floats:
        K = next(blocks).copy()
        with np.errstate(all="ignore"):
            for other in blocks:
                self._into(K, other)
        return finite(self, K)

    @abstractmethod
    def _into(self, K: Floats, other: Floats) -> None: ...


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Composite):
    """Sum of kernels.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> str(2 * RBF(columns="age") + Linear())
    '2 * (rbf(width=1) on age) + linear'
    """

    def _into(self, K: Floats, other: Floats) -> None:
        K += other

    def _title(self) -> str:
        return " + ".join(map(str, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Product(Composite):
    """Product of kernels, entry by entry.

    Parameters
    ----------
    parts : sequence of Kernel
        At least one.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> str(Linear() * (RBF(columns="age") + Linear()))
    'linear * (rbf(width=1) on age + linear)'
    """

    def _into(self, K: Floats, other: Floats) -> None:
        K *= other

    def _title(self) -> str:
        return " * ".join(map(_factor, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Kernel):
    """A positive multiple of a kernel, with the rows and the view of that kernel.

    Parameters
    ----------
    kernel : Kernel
        A multiple of a multiple is one multiple, unless the inner one is named.
    factor : float
        Finite and positive.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.
    """

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        kernel: Any = self.kernel
        if not isinstance(kernel, Kernel):
            raise InputTypeError(f"Scaled: kernel must be a kernel, got {type(kernel).__name__}.")
        positive(self, "factor", "leave a kernel out instead of giving it no weight")
        super().__post_init__()
        if self.columns is not None:
            kernel = kernel.on(self.columns)
            object.__setattr__(self, "columns", None)
        if isinstance(kernel, Scaled) and kernel.name is None:
            object.__setattr__(self, "factor", self.factor * kernel.factor)
            positive(self, "factor", "the product of both factors is out of range")
            kernel = kernel.kernel
        object.__setattr__(self, "kernel", kernel)

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
        """Return the multiple of the inner kernel's block."""
        with np.errstate(all="ignore"):
            return finite(self, self.factor * self.kernel.block(A, B))

    def diagonal(self, A: Rows) -> Floats:
        """Return the multiple of the inner kernel's diagonal."""
        with np.errstate(all="ignore"):
            return finite(self, self.factor * self.kernel.diagonal(A))

    def _title(self) -> str:
        return f"{self.factor:g} * {_factor(self.kernel)}"


@dataclass(frozen=True, eq=False, repr=False)
class Group(Kernel):
    """A kernel that has a weight of its own where structures are learned; see `group`.

    Equal groups (same content, name and exponent) of one structure are one node and share their
    weight.

    Parameters
    ----------
    kernel : Kernel
        What is inside; evaluates like it.
    p : float, optional
        Exponent of the group's weight; None leaves it to the estimator.
    columns : columns, optional
        Binds the kernel to these columns.
    name : str, optional
        Shown in place of the description.
    """

    kernel: Kernel
    p: float | None = None

    def __post_init__(self) -> None:
        kernel: Any = self.kernel
        if not isinstance(kernel, Kernel):
            raise InputTypeError(f"Group: kernel must be a kernel, got {type(kernel).__name__}.")
        if self.p is not None:
            positive(self, "p", "1 favours few groups, larger values keep more of them")
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
        """Return the inner kernel's block."""
        return self.kernel.block(A, B)

    def diagonal(self, A: Rows) -> Floats:
        """Return the inner kernel's diagonal."""
        return self.kernel.diagonal(A)

    def _title(self) -> str:
        return f"group({self.kernel})"


def group(*kernels: Kernel, name: str | None = None, p: float | None = None) -> Group:
    """Give a sum of kernels a weight of its own in a structure.

    ``+`` flattens sums, so that ``a + (b + c)`` has three summands; in ``a + group(b + c)`` the
    second of two summands is a sum.

    Parameters
    ----------
    *kernels : Kernel
        Added up.
    name : str, optional
        Shown in place of the description, and key of a `p` by node.
    p : float, optional
        Exponent of the weight; None leaves it to the estimator.

    Returns
    -------
    kernel : Group
        Evaluates like the sum.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> str(group(RBF(), Linear()) + Linear())
    'group(rbf(width=1) + linear) + linear'
    """
    if not kernels:
        raise InputError("group: at least one kernel is needed, as in group(a + b).")
    return Group(kernels[0] if len(kernels) == 1 else Sum(kernels), p, name=name)


def _factor(kernel: Kernel) -> str:
    """Return a kernel's name with parentheses where it would fall apart in a product."""
    text = str(kernel)
    if kernel.name:
        loose = " " in kernel.name
    else:
        loose = isinstance(kernel, Sum) or (kernel.columns is not None and " on " in text)
    return f"({text})" if loose else text
