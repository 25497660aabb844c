"""Gaussian and Laplacian kernels: exponentials of distances between rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError

from .base import Decay, Rows, is_number, is_sparse, positive
from .distances import squared_distances
from .monomials import Monomial, Monomials, decay_part
from .vector import VectorKernel


@dataclass(frozen=True, eq=False, repr=False)
class RBF(VectorKernel):
    """Gaussian similarity, ``exp(-|x - z|^2 / (2 width^2))``.

    Parameters
    ----------
    width : float
        Distance over which rows stay similar; scikit-learn's ``gamma`` is ``1 / (2 width**2)``.

    Examples
    --------
    >>> RBF(width=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "fill", "expected")

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "width", "rbf_ladder() picks widths from the data")

    @property
    def decay(self) -> Decay:
        return Decay("squared", self.width)

    @property
    def has_unit_diagonal(self) -> bool:
        return True

    def monomials(self) -> Monomials:
        """Return the product over columns."""
        return (Monomial(1.0, (self._atom("product", part=self._part),)),)

    def _part(self, A: Rows, B: Rows, columns: Indices) -> Floats:
        if len(columns) > 1:
            return self.block(A[:, columns], B[:, columns])
        return decay_part(A, B, columns, np.full(1, np.sqrt(0.5) / self.width), squared=True)

    def _block(self, A: Rows, B: Rows) -> Floats:
        # width**2 or the squared distances alone may overflow. A power of two is divided out
        # first: unlike the width itself, it leaves every digit of the rows as it was.
        width, exponent = np.frexp(self.width)
        unit = np.ldexp(1.0, -exponent)
        if is_sparse(A) or is_sparse(B):
            left = A * unit
            K = squared_distances(left, left if A is B else B * unit)
        else:
            K = squared_distances(A, B, scales=np.full(A.shape[1], unit))
        K *= -0.5 / width**2
        return np.exp(K, out=K)


@dataclass(frozen=True, eq=False, repr=False)
class _Widths(VectorKernel):
    """Base of the kernels with a width for every column."""

    reads_sparse: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "fill", "expected")

    widths: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        widths: Any = self.widths
        who = type(self).__name__
        if not isinstance(widths, list | tuple | np.ndarray) or not len(widths):
            raise InputTypeError(
                f"{who}(widths={widths!r}): widths must be a list of numbers, one per column."
            )
        for k, width in enumerate(widths):
            if not is_number(width) or not width > 0:
                raise InputError(f"{who}: widths[{k}] must be a number > 0, got {width!r}.")
        object.__setattr__(self, "widths", tuple(float(width) for width in widths))

    def with_columns_added(self, owners: Sequence[int], deviations: Sequence[float]) -> Self:
        # The indicator of a column is as high as its deviation, hence the column's own width.
        more = tuple(self.widths[j] for j in owners if j < len(self.widths))
        return dataclasses.replace(self, widths=self.widths + more)

    def _title(self) -> str:
        low, high = min(self.widths), max(self.widths)
        who = type(self).__name__.lower()
        return f"{who}({len(self.widths)} widths from {low:.4g} to {high:.4g})"

    def _check_columns(self, A: Rows, B: Rows) -> None:
        if is_sparse(A) or is_sparse(B):
            raise InputError(f"{self}: sparse rows cannot be used; pass X.toarray().")
        if A.shape[1] != len(self.widths):
            raise InputError(
                f"{self}: there are {len(self.widths)} widths for {A.shape[1]} columns."
            )


