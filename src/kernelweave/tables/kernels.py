"""Kernels that suit the columns of a table."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from kernelweave.kernels import (
    RBF,
    Kernel,
    KernelFamily,
    Linear,
    Overlap,
    Precomputed,
    Words,
    complete_ladder,
    group,
    mixed_ladder,
    views,
)

from .problem import Problem

_MANY_COLUMNS = 60  # more than this are offered together only


def offer_kernels(problem: Problem, *, per_feature: bool = True) -> list[Any]:
    """Return the kernels of a table: `mixed_ladder`, words of texts, and ready Gram matrices.

    Parameters
    ----------
    problem : Problem
        The columns and their kinds.
    per_feature : bool
        Whether to offer kernels on single columns.

    Returns
    -------
    kernels : list of Kernel and KernelFamily
        For the parameter ``kernels`` of the estimators.

    Examples
    --------
    >>> import pandas as pd
    >>> from kernelweave.tables import make_problem
    >>> frame = pd.DataFrame({"age": [3, 5, 4], "town": ["a", "b", "a"], "y": ["p", "q", "p"]})
    >>> [str(kernel) for kernel in offer_kernels(make_problem(frame, "y"))]
    ['mixed_ladder on 2 columns (age, town)']
    """
    shared = {column for columns in problem.sources.values() for column in columns}
    together = [c for c in problem.columns("number", "date", "category") if c not in shared]
    rule = "off" if problem.missing == "off" and not problem.sources else "fill"
    mixed = mixed_ladder(columns=together, per_feature=per_feature, missing=rule)
    return [
        *([_of_sources(problem)] if problem.sources else []),
        *([mixed] if together else []),
        *(kernel for kernel in _others(problem) if kernel.columns not in shared),
    ]


def _of_sources(problem: Problem) -> KernelFamily:
    """Return kernels on each source; its texts are compared by their words."""
    texts = problem.columns("text")
    parts: dict[str, Any] = {}
    for name, columns in problem.sources.items():
        together = [column for column in columns if column not in texts]
        if together:
            parts[name] = (together, mixed_ladder(per_feature=False))
        parts |= {f"{name}: {c}": (c, Words(missing="off")) for c in columns if c in texts}
    return views(parts, missing="refuse" if problem.missing == "fill" else problem.missing)


def offer_complete(problem: Problem) -> list[Any]:
    """Return kernels each of which covers all columns of its kinds, for averages of models."""
    together = problem.columns("number", "date", "category")
    return [*([complete_ladder(columns=together)] if together else []), *_others(problem)]


def offer_structure(problem: Problem) -> Kernel:
    """Return a structure: a group of kernels for each kind of columns, and products of groups."""
    numbers, categories = problem.columns("number", "date"), problem.columns("category")
    groups: list[Kernel] = []
    if numbers:
        middle = (2.0 * len(numbers)) ** 0.5  # root mean squared distance of standardised rows
        widths: list[Kernel] = [RBF(step * middle, columns=numbers) for step in (0.35, 0.7, 1.4)]
        groups.append(group(*widths, Linear(columns=numbers), name="numbers"))
    if 1 < len(numbers) <= _MANY_COLUMNS:
        single = [RBF(1.0, columns=name) for name in numbers]
        groups.append(group(*single, name="single columns"))
    if categories:
        each = [Overlap(columns=name) for name in categories] if len(categories) > 1 else []
        groups.append(group(Overlap(columns=categories), *each, name="categories"))
    others = _others(problem)
    if others:
        groups.append(group(*others, name="text and matrices"))
    products = [groups[0] * other for other in groups[1:]]
    return reduce(add, [*groups, *products])


def _others(problem: Problem) -> list[Kernel]:
    words: list[Kernel] = [Words(columns=name) for name in problem.columns("text")]
    ready = [Precomputed(gram, columns=name, name=name) for name, gram in problem.grams.items()]
    return [*words, *ready]
