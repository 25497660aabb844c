"""A proposition: a statement about one column that is true or false for every row."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from kernelweave._types import Bools
from kernelweave.errors import InputError, InputTypeError

from .columns import Column, Label, plain_value, read_column, shown

OPERATORS = ("<=", ">", "==", "!=")


@dataclass(frozen=True)
class Proposition:
    """A statement about one column, such as ``age <= 41.5`` or ``colour == red``.

    A missing value satisfies no proposition, not even one with ``!=``; a value that did not
    occur in training satisfies every ``!=`` and no ``==``.

    Parameters
    ----------
    feature : str
        Name of the column; ``"column 3"`` where columns have no names.
    position : int
        Its position, from 0.
    operator : {"<=", ">", "==", "!="}
        Comparison of a row's value with ``value``.
    value : float, int, bool or str
        The threshold, or the category. ``== True`` reads as the name of the column alone.
    levels : tuple, default=()
        For ``<=`` and ``>`` on ordered categories: all of them, lowest first.

    Examples
    --------
    >>> from kernelweave.rules import Proposition
    >>> young = Proposition("age", 0, "<=", 41.5)
    >>> str(young)
    'age <= 41.5'
    >>> young.holds([30, 50, None]).tolist()
    [True, False, False]
    """

    feature: str
    position: int
    operator: str
    value: Label
    levels: tuple[Label, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.feature, str):
            raise InputTypeError(
                f"feature must be the name of a column as text, got {self.feature!r}; a column "
                f"without a name is called 'column {self.position}'."
            )
        if not is_position(self.position):
            raise InputError(
                f"position must be a whole number >= 0, got {self.position!r}; the first column "
                "is 0."
            )
        if self.operator not in OPERATORS:
            raise InputError(
                f"operator must be one of {', '.join(OPERATORS)}, got {self.operator!r}."
            )
        object.__setattr__(self, "feature", plain_value(self.feature))
        object.__setattr__(self, "position", int(self.position))
        object.__setattr__(self, "value", _plain(self.value))
        object.__setattr__(self, "levels", tuple(_plain(level) for level in self.levels))
        self._check_value()

    def _check_value(self) -> None:
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"value must be finite, got {value!r}; no row is equal to NaN.")
        if self.levels and (not self.is_threshold or value not in self.levels[:-1]):
            raise InputError(
                f"value must be one of levels but the last, {shown(self.levels[:-1])}, with the "
                f"operator <= or > where levels are given, got {self.operator} {value!r}."
            )
        if self.is_threshold and not self.levels and isinstance(value, str | bool):
            raise InputTypeError(
                f"value must be a number where the operator is {self.operator}, got {value!r}; "
                "for ordered categories give levels."
            )

    @property
    def is_threshold(self) -> bool:
        """Whether the column is compared by order."""
        return self.operator in ("<=", ">")

    @property
    def is_numeric(self) -> bool:
        """Whether the column is compared as a number."""
        return self.is_threshold and not self.levels

    @property
    def allowed(self) -> tuple[Label, ...]:
        """The levels that satisfy a proposition on ordered categories, else nothing."""
        if not self.levels:
            return ()
        cut = self.levels.index(self.value) + 1
        return self.levels[:cut] if self.operator == "<=" else self.levels[cut:]

    @property
    def rank(self) -> float:
        """The threshold as a number: the position of the level for ordered categories."""
        return self.levels.index(self.value) if self.levels else float(self.value)

    @property
    def text(self) -> str:
        """The proposition as text for people."""
        if isinstance(self.value, bool) and not self.is_threshold:
            return self.feature if self.value == (self.operator == "==") else f"not {self.feature}"
        return f"{self.feature} {self.operator} {show(self.value)}"

    def __str__(self) -> str:
        return self.text

    def implies(self, other: Proposition) -> bool:
        """Whether this proposition makes a different one on the same column redundant."""
        if self.is_threshold and other.is_threshold:
            if self.operator != other.operator or self.levels != other.levels:
                return False
            below = self.rank < other.rank
            return below if self.operator == "<=" else not below
        return self.operator == "==" and other.operator == "!=" and self.value != other.value

    def is_range_with(self, other: Proposition) -> bool:
        """Whether the two are a lower and an upper bound of one column, in this order or not."""
        if not (self.is_threshold and other.is_threshold and self.feature == other.feature):
            return False
        if self.operator == other.operator or self.levels != other.levels:
            return False
        low, high = (self, other) if self.operator == ">" else (other, self)
        return low.rank < high.rank

    def holds(self, column: Any) -> Bools:
        """Return for every row whether the proposition is true.

        Parameters
        ----------
        column : list, ndarray or series of any library
            The values of this one column.

        Returns
        -------
        true : ndarray of bool of shape (n_samples,)
            False wherever the value is missing.
        """
        column = read_column(column, self.feature)
        if self.is_numeric:
            numbers = column.numbers
            return np.asarray(
                numbers <= self.value if self.operator == "<=" else numbers > self.value
            )
        codes = column.labels.codes
        if self.levels:
            true = np.zeros(len(column.labels.values) + 1, dtype=bool)  # last: code -1, missing
            found = [self._code(column, level) for level in self.allowed]
            true[[code for code in found if code >= 0]] = True
            return np.asarray(true[codes])
        code = self._code(column, self.value)
        return np.asarray(
            codes == code if self.operator == "==" else (codes != code) & (codes >= 0)
        )

    amounts = holds  # what a term of a model reads: one where it is true

    def _code(self, column: Column, value: Label) -> int:
        """Return the code of a value in a column; -2, the code of no row, where it is absent."""
        values = column.labels.values
        if (code := column.labels.code_of.get(value)) is not None:
            return code
        # Text "1" against a number 1 is a wrong column type, not a new category.
        if values and not any(isinstance(v, str) == isinstance(value, str) for v in values):
            raise InputError(
                f"X: {self.feature!r} must hold {_kind(value)} such as {value!r}, as it did in "
                f"fit, but has {_kind(values[0])} such as {values[0]!r}. Hint: convert the column."
            )
        return -2


def is_position(value: Any) -> bool:
    """Return whether the value is a whole number that is not negative."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 0


def _plain(value: Any) -> Label:
    """Return a number, truth value or text of Python."""
    value = plain_value(value)
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Real):
        return float(value)
    raise InputTypeError(f"value must be a number, a truth value or text, got {value!r}.")


def _kind(value: Label) -> str:
    return "text" if isinstance(value, str) else "numbers"


def show(value: Label) -> str:
    """Return a value as text; strings are quoted where their end would be ambiguous."""
    if isinstance(value, str):
        return value if re.fullmatch(r"[^\s'\"`]+", value) else repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
