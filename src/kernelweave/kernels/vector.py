"""Kernels on rows of numbers: their base, linear, polynomial, and given by a function."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from kernelweave._linalg import all_finite
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError

from .base import Kernel, RowFormat, Rows, finite, is_number, is_sparse, positive
from .distances import inner_products, squared_norms
from .monomials import Monomial, Monomials, dense_columns
from .table import Encoding, columns_key, read_table

_CHUNK = 256  # rows worked on at a time, so that temporaries stay in cache
_FAR = 1e-6  # variance, relative to the squared mean, below which linear kernels are centred


@dataclass(frozen=True, eq=False, repr=False)
class VectorKernel(Kernel):
    """Base of the kernels on rows of numbers; prepared rows are float64, dense or CSR.

    Parameters
    ----------
    missing : {"refuse", "off", "fill", "expected"}
        What to do where values are missing; see :doc:`/guide/missing`.
    """

    row_format: ClassVar[RowFormat] = "numbers"
    rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "fill")

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns."""
        return ("vector", columns_key(self.columns))

    def prepare(self, X: Any) -> Rows:
        """Return the chosen columns as float64."""
        if isinstance(self.columns, Encoding):
            return self.columns.encode(X)
        return read_table(X, str(self)).numbers(self.columns, str(self))

    def positions(self, X: Any) -> Indices:
        """Return the column of ``X`` of every prepared column."""
        found = super().positions(X)
        return found[self.columns.owners] if isinstance(self.columns, Encoding) else found

    def block(self, A: Rows, B: Rows) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        if A.shape[1] != B.shape[1]:
            raise InputError(
                f"{self}: the two sides must have the same columns, "
                f"got {A.shape[1]} and {B.shape[1]} of them."
            )
        with np.errstate(all="ignore"):
            return finite(self, self._block(A, B))

    def diagonal(self, A: Rows) -> Floats:
        """Compare every prepared row with itself."""
        with np.errstate(all="ignore"):
            return finite(self, self._diagonal(A))

    @abstractmethod
    def _block(self, A: Rows, B: Rows) -> Floats: ...

    def _diagonal(self, A: Rows) -> Floats:
        return np.ones(A.shape[0])


@dataclass(frozen=True, eq=False, repr=False)
class Linear(VectorKernel):
    """Inner product of rows, ``x.z``.

    Parameters
    ----------
    centre : sequence of float, optional
        Subtracted from dense rows first, one number per column. A model with an intercept is the
        same whatever the centre, but columns far from zero lose digits without one; such models
        set it by themselves where that matters.

    Examples
    --------
    >>> Linear()([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """

    rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "fill", "expected")

    centre: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.centre is None:
            return
        centre: Any = self.centre
        if not isinstance(centre, list | tuple | np.ndarray) or not all(map(is_number, centre)):
            raise InputTypeError(
                f"Linear(centre={centre!r}): centre must be a list of numbers, one per column."
            )
        if not np.isfinite(centre).all():
            raise InputError("Linear: centre must be finite.")
        object.__setattr__(self, "centre", tuple(map(float, centre)))

    @property
    def takes_sparse(self) -> bool:
        return super().takes_sparse and self.centre is None

    def with_columns_added(self, owners: Sequence[int], deviations: Sequence[float]) -> Linear:
        if self.centre is None:
            return self
        return dataclasses.replace(self, centre=(*self.centre, *(0.0 for _ in owners)))

    def _parameters(self) -> dict[str, Any]:
        return {} if self.centre is None else {"centre": self.centre}

    def _title(self) -> str:
        return "linear" if self.centre is None else "linear (centred)"

    def centred(self, rows: Rows) -> Rows:
        """Return prepared rows less the centre."""
        if self.centre is None:
            return rows
        if is_sparse(rows) or rows.shape[1] != len(self.centre):
            raise InputError(
                f"{self}: a centre of {len(self.centre)} numbers needs dense rows of as many "
                f"columns, got {'sparse rows' if is_sparse(rows) else f'{rows.shape[1]} columns'}."
            )
        return rows - np.array(self.centre)

    def linear_rows(self, A: Rows) -> Floats | None:
        return None if is_sparse(A) else self.centred(A)

    def monomials(self) -> Monomials:
        """Return the sum over columns of ``x_l z_l``."""
        key = ("inner", self.view, self.centre, 0.0)
        return (Monomial(1.0, (self._atom("sum", part=self._part, key=key, signed=True),)),)

    def _part(self, A: Rows, B: Rows, columns: Indices) -> Floats:
        centre = 0.0 if self.centre is None else np.array(self.centre)[columns]
        a, b = dense_columns(A, columns) - centre, dense_columns(B, columns) - centre
        return np.asarray(a @ b.T)

    def _block(self, A: Rows, B: Rows) -> Floats:
        left = self.centred(A)
        return inner_products(left, left if A is B else self.centred(B))

    def _diagonal(self, A: Rows) -> Floats:
        return squared_norms(self.centred(A))


