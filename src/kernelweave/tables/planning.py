"""Decide which candidates are compared, and on how many folds, within a budget of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    train_test_split,
)

from kernelweave._types import Indices

from .candidates import BOOSTING, LINEAR, METRIC, MKL, SVM, Candidate
from .problem import Problem

MAX_ROWS = 50_000  # rows that are used; more are drawn from
_LEAST_ROWS = 30  # below which nothing can be compared
_HELD_OUT = 0.25  # share of the rows where one part is held out in place of folds
_MOST_HELD_OUT = 10_000
_FOLDS = (10, 5, 3, 2, 1)
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
    """Return rows to fit to and rows left out; copies of a row stay together.

    ``share``: of the rows that are left out, where there is one fold.
    """
    rows = np.arange(len(problem.y))
    groups: Any = row_groups(problem)
    if n_folds == 1:
        n_test = max(1, min(_MOST_HELD_OUT, int(share * len(rows))))
        counts = None if problem.regression else problem.y.value_counts()
        apart = counts is not None and counts.min() > 1 and len(counts) <= n_test
        stratify = problem.y if apart else None
        train, test = train_test_split(rows, test_size=n_test, random_state=seed, stratify=stratify)
        train = train[~np.isin(groups[train], groups[test])]
        return [(np.sort(train), np.sort(test))]
    splitter: Any = make_splitter(problem, n_folds, seed)
    if len(np.unique(groups)) == len(rows):
        groups = None
    else:
        stratified = type(splitter).__name__.startswith("Stratified")
        kind: Any = StratifiedGroupKFold if stratified else GroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=seed)
    return list(splitter.split(rows, problem.y.to_numpy(), groups))


def make_splitter(problem: Problem, n_folds: int, seed: int) -> Any:
    """Return folds, stratified by class where every class has as many rows as there are folds."""
    plain = problem.regression or problem.y.value_counts().min() < n_folds
    return (KFold if plain else StratifiedKFold)(n_folds, shuffle=True, random_state=seed)


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
    """Return a number for each row that its copies share."""
    import pandas as pd

    keys = pd.util.hash_pandas_object(problem.X, index=False)
    return np.asarray(pd.factorize(keys)[0])
