"""Linear terms beside rules: columns of numbers, clipped at outlying values.

References
----------
J. H. Friedman, B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied
Statistics 2, 2008, section 5 (linear terms beside rules).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.errors import InputError

from .columns import read_column
from .proposition import Proposition, is_position, show
from .rule import Rule, finite, read_weight
from .summary import TableSummary

if TYPE_CHECKING:
    from typing_extensions import TypeIs

OUTLYING = 0.025  # share of the rows below and above which values are clipped
# Standard deviation of a column in the problem: twice that of a typical rule, which Friedman and
# Popescu take, so that a term may replace several cuts. Chosen among 0.4, 0.8 and 1.6 on the
# development tables of experiments/rules_short.py.
SPREAD = 0.8


@dataclass(frozen=True)
class LinearTerm:
    """Add ``weight * (clip(x, low, high) - mean)`` to the score; a missing value adds nothing.

    Parameters
    ----------
    feature : str
        Name of the column; ``"column 3"`` where columns have no names.
    position : int
        Its position, from 0.
    low, high : float
        Values below and above count as these.
    mean : float
        Of the clipped column, over the training rows.
    weight : float or tuple of float
        What one unit of the column adds, one number for each output.

    Examples
    --------
    >>> from kernelweave.rules import LinearTerm
    >>> age = LinearTerm("age", 0, low=20, high=60, mean=45, weight=0.031)
    >>> print(age)
    0.031 * age (20 to 60)
    >>> age.amounts([30, 90, None]).tolist()
    [-15.0, 15.0, 0.0]
    """

    feature: str
    position: int
    low: float
    high: float
    mean: float
    weight: float | tuple[float, ...]

    is_numeric = True  # its column is read as a number, like that of a proposition with a cut
    length = 1  # it counts as a rule of one condition

    def __post_init__(self) -> None:
        if not isinstance(self.feature, str) or not is_position(self.position):
            raise InputError(
                "feature and position must be the name and the number of a column, got "
                f"{self.feature!r} and {self.position!r}."
            )
        for name in ("low", "high", "mean"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))
        object.__setattr__(self, "weight", read_weight(self.weight))
        if not self.low < self.high:
            raise InputError(f"low must be below high, got {self.low!r} and {self.high!r}.")

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight for each output, also where there is one."""
        return self.weight if isinstance(self.weight, tuple) else (self.weight,)

    @property
    def conditions(self) -> tuple[LinearTerm, ...]:
        """What is read of a row, as for a rule: the column alone."""
        return (self,)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, as for a rule."""
        return (self.feature,)

    @property
    def text(self) -> str:
        """The term as text for people."""
        weights = ", ".join(f"{weight:.3g}" for weight in self.weights)
        scale = f"({weights})" if len(self.weights) > 1 else weights
        return f"{scale} * {self.name}"

    @property
    def name(self) -> str:
        """The column and its range as text."""
        return f"{self.feature} ({show(_short(self.low))} to {show(_short(self.high))})"

    def __str__(self) -> str:
        return self.text

    def amounts(self, column: Any) -> Floats:
        """Return how far the clipped values are above the mean; zero where one is missing.

        Parameters
        ----------
        column : list, ndarray or series of any library
            The values of this one column.
        """
        numbers = read_column(column, self.feature).numbers
        above = np.clip(numbers, self.low, self.high) - self.mean
        return np.where(np.isnan(numbers), 0.0, above)


def _short(value: float) -> float:
    return float(f"{value:.4g}")


Term = Rule | LinearTerm


def is_linear(term: Term | Proposition) -> TypeIs[LinearTerm]:
    """Whether what is added to a score, or is read of a row, is a linear term."""
    return type(term) is LinearTerm


def linear_columns(summary: TableSummary, excluded: Collection[int] = ()) -> tuple[LinearTerm, ...]:
    """Return a term for every column of more than two numbers, in the scale of the problem.

    The clipped column times the weight has a standard deviation of 0.8.

    Parameters
    ----------
    summary : TableSummary
        Values of the columns.
    excluded : collection of int
        Positions of columns that get none.
    """
    return tuple(_linear_columns(summary, excluded))


def _linear_columns(summary: TableSummary, excluded: Collection[int]) -> Iterator[LinearTerm]:
    for position, column in enumerate(summary.columns):
        if position in excluded or column.kind != "numeric":
            continue
        values, counts = column.numbers()
        if len(values) < 3:  # of two values a rule tells all
            continue
        below = np.cumsum(counts)
        ends = np.searchsorted(below, np.array([OUTLYING, 1.0 - OUTLYING]) * below[-1])
        low, high = values[np.minimum(ends, len(values) - 1)].tolist()
        if low == high:
            continue
        # Relative to the range, whose square is a number.
        shares = (np.clip(values, low, high) - low) / (high - low)
        mean = float(counts @ shares) / float(below[-1])
        deviation = float(np.sqrt(counts @ (shares - mean) ** 2 / below[-1]))
        scale = SPREAD / (deviation * (high - low))
        if np.isfinite(scale) and scale > 0.0:
            centre = min(max(low + mean * (high - low), low), high)
            yield LinearTerm(column.name, position, low, high, centre, scale)
