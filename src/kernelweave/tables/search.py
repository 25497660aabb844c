"""Choose C by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from kernelweave._types import Floats, Indices

from .methods import METHODS, Settings, make_model
from .problem import Problem

FOLDS = 3
START = (0.1, 1.0, 10.0)
LIMITS = (1e-3, 1e3)
SEARCH_ROWS = 2000
_LEAST = 15  # rows below which nothing can be chosen

Announce: TypeAlias = Callable[[str, float], None]
"""Called with the current step and the share of it that is done."""


def silent(step: str, done: float) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Search:
    """Values of C that were tried, and the one chosen.

    Attributes
    ----------
    C : float
        The value with the best mean score; of equal ones the smallest.
    values : tuple of float
        All values tried, in ascending order.
    scores : ndarray of shape (n_values, n_folds)
        Accuracy or R squared on the fold that was left out.
    n_rows : int
        Rows that were used.
    """

    C: float
    values: tuple[float, ...]
    scores: Floats
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the search in plain values."""
        return {
            "C": self.C,
            "rows": self.n_rows,
            "folds": self.scores.shape[1],
            "values": list(self.values),
            "mean_scores": self.scores.mean(axis=1).tolist(),
        }


def search_cost(
    problem: Problem,
    method: str,
    settings: Settings | None = None,
    *,
    max_rows: int = SEARCH_ROWS,
    announce: Announce = silent,
) -> Search | None:
    """Choose C by cross-validation on a path of warm-started fits.

    0.1, 1 and 10 are tried first, and further values while the best is at an end.

    Parameters
    ----------
    problem : Problem
        The columns and the target.
    method : str
        A key of ``METHODS``.
    settings : Settings, optional
        Options of the method.
    max_rows : int
        Maximum number of rows, drawn by class.
    announce : callable
        Called with the current step and the share of it that is done.

    Returns
    -------
    search : Search or None
        None where the method has no C, or the rows are too few.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from kernelweave.tables import make_problem
    >>> x = np.linspace(-3, 3, 90)
    >>> frame = pd.DataFrame({"x": x, "y": np.where(np.abs(x) > 1, "out", "in")})
    >>> search_cost(make_problem(frame, "y"), "mkl").scores.shape[1]
    3
    """
    settings = settings or Settings()
    if not METHODS[method].has_cost or not _can_be_split(problem):
        return None
    rows = sample_rows(problem, max_rows, settings.seed)
    problem = problem.take(rows)
    if not _can_be_split(problem):
        return None
    folds = make_splitter(problem, FOLDS, settings.seed).split(problem.X, problem.y)
    parts = [_Fold(problem, method, settings.loose(), *fold) for fold in folds]
    scores: dict[float, list[float]] = {}
    ask: list[float] = list(START)
    while ask:
        for k, part in enumerate(parts):
            tried = ", ".join(f"{C:g}" for C in ask)
            announce(f"choosing C ({tried}), fold {k + 1} of {len(parts)}", k / len(parts))
            for C, score in zip(ask, part.scores(ask), strict=True):
                scores.setdefault(C, []).append(score)
        ask = _further(scores)
    values = sorted(scores)
    table = np.array([scores[C] for C in values])
    best = values[int(np.argmax(table.mean(axis=1)))]
    return Search(best, tuple(values), table, len(rows))


class _Fold:
    """A part of the rows to fit to, prepared once, and the rest to score on."""

    def __init__(
        self, problem: Problem, method: str, settings: Settings, train: Indices, test: Indices
    ) -> None:
        inner, outer = problem.take(train), problem.take(test)
        self.y_train, self.y_test = inner.y, outer.y
        table, self.model = make_model(inner, method, settings).named_steps.values()
        self.X_train = table.fit_transform(inner.X, inner.y)
        self.X_test = table.transform(outer.X)

    def scores(self, values: list[float]) -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of values of C that are not chosen
            models = self.model.fit_path(self.X_train, self.y_train, values)
        return [float(model.score(self.X_test, self.y_test)) for model in models]


def _further(scores: dict[float, list[float]]) -> list[float]:
    """Return the next value to try, where the best one is at an end."""
    values = sorted(scores)
    means = [float(np.mean(scores[C])) for C in values]
    best = int(np.argmax(means))
    if best == len(values) - 1 and values[-1] < LIMITS[1]:
        return [10.0 * values[-1]]
    if best == 0 and means[0] > means[1] and values[0] > LIMITS[0]:
        return [values[0] / 10.0]
    return []


def _can_be_split(problem: Problem) -> bool:
    """Tell whether the rows, and those of the second largest class, suffice for the folds."""
    enough = len(problem.y) >= _LEAST
    return enough and (problem.regression or problem.y.value_counts().iloc[1] >= FOLDS)


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
