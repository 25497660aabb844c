"""Kernels made of kernels: sums, products, multiples, groups and cosines."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError

from .base import MISSING, Kernel, Rows, finite, positive
from .monomials import Monomial, Monomials, multiply
from .table import Columns
from .wrapper import Wrapper

_ROUNDING = 1e-10  # of squared lengths, relative to the largest
_UNDERFLOW = np.finfo(np.float64).tiny  # positive values below this have lost digits


@dataclass(frozen=True, eq=False, repr=False)
class Composite(Kernel):
    """Base of `Sum` and `Product`; nested ones of the same type are flattened unless named.

    Parameters
    ----------
    missing : str, optional
        The rule for missing values of the kernels inside that have none; see `Kernel`.
    """

    rules: ClassVar[tuple[str, ...]] = MISSING  # the parts know theirs

    # At least one. Each looks at its own columns; giving ``columns`` binds all of them.
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
        if self.missing != "refuse":
            flat = [part.with_missing(self.missing) for part in flat]
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "columns", None)  # they live in the parts
        object.__setattr__(self, "missing", "refuse")

    def on(self, columns: Columns) -> Self:
        """Return this kernel with every part on other columns."""
        return self._changed(parts=tuple(part.on(columns) for part in self.parts))

    def bound(self, X: Any, sample_weight: Floats | None = None) -> Kernel:
        """Return this kernel with every part bound to ``X``."""
        return self._changed(parts=tuple(part.bound(X, sample_weight) for part in self.parts))

    def with_missing(self, rule: str) -> Self:
        """Return this kernel with a rule for the parts that have none."""
        return self._changed(missing=rule)

    @property
    def encodes_gaps(self) -> bool:
        return any(part.encodes_gaps for part in self.parts)

    @property
    def has_learned(self) -> bool:
        return all(part.has_learned for part in self.parts)

    @property
    def row_parts(self) -> tuple[Kernel, ...]:
        return self.parts

    def positions(self, X: Any) -> Indices:
        """Return the columns of all parts."""
        return np.unique(np.concatenate([part.positions(X) for part in self.parts]))

    def _moved(self) -> list[Monomials]:
        """Return the monomials of the parts, for their own rows."""
        return [
            tuple(item.moved(place) for item in part.monomials())
            for place, part in enumerate(self.parts)
        ]

    @property
    def view(self) -> Hashable:
        """The parts' views."""
        return ("parts", *(part.view for part in self.parts))

    def prepare(self, X: Any) -> Rows:
        """Return a tuple of the parts' rows; parts with one view share theirs."""
        return self._prepare(X, {})

    def _prepare(self, X: Any, known: dict[Hashable, Rows]) -> Rows:
        return tuple(part.prepare_once(X, known) for part in self.parts)

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

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> str(2 * RBF(columns="age") + Linear())
    '2 * (rbf(width=1) on age) + linear'
    """

    def monomials(self) -> Monomials:
        """Return the monomials of all parts."""
        return tuple(item for part in self._moved() for item in part)

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

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> str(Linear() * (RBF(columns="age") + Linear()))
    'linear * (rbf(width=1) on age + linear)'
    """

    @property
    def factors(self) -> tuple[Kernel, ...]:
        return self.parts

    @property
    def has_unit_diagonal(self) -> bool:
        return all(part.has_unit_diagonal for part in self.parts)

    def linear_rows(self, A: Rows) -> Floats | None:
        """Return the rows of a kernel that is switched off by gates: zero where it is off."""
        inner = [j for j, part in enumerate(self.parts) if not part.is_gate]
        if len(inner) != 1:
            return None
        rows = self.parts[inner[0]].linear_rows(A[inner[0]])
        if rows is None or len(self.parts) == 1:
            return rows
        gates = [part.diagonal(a) for part, a in zip(self.parts, A, strict=True) if part.is_gate]
        return np.asarray(rows * np.prod(gates, axis=0)[:, None])

    def monomials(self) -> Monomials:
        """Return the product, multiplied out where that has not too many summands."""
        return multiply(self._moved()) or self.opaque()

    def _into(self, K: Floats, other: Floats) -> None:
        K *= other

    def _title(self) -> str:
        return " * ".join(map(_factor, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Scaled(Wrapper):
    """A positive multiple of a kernel, with the rows and the view of that kernel.

    Parameters
    ----------
    kernel : Kernel
        A multiple of a multiple is one multiple, unless the inner one is named.
    factor : float
        Finite and positive.
    """

    factor: float

    def __post_init__(self) -> None:
        super().__post_init__()
        kernel = self.kernel
        if isinstance(kernel, Scaled) and kernel.name is None:
            object.__setattr__(self, "factor", self.factor * kernel.factor)
            positive(self, "factor", "the product of both factors is out of range")
            object.__setattr__(self, "kernel", kernel.kernel)

    def _check(self) -> None:
        positive(self, "factor", "leave a kernel out instead of giving it no weight")

    def block(self, A: Rows, B: Rows) -> Floats:
        """Return the multiple of the inner kernel's block."""
        with np.errstate(all="ignore"):
            return finite(self, self.factor * self.kernel.block(A, B))

    def diagonal(self, A: Rows) -> Floats:
        """Return the multiple of the inner kernel's diagonal."""
        with np.errstate(all="ignore"):
            return finite(self, self.factor * self.kernel.diagonal(A))

    def monomials(self) -> Monomials:
        """Return the multiple of the inner kernel's monomials."""
        factor = Monomial(self.factor)
        return tuple(factor * item for item in self.kernel.monomials())

    @property
    def constant_value(self) -> float | None:
        return self.factor if self.kernel.is_constant else None

    def _title(self) -> str:
        return f"{self.factor:g} * {_factor(self.kernel)}"


@dataclass(frozen=True, eq=False, repr=False)
class Group(Wrapper):
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
    """

    p: float | None = None

    def _check(self) -> None:
        if self.p is not None:
            positive(self, "p", "1 favours few groups, larger values keep more of them")

    @property
    def has_unit_diagonal(self) -> bool:
        return self.kernel.has_unit_diagonal

    def _title(self) -> str:
        return f"group({self.kernel})"


@dataclass(frozen=True, eq=False, repr=False)
class Cosine(Wrapper):
    """The cosine ``k(x, z) / sqrt(k(x, x) k(z, z))``; rows of no length are similar to nothing.

    Parameters
    ----------
    kernel : Kernel
        What to normalise.
    columns : columns, optional
        Binds the kernel to these columns.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> Cosine(Linear())([[3.0, 4.0], [0.0, 2.0]])
    array([[1. , 0.8],
           [0.8, 1. ]])
    """

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

    def monomials(self) -> Monomials:
        """Return those of a kernel whose diagonal is one; of others lengths mix all columns."""
        if self.unwrapped.has_unit_diagonal:
            return self.unwrapped.monomials()
        mixable = self.unwrapped.row_format in ("numbers", "values")
        return (Monomial(1.0, (self._atom("opaque", mixable=mixable, signed=True),)),)

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
    """Return a kernel's name, in parentheses where a product requires them."""
    text = str(kernel)
    if kernel.name:
        loose = " " in kernel.name
    else:
        loose = isinstance(kernel, Sum) or (kernel.columns is not None and " on " in text)
    return f"({text})" if loose else text
