"""A rule: a conjunction of propositions with a weight."""

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
from .table import read_table


@dataclass(frozen=True)
class Rule:
    """Add a weight to the score of every row for which all conditions hold.

    Parameters
    ----------
    conditions : tuple of Proposition
        All must hold; a rule without conditions always holds.
    weight : float or tuple of float
        Added to the score, one number for each output.
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
        weight = read_weight(self.weight)
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
    def columns(self) -> tuple[str, ...]:
        """The columns that the conditions are about, each once."""
        return tuple(dict.fromkeys(condition.feature for condition in self.conditions))

    @property
    def text(self) -> str:
        """The conditions as text, without those that others imply."""
        return describe(self.conditions)

    @property
    def name(self) -> str:
        """What the weight belongs to, as for a linear term: the same text."""
        return self.text

    def __str__(self) -> str:
        return self.text

    def holds(self, X: Any) -> Bools:
        """Return for every row whether all conditions hold.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Columns of a frame are found by name, others by position.

        Returns
        -------
        true : ndarray of bool of shape (n_samples,)
            Where the rule holds.
        """
        table = read_table(X)
        true = np.ones(table.n_rows, dtype=bool)
        for condition in self.conditions:
            true &= condition.holds(table.find(condition.feature, condition.position))
        return true


def read_weight(given: Any) -> float | tuple[float, ...]:
    """Return a weight, or one for each output, as floats of Python."""
    if isinstance(given, tuple | list | np.ndarray):
        return tuple(finite("weight", value) for value in given)
    return finite("weight", given)


def finite(name: str, value: Any) -> float:
    """Return a finite number as a float, or refuse it."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a finite number, got {value!r}.")
    if not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def essential(conditions: Sequence[Proposition]) -> tuple[Proposition, ...]:
    """Return conditions without those that others on the same column imply.

    Parameters
    ----------
    conditions : sequence of Proposition
        All must hold; their order is kept.
    """
    kept: list[Proposition] = []
    for condition in dict.fromkeys(conditions):
        others = [c for c in conditions if c.feature == condition.feature and c != condition]
        if not any(other.implies(condition) for other in others):
            kept.append(condition)
    return tuple(kept)


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
        other = next((c for c in needed if first.is_range_with(c)), None)
        if other is None:
            phrases.append(first.text)
            continue
        needed.remove(other)
        low, high = (first, other) if first.operator == ">" else (other, first)
        phrases.append(f"{show(low.value)} < {first.feature} <= {show(high.value)}")
    return " and ".join(phrases) or "always"
