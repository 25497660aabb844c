"""A rule: conditions that must all hold, and what it adds to the score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from kernelweave._types import Bools
from kernelweave.errors import InputError, InputTypeError

from .proposition import Proposition, show
from .table import Table, read_table


@dataclass(frozen=True)
class Rule:
    """Add a weight to the score of every row for which all conditions hold.

    Parameters
    ----------
    conditions : tuple of Proposition
        What must hold; without any, the rule always does.
    weight : float or tuple of float
        What is added to the score, one number for each output.
    coverage : float
        Share of the training rows for which the rule holds.

    Examples
    --------
    >>> from kernelweave.rules import Proposition, Rule
    >>> conditions = (
    ...     Proposition("age", 0, ">", 20.5),
    ...     Proposition("colour", 1, "==", "red"),
    ...     Proposition("age", 0, "<=", 41.5),
    ... )
    >>> rule = Rule(conditions, weight=0.75, coverage=0.2)
    >>> rule.text
    '20.5 < age <= 41.5 and colour == red'
    >>> rule.length
    3
    >>> rule.holds([[30, "red"], [30, "blue"], [50, "red"]]).tolist()
    [True, False, False]
    """

    conditions: tuple[Proposition, ...]
    weight: float | tuple[float, ...]
    coverage: float

    def __post_init__(self) -> None:
        conditions = tuple(self.conditions)
        for i, condition in enumerate(conditions):
            if not isinstance(condition, Proposition):
                raise InputTypeError(
                    f"conditions must be propositions, but item {i} is {condition!r}."
                )
        given: Any = self.weight
        weight: Any = (
            tuple(finite("weight", value) for value in given)
            if isinstance(given, tuple | list | np.ndarray)
            else finite("weight", given)
        )
        coverage = finite("coverage", self.coverage)
        if not 0 <= coverage <= 1:
            raise InputError(f"coverage must be a share from 0 to 1, got {coverage!r}.")
        for name, value in (("conditions", conditions), ("weight", weight), ("coverage", coverage)):
            object.__setattr__(self, name, value)

    @property
    def weights(self) -> tuple[float, ...]:
        """The weight for each output, also where there is one."""
        return self.weight if isinstance(self.weight, tuple) else (self.weight,)

    @property
    def length(self) -> int:
        """How many conditions there are."""
        return len(self.conditions)

    @property
    def text(self) -> str:
        """The conditions as people read them; those that others imply are left out."""
        return describe(self.conditions)

    def __str__(self) -> str:
        return self.text

    def holds(self, X: Any) -> Bools:
        """Tell for every row whether all conditions hold.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Columns of a frame are found by name, others by position.

        Returns
        -------
        true : ndarray of bool of shape (n_samples,)
            Where the rule holds.
        """
        table = X if isinstance(X, Table) else read_table(X)
        true = np.ones(table.n_rows, dtype=bool)
        for condition in self.conditions:
            true &= condition.holds(table.find(condition.feature, condition.position))
        return true


def finite(name: str, value: Any) -> float:
    """Return a finite number as a float, or refuse it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a finite number, got {value!r}.")
    if not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def essential(conditions: Sequence[Proposition]) -> tuple[Proposition, ...]:
    """Leave out conditions that others on the same column imply; the order stays.

    Parameters
    ----------
    conditions : sequence of Proposition
        What must hold together.

    Returns
    -------
    needed : tuple of Proposition
        Those that decide.
    """
    kept: list[Proposition] = []
    for condition in dict.fromkeys(conditions):
        others = [c for c in conditions if c.feature == condition.feature and c != condition]
        if not any(_implies(other, condition) for other in others):
            kept.append(condition)
    return tuple(kept)


def _implies(strong: Proposition, weak: Proposition) -> bool:
    """Tell whether one condition on a column makes another one on it superfluous."""
    if strong.is_threshold and weak.is_threshold:
        if strong.operator != weak.operator or strong.levels != weak.levels:
            return False
        below = _rank(strong) < _rank(weak)
        return below if strong.operator == "<=" else not below
    return strong.operator == "==" and weak.operator == "!=" and strong.value != weak.value


def _rank(condition: Proposition) -> float:
    if condition.levels:
        return condition.levels.index(condition.value)
    return float(condition.value)


def describe(conditions: Sequence[Proposition]) -> str:
    """Return conditions as one phrase, with bounds from both sides written as a range.

    Parameters
    ----------
    conditions : sequence of Proposition
        Joined by "and"; without any the phrase is "always".
    """
    needed = list(essential(conditions))
    phrases = []
    while needed:
        first = needed.pop(0)
        other = next((c for c in needed if _make_range(first, c)), None)
        if other is None:
            phrases.append(first.text)
            continue
        needed.remove(other)
        low, high = (first, other) if first.operator == ">" else (other, first)
        phrases.append(f"{show(low.value)} < {first.feature} <= {show(high.value)}")
    return " and ".join(phrases) or "always"


def _make_range(first: Proposition, second: Proposition) -> bool:
    if not (first.is_threshold and second.is_threshold and first.feature == second.feature):
        return False
    if first.operator == second.operator or first.levels != second.levels:
        return False
    low, high = (first, second) if first.operator == ">" else (second, first)
    return _rank(low) < _rank(high)
