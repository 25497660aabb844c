"""Rules for missing values: kernels that are switched off, and columns that are filled.

A rule is learned once from the training rows, by `Kernel.bound`, and becomes an ordinary kernel:
a product with the kernel `Known`, a kernel on `FilledColumns`, or an `Expected` kernel. All of them
are positive semi-definite functions of two rows, so that banks, solvers, certificates and model
files need to know nothing of gaps.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelweave._types import Bools, Floats, Indices
from kernelweave.errors import InputError

from .base import Kernel, RowFormat, Rows
from .column_encoding import Key, weighted_median
from .expression import Product
from .monomials import Atom, Monomial, Monomials
from .spread import column_deviations
from .table import Encoding, columns_key, read_table


@dataclass(frozen=True, eq=False, repr=False)
class Known(Kernel):
    """One where both rows have a value in its columns, zero elsewhere.

    A product with it is switched off where values are missing; by itself it is an intercept of
    the rows that have them, by which absence may matter.

    Parameters
    ----------
    every : bool
        Whether a row needs a value in every column, or in any of them.
    row_numbers : bool
        Whether the column holds row numbers of a `Precomputed` matrix, so that -1 is no value.
    missing : {"refuse"}
        Missing values are what it looks for.

    Examples
    --------
    >>> Known()([[1.0], [float("nan")]])
    array([[1., 0.],
           [0., 0.]])
    """

    row_format: ClassVar[RowFormat] = "numbers"
    is_gate: ClassVar[bool] = True

    every: bool = True
    row_numbers: bool = False

    @property
    def encodes_gaps(self) -> bool:
        return True

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns."""
        return ("known", columns_key(self.columns), self.row_numbers)

    def prepare(self, X: Any) -> Floats:
        """Return one for every cell with a value, and zero for the others."""
        table = read_table(X, str(self))
        known = table.known(self.columns, str(self))
        if self.row_numbers:
            known = known & ~(table.numbers(self.columns, str(self), gaps=True) < 0)
        return known.astype(np.float64)

    def block(self, A: Rows, B: Rows) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        return np.multiply.outer(self.diagonal(A), self.diagonal(B))

    def diagonal(self, A: Rows) -> Floats:
        """Return which rows have what is needed."""
        return np.asarray(A.min(axis=1) if self.every else A.max(axis=1), dtype=np.float64)

    def linear_rows(self, A: Rows) -> Floats:
        """Return the diagonal as one column."""
        return self.diagonal(A)[:, None]

    def monomials(self) -> Monomials:
        """Return the product over columns, of "any" the one of ``1 - prod_l (1 - a_l)``."""
        if self.every:
            return (Monomial(1.0, (self._product(True, True, gaps=False),)),)
        left, right = self._product(True, False, gaps=True), self._product(False, True, gaps=True)
        both = self._product(True, True, gaps=True)
        return (
            Monomial(1.0),
            Monomial(-1.0, (left,)),
            Monomial(-1.0, (right,)),
            Monomial(1.0, (both,)),
        )

    def _product(self, of_left: bool, of_right: bool, *, gaps: bool) -> Atom:
        def part(A: Rows, B: Rows, columns: Indices) -> Floats:
            a, b = (np.abs(side[:, columns] - gaps).prod(axis=1) for side in (A, B))
            a, b = (a if of_left else np.ones_like(a)), (b if of_right else np.ones_like(b))
            return np.asarray(np.multiply.outer(a, b))

        def whole(A: Rows, B: Rows) -> Floats:
            return part(A, B, np.arange(A.shape[1]))

        return Atom("product", str(self), whole, self.positions, part, prepare=self.prepare_once)


