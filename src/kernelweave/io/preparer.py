"""What the command line does to a table before a model sees it."""

from __future__ import annotations

from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats
from kernelweave.errors import InputError, InputTypeError


class TablePreparer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Standardise the numeric columns of a data frame and make text of the others.

    As the first step of a pipeline it lets kernels on several columns together see them on one
    scale, and is saved with the model. New tables may have their columns in any order, and more.

    Parameters
    ----------
    standardize : bool
        Whether to shift numbers to mean zero and divide them by their standard deviation.

    Attributes
    ----------
    feature_names_in_ : ndarray of str
        Names of the columns.
    n_features_in_ : int
        How many there are.
    numeric_ : ndarray of bool
        Which of them hold numbers (or booleans).
    means_, scales_ : ndarray of float
        What is subtracted from each column, and what it is then divided by.
    n_samples_seen_ : int
        Rows seen in `fit`.
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

    def __init__(self, *, standardize: bool = True) -> None:
        self.standardize = standardize

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn names, types, means and scales of the columns.

        Parameters
        ----------
        X : data frame
            Without missing values.
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
        self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.n_samples_seen_ = len(frame)
        self.numeric_ = np.array([is_numeric(frame[name]) for name in names])
        self.means_: Floats = np.zeros(len(names))
        self.scales_: Floats = np.ones(len(names))
        self.target_ = name if isinstance(name := getattr(y, "name", None), str) else None
        _refuse_missing(frame)
        if self.standardize:
            for j in np.flatnonzero(self.numeric_):
                values = _numbers(frame[names[j]])
                self.means_[j] = values.mean()
                scale = float(values.std())
                self.scales_[j] = scale if scale > 0 else 1.0  # a constant column becomes zero
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns seen in `fit`, prepared.

        Parameters
        ----------
        X : data frame
            Has those columns, in any order, and any others.

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
                f"The table lacks the column{'s' if several else ''} {_listed(lost)} "
                f"that the model needs; its columns are: {_listed(frame.columns)}"
            )
        frame = frame.select(list(self.feature_names_in_))
        _refuse_missing(frame)
        columns = []
        for name, numeric, mean, scale in zip(
            self.feature_names_in_, self.numeric_, self.means_, self.scales_, strict=True
        ):
            column, backend = frame[name], frame.implementation
            if numeric:
                values = (_numbers(column) - mean) / scale
                column = nw.Series.from_numpy(name, values, backend=backend)
            else:
                words = [str(value) for value in column.to_list()]
                column = nw.new_series(name, words, nw.String, backend=backend)
            columns.append(column)
        return nw.to_native(frame.with_columns(*columns))

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


def is_numeric(column: nw.Series[Any]) -> bool:
    """Tell columns of numbers and booleans from the rest."""
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def _frame(X: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise InputTypeError(f"X must be a data frame, got {type(X).__name__}.") from None


def _refuse_missing(frame: nw.DataFrame[Any]) -> None:
    counts = {}
    for name in frame.columns:
        column = frame[name]
        missing = column.is_null()
        if column.dtype.is_float():
            missing = missing | ~column.is_finite().fill_null(True)
        if count := int(missing.sum()):
            counts[name] = count
    if counts:
        listed = _listed(counts, [f" ({count} rows)" for count in counts.values()])
        raise InputError(
            f"Values are missing (or infinite) in {listed}; fill them or leave the "
            f"{'columns' if len(counts) > 1 else 'column'} out first."
        )


def _numbers(column: nw.Series[Any]) -> Floats:
    if not is_numeric(column):
        wrong = next((v for v in column.to_list() if not _is_number(v)), None)
        raise InputError(f"The column {column.name!r} must hold numbers, but has {wrong!r}.")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _listed(names: Any, notes: Any = None, limit: int = 8) -> str:
    names = list(names)
    notes = [""] * len(names) if notes is None else notes
    shown = [f"{name!r}{note}" for name, note in zip(names, notes, strict=True)][:limit]
    return ", ".join(shown) + (", ..." if len(names) > limit else "")
