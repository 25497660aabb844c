"""Preparation of tables: numbers on one scale, dates as numbers, text, missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats
from kernelweave._validation import all_or_nothing, list_columns, refuse_gaps
from kernelweave.errors import InputError, InputTypeError
from kernelweave.kernels.spread import clip_outliers

from .dates import read_dates, read_times

_MISSING = ("refuse", "fill", "keep")
_GAP = "(missing)"


@dataclass(eq=False, repr=False)
class TablePreparer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardise the numeric columns of a data frame and make text of the others.

    As the first step of a pipeline it puts columns on one scale for kernels on several of them, and
    it is saved with the model. New tables may have further columns, in any order.

    Parameters
    ----------
    standardize : bool
        Whether to shift numbers to mean zero and unit standard deviation, both computed with values
        clipped to 20 interquartile ranges beyond the quartiles.
    missing : {"refuse", "fill", "keep"}
        Missing and infinite values are refused; replaced by the median of the column, or the word
        "(missing)" among text; or kept for a method that supports them, such as rules.
    dates : dict of str, or None
        Columns that hold dates as text, with their formats (those of ``datetime.strptime``). They
        become numbers, years with decimals, as do columns whose type is a date.
    plain : sequence of str
        Columns of numbers that are never standardised, such as row numbers of a Gram matrix.
    keep_dates : bool
        Whether columns of dates stay dates, for methods that encode them themselves.
    texts : sequence of str
        Columns of text whose missing values become the word "(missing)" also where others are kept,
        for kernels that compare words.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        Names of the columns.
    n_features_in_ : int
        How many there are.
    numeric_ : ndarray of bool
        Which of them hold numbers (or booleans, or dates).
    means_, scales_ : ndarray of float
        Shift and divisor of each column.
    fills_ : ndarray of float
        Replacement of missing numbers.
    n_samples_seen_ : int
        Rows seen in `fit`.
    rows_ : ndarray of int or None
        Index of the pandas frame seen in `fit`, unless it counts from zero: the rows of a file that
        were used.
    target_ : str or None
        Name of the ``y`` given to `fit`, if it had one.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.io import TablePreparer
    >>> TablePreparer().fit_transform(pd.DataFrame({"age": [20, 40], "town": ["Ulm", "Bonn"]}))
       age  town
    0 -1.0   Ulm
    1  1.0  Bonn
    """

    _: KW_ONLY
    standardize: bool = True
    missing: str = "refuse"
    dates: Mapping[str, str] | None = None
    plain: Sequence[str] = ()
    keep_dates: bool = False
    texts: Sequence[str] = ()

    _one_to_one = True  # a column of the result depends on the column of its name alone

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn names, types, means and scales of the columns.

        Parameters
        ----------
        X : data frame
            The table.
        y : any
            Only its name is looked at.

        Returns
        -------
        self : TablePreparer
            The fitted transformer.
        """
        frame = _frame(X)
        names = list(frame.columns)
        if not names or not all(isinstance(name, str) for name in names):
            raise InputError(
                f"The columns of the table must have names that are text, got {names}."
            )
        if self.missing not in _MISSING:
            raise InputError(
                f"missing: must be one of {', '.join(map(repr, _MISSING))}, got {self.missing!r}."
            )
        with all_or_nothing(self):
            self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
            self.n_features_in_ = len(names)
            self.n_samples_seen_ = len(frame)
            self.rows_ = _row_numbers(X)
            self.numeric_ = np.array([self._is_number(frame[name]) for name in names])
            self.means_: Floats = np.zeros(len(names))
            self.scales_: Floats = np.ones(len(names))
            self.fills_: Floats = np.zeros(len(names))
            self.target_ = name if isinstance(name := getattr(y, "name", None), str) else None
            if self.missing == "refuse":
                refuse_gaps(frame)
            for j in np.flatnonzero(self.numeric_):
                if not self._keeps_date(frame[names[j]]):
                    self._learn_column(j, self._numbers(frame[names[j]]))
        return self

    def _learn_column(self, j: Any, values: Floats) -> None:
        known = values[np.isfinite(values)]
        if len(known):
            self.fills_[j] = np.median(known)
        if self.standardize and self.feature_names_in_[j] not in self.plain:
            filled = np.where(np.isfinite(values), values, self.fills_[j])
            # A code such as 1e9 would otherwise make all other values of its column equal.
            filled = clip_outliers(filled[:, None])[0][:, 0]
            self.means_[j] = filled.mean()
            scale = float(filled.std())
            self.scales_[j] = scale if scale > 0 else 1.0  # a constant column becomes zero

    def transform(self, X: Any) -> Any:
        """Return the columns seen in `fit`, prepared.

        Parameters
        ----------
        X : data frame
            With those columns, in any order, and possibly others.

        Returns
        -------
        X : data frame
            Of the same library.
        """
        check_is_fitted(self)
        frame = _frame(X)
        if lost := [name for name in self.feature_names_in_ if name not in frame.columns]:
            several = len(lost) > 1
            raise InputError(
                f"The table lacks the column{'s' if several else ''} {list_columns(lost)} "
                f"that the model needs; its columns are: {list_columns(frame.columns)}"
            )
        frame = frame.select(list(self.feature_names_in_))
        if self.missing == "refuse":
            refuse_gaps(frame)
        columns = [self._prepare(j, frame) for j in range(self.n_features_in_)]
        return nw.to_native(frame.with_columns(*columns))

    def _is_date(self, column: nw.Series[Any]) -> bool:
        return column.dtype.is_temporal() or column.name in (self.dates or {})

    def _keeps_date(self, column: nw.Series[Any]) -> bool:
        return self.keep_dates and self._is_date(column)

    def _prepare(self, j: int, frame: nw.DataFrame[Any]) -> nw.Series[Any]:
        name = self.feature_names_in_[j]
        backend = frame.implementation
        column: nw.Series[Any] = frame[name]
        if self._keeps_date(column):
            times = read_times(name, _known(column), (self.dates or {}).get(name))
            dates: nw.Series[Any] = nw.Series.from_numpy(name, times, backend=backend)
            return dates
        if not self.numeric_[j]:
            word = _GAP if self.missing == "fill" or name in self.texts else None
            if _is_text(column) and (word is None or not column.null_count()):
                return column
            words = [word if value is None else str(value) for value in _known(column)]
            texts: nw.Series[Any] = nw.new_series(name, words, nw.String, backend=backend)
            return texts
        if column.dtype == nw.Boolean and not self.standardize and self.missing == "keep":
            return column  # rules support booleans
        numbers = self._numbers(column)
        if self._is_prepared(j, column, numbers):
            return column
        gap = self.fills_[j] if self.missing == "fill" else np.nan
        numbers = np.where(np.isfinite(numbers), numbers, gap)
        numbers = (numbers - self.means_[j]) / self.scales_[j]
        prepared: nw.Series[Any] = nw.Series.from_numpy(name, numbers, backend=backend)
        return prepared

    def _is_prepared(self, j: int, column: nw.Series[Any], numbers: Floats) -> bool:
        """Tell whether a column of numbers is in its final form already."""
        plain = column.dtype == nw.Float64 and self.means_[j] == 0.0 and self.scales_[j] == 1.0
        return plain and bool(np.isfinite(numbers).all())

    def _is_number(self, column: nw.Series[Any]) -> bool:
        return is_numeric(column) or column.dtype.is_temporal() or column.name in (self.dates or {})

    def _numbers(self, column: nw.Series[Any]) -> Floats:
        """Return a column as numbers, NaN where it has none."""
        form = (self.dates or {}).get(column.name)
        if form is not None or column.dtype.is_temporal():
            return read_dates(column.name, _known(column), form)
        if is_numeric(column) and not column.null_count():
            return np.asarray(column.to_numpy(), dtype=np.float64)
        known = _known(column)
        if not is_numeric(column):  # objects, or a row alone whose value is missing
            given = [value for value in known if value is not None]
            texts = [value for value in given if isinstance(value, str)]
            if wrong := [value for value in given if not _is_number(value)] or texts:
                message = f"must hold numbers, but has {wrong[0]!r}."
                raise InputError(f"The column {column.name!r} {message}")
        return np.array([np.nan if v is None else float(v) for v in known], dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        names : ndarray of str
            As seen in `fit`.
        """
        check_is_fitted(self)
        return self.feature_names_in_