@dataclass(frozen=True, eq=False)
class FilledColumns(Encoding):
    """Columns whose gaps are filled, perhaps with an indicator of the gaps of each."""

    keys: tuple[Key, ...]  # names of the columns, positions where the table has none
    fills: tuple[Any, ...]  # what takes the place of gaps, one per column
    # The value of a column's indicator where there is a gap; None: it has no indicator.
    heights: tuple[float | None, ...]
    numeric: bool = True  # whether all columns are numbers

    def __post_init__(self) -> None:
        whole = all(isinstance(part, tuple) for part in (self.keys, self.fills, self.heights))
        if not whole or not len(self.keys) == len(self.fills) == len(self.heights) > 0:
            raise ValueError("filled columns need a value for each column")
        keys = all(isinstance(key, str | int) for key in self.keys)
        numbers = [*(self.fills if self.numeric else ()), *(h for h in self.heights if h)]
        if not keys or not all(isinstance(x, float) and np.isfinite(x) for x in numbers):
            raise ValueError("filled columns need finite numbers")

    @classmethod
    def zeros(cls, keys: tuple[Key, ...]) -> FilledColumns:
        """Return columns whose gaps are zero, for kernels that are switched off there."""
        return cls(keys, (0.0,) * len(keys), (None,) * len(keys))

    @classmethod
    def learn(
        cls, X: Any, keys: tuple[Key, ...], who: str, weight: Floats | None, *, numeric: bool
    ) -> FilledColumns:
        """Fill with medians (numbers) or modes of the training rows, and mark columns with gaps."""
        table = read_table(X, who)
        if table.is_sparse:
            raise InputError(f"{who}: sparse X cannot be filled; use missing='off'.")
        known = known_cells(X, keys, who, weight)
        share = np.ones(len(known)) if weight is None else weight
        read = table.numbers if numeric else table.values
        rows = read(keys, who, gaps=True)
        fills, heights = [], []
        for j, there in enumerate(known.T):
            there = there & (share > 0)
            values = rows[there, j]
            fills.append(
                weighted_median(values, share[there]) if numeric else _mode(values, share[there])
            )
            gaps = bool((~known[:, j] & (share > 0)).any())
            deviation = 1.0
            if numeric:
                spread = float(column_deviations(values[:, None], share[there])[0])
                deviation = spread if np.isfinite(spread) else 1.0
            heights.append(deviation if gaps else None)
        return cls(keys, tuple(fills), tuple(heights), numeric)

    @property
    def key(self) -> str:
        """A digest that equal choices share."""
        parts = (self.keys, self.fills, self.heights, self.numeric)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FilledColumns) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def indicators(self) -> list[int]:
        """The places in `keys` of columns with an indicator."""
        return [j for j, height in enumerate(self.heights) if height is not None]

    @property
    def n_encoded(self) -> int:
        """Number of columns with indicators."""
        return len(self.keys) + len(self.indicators)

    @property
    def owners(self) -> list[int]:
        """The place in `keys` of the column that each encoded column comes from."""
        return [*range(len(self.keys)), *self.indicators]

    def encode(self, X: Any) -> Any:
        """Return the filled columns, then the indicators."""
        table = read_table(X, "X")
        if table.is_sparse:
            rows = table.numbers(self.keys, "X", gaps=True)
            return _sparse_zeros(rows) if np.isnan(rows.data).any() else rows
        known = table.known(self.keys, "X")
        if self.numeric:
            rows = table.numbers(self.keys, "X", gaps=True)
            filled = np.where(known, rows, np.array(self.fills))
        else:
            filled = table.values(self.keys, "X", gaps=True)
            for j, fill in enumerate(self.fills):
                filled[~known[:, j], j] = fill
        gaps = [np.where(known[:, j], 0.0, self.heights[j] or 0.0) for j in self.indicators]
        return np.ascontiguousarray(np.column_stack([filled, *gaps]))


def _sparse_zeros(rows: Any) -> Any:
    rows = rows.copy()
    rows.data[np.isnan(rows.data)] = 0.0
    rows.eliminate_zeros()
    return rows


def _mode(values: Any, weight: Floats) -> Any:
    """Return the most frequent value, the first of several."""
    total: dict[Any, float] = {}
    for value, share in zip(values.tolist(), weight.tolist(), strict=True):
        total[value] = total.get(value, 0.0) + share
    return max(total, key=lambda value: total[value])


def known_cells(X: Any, columns: Any, who: str, weight: Floats | None) -> Bools:
    """Return which cells of training rows have a value; refuse columns that have none."""
    table = read_table(X, who)
    known = table.known(columns, who)
    used = known if weight is None else known[weight > 0]
    empty = np.flatnonzero(~used.any(axis=0))
    if len(empty):
        label = table.label(table.positions(columns, who)[int(empty[0])])
        raise InputError(f"{who}: {label} has no value in any training row; leave it out.")
    return known


def learn_rule(kernel: Kernel, X: Any, weight: Floats | None) -> Kernel:
    """Return the kernel that follows the rule of another, learned from training rows.

    The kernel has a rule that its `prepare` does not follow; ``weight`` is how often each row
    counts.
    """
    who, rule = str(kernel), kernel.missing
    plain = kernel._changed(missing="refuse")
    encoding = kernel.columns if isinstance(kernel.columns, Encoding) else None
    if encoding is not None and (rule != "off" or isinstance(encoding, FilledColumns)):
        return plain  # an encoding has a rule of its own
    table = read_table(X, who)
    positions = table.positions(kernel.columns, who)
    keys = table.keys(positions)
    if rule == "off":
        return _switched_off(plain, X, keys, weight)
    if rule == "fill":
        numeric = kernel.row_format == "numbers"
        filled = FilledColumns.learn(X, keys, who, weight, numeric=numeric)
        heights = [float(filled.heights[j] or 1.0) for j in filled.indicators]
        return plain.with_columns_added(filled.indicators, heights).on(filled).renamed(who)
    from .expected import Expected

    return Expected.learn(plain.on(keys), X, weight).renamed(who)


def _switched_off(plain: Kernel, X: Any, keys: tuple[Key, ...], weight: Floats | None) -> Kernel:
    who, encoded = str(plain), isinstance(plain.columns, Encoding)
    gate = Known(every=not encoded, columns=keys, name="known")
    there = gate.diagonal(gate.prepare(X))
    if not (there if weight is None else there[weight > 0]).any():
        raise InputError(
            f"{who}: no training row has its source; leave it out, or use missing='fill' where "
            "rows have some of its columns."
        )
    inner = plain if encoded else plain.on(FilledColumns.zeros(keys))
    return Product((inner, gate), name=who)
