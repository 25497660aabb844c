"""Decide which candidates are compared, and on how many folds, within a budget of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    train_test_split,
)

from kernelweave._types import Indices
from kernelweave.errors import DataError

from .candidates import BOOSTING, LINEAR, METRIC, MKL, SVM, Candidate
from .problem import Problem

MAX_ROWS = 50_000  # rows that are used; more are drawn from
_LEAST_ROWS = 30  # below which nothing can be compared
_HELD_OUT = 0.25  # share of the rows where one part is held out in place of folds
_MOST_HELD_OUT = 10_000
_FOLDS = (10, 5, 3, 2, 1)
_MOST_DRAWS = 10  # of folds of whole groups, until each has all classes to learn from
_BASE = [METRIC, LINEAR, SVM, BOOSTING]


@dataclass(frozen=True)
class Plan:
    """Candidates, folds, and about how long the comparison and the last fit take."""

    candidates: tuple[Candidate, ...]
    n_folds: int
    seconds: float


def usual_seconds(n_rows: int) -> float:
    """Return the time to spend where none is given: 3 seconds for 1000 rows, a minute at most."""
    return float(np.clip(3e-3 * n_rows, 3.0, 60.0))


def make_plan(
    problem: Problem, seconds: float | None, fixed: Candidate | None = None, *, alone: bool = False
) -> Plan:
    """Return the largest comparison that the budget allows; ``alone``: of settings of one model.

    The linear model, the SVM baseline, the learned metric and gradient boosting, which is a
    reference only, always take part. Multiple kernel learning joins them where there is text, which
    the learned metric cannot read, or where the budget allows it. Times are estimates, not
    measurements, so that equal tables give equal models.
    """
    n = len(problem.y)
    n_outputs = 1 if problem.regression else max(1, problem.y.nunique() * (problem.y.nunique() > 2))
    budget = usual_seconds(n) if seconds is None else seconds
    base = [] if alone or not problem.columns("number", "date", "category", "text") else _BASE
    if base and not problem.columns("number", "date", "category"):
        base = base[1:]
    if fixed is not None and fixed not in base:
        base = [fixed, *base]
    lists = [base]
    if fixed is None:
        lists = [[*base, MKL], base] if not problem.columns("text") else [[*base, MKL]]
    for candidates in lists:
        # A comparison by two folds with more candidates is better than by ten with fewer.
        for n_folds in _FOLDS:
            spent = estimate_seconds(candidates, problem, n_folds, n, n_outputs)
            if spent <= budget and (n_folds > 2 or candidates is lists[-1]):
                return Plan(tuple(candidates), n_folds, spent)
    spent = estimate_seconds(lists[-1], problem, 1, n, n_outputs)
    return Plan(tuple(lists[-1]), 1 if n > 10_000 else 2, spent)


def estimate_seconds(
    candidates: Sequence[Candidate], problem: Problem, n_folds: int, n: int, n_outputs: int
) -> float:
    """Return about how long it takes to compare candidates and to fit the best to all rows."""
    rows = int(n * (1 - 1 / n_folds)) if n_folds > 1 else int(n * (1 - _HELD_OUT))
    total = 0.0
    for candidate in candidates:
        n_fits = n_folds + search_folds(n_folds) * (len(candidate.settings(problem)) - 1)
        total += n_fits * candidate.seconds(min(rows, candidate.max_rows), n_outputs)
    return total + max(c.seconds(min(n, c.max_rows), n_outputs) for c in candidates if c.written)


def search_folds(n_folds: int) -> int:
    """Return the number of folds on which all settings are tried: a third of the rows or more."""
    return -(-n_folds // 3)


def can_be_compared(problem: Problem) -> bool:
    """Tell whether a table has the rows to compare candidates, of the smallest class too."""
    enough = len(problem.y) >= _LEAST_ROWS
    return enough and (problem.regression or problem.y.value_counts().iloc[1] >= 4)


def make_folds(
    problem: Problem, n_folds: int, seed: int, share: float = _HELD_OUT
) -> list[tuple[Indices, Indices]]:
    """Return rows to fit to and rows left out; copies of a row, and given groups, stay together.

    ``share``: of the rows that are left out, where there is one fold.
    """
    rows = np.arange(len(problem.y))
    groups: Any = row_groups(problem)
    if problem.groups is not None:
        return _fold_groups(problem, groups, n_folds, seed, share)
    if n_folds == 1:
        n_test = max(1, min(_MOST_HELD_OUT, int(share * len(rows))))
        counts = None if problem.regression else problem.y.value_counts()
        apart = counts is not None and counts.min() > 1 and len(counts) <= n_test
        stratify = problem.y if apart else None
        train, test = train_test_split(rows, test_size=n_test, random_state=seed, stratify=stratify)
        train = train[~np.isin(groups[train], groups[test])]
        return [(np.sort(train), np.sort(test))]
    whole = len(np.unique(groups)) < len(rows)
    splitter = _splitter(problem, n_folds, seed, whole=whole)
    return list(splitter.split(rows, problem.y.to_numpy(), groups if whole else None))


def _splitter(problem: Problem, n_folds: int, seed: int, *, whole: bool) -> Any:
    """Return folds, stratified by class where every class has as many rows as there are folds.

    ``whole``: of whole groups.
    """
    plain = problem.regression or problem.y.value_counts().min() < n_folds
    kinds: Any = (GroupKFold, StratifiedGroupKFold) if whole else (KFold, StratifiedKFold)
    return kinds[not plain](n_folds, shuffle=True, random_state=seed)


def _fold_groups(
    problem: Problem, groups: Indices, n_folds: int, seed: int, share: float
) -> list[tuple[Indices, Indices]]:
    """Return folds of whole groups in which every class can be learned."""
    rows, y = np.arange(len(problem.y)), problem.y.to_numpy()
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise DataError("All rows belong to one group, so that none can be left out.")
    for draw in range(_MOST_DRAWS):
        if n_folds == 1:
            splitter: Any = GroupShuffleSplit(1, test_size=share, random_state=seed + draw)
        else:
            splitter = _splitter(problem, min(n_folds, n_groups), seed + draw, whole=True)
        folds = [(train, test) for train, test in splitter.split(rows, y, groups) if len(test)]
        if problem.regression or all(len(set(y[train])) == len(set(y)) for train, _ in folds):
            return folds
    raise DataError(
        "The groups hold so much of some class that no fold can leave it out; leave out rows of "
        "classes that few groups have."
    )


def sample_rows(problem: Problem, n_rows: int, seed: int) -> Indices:
    """Return positions of at most ``n_rows`` rows, in order, with all classes in proportion."""
    n = len(problem.y)
    if n <= n_rows:
        return np.arange(n)
    counts = None if problem.regression else problem.y.value_counts()
    stratify = None
    if counts is not None and counts.min() > 1 and len(counts) <= min(n_rows, n - n_rows):
        stratify = problem.y
    drawn, _ = train_test_split(
        np.arange(n), train_size=n_rows, random_state=seed, stratify=stratify
    )
    return np.sort(drawn)


def row_groups(problem: Problem) -> Indices:
    """Return a number for each row that its copies, and the rows of its group, share."""
    import pandas as pd

    keys = pd.util.hash_pandas_object(problem.X, index=False)
    copies = np.asarray(pd.factorize(keys)[0])
    if problem.groups is None:
        return copies
    own = pd.factorize(problem.groups)[0] + len(copies)
    edges = coo_array((np.ones(len(own)), (copies, own)), shape=(2 * len(own),) * 2)
    return np.asarray(connected_components(edges, directed=False)[1][copies])
