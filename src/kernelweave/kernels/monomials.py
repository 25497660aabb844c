"""Kernels as sums of products whose factors are products or sums over single columns.

An exponential of a sum of squares is a product over columns; an inner product is a sum over them.
Explanations replace single columns of a row, and need these parts one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from kernelweave._types import Floats, Indices

from .table import is_sparse

MOST_MONOMIALS = 10_000  # summands of a product of sums that is multiplied out


@dataclass(frozen=True, eq=False)
class Atom:
    """A factor of a monomial: a product or a power of a sum over columns, or neither."""

    # {"product", "sum", "opaque"}: ``prod_l part_l``, ``(constant + sum_l part_l)^power``, or
    # anything.
    kind: Literal["product", "sum", "opaque"]
    name: str  # the kernel, for messages
    whole: Callable[[Any, Any], Floats]  # ``whole(A, B)``: its values between prepared rows
    # ``positions(X)``: the column of the table of every prepared column; of an opaque atom, the
    # columns that it looks at.
    positions: Callable[[Any], Indices]
    # ``part(A, B, columns)``: the product or sum over some prepared columns.
    part: Callable[[Any, Any, Indices], Floats] | None = None
    # constant, power: of a sum
    constant: float = 0.0
    power: int = 1
    key: Hashable = None  # equal for sums with equal parts, whose powers then add up
    path: tuple[int, ...] = ()  # where its rows are in nested tuples of prepared rows
    signed: bool = False  # whether factors may be negative
    # Whether columns of prepared rows may be replaced one by one; otherwise those of the table.
    mixable: bool = True
    # `Kernel.prepare_once`: ``prepare(X, known)`` prepares the rows of a table for ``whole``.
    prepare: Callable[[Any, dict[Hashable, Any]], Any] | None = None
    # ``walks(terms, coef, rows, starts, columns)`` returns ``walk(start, order)``: the sums over
    # terms as the columns of a start give way to those of the rows, group by group.
    walks: Callable[..., Callable[[int, Indices], Floats]] | None = None

    def moved(self, place: int) -> Atom:
        """Return this atom with its rows inside a tuple."""
        return replace(self, path=(place, *self.path))

    def rows_of(self, rows: Any) -> Any:
        """Return its rows out of nested tuples."""
        for place in self.path:
            rows = rows[place]
        return rows


@dataclass(frozen=True, eq=False)
class Monomial:
    """``scale * prod(atoms)``."""

    scale: float  # may be of any sign
    atoms: tuple[Atom, ...] = ()  # None for a constant
    # Bound on what it lacks to be exact, as a part of a kernel that is an integral.
    error: float = 0.0
    # Whether it is zero for most pairs of rows, as a very narrow Gaussian is.
    vanishes: bool = False

    def moved(self, place: int) -> Monomial:
        """Return this monomial for rows inside a tuple."""
        return replace(self, atoms=tuple(atom.moved(place) for atom in self.atoms))

    def __mul__(self, other: Monomial) -> Monomial:
        # Factors are at most one, so that errors are those of the other factor at most.
        error = abs(self.scale) * other.error + abs(other.scale) * self.error
        vanishes = self.vanishes or other.vanishes
        return Monomial(self.scale * other.scale, self.atoms + other.atoms, error, vanishes)


Monomials = tuple[Monomial, ...]


def multiply(parts: Iterable[Monomials]) -> Monomials | None:
    """Return the product of sums of monomials as a sum of monomials; None where it has too many."""
    found: Monomials = (Monomial(1.0),)
    for part in parts:
        if len(found) * len(part) > MOST_MONOMIALS:
            return None
        found = tuple(left * right for left in found for right in part)
    return found


def dense_columns(rows: Any, columns: Indices) -> Floats:
    """Return some columns of prepared rows as a dense array."""
    picked = rows[:, columns]
    return np.asarray(picked.toarray() if is_sparse(rows) else picked, dtype=np.float64)


def differences(A: Any, B: Any, columns: Indices, scales: Floats) -> list[Floats]:
    """Return ``(a_l - b_l) * scale_l`` between rows, for some columns; each is exact in 1-d."""
    a, b = dense_columns(A, columns), dense_columns(B, columns)
    found = []
    for j, scale in enumerate(scales):
        if scale != 0:
            found.append(np.subtract.outer(a[:, j], b[:, j]))
            found[-1] *= scale
    return found


def decay_part(A: Any, B: Any, columns: Indices, scales: Floats, *, squared: bool) -> Floats:
    """Return ``exp(-sum_l |scale_l (a_l - b_l)|^p)`` with p two or one."""
    total: Any = None
    with np.errstate(all="ignore"):
        for difference in differences(A, B, columns, scales):
            (np.square if squared else np.abs)(difference, out=difference)
            total = difference if total is None else np.add(total, difference, out=total)
        if total is None:
            return np.ones((A.shape[0], B.shape[0]))
        return np.asarray(np.exp(np.negative(total, out=total), out=total))
