"""Prediction intervals and sets of learned-metric models from left-out training rows.

In the exact fit the predictions of all models that leave one row out are known in closed form at
any new row (jackknife+). Larger fits add the residuals of left-out rows or folds to the one model.

References
----------
Barber, Candes, Ramdas and Tibshirani (2021), Predictive inference with the jackknife+, Annals of
Statistics 49.
Romano, Sesia and Candes (2020), Classification with valid and adaptive coverage, NeurIPS 33.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import by_parts
from kernelweave._threads import threads
from kernelweave._types import Bools, Floats
from kernelweave._validation import check_mixed_table
from kernelweave.errors import InputError, warn
from kernelweave.kernels.base import is_number
from kernelweave.kernels.metric import MetricLaplacian

from .left_out_scores import margin_sets, residual_intervals

_BLOCK_VALUES = 4e6  # predictions of left-out models held at a time


class LeftOutRows:
    """Mixin: predictions at new rows of the models that leave one training row out."""

    kernel_: MetricLaplacian
    ridge_: float
    solver_: str
    n_jobs: int | None
    dual_coef_: Floats
    intercept_: Floats
    _rows: Floats
    _residuals: Floats  # of left-out rows, (n_used, n_outputs)
    _row_weight: Floats  # of the rows in use, mean one

    def _left_out(self, X: Any) -> Iterator[Floats]:
        """Yield arrays of shape (n_rows, n_used, n_outputs), or (n_rows, 1, n_outputs).

        With ``P`` the leading block of the inverse of the bordered kernel matrix and e the rest of
        its last row, the model at x is ``s(x) y`` with ``s(x) = k(x)'P + e'``, and without row i it
        is ``s(x) y - s_i(x) r_i`` with the leave-one-out residual ``r_i``.
        """
        rows = self.kernel_.prepare(check_mixed_table(self, X, reset=False))
        closed = self.solver_ == "cholesky"
        with threads(self.n_jobs):
            if closed:
                P, e = self._smoother()
            n_models = len(self._rows) if closed else 1
            size = max(1, int(_BLOCK_VALUES / (n_models * len(self.intercept_))))
            for a in range(0, len(rows), size):
                K = self.kernel_.block(rows[a : a + size], self._rows)
                values = (K @ self.dual_coef_.T + self.intercept_)[:, None]
                if closed:
                    values = values - (K @ P + e)[:, :, None] * self._residuals
                yield values

    def _smoother(self) -> tuple[Floats, Floats]:
        B = self.kernel_.block(self._rows, self._rows)
        B[np.diag_indices_from(B)] += self.ridge_ / self._row_weight
        G = scipy.linalg.cho_solve(scipy.linalg.cho_factor(B, lower=True), np.eye(len(B)))
        u = G.sum(axis=0)
        e = u / u.sum()
        return G - np.outer(u, e), e


class LeftOutIntervals(LeftOutRows):
    """Mixin of regressors: prediction intervals."""

    residuals: Any
    _one_output: bool

    @by_parts
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return an interval for every row that should hold its target.

        Up to `max_exact` rows this is the jackknife+ in closed form with kernel and ridge held;
        beyond, the prediction plus and minus a quantile of the residuals of left-out rows. The
        metric has seen the targets, so that the coverage is nominal and `coverage_guarantee_` NaN:
        intervals are too narrow where rows are few for the number of encoded columns. With
        `residuals`, the prediction plus and minus an order statistic of these.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float
            Share of new rows whose interval should hold their target, between 0 and 1.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends; infinite where the training rows are too few for the coverage.
        """
        check_is_fitted(self)
        if self.residuals is not None:
            return residual_intervals(self.residuals, self.predict(X), coverage)  # type: ignore[attr-defined]
        rank = interval_rank(coverage, len(self._residuals))
        parts = [interval_ends(part, self._residuals, rank) for part in self._left_out(X)]
        ends = np.concatenate(parts)
        return ends[:, 0] if self._one_output else ends


class LeftOutSets(LeftOutRows):
    """Mixin of classifiers: sets of classes."""

    margins: Any
    _scores: Floats  # margins of left-out rows for their own class

    @by_parts
    def predict_set(self, X: Any, coverage: float = 0.9) -> Bools:
        """Return which classes cannot be excluded for every row.

        The score of a class is the largest value of another class minus its own, among models that
        leave one training row out (in closed form up to `max_exact` rows). The metric has seen the
        labels, so that the coverage is nominal and `coverage_guarantee_` NaN: sets are too small
        where rows are few for the number of encoded columns. With `margins`, a class is included
        if its margin is no larger than an order statistic of these.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float
            Share of new rows whose set should hold their class, between 0 and 1.

        Returns
        -------
        sets : ndarray of bool of shape (n_samples, n_classes)
            An empty set is a row unlike all classes.
        """
        check_is_fitted(self)
        if self.margins is not None:
            return margin_sets(self.margins, self.predict_proba(X), coverage)  # type: ignore[attr-defined]
        rank = interval_rank(coverage, len(self._scores))
        return np.concatenate([class_sets(v, self._scores, rank) for v in self._left_out(X)])


def interval_rank(coverage: Any, n: int) -> int:
    """Return the rank of the upper end among n left-out rows, n + 1 where they are too few."""
    if not is_number(coverage) or not 0 < float(coverage) < 1:
        raise InputError(f"coverage: must be a number between 0 and 1, got {coverage!r}.")
    # A relative error of the product must not raise the rank by one.
    rank = int(np.ceil(float(coverage) * (n + 1) * (1 - 1e-12)))
    if rank > n:
        least = int(np.ceil(1 / (1 - float(coverage)))) - 1
        warn(
            f"coverage: {n} rows are too few for a coverage of {float(coverage):g}, which needs "
            f"{least} or more; nothing is excluded."
        )
    return rank


def interval_ends(left_out: Floats, residuals: Floats, rank: int) -> Floats:
    """Return both ends, (n_rows, n_outputs, 2), from values of left-out models and residuals."""
    size = np.abs(residuals)
    if rank > len(size):
        shape = (len(left_out), size.shape[1])
        return np.stack([np.full(shape, -np.inf), np.full(shape, np.inf)], axis=-1)
    upper = np.partition(left_out + size, rank - 1, axis=1)[:, rank - 1]
    # The (n + 1 - k)-th smallest is the k-th largest.
    lower = -np.partition(size - left_out, rank - 1, axis=1)[:, rank - 1]
    return np.stack([lower, upper], axis=-1)


def margins(values: Floats) -> Floats:
    """Return for every class the largest value of another class minus its own."""
    if values.shape[-1] == 1:  # one output stands for two classes
        values = np.concatenate([-values, values], axis=-1)
    top = np.sort(values, axis=-1)
    best, second = top[..., -1:], top[..., -2:-1]
    return np.asarray(np.where(values == best, second, best) - values)


def class_sets(left_out: Floats, scores: Floats, rank: int) -> Bools:
    """Return which classes are not excluded, (n_rows, n_classes), by scores of left-out rows."""
    smaller = (scores[:, None] < margins(left_out)).sum(axis=1)
    return np.asarray(smaller < rank)
