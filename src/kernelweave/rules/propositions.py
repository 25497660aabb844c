"""Transformer from the columns of a table to boolean propositions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Bools
from kernelweave._validation import (
    Interval,
    StrOptions,
    check_names_in,
    check_weights,
    fit_context,
)
from kernelweave.errors import InputError

from .columns import Label, shown
from .cuts import cut_values
from .proposition import Proposition, is_position
from .summary import ColumnSummary, TableSummary, summarise
from .table import check_table


@dataclass(eq=False, repr=False)
class Propositions(TransformerMixin, BaseEstimator):
    """Turn the columns of a table into propositions that are true or false.

    - A numeric column with k distinct values is cut in ``min(n_cuts, k - 1)`` places, and each cut
      gives two propositions, ``x <= t`` and ``x > t``; ordered categories are cut likewise.
    - A nominal column with two values gives ``x == a`` and ``x == b``; with k > 2 values it gives
      ``x == v`` and ``x != v`` for each.
    - A column of truth values gives ``x`` and ``not x``.
    - A constant column gives nothing.

    A missing value (NaN, None, NA) satisfies no proposition of its column, and a category that
    `fit` did not see satisfies every ``!=``.

    Parameters
    ----------
    n_cuts : int, default=4
        Most cuts for a column of numbers.
    cut_strategy : {"quantile", "uniform"}, default="quantile"
        Cuts with shares near ``j / (n_cuts + 1)`` of the rows below them, or in equal steps from
        the smallest to the largest value; each midway between two neighbouring data values.
    categorical : "auto" or list of names or positions, default="auto"
        Columns of numbers or ordered categories to treat as nominal. Text, unordered categories
        and truth values are never cut, whether they are listed or not. ("auto" lists none; the
        order of a pandas ordered category or a polars Enum is used unless it is listed.)

    Attributes
    ----------
    propositions_ : tuple of Proposition
        In the order of the columns of ``X``.
    n_features_in_ : int
        Number of columns of ``X`` in `fit`.
    feature_names_in_ : ndarray of str
        Their names, where all have one that is text.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave import Propositions
    >>> X = pd.DataFrame({"age": [20, 30, 50], "smoker": [True, False, True]})
    >>> statements = Propositions().fit(X)
    >>> print(*statements.propositions_, sep=", ")
    age <= 25, age > 25, age <= 40, age > 40, smoker, not smoker
    >>> statements.transform(X).astype(int)
    array([[1, 0, 1, 0, 1, 0],
           [0, 1, 1, 0, 0, 1],
           [0, 1, 0, 1, 1, 0]])
    """

    n_cuts: int = 4
    _: KW_ONLY
    cut_strategy: str = "quantile"
    categorical: Any = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_cuts": [Interval(Integral, 1, None, closed="left")],
        "cut_strategy": [StrOptions({"quantile", "uniform"})],
        "categorical": [StrOptions({"auto"}), "array-like"],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the propositions.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Numbers, truth values, text and categories; values may be missing.
        y : ignored
            Present for scikit-learn's interface.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows, which move quantiles; rows without weight are left out.

        Returns
        -------
        self : Propositions
            The fitted transformer.
        """
        table = check_table(self, X, reset=True)
        return self._choose(summarise(table, check_weights(sample_weight, table.n_rows)))

    def _choose(self, summary: TableSummary) -> Self:
        """Choose the propositions by the values of the columns."""
        nominal = self.nominal_columns(summary)
        self.propositions_ = tuple(
            Proposition(column.name, position, operator, value, levels)
            for position, column in enumerate(summary.columns)
            for operator, value, levels in self._statements(column, position in nominal)
        )
        return self

    def _statements(
        self, column: ColumnSummary, nominal: bool
    ) -> Iterator[tuple[str, Label, tuple[Label, ...]]]:
        """Yield operator, value and levels of every proposition about a column."""
        if column.kind == "numeric" and not nominal:
            for cut in cut_values(*column.numbers(), self.n_cuts, self.cut_strategy):
                yield from (("<=", cut, ()), (">", cut, ()))
            return
        if column.kind == "ordered" and not nominal:
            for cut in cut_values(*column.ranks(), self.n_cuts, self.cut_strategy):
                level = column.levels[int(cut)]
                yield from (("<=", level, column.levels), (">", level, column.levels))
            return
        values = column.present()
        if column.kind == "boolean":
            values = values[::-1]  # true first: "smoker" before "not smoker"
        for value in values if len(values) > 1 else ():
            yield "==", value, ()
            if len(values) > 2:
                yield "!=", value, ()

    def nominal_columns(self, table: TableSummary) -> set[int]:
        """Return the positions that ``categorical`` lists."""
        if isinstance(self.categorical, str):
            return set()
        chosen = set()
        for item in np.asarray(self.categorical, dtype=object).tolist():
            if isinstance(item, str) and table.names is not None and item in table.names:
                chosen.add(table.names.index(item))
            elif is_position(item) and item < len(table.columns):
                chosen.add(int(item))
            else:
                names = [name for name in table.names or () if isinstance(name, str)]
                near = difflib.get_close_matches(item, names) if isinstance(item, str) else []
                hint = f"did you mean {shown(near)}" if near else f"the names are {shown(names)}"
                raise InputError(
                    "categorical must list names of columns or positions from 0 to "
                    f"{len(table.columns) - 1}, got {item!r}"
                    + (f"; {hint}." if names else "; X has no column names.")
                )
        return chosen

    def fit_summary(self, summary: TableSummary) -> Self:
        """Choose the propositions of a table in blocks of rows.

        Parameters
        ----------
        summary : TableSummary
            Result of `kernelweave.rules.summary.join_summaries`.

        Returns
        -------
        self : Propositions
            The fitted transformer; the same as after `fit` on the whole table, except that a
            column of more than 10 000 distinct numbers is cut by a sample of about 50 000 rows.
        """
        self._validate_params()
        self.n_features_in_ = len(summary.columns)
        if summary.names is not None and all(isinstance(name, str) for name in summary.names):
            self.feature_names_in_ = np.array(summary.names, dtype=object)
        return self._choose(summary)

    def transform(self, X: Any) -> Bools:
        """Return for every row which propositions are true.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The columns seen in `fit`.

        Returns
        -------
        true : ndarray of bool of shape (n_samples, n_propositions)
            One column for each of ``propositions_``, contiguous in memory.
        """
        check_is_fitted(self)
        table = check_table(self, X, reset=False)
        true = np.empty((table.n_rows, len(self.propositions_)), dtype=bool, order="F")
        numbered = enumerate(self.propositions_)
        for position, group in groupby(numbered, key=lambda pair: pair[1].position):
            column = table.column(position)
            for j, proposition in group:
                true[:, j] = proposition.holds(column)
        return true

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the propositions as text.

        Parameters
        ----------
        input_features : array-like of str or None
            Must be the names seen in `fit`, where they are given.

        Returns
        -------
        names : ndarray of str
            As many as `transform` returns columns, all different.
        """
        check_is_fitted(self)
        check_names_in(self, input_features)
        texts = [proposition.text for proposition in self.propositions_]
        if len(set(texts)) < len(texts):  # 1 and "1" in one column, or a name like "not x"
            texts = [f"{p.feature!r} {p.operator} {p.value!r}" for p in self.propositions_]
        return np.array(texts, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags
