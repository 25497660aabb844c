"""A ready Gram matrix as a kernel."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._types import Floats, Indices, Stored
from kernelweave.errors import InputError

from .base import Kernel, is_sparse
from .table import Columns, columns_key, describe_columns, read_table

_MAX_SPECTRUM = 2000  # the spectrum of a larger matrix takes more than a moment
_CHUNK = 512


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(Kernel):
    """A ready Gram matrix, as a kernel on a column of row numbers.

    ``X`` holds row numbers of the matrix, so splitters, pipelines and grid search work unchanged:
    ``cross_val_score(model, np.arange(n)[:, None], y)``. The matrix is not copied when its type is
    float64 or float32, and never written to. Two of these are equal only if they are one object.

    Parameters
    ----------
    gram : array of shape (n, n)
        Symmetric and positive semi-definite.
    check : bool
        False skips the tests of finiteness, symmetry and (up to 2000 rows) the spectrum, and takes
        all of them for granted.
    columns : name or position
        The column of row numbers, the first by default.
    missing : {"off", "refuse"}
        A row number that is missing or -1 means that the matrix does not know the row: it is
        similar to none, also at prediction. "refuse" raises an error instead.

    Examples
    --------
    >>> kernel = Precomputed([[2.0, 1.0], [1.0, 3.0]])
    >>> kernel([[1], [0], [-1]])
    array([[3., 1., 0.],
           [1., 2., 0.],
           [0., 0., 0.]])
    """

    is_precomputed: ClassVar[bool] = True
    may_be_indefinite: ClassVar[bool] = True
    rules: ClassVar[tuple[str, ...]] = ("off", "refuse")
    own_rules: ClassVar[tuple[str, ...]] = ("off", "refuse")

    gram: Stored
    check: InitVar[bool] = True
    columns: Columns = field(default=0, kw_only=True)
    missing: str = field(default="off", kw_only=True)
    # Whether mirrored entries agree to the last bits, so that the matrix is used without a copy.
    # Not a field: it follows from the matrix.
    _mirrored: ClassVar[bool] = True

    def __post_init__(self, check: bool) -> None:
        super().__post_init__()
        gram = _read_gram(self.gram)
        diagonal = gram.diagonal()
        if not diagonal.min() >= 0:
            i = int(np.argmin(diagonal))  # the first NaN, if there is one
            raise InputError(
                f"Precomputed: gram[{i}, {i}] is {diagonal[i]:.6g}, but the diagonal must not be "
                "negative or missing."
            )
        mirrored = True
        if check:
            with np.errstate(all="ignore"):
                asymmetry = _check_symmetric(gram)
                _check_spectrum(gram)
            mirrored = asymmetry <= 1e-14 * float(diagonal.max())
        view = gram.view()
        view.flags.writeable = False
        object.__setattr__(self, "gram", view)
        object.__setattr__(self, "_mirrored", mirrored)

    def _changed(self, **changes: Any) -> Self:
        changed = super()._changed(check=False, **changes)
        object.__setattr__(changed, "_mirrored", self._mirrored)
        return changed

    def _title(self) -> str:
        return f"precomputed({len(self.gram)} rows)"

    def __str__(self) -> str:
        where = "" if self.columns == 0 else describe_columns(self.columns)
        return self.name or self._title() + where

    def __repr__(self) -> str:
        shown = [f"<{len(self.gram)} x {len(self.gram)} {self.gram.dtype}>"]
        shown += [f"columns={self.columns!r}"] if self.columns != 0 else []
        shown += [f"name={self.name!r}"] if self.name is not None else []
        return f"Precomputed({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def view(self) -> Hashable:
        """The column of row numbers and the number of rows they may name."""
        return ("row numbers", columns_key(self.columns), len(self.gram), self.missing)

    def prepare(self, X: Any) -> Indices:
        """Return the row numbers as a vector of integers."""
        who = str(self)
        table = read_table(X, who)
        picked = table.positions(self.columns, who)
        if len(picked) != 1:
            raise InputError(f"{who}: one column of row numbers is needed, got {len(picked)}.")
        gaps = self.missing == "off"
        values = table.numbers(tuple(picked), who, gaps=gaps)
        values = values.toarray().ravel() if is_sparse(values) else values[:, 0]
        values = np.where(np.isnan(values), -1.0, values)
        least = -1 if gaps else 0
        wrong = np.flatnonzero((values != np.rint(values)) | (values < least) | (values >= self._n))
        if len(wrong):
            i = int(wrong[0])
            raise InputError(
                f"{who}: {table.label(picked[0])} must hold row numbers from 0 to {self._n - 1}, "
                f"but row {i} has {values[i]:g}; pass np.arange(n)[:, None] as X for all rows"
                f"{', and -1 for a row that the matrix does not know' if gaps else ''}."
            )
        rows: Indices = values.astype(np.intp)
        return rows

    @property
    def _n(self) -> int:
        return len(self.gram)

    def stored_block(self, A: Indices, dtype: Any) -> Stored:
        """Return the matrix itself where it is the block of these rows, without a copy."""
        everything = len(A) == self._n and np.array_equal(A, np.arange(self._n))
        usable = everything and self._mirrored and self.gram.flags.c_contiguous
        return self.gram if usable else self.block(A, A)

    def block(self, A: Indices, B: Indices) -> Floats:
        """Pick rows and columns of the matrix."""
        K: Floats = self.gram[np.ix_(A, B)].astype(np.float64, copy=False)
        K[A < 0] = 0.0
        K[:, B < 0] = 0.0
        # The matrix is symmetric to rounding only.
        return K / 2 + K.T / 2 if A is B else K

    def at_pairs(self, A: Indices, left: Indices, right: Indices) -> Floats:
        """Pick single entries of the matrix."""
        a, b = A[left], A[right]
        return np.where((a < 0) | (b < 0), 0.0, self.gram[a, b].astype(np.float64, copy=False))

    def diagonal(self, A: Indices) -> Floats:
        """Pick diagonal entries of the matrix."""
        return np.where(A < 0, 0.0, self.gram[A, A].astype(np.float64, copy=False))


def _read_gram(gram: Any) -> Stored:
    if is_sparse(gram):
        raise InputError("Precomputed: gram must be dense; pass gram.toarray().")
    try:
        array = np.asarray(gram)
        if array.dtype.kind in "iubO":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        array = np.empty(0, dtype="U1")
    if array.dtype.kind != "f":
        raise InputError("Precomputed: gram must hold real numbers in rows of equal length.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise InputError(
            f"Precomputed: gram must be square with at least one row, got shape {array.shape}; for "
            "test rows give the matrix of all rows and let X hold row numbers."
        )
    return array


def _check_symmetric(gram: Stored) -> float:
    """Refuse entries that are not finite or not mirrored; return the largest asymmetry."""
    largest, worst, at = 0.0, 0.0, (0, 0)
    for start in range(0, len(gram), _CHUNK):
        band = gram[start : start + _CHUNK].astype(np.float64)
        size = float(np.abs(band).max())
        if not np.isfinite(size):
            i, j = np.argwhere(~np.isfinite(band))[0]
            raise InputError(
                f"Precomputed: gram[{start + i}, {j}] is {band[i, j]}, but every entry must be "
                "finite."
            )
        band -= gram[:, start : start + _CHUNK].T
        gap = np.abs(band, out=band)
        i, j = np.unravel_index(int(np.argmax(gap)), gap.shape)
        largest = max(largest, size)
        # A NaN in the mirrored place is reported with its own row.
        if gap[i, j] > worst:
            worst, at = float(gap[i, j]), (start + int(i), int(j))
    if worst > max(1e-8, 8 * float(np.finfo(gram.dtype).eps)) * largest:
        i, j = at
        raise InputError(
            f"Precomputed: gram is not symmetric, gram[{i}, {j}] and gram[{j}, {i}] differ by "
            f"{worst:.3g}; pass (gram + gram.T) / 2 if that is rounding."
        )
    return worst


def _check_spectrum(gram: Stored) -> None:
    if len(gram) > _MAX_SPECTRUM:
        return
    size = float(np.abs(gram).max()) or 1.0
    values = np.linalg.eigvalsh(gram.astype(np.float64) / size)
    if values[0] < -1e-6 * values[-1]:
        raise InputError(
            f"Precomputed: gram is not positive semi-definite, its lowest eigenvalue is "
            f"{values[0] * size:.3g} and its largest {values[-1] * size:.3g}; clip the spectrum "
            "(eigh, negative values to 0) or add the missing amount to the diagonal."
        )
