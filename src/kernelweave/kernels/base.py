"""What a kernel is: an immutable value that compares rows of a table."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from narwhals.selectors import Selector

from kernelweave._docstrings import inherit_parameters
from kernelweave._linalg import all_finite
from kernelweave._types import Floats, Indices, Stored
from kernelweave.errors import InputError, InputTypeError

from .monomials import Atom, Monomial, Monomials
from .table import (
    Columns,
    Encoding,
    Table,
    columns_key,
    describe_columns,
    normal_columns,
    read_table,
)
from .table import is_sparse as is_sparse

Rows: TypeAlias = Any
"""Prepared rows: an array, a CSR array, or a tuple of these (one per part of a composite)."""

RowFormat = Literal["numbers", "values", "words", "other"]

MISSING = ("refuse", "off", "fill", "expected", "category")
"""The rules for missing values that ``missing=`` names; each kernel knows some of them."""

HUGE = 1e100  # entries and widths below which squared distances neither overflow nor vanish
_COMMON = ("columns", "name", "missing")  # fields of all kernels
_PAIRS = 64  # pairs compared together, by one small block


def n_rows(rows: Rows) -> int:
    """Count prepared rows.

    Parameters
    ----------
    rows : prepared rows
        What `Kernel.prepare` returned.
    """
    return n_rows(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0])


def take(rows: Rows, index: Any) -> Rows:
    """Pick some prepared rows.

    Parameters
    ----------
    rows : prepared rows
        What `Kernel.prepare` returned.
    index : positions, mask or slice
        Which to keep.
    """
    if not isinstance(rows, tuple):
        return rows[index]
    # Parts with the same view share their rows; keep it so.
    taken = {id(part): part for part in rows}
    taken = {key: take(part, index) for key, part in taken.items()}
    return tuple(taken[id(part)] for part in rows)


@dataclass(frozen=True)
class Decay:
    """The shape of a kernel ``exp(-rate * distance)``: one matrix of distances for all widths."""

    # {"squared", "absolute"}: ``|x - z|^2`` or ``|x - z|_1``.
    distance: Literal["squared", "absolute"]
    width: float  # width of the kernel

    @property
    def rate(self) -> float:
        """The rate of decay."""
        return 0.5 / self.width**2 if self.distance == "squared" else 1.0 / self.width

    @property
    def has_moderate_width(self) -> bool:
        """Whether the rate neither overflows nor vanishes."""
        return 1.0 / HUGE < self.width < HUGE


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(ABC):
    """A similarity between rows that is a valid inner product; an immutable value.

    A subclass is a frozen dataclass (``eq=False, repr=False`` keeps the comparison and the short
    repr of this class) and writes `view`, `prepare`, `block` and `diagonal`.

    Parameters
    ----------
    columns : name, position, list of either, slice, boolean mask, callable or narwhals selector
        The columns of ``X`` this kernel looks at; None means all of them. A slice of names
        includes both ends; a callable is given ``X`` and returns names, positions or a mask.
    name : str, optional
        Shown in place of the description.
    missing : {"refuse", "off", "fill", "expected", "category"}
        The rule for missing values, learned by `bound`. Each kernel knows some of these.
    """

    columns: Columns = field(default=None, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    missing: str = field(default="refuse", kw_only=True)

    __array_ufunc__: ClassVar[None] = None  # so that np.float64(2) * kernel reaches __rmul__

    # What storage and checks rely on; subclasses override what is true of them.
    is_precomputed: ClassVar[bool] = False  # a ready matrix on a column of row numbers
    is_constant: ClassVar[bool] = False  # one everywhere
    may_be_indefinite: ClassVar[bool] = False  # its values are the caller's
    row_format: ClassVar[RowFormat] = "other"  # of prepared rows
    reads_sparse: ClassVar[bool] = True  # rows of a sparse matrix
    is_gate: ClassVar[bool] = False  # one or zero, one where both rows are known
    rules: ClassVar[tuple[str, ...]] = ("refuse",)  # for missing values
    own_rules: ClassVar[tuple[str, ...]] = ("refuse",)  # those that `prepare` follows

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherit_parameters(cls)  # columns, name and missing are documented once

    def __post_init__(self) -> None:
        _set(self, columns=normal_columns(self.columns, type(self).__name__))
        if self.name is not None and (not isinstance(self.name, str) or not self.name):
            raise InputTypeError(
                f"{type(self).__name__}: name must be a non-empty string or None, "
                f"got {self.name!r}."
            )
        if self.missing not in self.rules:
            allowed = " or ".join(map(repr, self.rules))
            raise (InputError if self.missing in MISSING else InputTypeError)(
                f"{type(self).__name__}: missing must be {allowed}, got {self.missing!r}."
            )

    @property
    def encodes_gaps(self) -> bool:
        """Whether missing values in its columns are taken."""
        return self.missing != "refuse" or isinstance(self.columns, Encoding)

    @property
    def takes_sparse(self) -> bool:
        """Whether ``X`` may be a sparse matrix."""
        encoded = self.missing not in ("refuse", "off") or isinstance(self.columns, Encoding)
        return self.reads_sparse and not encoded

    @property
    def has_learned(self) -> bool:
        """Whether nothing of the rule for missing values is left for `bound` to learn."""
        return self.missing in self.own_rules

    @property
    def decay(self) -> Decay | None:
        """The distance and width of Gaussian and Laplacian kernels, None for others."""
        return None

    @property
    def constant_value(self) -> float | None:
        """The value of a multiple of the constant kernel, None for others."""
        return None

    @property
    def factors(self) -> tuple[Kernel, ...]:
        """The factors of a product; any other kernel is its only factor."""
        return (self,)

    @property
    def row_parts(self) -> tuple[Kernel, ...]:
        """The kernels of the items of prepared rows where these are tuples, else none."""
        return ()

    @property
    def unwrapped(self) -> Kernel:
        """The kernel inside multiples, groups and cosines, which has the same rows."""
        return self

    @property
    def has_unit_diagonal(self) -> bool:
        """Whether ``k(x, x) = 1`` for all rows."""
        return False

    def positions(self, X: Any) -> Indices:
        """Return the column of ``X`` of every column of prepared rows, where these have columns.

        Otherwise the columns that the kernel looks at.
        """
        return np.array(read_table(X, str(self)).positions(self.columns, str(self)))

    def source_positions(self, X: Any) -> Indices:
        """Return the columns of the source that the kernel belongs to; all that it looks at."""
        return self.positions(X)

    def n_prepared(self, table: Table) -> int:
        """Return the number of columns of prepared rows, where these have columns."""
        return table.n_prepared(self.columns, str(self))

    def monomials(self) -> Monomials:
        """Return this kernel as a sum of products of parts over single columns.

        A kernel that does not know its parts is opaque.
        """
        return self.opaque()

    def opaque(self) -> Monomials:
        """Return this kernel as one part without parts: its columns are replaced in the table."""
        return (Monomial(1.0, (self._atom("opaque", mixable=False),)),)

    def _atom(self, kind: Any, **options: Any) -> Atom:
        prepare = self.prepare_once
        return Atom(kind, str(self), self.block, self.positions, prepare=prepare, **options)

    def linear_rows(self, A: Rows) -> Floats | None:
        """Return dense rows whose inner products are the values; None where none are known."""
        return None

    @property
    @abstractmethod
    def view(self) -> Hashable:
        """A key; kernels with equal keys prepare the same rows from the same ``X``."""

    @abstractmethod
    def prepare(self, X: Any) -> Rows:
        """Pick and check this kernel's columns of ``X``; the result may share memory with it."""

    def prepare_once(self, X: Any, known: dict[Hashable, Rows]) -> Rows:
        """Prepare rows unless ``known`` has those of this view already; it receives new ones."""
        if self.view not in known:
            known[self.view] = self._prepare(X, known)
        return known[self.view]

    def _prepare(self, X: Any, known: dict[Hashable, Rows]) -> Rows:
        return self.prepare(X)

    @abstractmethod
    def block(self, A: Rows, B: Rows) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``.

        With ``A is B`` the result is exactly symmetric.
        """

    def stored_block(self, A: Rows, dtype: Any) -> Stored:
        """Return ``block(A, A)`` to be kept in a precision; ready matrices keep their own."""
        return self.block(A, A).astype(dtype, copy=False)

    @abstractmethod
    def diagonal(self, A: Rows) -> Floats:
        """Compare every prepared row with itself."""

    def at_pairs(self, A: Rows, left: Indices, right: Indices) -> Floats:
        """Compare prepared rows pair by pair: ``k(A[left_i], A[right_i])``.

        Small blocks are formed and only their diagonals kept, which suits every kernel.
        """
        out = np.empty(len(left))
        for start in range(0, len(left), _PAIRS):
            some = slice(start, start + _PAIRS)
            out[some] = np.diagonal(self.block(take(A, left[some]), take(A, right[some])))
        return out

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        """Return the Gram block between the rows of ``X`` and of ``Y`` (None: of ``X``)."""
        if not self.has_learned:
            return self.bound(X)(X, Y)
        A = self.prepare(X)
        return self.block(A, A if Y is None or Y is X else self.prepare(Y))

    def diag(self, X: Any) -> Floats:
        """Return the diagonal of ``kernel(X)`` without the rest."""
        return self.diagonal(self.prepare(X)) if self.has_learned else self.bound(X).diag(X)

    def renamed(self, name: str | None) -> Self:
        """Return this kernel under another name."""
        return self._changed(name=name)

    def on(self, columns: Columns) -> Self:
        """Return this kernel on other columns."""
        return self._changed(columns=columns)

    def with_missing(self, rule: str) -> Self:
        """Return this kernel with a rule for missing values, unless it has one already."""
        settled = self.encodes_gaps and not isinstance(self.columns, Encoding)
        return self if settled or self.missing != "refuse" else self._changed(missing=rule)

    def bound(self, X: Any, sample_weight: Floats | None = None) -> Kernel:
        """Return this kernel with all that it takes from the training rows ``X``.

        Callables and selectors are replaced by the columns that they pick, and the rule for missing
        values by what it learns, so that new data is treated like the data of the fit.
        """
        kernel = self
        if callable(self.columns) or isinstance(self.columns, Selector):
            table = read_table(X, str(self))
            kernel = self.on(table.keys(table.positions(self.columns, str(self))))
        if kernel.has_learned:
            return kernel
        from .gaps import learn_rule

        return learn_rule(kernel, X, sample_weight)

    def with_columns_added(self, owners: Sequence[int], deviations: Sequence[float]) -> Self:
        """Return this kernel for rows with further columns, such as indicators of gaps.

        Each belongs to the column ``owners[j]``; parameters of single columns are repeated.
        """
        return self

    def _changed(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def _parameters(self) -> dict[str, Any]:
        """Return the fields of the subclass, which come first in every rendering."""
        names = (f.name for f in dataclasses.fields(self) if f.name not in _COMMON)
        return {name: getattr(self, name) for name in names}

    def _title(self) -> str:
        """Return the readable name without columns."""
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self._parameters().items())
        return type(self).__name__.lower() + (f"({inside})" if inside else "")

    def __str__(self) -> str:
        return self.name or self._title() + describe_columns(self.columns)

    def __repr__(self) -> str:
        shown = self._parameters()
        shown |= {k: v for k in ("columns", "name") if (v := getattr(self, k)) is not None}
        shown |= {} if self.missing == "refuse" else {"missing": self.missing}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def _key(self) -> tuple[Hashable, ...]:
        return (*self._parameters().values(), columns_key(self.columns), self.name, self.missing)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __sklearn_clone__(self) -> Self:
        return self

    def __add__(self, other: object) -> Kernel:
        from .expression import Sum

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from .expression import Product, Scaled

        if isinstance(other, Kernel):
            return Product((self, other))
        return Scaled(self, other) if is_number(other) else NotImplemented

    def __pow__(self, times: Any) -> Kernel:
        from .expression import Product

        if not is_number(times, Integral):
            return NotImplemented
        if times < 1:
            raise InputError(f"{self} ** {times}: the exponent must be a whole number >= 1.")
        return Product((self,) * int(times))

    def __rmul__(self, other: object) -> Kernel:
        return NotImplemented if isinstance(other, Kernel) else self.__mul__(other)


@dataclass(frozen=True)
class KernelFamily(ABC):
    """A recipe for kernels that depends on the data, such as one kernel per column."""

    @abstractmethod
    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels for ``X``; weights of its rows count in default widths."""

    def expand_alone(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels of a model that has no others."""
        return self.expand(X, sample_weight)

    @abstractmethod
    def on(self, columns: Columns) -> Self:
        """Return this family on other columns."""

    @property
    def encodes_gaps(self) -> bool:
        """Whether missing values in its columns are taken."""
        return False

    @property
    def takes_sparse(self) -> bool:
        """Whether ``X`` may be a sparse matrix."""
        return True

    def with_missing(self, rule: str) -> KernelFamily:
        """Return this family with a rule for missing values, unless it has one already."""
        raise InputError(f"{self}: missing={rule!r} is not known for this family of kernels.")

    def __sklearn_clone__(self) -> Self:
        return self


def is_number(value: Any, kind: type = Real) -> bool:
    """Tell numbers (of any library) from booleans and the rest."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def positive(kernel: Kernel, field_name: str, hint: str, *, zero: bool = False) -> None:
    """Make a field a float, and refuse it unless it is finite and positive (or zero)."""
    value = getattr(kernel, field_name)
    if number := is_number(value):
        value = float(value)
        if math.isfinite(value) and (value > 0 or (zero and value == 0)):
            _set(kernel, **{field_name: value})
            return
    error = InputError if number else InputTypeError
    raise error(
        f"{type(kernel).__name__}({field_name}={value!r}): {field_name} must be a finite number "
        f"{'>=' if zero else '>'} 0. Hint: {hint}."
    )


def finite(kernel: Kernel, K: Floats) -> Floats:
    """Return ``K``, or refuse it when it overflowed."""
    if all_finite(K):
        return K
    raise InputError(
        f"{kernel}: some values overflow; rescale the columns first, for example with "
        "scikit-learn's StandardScaler."
    )


def _set(kernel: Kernel, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(kernel, name, value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
