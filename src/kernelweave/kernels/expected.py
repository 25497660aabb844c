"""Kernels whose missing coordinates are draws from the training distribution of their column.

A kernel that is a product over columns, ``k(x, z) = prod_l k_l(x_l, z_l)``, is the inner product of
tensor products of features of single columns. A missing coordinate has the mean of the features of
its column's training values in their place (its mean embedding): ``k_l(?, z) = E k_l(u, z)`` and
``k_l(?, ?) = E k_l(u, v)`` with independent draws u and v. These are inner products too, so the
kernel stays positive semi-definite; the same holds for sums over columns. A row is compared with
itself by the same rule, so that ``k(x, x)`` falls with each gap: equal rows stay equal, and no
value depends on which of two rows is which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError

from .base import Kernel, Rows
from .gaps import Known, known_cells
from .monomials import Atom, Monomial, Monomials
from .table import read_table
from .wrapper import Wrapper

_MOST_VALUES = 256  # values by which a column's distribution is represented

Distribution = tuple[tuple[Any, ...], tuple[float, ...]]
"""Values and their probabilities."""


@dataclass(frozen=True, eq=False, repr=False)
class Expected(Wrapper):
    """The expectation of a kernel over missing coordinates; ``missing="expected"`` makes one.

    Parameters
    ----------
    kernel : Kernel
        A product or a sum over columns: `RBF`, `ARD`, `Laplacian`, `Additive`, `Overlap`, `Linear`.
    distributions : tuple
        Values and probabilities of each column. `learn` takes the training values, or where there
        are more than 256 different ones, as many quantiles.
    columns : None
        The inner kernel has the columns.
    missing : {"refuse"}
        Gaps are taken by the rule above.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> nan = float("nan")
    >>> RBF(1.0, missing="expected")([[0.0], [2.0], [nan]]).round(3)
    array([[1.   , 0.135, 0.568],
           [0.135, 1.   , 0.568],
           [0.568, 0.568, 0.568]])
    """

    distributions: tuple[Distribution, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._atom_inside()  # refuses other kernels
        for values, shares in self.distributions:
            if not len(values) == len(shares) > 0 or not np.isfinite(shares).all():
                raise InputError(f"{self}: each column needs values with their probabilities.")

    @classmethod
    def learn(cls, kernel: Kernel, X: Any, weight: Floats | None) -> Self:
        """Take the distributions of training rows."""
        who = str(kernel)
        known = known_cells(X, kernel.columns, who, weight)
        share = np.ones(len(known)) if weight is None else weight
        rows = _read(kernel, X)
        numeric = kernel.row_format == "numbers"
        found = [
            _distribution(rows[there & (share > 0), j], share[there & (share > 0)], numeric)
            for j, there in enumerate(known.T)
        ]
        return cls(kernel, tuple(found))

    @property
    def unwrapped(self) -> Kernel:
        return self

    @property
    def encodes_gaps(self) -> bool:
        return True

    @property
    def row_parts(self) -> tuple[Kernel, ...]:
        known = Known(columns=self.kernel.columns)
        return (self.kernel, known, known)

    @property
    def view(self) -> Hashable:
        """The inner kernel and the distributions: expectations depend on both."""
        return ("expected", type(self.kernel).__name__, self._digest)

    @cached_property
    def _digest(self) -> str:
        parts = (self.kernel.renamed(None), self.distributions)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _key(self) -> tuple[Hashable, ...]:
        return (self._digest, self.name)

    def prepare(self, X: Any) -> Rows:
        """Return the columns with something in place of gaps, what is known, and expectations."""
        who = str(self)
        known = read_table(X, who).known(self.kernel.columns, who)
        rows = _read(self.kernel, X)
        if rows.shape[1] != len(self.distributions):
            raise InputError(
                f"{who}: there are distributions of {len(self.distributions)} columns for "
                f"{rows.shape[1]} columns."
            )
        fills = [values[0] for values, _ in self.distributions]
        for j, fill in enumerate(fills):
            rows[~known[:, j], j] = fill
        part = self._part_inside()
        means = np.empty(rows.shape)
        for j in range(rows.shape[1]):
            values, shares = self._sample(j, rows)
            means[:, j] = part(rows, values, np.array([j])) @ shares
        return rows, known.astype(np.float64), means

    def _prepare(self, X: Any, known: dict[Hashable, Rows]) -> Rows:
        return self.prepare(X)

    def _sample(self, column: int, like: Any) -> tuple[Any, Floats]:
        """Return rows that have the values of one column, and the values' probabilities."""
        values, shares = self.distributions[column]
        rows = np.repeat(like[:1], len(values), axis=0)
        rows[:, column] = values
        return rows, np.array(shares)

    @cached_property
    def _squares(self) -> Floats:
        """``E k_l(u, v)`` of every column."""
        numeric = self.kernel.row_format == "numbers"
        like = np.zeros((1, len(self.distributions)), dtype=np.float64 if numeric else object)
        part, out = self._part_inside(), np.empty(len(self.distributions))
        for j in range(len(out)):
            rows, shares = self._sample(j, like)
            out[j] = shares @ part(rows, rows, np.array([j])) @ shares
        return out

    def block(self, A: Rows, B: Rows) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        return self._part(A, B, np.arange(A[0].shape[1]))

    def _part(self, A: Rows, B: Rows, columns: Indices) -> Floats:
        part, product = self._part_inside(), self._is_product
        holes = (A[1] == 0).any(axis=0) | (B[1] == 0).any(axis=0)
        full = columns[~holes[columns]]
        K = (np.ones if product else np.zeros)((len(A[0]), len(B[0])))
        if len(full):
            K = np.array(part(A[0], B[0], full))
        for j in columns[holes[columns]].tolist():
            one = self._column(A, B, j)
            K = K * one if product else K + one
        if A is B:
            K = (K + K.T) / 2  # products of parts are symmetric to rounding only
        return K

    def _column(self, A: Rows, B: Rows, column: int) -> Floats:
        a, b = (side[1][:, column] > 0 for side in (A, B))
        K = np.array(self._part_inside()(A[0], B[0], np.array([column])))
        K[~a] = B[2][:, column]
        K[:, ~b] = A[2][:, column][:, None]
        K[np.ix_(~a, ~b)] = self._squares[column]
        return K

    def diagonal(self, A: Rows) -> Floats:
        """Compare every prepared row with itself."""
        known = A[1] > 0
        if known.all():
            return self.kernel.diagonal(A[0])
        if self._is_product:  # of kernels that are one on the diagonal
            return np.asarray(np.where(known, 1.0, self._squares).prod(axis=1))
        out = np.zeros(len(known))
        for j, there in enumerate(known.T):
            part, column = self._part_inside(), np.array([j])
            own = [part(row, row, column)[0, 0] for row in A[0][:, None]]
            out += np.where(there, own, self._squares[j])
        return out

    @property
    def _is_product(self) -> bool:
        return self._atom_inside().kind == "product"

    def _part_inside(self) -> Any:
        return self._atom_inside().part

    def _atom_inside(self) -> Atom:
        """Return the product or sum over columns that the inner kernel is."""
        monomials = self.kernel.monomials()
        atoms = monomials[0].atoms if len(monomials) == 1 and monomials[0].scale == 1.0 else ()
        if len(atoms) == 1 and atoms[0].part and atoms[0].power == 1 and not atoms[0].constant:
            return atoms[0]
        raise InputError(
            f"{self.kernel}: missing='expected' needs a kernel that is a product or a sum over "
            "columns, such as RBF, Laplacian, Overlap or Linear; use 'off' or 'fill'."
        )

    def monomials(self) -> Monomials:
        """Return the product or sum over columns, which gaps leave it."""
        kind = "product" if self._is_product else "sum"
        key = ("expected", self._digest)
        options: dict[str, Any] = {"part": self._part, "signed": True, "mixable": False}
        return (Monomial(1.0, (self._atom(kind, **options, key=key),)),)

    def _title(self) -> str:
        return f"expected {self.kernel}"


