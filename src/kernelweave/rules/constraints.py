"""Constraints on rules: directions of columns, forbidden and required columns, few columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave.errors import InputError

from .linear import LinearTerm, is_linear
from .proposition import Proposition, is_position


def find_column(item: Any, names: Sequence[str] | None, n_columns: int, argument: str) -> int:
    """Return the position of a column that is given by its name or position.

    ``argument`` is the argument that it was given in, for the message.
    """
    if isinstance(item, str) and names is not None and item in names:
        return list(names).index(item)
    if is_position(item) and int(item) < n_columns:
        return int(item)
    known = f"names of columns ({', '.join(map(repr, list(names)[:5]))}, ...) or " if names else ""
    raise InputError(f"{argument}: must hold {known}positions below {n_columns}, got {item!r}.")


def find_columns(
    items: Iterable[Any] | None, names: Sequence[str] | None, n_columns: int, argument: str
) -> set[int]:
    """Return the positions of columns; a single name is an error, since text is iterable."""
    if items is None:
        return set()
    if isinstance(items, str):
        raise InputError(f"{argument}: must be a list of columns, got the text {items!r}.")
    return {find_column(item, names, n_columns, argument) for item in items}


def read_directions(
    monotone: Mapping[Any, int] | None, names: Sequence[str] | None, n_columns: int
) -> dict[int, int]:
    """Return the direction, 1 or -1, of every column in which the score is monotone."""
    directions = {}
    for item, direction in (monotone or {}).items():
        position = find_column(item, names, n_columns, "monotone")
        if isinstance(direction, bool) or direction not in (1, -1, 0):
            raise InputError(
                f"monotone: the direction of {item!r} must be 1 (the score may not fall as the "
                f"column rises), -1 or 0, got {direction!r}."
            )
        if direction:
            directions[position] = int(direction)
    return directions


def proposition_signs(
    propositions: Sequence[Proposition | LinearTerm], directions: Mapping[int, int]
) -> NDArray[np.int8] | None:
    """Return the sign of weights that keeps the score monotone, for each proposition.

    ``x > t`` under direction 1 may only raise the score and ``x <= t`` only lower it, and a linear
    term may only rise, so that the sum is monotone in ``x``. Directions, 1 or -1, are by position
    of the column; None where no column has one.

    Examples
    --------
    >>> from kernelweave.rules import Proposition
    >>> from kernelweave.rules.constraints import proposition_signs
    >>> cuts = [Proposition("age", 0, "<=", 30), Proposition("age", 0, ">", 30)]
    >>> proposition_signs(cuts, {0: 1}).tolist()
    [-1, 1]
    """
    if not directions:
        return None
    signs = np.zeros(len(propositions), dtype=np.int8)
    for k, proposition in enumerate(propositions):
        direction = directions.get(proposition.position, 0)
        if not direction:
            continue
        if is_linear(proposition):
            signs[k] = direction
            continue
        if not proposition.is_threshold:
            raise InputError(
                f"monotone: {proposition.feature!r} has categories without an order. Hint: leave "
                "it out, or make it a column of numbers or an ordered category."
            )
        signs[k] = direction if proposition.operator == ">" else -direction
    return signs


def strongest_columns(
    conditions: Iterable[Sequence[Proposition | LinearTerm]],
    sizes: Iterable[float],
    most: int,
    required: Iterable[int] = (),
) -> set[int]:
    """Return the positions of the required columns, and of those whose rules are largest in sum.

    The size of a rule counts in full for every column in it; at most ``most`` columns are returned.
    """
    total: dict[int, float] = {}
    for rule, size in zip(conditions, sizes, strict=True):
        for position in {proposition.position for proposition in rule}:
            total[position] = total.get(position, 0.0) + float(size)
    chosen = set(required)
    ranked = sorted(total.keys() - chosen, key=lambda position: (-total[position], position))
    return chosen.union(ranked[: most - len(chosen)])
