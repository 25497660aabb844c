"""Prediction intervals of regressors: CV+ for every loss, jackknife+ for the square loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from kernelweave._dask import by_parts, is_parted
from kernelweave._progress import Counter
from kernelweave._types import Floats, Indices
from kernelweave._validation import StrOptions, offered_if, pick_rows
from kernelweave.errors import InputError, silenced
from kernelweave.solvers import Result

from .conformal import FoldScores, check_coverage, guaranteed_coverage, warn_if_infinite
from .duplicates import MergedRows
from .folds import FoldPlan
from .out_of_fold import HeldSolution, LeftOut, OutOfFold
from .targets import Targets, weighted

_FOLDS = 5
_MAX_JACKKNIFE = 2000  # rows: n^2 coefficients are kept
_VALUES = 2e7  # predictions of models without a fold in memory at a time
INTERVALS: dict[str, Any] = {
    "intervals": [StrOptions({"auto", "guaranteed", "jackknife+"}), None],
    "calibration_cv": ["cv_object", "array-like"],
}


def lacks_intervals(model: Any) -> str | None:
    """Return how to get intervals where there are none."""
    if model.intervals is not None:
        return None
    return f"{type(model).__name__} gives no intervals as it is; fit with intervals='auto'."


class IntervalRegressor(OutOfFold):
    """Mixin that adds `predict_interval` where ``intervals`` is set.

    The model itself and its predictions do not change.
    """

    intervals: str | None = None
    _one_output: bool
    _residuals: Floats  # of held-out rows; of two quantiles or more, distances outside the pair

    @property
    def _needs_folds(self) -> bool:
        return self.intervals is not None

    def _check_intervals(self, n_rows: int) -> None:
        """Refuse the closed form where there is none."""
        loss = getattr(self, "loss", None)
        if self.intervals == "jackknife+" and (loss != "square" or n_rows > _MAX_JACKKNIFE):
            raise InputError(
                "intervals='jackknife+': needs loss='square' and at most "
                f"{_MAX_JACKKNIFE} rows, got loss={loss!r} and {n_rows} rows; use "
                "intervals='auto'."
            )

    def _leave_out(self, shared: Any, result: Result, rows: MergedRows, targets: Targets) -> None:
        n_used = int((targets.cost > 0).any(axis=1).sum())
        if n_used < 2:
            raise InputError(
                f"intervals={self.intervals!r}: needs two rows with a positive weight, "
                f"got {n_used}."
            )
        n_learned, ignores = self._n_learned(shared), self._ignores_rows()
        if self.intervals == "jackknife+":
            left = self._leave_rows_out(shared, result, rows)
            exact = n_learned == 0 and ignores
        else:
            fold = FoldPlan(self.calibration_cv, _FOLDS).deal(rows, targets, None)
            data = rows, fold, int(fold.max()) + 1
            held = None
            if self.intervals == "guaranteed":
                left, exact = self._leave_out_refitted(shared, result, *data), True
            else:
                if n_learned <= len(rows.Y) / 2:
                    held = self._hold(shared, result, rows)
                if held is not None:
                    left = self._leave_out_held(shared, result, held, *data)
                else:  # to the end: the theorem is about the same algorithm on other rows
                    left = self._leave_out_learned(shared, result, *data, self.max_iter)
                exact = ignores and (held is None or n_learned == 0)
        self._keep_folds(left, rows, targets)
        self._residuals = self._score_rows(targets)
        total = float(self._row_weight.sum())
        known = guaranteed_coverage(0.9, total, max(1, min(left.n_folds, int(total))))
        self.coverage_guarantee_ = known if exact else np.nan

    def _leave_rows_out(self, shared: Any, result: Result, rows: MergedRows) -> LeftOut:
        """Leave out one row after the other, or one of its copies, in closed form."""
        problem = self._hold(shared, result, rows)
        if problem is None or not problem.is_linear:
            raise InputError(
                "intervals='jackknife+': needs exact kernels and outputs that are not related; use "
                "intervals='auto'."
            )
        count = np.ones(len(rows.Y)) if rows.weight is None else rows.weight
        # A row of weight w > 1 was given w times, and w - 1 copies stay.
        left = problem.cost[:, 0] * np.maximum(0.0, 1.0 - 1.0 / count)
        found = problem.inverse(exact=True).without_rows(left)
        n = len(rows.Y)
        twin = self._twin()
        intercept = (found.intercept + problem.shift).ravel()
        joint = HeldSolution(found.dual_coef.reshape(n, -1), intercept, found.residual)
        twin._place(shared, rows, joint)
        twin._n_functions = n
        return LeftOut(rows.Y - found.residual, np.arange(n), [twin], n)

    def _leave_out_refitted(
        self, shared: Any, result: Result, rows: MergedRows, fold: Indices, n_folds: int
    ) -> LeftOut:
        """Fit without each fold from the very start: kernels, scales and weights."""
        if is_parted(rows.X):
            raise InputError(
                "intervals='guaranteed': a Dask table of this size cannot be split; use "
                "intervals='auto', or pass X.compute()."
            )
        count = Counter(self.verbose, n_folds, "folds")
        values, models = np.empty_like(rows.Y), []
        for k in range(n_folds):
            test, kept = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
            weight = None if rows.weight is None else rows.weight[kept]
            cost = weighted(np.ones_like(rows.Y[kept]), weight)  # before `_scale`
            twin: Any = self._twin()
            with silenced():
                X = pick_rows(rows.X, kept)
                twin._fit_models([twin], X, Targets(rows.Y[kept], cost, weight))
                values[test] = twin._outputs(pick_rows(rows.X, test))
            models.append(twin)
            count()
        return LeftOut(values, fold, models, n_folds)

    @property
    def _has_pair(self) -> bool:
        """Whether outputs are quantiles of one target, whose outermost pair makes the interval."""
        return getattr(self, "_several_levels", False) and self.out_of_fold_.shape[1] > 1

    def _score_rows(self, targets: Targets) -> Floats:
        """Return residuals of held-out rows, NaN where a row has no part in an output."""
        if self._has_pair:
            levels = np.sort(self.out_of_fold_, axis=1)
            y = targets.Y[:, :1]
            return np.maximum(levels[:, :1] - y, y - levels[:, -1:])
        return np.where(targets.cost > 0, targets.Y - self.out_of_fold_, np.nan)

    @offered_if(lacks_intervals)
    @by_parts
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return an interval for every row that holds its target with a given probability.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float in (0, 1)
            Share of new rows whose interval should hold their target. Nothing is fitted for it. It
            is nominal unless `coverage_guarantee_` is a number.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends; infinite where the training rows are too few for the coverage. Of
            several quantiles the outermost pair is widened or narrowed to the coverage.
        """
        intervals = self._intervals_of_outputs(X, coverage)
        return intervals[:, 0] if self._one_output or self._has_pair else intervals

    def _intervals_of_outputs(self, X: Any, coverage: float) -> Floats:
        """Return intervals of shape (n_rows, n_targets, 2)."""
        check_is_fitted(self)
        coverage = check_coverage(coverage)
        held_out = []
        for residuals in self._residuals.T:
            used = (self._row_weight > 0) & ~np.isnan(residuals)
            scores = residuals[used] if self._has_pair else np.abs(residuals[used])
            rows = self._fold[used], self._row_weight[used]
            held_out.append(FoldScores(scores, *rows, self._n_folds))
        ranks = [scores.rank(coverage) for scores in held_out]
        few = int(np.argmax(ranks))
        n_few = float(held_out[few].weight.sum())
        warn_if_infinite(ranks[few], coverage, n_few, "interval is infinite")
        n = X.shape[0] if hasattr(X, "shape") else _num_samples(X)
        size = max(1, int(_VALUES / (self._n_folds * self.out_of_fold_.shape[1])))
        if n <= size:
            return self._ends(self._fold_outputs(X), held_out, ranks)
        starts = range(0, n, size)
        parts = (pick_rows(X, np.arange(s, min(n, s + size))) for s in starts)
        return np.concatenate([self._ends(self._fold_outputs(p), held_out, ranks) for p in parts])

    def _ends(self, outputs: Floats, held_out: list[FoldScores], ranks: list[float]) -> Floats:
        """Return both ends of the intervals from predictions of the models without each fold."""
        if self._has_pair:  # crossing quantiles are sorted, as in prediction
            outputs = np.sort(outputs, axis=2)[:, :, [0, -1]]
            pairs = [(outputs[:, :, 0], outputs[:, :, 1])]
        else:
            pairs = [(values, values) for values in np.moveaxis(outputs, 2, 0)]
        # The (n+1-k)-th smallest of mu - score is minus the k-th smallest of -mu + score.
        ends = [
            (-scores.upper(-low, rank), scores.upper(high, rank))
            for (low, high), scores, rank in zip(pairs, held_out, ranks, strict=True)
        ]
        return np.moveaxis(np.array(ends), 2, 0)
