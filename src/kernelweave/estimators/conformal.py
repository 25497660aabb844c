"""Prediction intervals and sets from models that left one fold out (CV+ and jackknife+).

With scores of the held-out rows and models that did not see them, the interval of a new row ends
at order statistics of ``mu_{-F(i)}(x) -+ score_i`` over all training rows i. A row counts as often
as its weight says.

References
----------
R. Barber, E. Candes, A. Ramdas, R. Tibshirani (2021), Predictive inference with the jackknife+,
Annals of Statistics 49, theorems 1 and 4. Y. Romano, M. Sesia, E. Candes (2020), Classification
with valid and adaptive coverage, NeurIPS 33: sets by CV+.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats, Indices
from kernelweave.errors import InputError, warn
from kernelweave.kernels.base import is_number

_MANY_FOLDS = 50  # from which on a search in each fold costs more than sorting all values


def check_coverage(coverage: Any) -> float:
    """Return the coverage asked for."""
    if not is_number(coverage) or not 0 < float(coverage) < 1:
        raise InputError(f"coverage: must be a number between 0 and 1, got {coverage!r}.")
    return float(coverage)


def guaranteed_coverage(coverage: float, n: float, n_folds: int) -> float:
    """Return the coverage that the theorem promises for CV+; ``n_folds = n`` is jackknife+."""
    excess = min(
        2 * (1 - 1 / n_folds) / (n / n_folds + 1),
        (1 - n_folds / n) / (n_folds + 1),
    )
    return 1 - 2 * (1 - coverage) - max(excess, 0.0)


@dataclass(frozen=True)
class FoldScores:
    """Scores of held-out rows by fold."""

    # (n_rows,): what is added to the prediction of the model that did not see the row.
    scores: Floats
    fold: Indices  # (n_rows,): the fold of each row
    weight: Floats  # (n_rows,): how often each row counts
    n_folds: int

    def rank(self, coverage: float) -> float:
        """Return which smallest value is the upper end; infinite where there are too few rows."""
        total = float(self.weight.sum())
        # A relative error of the product must not raise the rank by one.
        rank = float(np.ceil(coverage * (total + 1) * (1 - 1e-12)))
        return rank if rank <= total * (1 + 1e-12) else np.inf

    @cached_property
    def _sorted(self) -> list[tuple[Floats, Floats]]:
        """Scores of every fold in increasing order, and their cumulated weights from zero on."""
        out = []
        for k in range(self.n_folds):
            here = np.flatnonzero(self.fold == k)
            order = here[np.argsort(self.scores[here], kind="stable")]
            out.append((self.scores[order], np.concatenate([[0.0], np.cumsum(self.weight[order])])))
        return out

    def below(self, values: Floats, *, equal: bool) -> Floats:
        """Return the weight of the rows whose score is below ``values[:, fold]``, or equal to it.

        ``values`` has one column per fold.
        """
        side: Any = "right" if equal else "left"
        total = np.zeros(len(values))
        for k, (scores, weights) in enumerate(self._sorted):
            total += weights[np.searchsorted(scores, values[:, k], side=side)]
        return total

    def upper(self, predictions: Floats, rank: float) -> Floats:
        """Return the rank-th smallest of ``predictions[:, fold_i] + scores_i`` for every row.

        Parameters
        ----------
        predictions : ndarray of shape (n_new, n_folds)
            Of the models that left out each fold.
        rank : float
            From `rank`.
        """
        if np.isinf(rank):
            return np.full(len(predictions), np.inf)
        rank -= 1e-9 * rank  # cumulated weights that are no integers have rounding errors
        if self.n_folds > _MANY_FOLDS:
            return self._by_sorting(predictions, rank)
        scores = np.concatenate([own for own, _ in self._sorted])
        weights = np.concatenate([np.diff(cumulated) for _, cumulated in self._sorted])
        ends = np.cumsum([len(own) for own, _ in self._sorted])
        shifts = np.ascontiguousarray(predictions)
        return _core.order_statistics(scores, weights, ends, shifts, rank)

    def _by_sorting(self, predictions: Floats, rank: float) -> Floats:
        alone = len(self.fold) == self.n_folds and (self.fold == np.arange(self.n_folds)).all()
        values = (predictions if alone else predictions[:, self.fold]) + self.scores
        if (self.weight == 1.0).all():
            place = int(np.ceil(rank)) - 1
            values.partition(place, axis=1)
            return values[:, place].copy()
        order = np.argsort(values, axis=1, kind="stable")
        reached = np.cumsum(self.weight[order], axis=1) >= rank
        at = order[np.arange(len(values)), reached.argmax(axis=1)]
        return np.asarray(values[np.arange(len(values)), at])


def warn_if_infinite(rank: float, coverage: float, n: float, what: str) -> None:
    """Say how many rows the coverage would need."""
    if np.isinf(rank):
        needed = int(np.ceil(1 / (1 - coverage) - 1 - 1e-9))
        warn(
            f"coverage={coverage:g}: {n:g} training rows are too few, so every {what}; use "
            f"{needed} rows or more, or a lower coverage."
        )


def class_scores(decision: Floats, log_proba: Floats | None, score: str) -> Floats:
    """Return how badly every class fits; large values leave a class out of the set.

    The score "margin" is the largest decision of another class less the class's own. The others
    need calibrated probabilities: "lac" is one minus that of the class, "aps" the summed
    probability of the classes that are at least as probable.
    """
    if score == "margin":
        out = np.empty_like(decision)
        for k in range(decision.shape[1]):
            out[:, k] = np.delete(decision, k, axis=1).max(axis=1) - decision[:, k]
        return out
    assert log_proba is not None
    p = np.exp(log_proba)
    if score == "lac":
        return np.asarray(1.0 - p)
    order = np.argsort(-p, axis=1, kind="stable")
    out = np.empty_like(p)
    np.put_along_axis(out, order, np.cumsum(np.take_along_axis(p, order, axis=1), axis=1), axis=1)
    return out
