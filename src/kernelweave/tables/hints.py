"""Hints on a table that an expert would give: rare classes, copies, columns that give it away."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave._types import Floats

from .planning import row_groups, sample_rows
from .problem import Problem
from .scoring import total_score

_ROWS = 2000  # rows that columns are looked at by
_LEAST_ROWS = 50  # below which one column may predict by chance
_RARE = 0.2  # share of a class, relative to equal shares, below which classes are imbalanced
_COMMON = 0.8  # share of a class from which on accuracy says little
# Names of columns whose values may stand for persons or things with several rows each, with
_GROUPS = re.compile(
    r"(^|[^a-z])(id|subject|patient|participant|person|customer|user|household|family)s?($|[^a-z])"
)
_LEAST_GROUPS, _LEAST_MEMBERS = 10, 2.0  # so many values at least, of so many rows in the mean
_LEAKS = 0.98  # share of the errors of a constant that one column avoids
_RANKS = 0.99  # area under the ROC curve of one column: with a rare class, few rows are errors


def table_hints(problem: Problem, seed: int = 0) -> list[str]:
    """Return sentences on rare classes, copies of rows and columns that predict the target."""
    return [
        *_imbalance(problem),
        *_copies(problem),
        *_repeated(problem),
        *_leaks(problem, seed),
    ]


def _imbalance(problem: Problem) -> list[str]:
    if problem.regression:
        return []
    shares = problem.y.value_counts(normalize=True)
    rare = float(shares.iloc[-1])
    if rare * len(shares) >= _RARE:
        return []
    common = float(shares.iloc[0])
    constant = (
        f", and a constant prediction has an accuracy of {_percent(common)}: read AUC instead"
        if common > _COMMON
        else ""
    )
    return [
        f"imbalanced: {_percent(rare)} of the rows are {str(shares.index[-1])!r}{constant}; "
        "--class-weight balanced makes all classes count the same"
    ]


def _percent(share: float) -> str:
    """Return two digits, more near 100%."""
    return f"{100 * share:.2g}%" if share < 0.99 else f"{100 * share:.1f}%"


def _repeated(problem: Problem) -> list[str]:
    """Return a sentence for every column that seems to name what several rows belong to."""
    if problem.groups is not None:
        return []
    names = [n for n in problem.columns("number", "category") if _GROUPS.search(n.lower())]
    counts = {name: problem.X[name].nunique() for name in names}
    most = len(problem.y) / _LEAST_MEMBERS
    return [
        f"the column {name!r} has {count} values in {len(problem.y)} rows; if the model is for new "
        f"values of it, the scores are too good: --groups {name} leaves out all rows of a value "
        "together"
        for name, count in counts.items()
        if _LEAST_GROUPS <= count <= most
    ]


def _copies(problem: Problem) -> list[str]:
    groups = row_groups(replace(problem, groups=None))
    n_copies = len(groups) - len(np.unique(groups))
    if not n_copies:
        return []
    pairs = len(set(zip(groups.tolist(), problem.y.tolist(), strict=True)))
    differ = pairs - len(np.unique(groups))
    other = f", {differ} of them with another target" if differ else ""
    return [
        f"{n_copies} of {len(groups)} rows are copies of others{other}; copies are kept in one "
        "fold, or scores would be too good"
    ]


def _leaks(problem: Problem, seed: int) -> list[str]:
    if len(problem.y) < _LEAST_ROWS:
        return []
    some = problem.take(sample_rows(problem, _ROWS, seed))
    half = np.random.default_rng(seed).random(len(some.y)) < 0.5
    target = _target(some)
    found = []
    for name in some.columns("number", "date", "category"):
        guess = _guessed(some.X[name], target, half)
        left = float(((target - guess) ** 2).sum()) / max(float((target**2).sum()), 1e-300)
        if left <= 1.0 - _LEAKS or (not problem.regression and _area(target, guess) >= _RANKS):
            found.append(name)
    return [
        f"the column {name!r} alone predicts {problem.y.name!r} almost perfectly; leave it out "
        f"(--ignore) if it is known only after {problem.y.name!r}"
        for name in found
    ]


def _target(problem: Problem) -> Floats:
    """Return centred numbers, or indicators of the classes, centred."""
    y: Any = problem.y.to_numpy()
    if problem.regression:
        columns = y.astype(np.float64)[:, None]
    else:
        columns = (y[:, None] == np.unique(y)).astype(np.float64)
    return np.asarray(columns - columns.mean(axis=0))


def _area(target: Floats, guess: Floats) -> float:
    """Return the smallest area under the ROC curve of a class against the others."""
    areas = []
    for y, values in zip(target.T, guess.T, strict=True):
        two = np.column_stack([-values, values])
        areas.append(total_score("roc_auc", (y > 0).astype(int), two))
    return min(areas)


def _guessed(column: Any, target: Floats, half: Any) -> Floats:
    """Return the target of each half of the rows as the other half says.

    Numbers predict by interpolation between rows, other values by the mean of their rows.
    """
    import pandas as pd

    numbers = column.dtype.kind in "fiuM"
    codes = pd.factorize(column, sort=True)[0]  # ranks of numbers; -1 for gaps
    values = np.where(codes < 0, -1.0, codes.astype(np.float64))
    out = np.zeros_like(target)
    for own in (half, ~half):
        seen, place = np.unique(values[own], return_inverse=True)
        counts = np.bincount(place)
        known = np.isin(values[~own], seen) | numbers
        for k, y in enumerate(target.T):
            means = np.bincount(place, y[own]) / counts
            out[~own, k] = np.where(known, np.interp(values[~own], seen, means), 0.0)
    return out
