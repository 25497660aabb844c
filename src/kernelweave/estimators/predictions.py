"""Predictions of estimators whose `fit` takes tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave._dask import by_parts
from kernelweave._types import Floats
from kernelweave._validation import offered_if
from kernelweave.errors import InputError

from .calibration import CalibratedClassifier, lacks_probabilities
from .intervals import IntervalRegressor, lacks_intervals
from .targets import class_codes


class TaskClassifier(CalibratedClassifier):
    """Mixin, before `TaskOutputs`, of classifiers with one output per class, label or task."""

    _by_task: Callable[[Floats, Any], Floats | None]  # of `TaskOutputs`
    _several: bool = False  # whether there are labels, predicted in a table
    _multilabel: bool = False  # the same, and one label has a decision of one column

    def _refuse_outputs(self, n_outputs: int) -> None:
        if n_outputs > 1:
            raise InputError(
                f"task: only two classes can be learned by task, but y has {n_outputs} classes or "
                "labels."
            )

    @by_parts
    def decision_function(self, X: Any, task: Any = None) -> Floats:
        """Return ``f(x)`` for every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Two classes: positive values support ``classes_[1]``. Otherwise one column per class or
            label.
        """
        scores = self._outputs(X)
        if (own := self._by_task(scores, task)) is not None:
            return own
        return scores[:, 0] if scores.shape[1] == 1 and not self._multilabel else scores

    @by_parts
    def predict(self, X: Any, task: Any = None) -> np.ndarray[Any, Any]:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            Class labels, or zeros and ones for several labels.
        """
        decision = self.decision_function(X, task)
        if self._several:
            decision = decision.reshape(len(decision), -1)
        if self._several or self._multilabel:
            return (decision > 0).astype(int)
        return np.asarray(self.classes_[class_codes(decision)])

    @offered_if(lacks_probabilities)
    @by_parts
    def predict_proba(self, X: Any, task: Any = None) -> Floats:
        """Return the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; of several labels, the probability of each label. The most
            probable class may differ from that of `predict`, which calibration does not change.
        """
        return np.asarray(np.exp(self.predict_log_proba(X, task)))

    @offered_if(lacks_probabilities)
    @by_parts
    def predict_log_proba(self, X: Any, task: Any = None) -> Floats:
        """Return the logarithm of the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Also where the probability itself rounds to zero.
        """
        log_p = self._log_proba(self._outputs(X))
        if (own := self._by_task(log_p, task)) is None:
            return log_p
        return np.column_stack([np.log1p(-np.exp(own)), own])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Return the accuracy of the predictions for these rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        y : array of shape (n_samples,)
            True classes.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        score : float
            At most one.
        """
        if task is None:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        from sklearn.metrics import accuracy_score  # takes long to import

        return float(accuracy_score(y, self.predict(X, task), sample_weight=sample_weight))


class TaskRegressor(IntervalRegressor):
    """Mixin, before `TaskOutputs`, of regressors with one output per target or task."""

    _by_task: Callable[[Floats, Any], Floats | None]  # of `TaskOutputs`

    def _refuse_outputs(self, n_outputs: int) -> None:
        if n_outputs > 1:
            raise InputError("task: y must have one column where tasks are given.")

    @by_parts
    def predict(self, X: Any, task: Any = None) -> Floats:
        """Return the predicted value of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        scores = self._outputs(X)
        if (own := self._by_task(scores, task)) is not None:
            return own
        return scores[:, 0] if self._one_output else scores

    @offered_if(lacks_intervals)
    @by_parts
    def predict_interval(self, X: Any, coverage: float = 0.9, task: Any = None) -> Floats:
        """Return an interval for every row that holds its target with a given probability.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict, in a form that `fit` takes.
        coverage : float in (0, 1)
            Share of new rows whose interval should hold their target. It is nominal unless
            `coverage_guarantee_` is a number.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends; infinite where the training rows are too few for the coverage.
        """
        intervals = self._intervals_of_outputs(X, coverage)
        if (own := self._by_task(intervals, task)) is not None:
            return own
        return intervals[:, 0] if self._one_output else intervals

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Return R2 of the predictions for these rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        y : array of shape (n_samples,)
            True values.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        score : float
            At most one.
        """
        if task is None:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        from sklearn.metrics import r2_score  # takes long to import

        return float(r2_score(y, self.predict(X, task), sample_weight=sample_weight))