def check_options(preparer: TablePreparer) -> None:
    """Refuse parameters that no fitted preparer has; for model files."""
    if preparer.missing not in _MISSING:
        raise ValueError(f"missing is {preparer.missing!r}")
    dates = {} if preparer.dates is None else preparer.dates
    if not isinstance(dates, dict) or not isinstance(preparer.plain, list | tuple):
        raise ValueError("the dates and plain columns of the table are not known")
    texts = preparer.texts if isinstance(preparer.texts, list | tuple) else (None,)
    named = (*dates, *dates.values(), *preparer.plain, *texts)
    if not all(isinstance(item, str) for item in named):
        raise ValueError("the dates, plain columns and texts of the table must have names")
    if not isinstance(preparer.keep_dates, bool):
        raise ValueError("keep_dates must be true or false")


def _row_numbers(X: Any) -> NDArray[Any] | None:
    """Return the index of a pandas frame, None where it counts from zero."""
    index = getattr(X, "index", None)
    values = None if index is None else np.asarray(index)
    if values is None or values.dtype.kind != "i" or (values == np.arange(len(values))).all():
        return None
    return values.astype(np.int64)


def is_numeric(column: nw.Series[Any]) -> bool:
    """Return whether a column holds numbers or booleans."""
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def _is_text(column: nw.Series[Any]) -> bool:
    """Return whether a column is text of the type that its library gives to new text."""
    native = getattr(column.to_native(), "dtype", "str")  # pandas has several
    return column.dtype == nw.String and str(native) in ("str", "String")


def _frame(X: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise InputTypeError(f"X must be a data frame, got {type(X).__name__}.") from None


def _known(column: nw.Series[Any]) -> list[Any]:
    """Return the values of a column with None for missing ones, whatever the library uses."""
    pairs = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return [None if missing else value for value, missing in pairs]


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