@dataclass(frozen=True, eq=False, repr=False)
class ARD(_Widths):
    """Gaussian similarity with a width for every column.

    ``exp(-sum_l (x_l - z_l)^2 / (2 widths_l^2))``; a large width makes its column matter little.

    Parameters
    ----------
    widths : sequence of float
        One per column; infinity leaves a column out.

    Examples
    --------
    >>> ARD(widths=(2.0, float("inf")))([[0.0, 5.0], [2.0, 9.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    @property
    def has_unit_diagonal(self) -> bool:
        return True

    def monomials(self) -> Monomials:
        """Return the product over columns."""
        return (Monomial(1.0, (self._atom("product", part=self._part),)),)

    def _part(self, A: Rows, B: Rows, columns: Indices) -> Floats:
        scales = np.sqrt(0.5) / np.array(self.widths)[columns]
        return decay_part(A, B, columns, scales, squared=True)

    def _block(self, A: Rows, B: Rows) -> Floats:
        self._check_columns(A, B)
        K = squared_distances(A, B, scales=1.0 / np.array(self.widths))
        K *= -0.5
        return np.exp(K, out=K)


@dataclass(frozen=True, eq=False, repr=False)
class Additive(_Widths):
    """Mean of Gaussian similarities of single columns, each with a width of its own.

    ``1/d sum_l exp(-(x_l - z_l)^2 / (2 widths_l^2))``: the functions it can learn are sums of
    functions of one column, which is why it copes with many columns where `RBF` does not.

    Parameters
    ----------
    widths : sequence of float
        One per column; infinity leaves a column out.

    Examples
    --------
    >>> Additive(widths=(2.0, 1.0))([[0.0, 5.0], [2.0, 5.0]]).round(4)
    array([[1.    , 0.8033],
           [0.8033, 1.    ]])
    """

    @property
    def has_unit_diagonal(self) -> bool:
        return True

    def monomials(self) -> Monomials:
        """Return the sum over columns."""
        key = ("additive", self.view, self.widths)
        return (Monomial(1.0, (self._atom("sum", part=self._part, key=key),)),)

    def _part(self, A: Rows, B: Rows, columns: Indices) -> Floats:
        scales = np.sqrt(0.5) / np.array(self.widths)
        parts = (
            decay_part(A, B, columns[j : j + 1], scales[columns[j : j + 1]], squared=True)
            for j in range(len(columns))
        )
        return np.asarray(sum(parts) / len(self.widths))

    def _block(self, A: Rows, B: Rows) -> Floats:
        self._check_columns(A, B)
        # Differences are scaled, not rows: dividing a row by a width rounds it, and a common
        # offset would turn that into a large error of the difference.
        scales = np.sqrt(0.5) / np.array(self.widths)
        n_columns = A.shape[1]
        if 0 < len(B) < n_columns:  # short loops over rows would cost more than exponentials
            return np.stack([_mean_similarity(A, row, scales) for row in B], axis=1)
        K = np.zeros((len(A), len(B)))
        left, right = np.ascontiguousarray(A.T), np.ascontiguousarray(B.T)
        same = A is B

        def panel(rows: slice) -> None:
            first = rows.start if same else 0
            out = K[rows, first:]
            work = np.empty(out.shape)
            with np.errstate(all="ignore"):
                for a, b, scale in zip(left, right[:, first:], scales, strict=True):
                    np.subtract.outer(a[rows], b, out=work)
                    work *= scale
                    np.multiply(work, work, out=work)
                    np.negative(work, out=work)
                    np.exp(work, out=work)
                    out += work
            out /= n_columns

        run_blocks(panel, len(A), 64)
        if same:
            _core.mirror_upper(K)
        return K


def _mean_similarity(A: Floats, row: Floats, scales: Floats) -> Floats:
    work = A - row
    work *= scales
    np.multiply(work, work, out=work)
    np.negative(work, out=work)
    return np.asarray(np.exp(work, out=work).mean(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(VectorKernel):
    """Similarity that falls with the sum of differences, ``exp(-|x - z|_1 / width)``.

    Parameters
    ----------
    width : float
        Distance over which rows stay similar.

    Examples
    --------
    >>> Laplacian(width=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    reads_sparse: ClassVar[bool] = False
    rules: ClassVar[tuple[str, ...]] = ("refuse", "off", "fill", "expected")

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "width", "start near the median distance of the rows")

    @property
    def decay(self) -> Decay:
        return Decay("absolute", self.width)

    @property
    def has_unit_diagonal(self) -> bool:
        return True

    def monomials(self) -> Monomials:
        """Return the product over columns."""
        return (Monomial(1.0, (self._atom("product", part=self._part),)),)

    def _part(self, A: Rows, B: Rows, columns: Indices) -> Floats:
        if len(columns) > 1:
            return self.block(A[:, columns], B[:, columns])
        return decay_part(A, B, columns, np.full(1, 1.0 / self.width), squared=False)

    def prepare(self, X: Any) -> Rows:
        """Return the chosen columns as float64."""
        rows = super().prepare(X)
        self._check_dense(rows)
        return rows

    def _check_dense(self, rows: Rows) -> None:
        if is_sparse(rows):
            raise InputError(
                f"{self}: sparse X is not supported here; pass X.toarray(), or use RBF."
            )

    def _block(self, A: Rows, B: Rows) -> Floats:
        # Rows may come from another kernel with the same view, hence the second check.
        self._check_dense(A)
        self._check_dense(B)
        K: Floats = np.empty((len(A), len(B)))
        _core.absolute_distances(np.ascontiguousarray(A), np.ascontiguousarray(B), K)
        K /= -self.width  # after the differences: dividing the rows would round a common offset
        return np.exp(K, out=K)
