"""Kernels on rows of numbers, and on rows of categories."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from kernelweave import _core
from kernelweave._threads import run_blocks
from kernelweave._types import Floats, Stored
from kernelweave.errors import InputError, InputTypeError

from .base import (
    Kernel,
    Rows,
    all_finite,
    columns_key,
    finite,
    is_number,
    is_sparse,
    positive,
    read_table,
)

_CHUNK = 256  # rows worked on at a time, so that temporaries stay in cache
_PAIRS = 4096  # pairs of sparse rows compared at a time
_FAR = 1e-6  # variance, relative to the squared mean, below which linear kernels are centred


def inner_products(A: Rows, B: Rows) -> Floats:
    """Return ``A @ B.T`` for dense or CSR rows; exactly symmetric when ``A is B``."""
    if is_sparse(A) or is_sparse(B):
        product = A @ B.T
        dense: Floats = product.toarray() if is_sparse(product) else np.asarray(product)
        return dense
    if A is B:  # one contiguous buffer on both sides: BLAS fills a triangle and mirrors it
        A = B = np.ascontiguousarray(A)
    K: Floats = A @ B.T
    return K


def squared_norms(A: Rows) -> Floats:
    """Return the squared length of every dense or CSR row."""
    if is_sparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    norms: Floats = np.einsum("ij,ij->i", A, A)
    return norms


def squared_distances(
    A: Rows, B: Rows, *, scales: Floats | None = None, dtype: Any = np.float64
) -> Stored:
    """Return ``sum_l (scales_l (a_l - b_l))^2`` for all pairs of dense or CSR rows.

    Every distance is right to 1e-12 of itself for any finite rows, zero between equal ones, and
    infinite where it overflows. ``|a|^2 + |b|^2 - 2 a.b`` is fast but loses the digits of rows that
    are closer to each other than to the mean; these pairs are computed from their differences.
    With ``A is B`` the result is exactly symmetric.

    Parameters
    ----------
    A, B : ndarray or CSR matrix
        Prepared rows.
    scales : ndarray of shape (n_columns,), optional
        Factors of the columns of dense rows; ones by default.
    dtype : dtype
        Of the result; distances are rounded once.
    """
    if is_sparse(A) or is_sparse(B):
        return _sparse_squared_distances(A, B).astype(dtype, copy=False)
    same = A is B
    A = np.ascontiguousarray(A)
    B = A if same else np.ascontiguousarray(B)
    factors = np.ones(A.shape[1]) if scales is None else scales
    out = np.empty((len(A), len(B)), dtype=dtype)
    with np.errstate(all="ignore"):
        # A common offset would make all norms large and every product inexact.
        centre = B.mean(axis=0) if len(B) else 0.0
        a = A - centre
        b = a if same else B - centre
        if scales is not None:
            a *= scales
            b = a if same else b * scales
        a_norms = squared_norms(a)
        b_norms = a_norms if same else squared_norms(b)

    def panel(rows: slice) -> None:
        first = rows.start if same else 0
        with np.errstate(all="ignore"):
            if len(factors) == 1:  # cheaper than a product
                part = np.square(np.subtract.outer(A[rows, 0], B[first:, 0]) * factors)
            else:
                part = a[rows] @ b[first:].T
                _core.finish_squared_distances(
                    part, A[rows], B[first:], factors, a_norms[rows], b_norms[first:], same
                )
            out[rows, first:] = part

    run_blocks(panel, len(A), _CHUNK)
    if same:
        _core.mirror_upper(out)
    return out


def _sparse_squared_distances(A: Rows, B: Rows) -> Floats:
    same = A is B
    a = squared_norms(A)
    b = a if same else squared_norms(B)
    sums = np.add.outer(a, b)
    D = sums - 2.0 * inner_products(A, B)
    stored = [np.diff(part.indptr).max(initial=0) for part in (A, B) if is_sparse(part)]
    lost = ~(D > _core.cancellation_limit(int(max(stored))) * sums) & (sums != 0)
    np.maximum(D, 0.0, out=D)
    if same:
        np.fill_diagonal(D, 0.0)
        lost = np.triu(lost, 1)
    rows, columns = np.nonzero(lost)
    for start in range(0, len(rows), _PAIRS):
        i, k = rows[start : start + _PAIRS], columns[start : start + _PAIRS]
        difference = A[i] - B[k]
        exact = squared_norms(difference if is_sparse(difference) else np.asarray(difference))
        D[i, k] = exact
        if same:
            D[k, i] = exact
    return D


@dataclass(frozen=True, eq=False, repr=False)
class VectorKernel(Kernel):
    """Base of the kernels on rows of numbers; prepared rows are float64, dense or CSR."""

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns."""
        return ("vector", columns_key(self.columns))

    def prepare(self, X: Any) -> Rows:
        """Return the chosen columns as float64."""
        return read_table(X, str(self)).numbers(self.columns, str(self))

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
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> Linear()([[1.0, 2.0], [3.0, 0.0]])
    array([[5., 3.],
           [3., 9.]])
    """

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

    def _block(self, A: Rows, B: Rows) -> Floats:
        left = self.centred(A)
        return inner_products(left, left if A is B else self.centred(B))

    def _diagonal(self, A: Rows) -> Floats:
        return squared_norms(self.centred(A))


def centre_linear(kernels: list[Kernel], X: Any) -> list[Kernel]:
    """Return the kernels with a centre for linear ones on columns that are far from zero.

    For models with an intercept, of which a centre changes nothing but the intercept: coefficients
    that sum to zero see inner products of centred rows only. Without one, the squared norm of the
    mean, relative to the variance, is the factor by which rounding errors grow.

    Parameters
    ----------
    kernels : list of Kernel
        Written out.
    X : array, sparse matrix or data frame
        Training rows, or a sample of them.
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
class RBF(VectorKernel):
    """Gaussian similarity, ``exp(-|x - z|^2 / (2 width^2))``.

    Parameters
    ----------
    width : float
        Distance over which rows stay similar; scikit-learn's ``gamma`` is ``1 / (2 width**2)``.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> RBF(width=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "width", "rbf_ladder() picks widths from the data")

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
class ARD(VectorKernel):
    """Gaussian similarity with a width for every column.

    ``exp(-sum_l (x_l - z_l)^2 / (2 widths_l^2))``; a large width makes its column matter little.

    Parameters
    ----------
    widths : sequence of float
        One per column; infinity leaves a column out.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> ARD(widths=(2.0, float("inf")))([[0.0, 5.0], [2.0, 9.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    widths: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "widths", _checked_widths("ARD", self.widths))

    def _title(self) -> str:
        low, high = min(self.widths), max(self.widths)
        return f"ard({len(self.widths)} widths from {low:.4g} to {high:.4g})"

    def _block(self, A: Rows, B: Rows) -> Floats:
        _check_columns(self, self.widths, A, B)
        K = squared_distances(A, B, scales=1.0 / np.array(self.widths))
        K *= -0.5
        return np.exp(K, out=K)


@dataclass(frozen=True, eq=False, repr=False)
class Additive(VectorKernel):
    """Mean of Gaussian similarities of single columns, each with a width of its own.

    ``1/d sum_l exp(-(x_l - z_l)^2 / (2 widths_l^2))``: the functions it can learn are sums of
    functions of one column, which is why it copes with many columns where `RBF` does not.

    Parameters
    ----------
    widths : sequence of float
        One per column; infinity leaves a column out.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> Additive(widths=(2.0, 1.0))([[0.0, 5.0], [2.0, 5.0]]).round(4)
    array([[1.    , 0.8033],
           [0.8033, 1.    ]])
    """

    widths: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "widths", _checked_widths("Additive", self.widths))

    def _title(self) -> str:
        low, high = min(self.widths), max(self.widths)
        return f"additive({len(self.widths)} widths from {low:.4g} to {high:.4g})"

    def _block(self, A: Rows, B: Rows) -> Floats:
        _check_columns(self, self.widths, A, B)
        # Differences are scaled, not rows: dividing a row by a width rounds it, and a common
        # offset would turn that into a large error of the difference.
        scales = np.sqrt(0.5) / np.array(self.widths)
        n_columns = A.shape[1]
        if (
            0 < len(B) < n_columns
        ):  # column by column, short loops would cost more than exponentials
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


def _checked_widths(who: str, widths: Any) -> tuple[float, ...]:
    if not isinstance(widths, list | tuple | np.ndarray) or not len(widths):
        raise InputTypeError(
            f"{who}(widths={widths!r}): widths must be a list of numbers, one per column."
        )
    for k, width in enumerate(widths):
        if not is_number(width) or not width > 0:
            raise InputError(f"{who}: widths[{k}] must be a number > 0, got {width!r}.")
    return tuple(float(width) for width in widths)


def _check_columns(kernel: Kernel, widths: tuple[float, ...], A: Rows, B: Rows) -> None:
    if is_sparse(A) or is_sparse(B):
        raise InputError(f"{kernel}: sparse rows cannot be used; pass X.toarray().")
    if A.shape[1] != len(widths):
        raise InputError(f"{kernel}: there are {len(widths)} widths for {A.shape[1]} columns.")


@dataclass(frozen=True, eq=False, repr=False)
class Laplacian(VectorKernel):
    """Similarity that falls with the sum of differences, ``exp(-|x - z|_1 / width)``.

    Parameters
    ----------
    width : float
        Distance over which rows stay similar.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> Laplacian(width=2.0)([[0.0], [2.0]]).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(self, "width", "start near the median distance of the rows")

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
        K: Floats = cdist(A, B, "cityblock")
        K /= -self.width  # after the differences: dividing the rows would round a common offset
        return np.exp(K, out=K)


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(VectorKernel):
    """Products of up to ``degree`` columns at once, ``(x.z + coef0)^degree``.

    Parameters
    ----------
    degree : int
        At least 1.
    coef0 : float
        Not negative; 0 keeps only the products of exactly ``degree`` columns.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

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

    def _power(self, K: Floats) -> Floats:
        K += self.coef0
        if self.degree > 1:  # in pieces, for threads and so that Ctrl-C is heard
            run_blocks(lambda rows: np.power(K[rows], self.degree, out=K[rows]), len(K), _CHUNK)
        return K


@dataclass(frozen=True, eq=False, repr=False)
class Overlap(Kernel):
    """Share of columns in which two rows are equal; for categories of any type.

    Parameters
    ----------
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> Overlap()([["red", "small"], ["red", "large"]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    @property
    def view(self) -> tuple[Any, ...]:
        """The choice of columns."""
        return ("values", columns_key(self.columns))

    def prepare(self, X: Any) -> NDArray[Any]:
        """Return the chosen columns as they are; missing values are refused."""
        return read_table(X, str(self)).values(self.columns, str(self))

    def block(self, A: NDArray[Any], B: NDArray[Any]) -> Floats:
        """Compare every prepared row of ``A`` with every one of ``B``."""
        if A.shape[1] != B.shape[1]:
            raise InputError(
                f"{self}: the two sides must have the same columns, "
                f"got {A.shape[1]} and {B.shape[1]} of them."
            )
        K = np.zeros((len(A), len(B)))
        for a, b in zip(A.T, B.T, strict=True):
            codes = _codes(a, b)
            K += np.equal.outer(codes[: len(a)], codes[len(a) :])
        K /= A.shape[1]
        return K

    def diagonal(self, A: NDArray[Any]) -> Floats:
        """Return ones."""
        return np.ones(len(A))


def _codes(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.intp]:
    """Replace the values of two columns by numbers, equal where the values are."""
    code: dict[Any, int] = {}
    values = a.tolist() + b.tolist()
    return np.array([code.setdefault(value, len(code)) for value in values], dtype=np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class FromCallable(VectorKernel):
    """A kernel from your own function of two blocks of rows.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` gets float64 rows (read-only; CSR when ``X`` is sparse) and returns an
        array of shape ``(len(A), len(B))``. It must be symmetric and positive semi-definite.
    columns : columns, optional
        The columns this kernel looks at; see `Kernel`. None: all.
    name : str, optional
        Shown in place of the description.

    Examples
    --------
    >>> FromCallable(lambda A, B: np.minimum(A, B.T))([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise InputTypeError(
                f"FromCallable(function={self.function!r}): function must be callable, "
                "as in function(A, B)."
            )

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
