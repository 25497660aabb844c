"""Intervals and sets of combinations, from residuals or margins of rows that were left out.

The scores are given: they come from predictions for rows that the compared models did not see. The
interval of a new row is its prediction plus and minus an order statistic of the residuals; its set
holds the classes whose margin is not larger than an order statistic of the margins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Bools, Floats
from kernelweave._validation import offered_if
from kernelweave.errors import InputError

from .conformal import FoldScores, check_coverage, class_scores, warn_if_infinite

_LEAST = 1e-12  # probability below which a logarithm is not taken


def log_probabilities(proba: Floats) -> Floats:
    """Return logarithms of probabilities, finite ones."""
    return np.asarray(np.log(np.maximum(proba, _LEAST)))


def class_margins(proba: Floats) -> Floats:
    """Return for each class the largest log-probability of another class less its own."""
    logs = log_probabilities(proba)
    return class_scores(logs, None, "margin")


def _check_scores(name: str, given: Any, n_columns: int) -> Floats:
    values = np.asarray(given, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != n_columns or not np.isfinite(values).all():
        columns = f" in {n_columns} columns" if n_columns > 1 else ""
        raise InputError(
            f"{name}: must be finite numbers, one for each row that was left out{columns}, got an "
            f"array of shape {np.shape(given)}."
        )
    return values


def _held_out(scores: Floats) -> FoldScores:
    n = len(scores)
    return FoldScores(scores, np.zeros(n, dtype=np.intp), np.ones(n), 1)


def _lacks_residuals(model: Any) -> str | None:
    if model.residuals is not None:
        return None
    return (
        f"{type(model).__name__} gives no intervals as it is; set residuals to those of rows that "
        "were left out, as kernelweave fit does."
    )


class ResidualIntervals:
    """Mixin of regressors with a parameter ``residuals``."""

    residuals: Any
    coverage_guarantee_ = float("nan")  # the models were chosen by the same rows

    def _common_offset(self) -> float | None:
        """Return the offset of the logarithm that all members learn, or None."""
        raise NotImplementedError

    @offered_if(_lacks_residuals)
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return an interval for every row that should hold its target.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float in (0, 1)
            Share of new rows whose interval should hold their target. It is nominal: the members
            and their weights were chosen by the rows that the residuals belong to.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends; infinite where the residuals are too few for the coverage. Their
            width is the same for all rows, or in proportion to the prediction where all members
            learn a logarithm.
        """
        check_is_fitted(self)
        predicted = self.predict(X)  # type: ignore[attr-defined]
        return residual_intervals(self.residuals, predicted, coverage, self._common_offset())


def check_residuals(residuals: Any, n_outputs: int) -> None:
    """Refuse what are no residuals, unless None."""
    if residuals is not None:
        _check_scores("residuals", residuals, n_outputs)


def residual_intervals(
    residuals: Any, predicted: Floats, coverage: float, offset: float | None = None
) -> Floats:
    """Return predictions plus and minus an order statistic of the residuals.

    With an ``offset`` the residuals are those of ``log(y + offset)``.
    """
    coverage = check_coverage(coverage)
    columns = np.asarray(predicted).reshape(len(predicted), -1)
    sizes = np.abs(_check_scores("residuals", residuals, columns.shape[1]))
    if offset is not None:
        columns = np.log(columns + offset)
    ends = []
    for values, size in zip(columns.T, sizes.T, strict=True):
        held_out = _held_out(size)
        rank = held_out.rank(coverage)
        warn_if_infinite(rank, coverage, len(size), "interval is infinite")
        ends.append(
            (-held_out.upper(-values[:, None], rank), held_out.upper(values[:, None], rank))
        )
    found = np.moveaxis(np.array(ends), 2, 0)
    if offset is not None:
        found = np.exp(np.minimum(found, 700.0)) - offset
    return found[:, 0] if np.ndim(predicted) == 1 else found


def _lacks_margins(model: Any) -> str | None:
    if model.margins is not None:
        return None
    return (
        f"{type(model).__name__} gives no prediction sets as it is; set margins to those of rows "
        "that were left out, as kernelweave fit does."
    )


def check_margins(margins: Any) -> None:
    """Refuse what are no margins, unless None."""
    if margins is not None:
        _check_scores("margins", margins, 1)


class MarginSets:
    """Mixin of classifiers with a parameter ``margins``."""

    margins: Any
    coverage_guarantee_ = float("nan")  # the models were chosen by the same rows

    @offered_if(_lacks_margins)
    def predict_set(self, X: Any, coverage: float = 0.9) -> Bools:
        """Return a set of classes for every row that should hold the true one.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float in (0, 1)
            Share of new rows whose set should hold their class. It is nominal: the members and
            their weights were chosen by the rows that the margins belong to.

        Returns
        -------
        included : ndarray of bool of shape (n_samples, n_classes)
            In the order of `classes_`. A row may have an empty set: no class fits it.
        """
        check_is_fitted(self)
        return margin_sets(self.margins, self.predict_proba(X), coverage)  # type: ignore[attr-defined]


def margin_sets(margins: Any, proba: Floats, coverage: float) -> Bools:
    """Return which classes have no larger margin than an order statistic of those given."""
    coverage = check_coverage(coverage)
    own = _check_scores("margins", margins, 1)[:, 0]
    held_out = _held_out(own)
    warn_if_infinite(held_out.rank(coverage), coverage, len(own), "set holds all classes")
    new = class_margins(proba)
    counts = [held_out.below(new[:, k : k + 1], equal=False) for k in range(new.shape[1])]
    return np.asarray(np.column_stack(counts) < coverage * (len(own) + 1) * (1 - 1e-12))