def _read(kernel: Kernel, X: Any) -> Any:
    """Return a copy of the kernel's columns in which gaps are allowed."""
    table = read_table(X, str(kernel))
    if table.is_sparse:
        raise InputError(
            f"{kernel}: missing='expected' needs dense rows; pass X.toarray() or use 'off'."
        )
    if kernel.row_format == "numbers":
        return np.array(table.numbers(kernel.columns, str(kernel), gaps=True))
    return table.values(kernel.columns, str(kernel), gaps=True)


def _distribution(values: Any, weight: Floats, numeric: bool) -> Distribution:
    if not numeric:
        total: dict[Any, float] = {}
        for value, share in zip(values.tolist(), weight.tolist(), strict=True):
            total[value] = total.get(value, 0.0) + share
        whole = sum(total.values())
        return tuple(total), tuple(share / whole for share in total.values())
    found, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=weight) / weight.sum()
    if len(found) > _MOST_VALUES:
        # Quantiles at the middles of equal shares.
        at = (np.arange(_MOST_VALUES) + 0.5) / _MOST_VALUES
        found = found[np.minimum(np.searchsorted(np.cumsum(mass), at), len(found) - 1)]
        mass = np.full(_MOST_VALUES, 1.0 / _MOST_VALUES)
    return tuple(found.tolist()), tuple(mass.tolist())
