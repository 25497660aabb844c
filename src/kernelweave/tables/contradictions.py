"""Columns that contradict a label: values that are usual under another label, but not under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._text import clip

from .reading import is_number

if TYPE_CHECKING:
    import pandas as pd

_MOST = 5  # columns that are marked
_SAID = 2  # of them that a sentence describes
_CLEAR = 0.5  # interquartile ranges, or units of the logarithm of a share
_VALUES = 50  # different values up to which a column of text is one of categories


@dataclass(frozen=True)
class Contradictions:
    """Medians of numbers and shares of categories, by label.

    A number contradicts a label by how much nearer it is to the median of the other label, in
    interquartile ranges of the column; a category by the logarithm of the ratio of its shares.
    """

    names: list[str]
    medians: dict[str, Any]  # by label: medians of the columns, NaN where a column has none
    spreads: Any
    shares: dict[str, dict[int, dict[Any, float]]]  # by label and column: shares of the values

    @classmethod
    def of(cls, frame: pd.DataFrame, labels: pd.Series[Any]) -> Contradictions:
        """Describe the columns of a table by the label of its rows."""
        numeric = np.array([is_number(frame[name]) for name in frame.columns], dtype=bool)
        values = np.full(frame.shape, np.nan)
        if numeric.any():
            values[:, numeric] = frame.loc[:, numeric].to_numpy(dtype=float, na_value=np.nan)
        several = [
            j
            for j, name in enumerate(frame.columns)
            if not numeric[j] and frame[name].astype(str).nunique() <= _VALUES
        ]
        texts = {j: frame.iloc[:, j].astype(str).to_numpy() for j in several}
        medians, shares = {}, {}
        given = labels.to_numpy()
        for label in np.unique(given):
            rows = given == label
            medians[label] = _quantiles(values[rows], [0.5])[0]
            shares[label] = {
                j: {str(v): float((column[rows] == v).mean()) for v in np.unique(column)}
                for j, column in texts.items()
            }
        low, high = _quantiles(values, [0.25, 0.75])
        spreads = np.where(high > low, high - low, np.nan)
        return cls([str(name) for name in frame.columns], medians, spreads, shares)

    def explain(
        self, row: pd.Series[Any], given: str, suggested: str
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return the columns of a row that contradict its label, and sentences on the first."""
        if given not in self.medians or suggested not in self.medians:
            return (), ()
        numbers = np.isfinite(self.spreads)
        values = np.full(len(self.names), np.nan)
        cells = row.to_numpy(dtype=object)
        values[numbers] = [_number(value) for value in cells[numbers]]
        own, other = self.medians[given], self.medians[suggested]
        against = (np.abs(values - own) - np.abs(values - other)) / self.spreads
        for j, by_value in self.shares[given].items():
            value, few = str(cells[j]), 0.01
            ratio = (self.shares[suggested][j].get(value, 0.0) + few) / (
                by_value.get(value, 0.0) + few
            )
            against[j] = np.log(ratio)
        order = np.argsort(-np.nan_to_num(against, nan=-np.inf), kind="stable")[:_MOST]
        columns = tuple(int(j) for j in order if against[j] > _CLEAR)
        said = tuple(self._say(j, cells[j], given, suggested) for j in columns[:_SAID])
        return columns, said

    def _say(self, j: int, value: Any, given: str, suggested: str) -> str:
        name, labels = clip(self.names[j], 40), [clip(one, 40) for one in (given, suggested)]
        if j in self.shares[given]:
            a, b = (self.shares[one][j].get(str(value), 0.0) for one in (given, suggested))
            return (
                f"{name} is {clip(value, 40)}: so are {a:.0%} of the rows labelled {labels[0]} and "
                f"{b:.0%} of those labelled {labels[1]}."
            )
        a, b = self.medians[given][j], self.medians[suggested][j]
        return (
            f"{name} is {float(value):.4g}: the median of {labels[0]} is {a:.4g}, of {labels[1]} "
            f"{b:.4g}."
        )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def _quantiles(values: Any, shares: list[float]) -> Any:
    """Return quantiles of columns; NaN for columns without values."""
    out = np.full((len(shares), values.shape[1]), np.nan)
    some = np.isfinite(values).any(axis=0)
    if some.any():
        finite = np.where(np.isfinite(values[:, some]), values[:, some], np.nan)
        out[:, some] = np.nanquantile(finite, shares, axis=0)
    return out
