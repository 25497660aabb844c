"""One statement about one column, true or false for every row."""

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
        How the value of a row is compared with ``value``.
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
    def allowed(self) -> tuple[Label, ...]:
        """The levels that satisfy a proposition on ordered categories, else nothing."""
        if not self.levels:
            return ()
        cut = self.levels.index(self.value) + 1
        return self.levels[:cut] if self.operator == "<=" else self.levels[cut:]

    @property
    def text(self) -> str:
        """The proposition as people read it."""
        if isinstance(self.value, bool) and not self.is_threshold:
            return self.feature if self.value == (self.operator == "==") else f"not {self.feature}"
        return f"{self.feature} {self.operator} {show(self.value)}"

    def __str__(self) -> str:
        return self.text

    def holds(self, column: Any) -> Bools:
        """Tell for every row whether the proposition is true.

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
        if not self.is_threshold:
            code = self._code(column, self.value)
            codes = column.labels.codes
            if self.operator == "==":
                return np.asarray(codes == code if code >= 0 else np.zeros(len(codes), dtype=bool))
            return np.asarray((codes != code) & (codes >= 0) if code >= 0 else codes >= 0)
        if self.levels:
            wanted = np.zeros(len(column.labels.values) + 1, dtype=bool)  # last: code -1, missing
            wanted[[self._code(column, level) for level in self.allowed]] = True
            wanted[-1] = False
            return np.asarray(wanted[column.labels.codes])
        numbers = column.numbers
        return np.asarray(numbers <= self.value if self.operator == "<=" else numbers > self.value)

    def _code(self, column: Column, value: Label) -> int:
        """Return the code of a value in a column, -1 where it does not occur."""
        values = column.labels.values
        if (code := column.labels.code_of.get(value)) is not None:
            return code
        # Text "1" against a number 1 is a mistake of reading, not a new category.
        if values and not any(isinstance(v, str) == isinstance(value, str) for v in values):
            raise InputError(
                f"X: {self.feature!r} must hold {_kind(value)} such as {value!r}, as it did in "
                f"fit, but has {_kind(values[0])} such as {values[0]!r}. Hint: convert the column."
            )
        return -1


def is_position(value: Any) -> bool:
    """Tell whole numbers that are not negative from the rest."""
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
    """Return a value as it reads best; text is quoted where its end could be in doubt."""
    if isinstance(value, str):
        return value if re.fullmatch(r"[^\s'\"`]+", value) else repr(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
