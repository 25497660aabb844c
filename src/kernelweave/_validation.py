"""Checks of arguments; the one place that touches scikit-learn's private parameter constraints."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    column_or_1d,
    validate_data,
)

from kernelweave._dask import PartedTable, gather, is_dask
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, InputTypeError, RowError, numbering

check_names_in = _check_feature_names_in  # the names given are those seen in fit
pick_rows = _safe_indexing  # of arrays and frames of any library

# Numbers of threads: -1 means all processors, -2 all but one and so on, as in joblib.
N_JOBS = [
    Interval(Integral, 1, None, closed="left"),
    Interval(Integral, None, -1, closed="right"),
    None,
]

__all__ = [
    "N_JOBS",
    "Interval",
    "Options",
    "StrOptions",
    "all_or_nothing",
    "check_labels",
    "check_mixed_table",
    "check_names_in",
    "check_table",
    "check_weights",
    "fit_context",
    "is_frame",
    "is_missing",
    "offered_if",
    "pick_rows",
    "read_labels",
    "refuse_missing_labels",
    "take_rows",
]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore all attributes when a fit fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def fit_context(*, prefer_skip_nested_validation: bool) -> Any:
    """Validate parameters as scikit-learn does, and fit in full or not at all.

    What Dask holds besides ``X`` comes to this process.
    """

    def decorator(fit: Any) -> Any:
        checked = _fit_context(prefer_skip_nested_validation=prefer_skip_nested_validation)(fit)

        @functools.wraps(fit)
        def wrapped(estimator: Any, X: Any, *args: Any, **options: Any) -> Any:
            named = {name: gather(value) for name, value in options.items()}
            with all_or_nothing(estimator):
                return checked(estimator, X, *map(gather, args), **named)

        return wrapped

    return decorator


class _Offered:
    """A method that is there only where a check finds nothing missing."""

    def __init__(self, method: Any, lacks: Callable[[Any], str | None]) -> None:
        self.method, self.lacks = method, lacks
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.method
        if (message := self.lacks(model)) is not None:
            raise AttributeError(message)
        return self.method.__get__(model, owner)


def offered_if(lacks: Callable[[Any], str | None]) -> Callable[[Any], Any]:
    """Offer a method only where ``lacks(model)`` is None; else it says how to get the method.

    Unlike scikit-learn's ``available_if``, the sentence is that of the AttributeError itself.
    """
    return lambda method: _Offered(method, lacks)


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a data frame of any library."""
    return bool(nw.dependencies.is_into_dataframe(X))


def check_table(
    estimator: Any, X: Any, *, reset: bool, parts: bool = False, finite: bool = True
) -> Any:
    """Check ``X`` as scikit-learn does; a frame stays a frame and keeps its column types.

    Each kernel validates the columns it uses, so a frame may hold anything in the others.

    Parameters
    ----------
    estimator : object
        Learns or compares names and number of columns.
    X : array, sparse matrix, data frame, or Dask array or data frame
        The table.
    reset : bool
        Whether this is a fit.
    parts : bool
        Whether a Dask table may stay in its parts; otherwise it comes to this process.
    finite : bool
        Whether all values of parts are checked; otherwise `take_rows` checks those it takes.

    Returns
    -------
    X : ndarray, CSR array, data frame or PartedTable
        The table as kernels read it.
    """
    tags = estimator.__sklearn_tags__().input_tags
    refuse = getattr(estimator, "missing", None) == "refuse"  # whatever its kernels do
    if is_dask(X):
        parted = PartedTable.of(X, finite=(finite or not parts) and not tags.allow_nan)
        if not parts:
            return check_table(estimator, gather(parted), reset=reset)
        _check_names(estimator, parted.meta, len(parted), reset=reset)
        if refuse and is_frame(parted.meta):
            parted.map(_refuse_part)
        return parted
    if is_frame(X):
        _check_names(estimator, X, X.shape[0], reset=reset)
        if refuse:
            refuse_gaps(nw.from_native(X, eager_only=True))
        return X
    if nw.dependencies.is_polars_lazyframe(X):
        raise InputTypeError("X: a lazy frame has no rows yet; pass X.collect().")
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if isinstance(X, np.ma.MaskedArray):
        X = unmasked(X)
    if len(shape) != 2:
        raise InputError(
            f"X: expected a 2D array, got a {len(shape)}D array. Reshape your data with "
            "X.reshape(-1, 1) if it is one column or X.reshape(1, -1) if it is one row."
        )
    sparse = tags.sparse
    if hasattr(X, "tocsr") and not sparse:
        raise InputTypeError(
            f"{type(estimator).__name__}: sparse X cannot be used; pass X.toarray()."
        )
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr" if sparse else False,
        dtype=np.float64,
        ensure_min_samples=2 if reset else 1,
        ensure_all_finite=False,
    )
    if not tags.allow_nan:
        has_rule = "missing" in estimator.get_params(deep=False)
        _refuse_missing(X, ", or missing='fill'" if has_rule else "")
    return X


