"""Calibrated probabilities and prediction sets of classifiers."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import by_parts
from kernelweave._progress import Counter
from kernelweave._types import Bools, Floats, Indices
from kernelweave._validation import StrOptions, offered_if
from kernelweave.errors import InputError, warn
from kernelweave.solvers import Result

from .calibrators import METHODS, Calibrator, fit_calibrator
from .conformal import (
    FoldScores,
    check_coverage,
    class_scores,
    guaranteed_coverage,
    warn_if_infinite,
)
from .duplicates import MergedRows
from .folds import FoldPlan
from .out_of_fold import OutOfFold
from .targets import Targets

_HELD_FOLDS, _LEARNED_FOLDS = 5, 3
_SECOND = 1  # seed of the second division into folds,
_NOISY = 1000  # up to so many rows; noise of the map is one over their number
_LIGHT = 0.1  # mean weight of a row below which weights are probably no counts
CALIBRATION: dict[str, Any] = {
    "calibration": [StrOptions(set(METHODS)), None],
    "calibration_cv": ["cv_object", "array-like"],
}


def lacks_probabilities(model: Any) -> str | None:
    """Return how to get probabilities where there are none."""
    if model.calibration is not None or model._is_native:
        return None
    native = " or loss='logistic'" if hasattr(model, "loss") else ""
    return (
        f"{type(model).__name__} gives no probabilities as it is; set calibration='auto'{native} "
        "before fit."
    )


def _lacks_sets(model: Any) -> str | None:
    if model.calibration is not None:
        return None
    return f"{type(model).__name__} gives no prediction sets as it is; set calibration='auto'."


class CalibratedClassifier(OutOfFold):
    """Mixin that adds `predict_proba` and `predict_set` where ``calibration`` is set.

    Decisions of held-out rows come from models on the same kernels; a map from decisions to
    probabilities is fitted to them. The model itself, its decisions and predictions do not change.
    """

    calibration: str | None = None
    classes_: np.ndarray[Any, Any]
    calibrator_: Calibrator
    _codes: Floats  # one column of class numbers of the given rows, or zeros and ones of labels

    _set_scores: ClassVar[tuple[str, ...]] = ("margin", "lac", "aps")

    @property
    def _is_native(self) -> bool:
        """Whether the loss itself gives probabilities."""
        return False

    def _native_log_proba(self, decision: Floats) -> Floats:
        """Return logarithms of the probabilities that the loss gives, one column per class."""
        raise NotImplementedError

    @property
    def _has_labels(self) -> bool:
        """Whether outputs are labels or tasks of their own, not classes that exclude each other."""
        several = getattr(self, "_several", False) or getattr(self, "_multilabel", False)
        return several or hasattr(self, "tasks_")

    @property
    def _needs_folds(self) -> bool:
        return self.calibration is not None

    def _leave_out(self, shared: Any, result: Result, rows: MergedRows, targets: Targets) -> None:
        assert self.calibration is not None
        weight = np.ones(len(targets.Y)) if targets.weight is None else targets.weight
        if weight.sum() < _LIGHT * np.count_nonzero(weight):
            warn(
                f"sample_weight: calibration counts rows by their weights, which sum to "
                f"{weight.sum():.3g} for {np.count_nonzero(weight)} rows; give weights of mean one."
            )
        n_learned, labels = self._n_learned(shared), self._has_labels
        held = self._hold(shared, result, rows) if n_learned <= len(rows.Y) / 2 else None
        names = None if labels else list(self.classes_)
        plan = FoldPlan(self.calibration_cv, _LEARNED_FOLDS if held is None else _HELD_FOLDS, names)
        if labels:
            strata = np.unique(rows.Y, axis=0, return_inverse=True)[1].ravel()
        else:
            strata = _codes(rows.Y)
        fold = plan.deal(rows, targets, strata)
        n_folds = int(fold.max()) + 1
        if held is not None:
            left = self._leave_out_held(shared, result, held, rows, fold, n_folds)
        else:
            limit = self._fold_limit(shared, result)
            left = self._leave_out_learned(shared, result, rows, fold, n_folds, limit)
        values = left.values
        noisy = len(rows.Y) <= _NOISY and rows.Y.shape[1] == 1
        if held is not None and noisy and not plan.is_given:
            # Decisions of held-out rows depend on which others are held out with them; a second
            # division averages that. Several outputs cost as many solves more and gain less.
            again = plan.deal(rows, targets, strata, _SECOND)
            count = Counter(self.verbose, n_folds, "folds")
            values = 0.5 * (values + held.without_folds(rows.Y, again, count)[0])
        self._keep_folds(left, rows, targets)
        self._codes = self._read_codes(targets.Y, targets.cost, targets.fixed)
        counts = np.ones(len(rows.Y)) if rows.weight is None else rows.weight
        codes = self._read_codes(rows.Y, rows.cost, targets.fixed)
        # Fitted to merged rows, so that a weight of two is bitwise a row given twice.
        self.calibrator_ = fit_calibrator(self.calibration, values, codes, counts, labels=labels)
        # The theorem is about one algorithm on other rows: weights or scales that were taken from
        # all rows are outside it.
        exact = n_learned == 0 and held is not None and self._ignores_rows()
        total = float(self._row_weight.sum())
        known = guaranteed_coverage(0.9, total, n_folds) if exact else np.nan
        self.coverage_guarantee_ = float(known)

    def _fold_limit(self, shared: Any, result: Result) -> int:
        """Return the number of inner solves of a fit without a fold: a quarter of those of the fit.

        It is no more than a few; Newton's method takes large steps.
        """
        return min(self._few_solves, max(2, result.history[-1].solves // 4), self.max_iter)

    def _read_codes(self, Y: Floats, cost: Floats, fixed: dict[int, float]) -> Floats:
        """Return a column of class numbers, or zeros and ones of labels or tasks.

        They are -1 where a row has no part in an output.
        """
        if not self._has_labels:
            return _codes(Y)[:, None].astype(np.float64)
        ones = np.where(cost > 0, (Y > 0).astype(np.float64), -1.0)
        for output, score in fixed.items():
            ones[:, output] = float(score > 0)
        return ones

    def _log_proba(self, outputs: Floats) -> Floats:
        """Return logarithms of probabilities from one column per output."""
        if self.calibration is None:
            return self._native_log_proba(outputs)
        return self.calibrator_.log_proba(outputs)

    @offered_if(lacks_probabilities)
    @by_parts
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; of several labels, the probability of each label. They refer
            to classes as frequent as in the training data. The most probable class may differ from
            that of `predict`, which does not depend on calibration; with `class_weight` it often
            does.
        """
        check_is_fitted(self)
        return np.exp(self._log_proba(self._outputs(X)))

    @offered_if(lacks_probabilities)
    @by_parts
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Also where the probability itself rounds to zero.
        """
        check_is_fitted(self)
        return self._log_proba(self._outputs(X))

    @offered_if(_lacks_sets)
    @by_parts
    def predict_set(self, X: Any, coverage: float = 0.9, score: str = "margin") -> Bools:
        """Return a set of classes for every row that holds the true one with a given probability.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float in (0, 1)
            Share of new rows whose set should hold their class. It is nominal unless
            `coverage_guarantee_` is a number.
        score : {"margin", "lac", "aps"}
            How badly a class fits: the largest decision of another class less its own; one minus
            its probability; or the summed probability of the classes at least as probable, which
            gives larger sets of more even coverage.

        Returns
        -------
        included : ndarray of bool of shape (n_samples, n_classes)
            In the order of `classes_`. A row may have an empty set: no class fits it.
        """
        check_is_fitted(self)
        coverage = check_coverage(coverage)
        if score not in self._set_scores:
            raise InputError(f"score: must be one of {list(self._set_scores)}, got {score!r}.")
        if self._has_labels:
            raise InputError(
                "predict_set: there is no set of classes where labels or tasks have an output "
                "each; use predict_proba."
            )
        used = self._row_weight > 0
        own = self._class_scores(self.out_of_fold_[used], score)
        own = own[np.arange(len(own)), self._codes[used, 0].astype(np.intp)]
        held_out = FoldScores(own, self._fold[used], self._row_weight[used], self._n_folds)
        total = float(self._row_weight.sum())
        warn_if_infinite(held_out.rank(coverage), coverage, total, "set holds all classes")
        outputs = self._fold_outputs(X)
        n, n_folds, n_outputs = outputs.shape
        new = self._class_scores(outputs.reshape(-1, n_outputs), score).reshape(n, n_folds, -1)
        counts = [held_out.below(new[:, :, k], equal=False) for k in range(new.shape[2])]
        return np.asarray(np.column_stack(counts) < coverage * (total + 1) * (1 - 1e-12))

    def _class_scores(self, outputs: Floats, score: str) -> Floats:
        """Return how badly each class fits, from one column per output."""
        log_proba = None if score == "margin" else self._log_proba(outputs)
        if outputs.shape[1] == 1:
            outputs = np.hstack([-outputs, outputs])
        return class_scores(outputs, log_proba, score)


def _codes(Y: Floats) -> Indices:
    """Return the class numbers of signed targets."""
    return Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(np.intp)