def centre_linear(kernels: list[Kernel], X: Any) -> list[Kernel]:
    """Return the kernels with a centre for linear ones on columns that are far from zero.

    For models with an intercept, of which a centre changes nothing but the intercept: coefficients
    that sum to zero see inner products of centred rows only. Without one, the squared norm of the
    mean, relative to the variance, is the factor by which rounding errors grow. The kernels are
    written out; ``X`` are training rows, or a sample of them.
    """
    out: list[Kernel] = []
    for kernel in kernels:
        if isinstance(kernel, Linear) and kernel.centre is None:
            rows = kernel.prepare(X)
            if not is_sparse(rows):
                with np.errstate(all="ignore"):  # squares may overflow; then nothing is centred
                    means = rows.mean(axis=0)
                    offset, variance = float(means @ means), float(rows.var(axis=0).sum())
                if variance < _FAR * offset < np.inf:
                    # Medians: constant columns become zero to the last digit.
                    centre = np.median(rows, axis=0)
                    kernel = dataclasses.replace(kernel, centre=tuple(centre.tolist()))
        out.append(kernel)
    return out


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(VectorKernel):
    """Products of up to ``degree`` columns at once, ``(x.z + coef0)^degree``.

    Parameters
    ----------
    degree : int
        At least 1.
    coef0 : float
        Not negative; 0 keeps only the products of exactly ``degree`` columns.
    missing : {"refuse", "off", "fill"}
        What to do where values are missing; see :doc:`/guide/missing`.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0], [2.0]])
    array([[ 4.,  9.],
           [ 9., 25.]])
    """

    degree: int = 2
    coef0: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        degree: Any = self.degree
        whole = is_number(degree, Integral)
        if not whole or degree < 1:
            raise (InputError if whole else InputTypeError)(
                f"Polynomial(degree={degree!r}): degree must be a whole number >= 1. "
                "Hint: polynomial_ladder() gives several degrees at once."
            )
        object.__setattr__(self, "degree", int(degree))
        positive(self, "coef0", "1 includes all lower degrees, 0 none", zero=True)

    def _block(self, A: Rows, B: Rows) -> Floats:
        return self._power(inner_products(A, B))

    def _diagonal(self, A: Rows) -> Floats:
        return self._power(squared_norms(A))

    def monomials(self) -> Monomials:
        """Return the power of a sum over columns."""
        options: Any = {"part": _inner_part, "signed": True}
        options |= {"constant": self.coef0, "power": self.degree}
        key = ("inner", self.view, None, self.coef0)
        return (Monomial(1.0, (self._atom("sum", key=key, **options),)),)

    def _power(self, K: Floats) -> Floats:
        K += self.coef0
        if self.degree > 1:  # in pieces, for threads and so that Ctrl-C is heard
            run_blocks(lambda rows: np.power(K[rows], self.degree, out=K[rows]), len(K), _CHUNK)
        return K


def _inner_part(A: Rows, B: Rows, columns: Indices) -> Floats:
    return np.asarray(dense_columns(A, columns) @ dense_columns(B, columns).T)


@dataclass(frozen=True, eq=False, repr=False)
class FromCallable(VectorKernel):
    """A kernel from your own function of two blocks of rows.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` gets float64 rows (read-only; CSR when ``X`` is sparse) and returns an
        array of shape ``(len(A), len(B))``. It must be symmetric and positive semi-definite.
    missing : {"refuse", "off", "fill"}
        What to do where values are missing; see :doc:`/guide/missing`.

    Examples
    --------
    >>> FromCallable(lambda A, B: np.minimum(A, B.T))([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    may_be_indefinite: ClassVar[bool] = True

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InputTypeError(
                f"FromCallable(function={self.function!r}): function must be callable, "
                "as in function(A, B)."
            )

    def monomials(self) -> Monomials:
        """Return the function itself; columns of its rows may be replaced one by one."""
        return (Monomial(1.0, (self._atom("opaque"),)),)

    def _title(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _block(self, A: Rows, B: Rows) -> Floats:
        left = _read_only(A)
        raw = self.function(left, left if A is B else _read_only(B))
        try:
            K = np.array(raw.toarray() if is_sparse(raw) else raw, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{self}: the function must return an array of numbers.") from None
        if K.shape != (A.shape[0], B.shape[0]):
            raise InputError(
                f"{self}: the function must return shape {(A.shape[0], B.shape[0])} for these "
                f"rows, got {K.shape}."
            )
        if not all_finite(K):
            raise InputError(f"{self}: the function returned values that are not finite.")
        if A is B and len(K):
            gap = float(np.abs(K - K.T).max())
            if gap > 1e-8 * np.abs(K).max():
                raise InputError(
                    f"{self}: the function is not symmetric, f(A, A) and its transpose differ "
                    f"by {gap:.3g}."
                )
            K = K / 2 + K.T / 2
        return K

    def _diagonal(self, A: Rows) -> Floats:
        # Small square blocks: few calls, and few values that are not on the diagonal.
        parts = [A[start : start + 32] for start in range(0, A.shape[0], 32)]
        return np.concatenate(
            [np.empty(0), *(self._block(part, part).diagonal() for part in parts)]
        )


def _read_only(rows: Rows) -> Rows:
    if is_sparse(rows):
        return rows.copy()
    rows = rows.view()
    rows.flags.writeable = False
    return rows