def unmasked(X: Any) -> NDArray[Any]:
    """Return a masked array as an ordinary one: masked numbers are NaN, other values None."""
    mask = np.ma.getmaskarray(X)
    if not mask.any():
        return np.asarray(X.data)
    kind = np.float64 if X.dtype.kind in "fiub" else object
    values = np.array(X.data, dtype=np.result_type(X.dtype, kind) if X.dtype.kind == "f" else kind)
    values[mask] = np.nan if kind is np.float64 else None
    return values


def refuse_gaps(frame: nw.DataFrame[Any]) -> None:
    """Refuse a frame with missing or infinite values, with the number of rows by column."""
    counts = {}
    for name in frame.columns:
        column = frame[name]
        missing = column.is_null()
        if column.dtype.is_float():
            missing = missing | ~column.is_finite().fill_null(True)
        if count := int(missing.sum()):
            counts[name] = count
    if counts:
        listed = list_columns(counts, [f" ({count} rows)" for count in counts.values()])
        raise InputError(
            f"Values are missing (or infinite) in {listed}; fill them or leave the "
            f"{'columns' if len(counts) > 1 else 'column'} out first."
        )


def _refuse_part(part: Any, first: int, own: Any) -> None:
    refuse_gaps(nw.from_native(part))


def list_columns(names: Any, notes: Any = None, limit: int = 8) -> str:
    """Return names of columns as text, each with its note; no more than ``limit``."""
    names = list(names)
    notes = [""] * len(names) if notes is None else notes
    shown = [f"{name!r}{note}" for name, note in zip(names, notes, strict=True)][:limit]
    return ", ".join(shown) + (", ..." if len(names) > limit else "")


def check_mixed_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check names and number of columns of a table that may hold gaps, text and dates."""
    if is_dask(X) or is_frame(X) or nw.dependencies.is_polars_lazyframe(X) or hasattr(X, "tocsr"):
        return check_table(estimator, X, reset=reset)
    body = unmasked(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if body.dtype.kind in "US" and not isinstance(X, np.ndarray):
        body = np.asarray(X, dtype=object)  # a list may mix text and numbers
    return validate_data(
        estimator,
        body,
        reset=reset,
        dtype=None,
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
    )


def _check_names(estimator: Any, X: Any, n_samples: int, *, reset: bool) -> None:
    """Check the columns of a frame, and that there are rows."""
    arrow = nw.dependencies.is_pyarrow_table(X)  # its columns are not their names
    names = list(X.column_names if arrow else getattr(X, "columns", ()))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"X: two columns of the same name, {twice!r}; rename one of them.")
    if n_samples < 1 or (reset and n_samples < 2):
        raise InputError(
            f"Found {n_samples} row(s) in X, but {2 if reset else 1} or more are needed."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def take_rows(table: PartedTable, index: Indices) -> Any:
    """Return some rows of a Dask table as `check_table` returns those of this process.

    Parameters
    ----------
    table : PartedTable
        The parts.
    index : ndarray of int
        Which rows, in the order wanted.
    """
    X = table.take(index)
    if is_frame(X):
        return X
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    with numbering(index):
        _refuse_missing(X)
    return X


def _refuse_missing(X: Any, or_else: str = "") -> None:
    """Refuse values that are not finite, with their place."""
    values = X.data if hasattr(X, "tocoo") else X
    if np.isfinite(values).all():
        return
    table = X.tocoo() if hasattr(X, "tocoo") else None
    if table is None:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(X))[0])
    else:
        at = int(np.flatnonzero(~np.isfinite(table.data))[0])
        row, column = int(table.row[at]), int(table.col[at])
    raise RowError(
        f"X: contains NaN or infinity, first in row {{row}}, column {column}. Hint: fill missing "
        f"values, for example with scikit-learn's SimpleImputer{or_else}.",
        row,
    )


def check_labels(y: Any) -> NDArray[Any]:
    """Return the labels of a classification as a column, none of them missing."""
    labels = read_labels(y)
    check_classification_targets(labels)
    return labels


def read_labels(y: Any) -> NDArray[Any]:
    """Return labels of any number of classes as a column, none of them missing."""
    refuse_missing_labels(y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("y: contains NaN or infinity where class labels are needed.")
    return np.asarray(y)


def refuse_missing_labels(y: Any) -> None:
    """Refuse labels of which one is missing, which scikit-learn could not compare with others."""
    dtype = getattr(y, "dtype", None)
    complete = isinstance(dtype, np.dtype) and dtype.kind != "O"  # but for NaN of numbers
    if complete or getattr(y, "ndim", 1) != 1:
        return
    for row, label in enumerate(np.asarray(y, dtype=object)):
        if is_missing(label):
            raise InputError(f"y: the label of row {row} is missing.")


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA from values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real | Decimal) and bool(value != value)


def check_weights(sample_weight: Any, n_samples: int) -> Floats | None:
    """Return sample weights as floats, None when none are given."""
    if sample_weight is None:
        return None
    given = np.asarray(sample_weight)
    if given.ndim == 1 and not given.any():
        raise InputError("sample_weight: at least one weight must be positive, all are zero.")
    weights: Floats = _check_sample_weight(
        sample_weight, np.empty((n_samples, 1)), dtype=np.float64, ensure_non_negative=True
    )
    return weights
