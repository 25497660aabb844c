"""Kernel ridge regression in a learned metric, for one table with numbers, categories and gaps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin

from kernelweave._dask import ScoredByParts, by_parts
from kernelweave._types import Floats, Indices
from kernelweave._validation import StrOptions, fit_context
from kernelweave.errors import InputError

from .left_out_scores import check_margins, check_residuals
from .metric_base import BaseMetricKernel
from .metric_intervals import LeftOutIntervals, LeftOutSets, margins
from .shared_docs import CLASSES, METRIC, SUPPORT, shared_attributes
from .targets import DecidedClasses, Targets, class_targets, real_targets
from .terms import KernelTerms

_RARE = 0.1  # share of the rows below which a class is rare
_VERY_RARE = 0.025  # below which its errors count as much as those of the other class
_CALIBRATION = 1e4  # inverse penalty of the logistic regression on leave-one-out values


@shared_attributes(METRIC, SUPPORT)
@dataclass(eq=False, repr=False)
class MetricKernelRegressor(LeftOutIntervals, ScoredByParts, RegressorMixin, BaseMetricKernel):
    """Kernel ridge regression in a learned metric, for one table of mixed columns.

    Numbers, categories, booleans, dates and gaps are encoded without looking at the target. One
    joint kernel on all columns, a mixture of two Laplacians, is fitted by ridge regression, whose
    leave-one-out errors are known in closed form and choose ridge, width and mixture. The gradients
    of the fitted function then give a new metric, and the step with the smallest leave-one-out
    error is kept. Every ridge problem is solved exactly; the metric is a fixed-point heuristic.

    Parameters
    ----------
    ridges : sequence of float
        Ridges to choose from, in units of the spread of the target.
    residuals : array of shape (n_left_out,) or (n_left_out, n_outputs), or None
        For `predict_interval`: residuals of rows that models with metrics of their own left out;
        `kernelweave fit` sets them. None: leave-one-out residuals with the metric held, whose
        intervals are too narrow where rows are few.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), Mechanism for feature learning in neural
    networks and backpropagation-free machine learning models, Science 383.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from kernelweave import MetricKernelRegressor
    >>> X, y = make_friedman1(150, n_features=12, random_state=0)
    >>> model = MetricKernelRegressor().fit(X, y)
    >>> sorted(model.to_frame()["column"][:5].tolist())
    [0, 1, 2, 3, 4]
    """

    _: KW_ONLY
    residuals: Any = None

    _declaration = BaseMetricKernel._declaration.extended({"_one_output": "flag"})

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseMetricKernel._parameter_constraints,
        "residuals": ["array-like", None],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the metric and the regression function.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Training rows; numbers, categories, booleans, dates and gaps. The rows of a Dask table
            of more than `max_exact` rows stay where they are: encoding, metric and landmarks come
            from a sample, the function from two passes over all parts.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets; several share the metric.
        sample_weight : array of shape (n_samples,), optional
            Weights of the squared errors.

        Returns
        -------
        self : MetricKernelRegressor
            The fitted estimator.
        """
        X = self._table(X)
        targets = real_targets(self, X, y, sample_weight)
        check_residuals(self.residuals, targets.Y.shape[1])
        values = self._fit(X, targets)
        self.loo_values_ = values[:, 0] if self._one_output else values
        return self

    def _units(self, Y: Floats, weight: Floats) -> tuple[Floats, Floats]:
        mean = (weight @ Y) / weight.sum()
        scale = np.sqrt(weight @ (Y - mean) ** 2 / weight.sum())
        constant = scale <= 1e-12 * np.abs(Y).max(axis=0)
        if constant.any():
            raise InputError(f"y: has one value only: {Y[0, int(np.argmax(constant))]:g}.")
        return mean, scale

    @by_parts
    def predict(self, X: Any) -> Floats:
        """Return the predicted target of every row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        values = self._decide(X)
        return values[:, 0] if self._one_output else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@shared_attributes(METRIC, SUPPORT, CLASSES)
@dataclass(eq=False, repr=False)
class MetricKernelClassifier(
    LeftOutSets, DecidedClasses, ScoredByParts, ClassifierMixin, BaseMetricKernel
):
    """Kernel ridge classification in a learned metric, for one table of mixed columns.

    The model of `MetricKernelRegressor` with targets of plus and minus one, one output per class
    where there are more than two. Probabilities come from a logistic regression on the
    leave-one-out values, at no further cost.

    Parameters
    ----------
    ridges : sequence of float
        Ridges to choose from, for targets of plus and minus one.
    class_weight : dict, "balanced", "auto" or None
        Weights of the classes. "auto": where the rarer of two classes has less than a tenth of the
        rows, its squared errors count more, by the root of the ratio, and by the ratio below 2.5 %;
        probabilities still refer to classes as frequent as in the data.
    margins : array of shape (n_left_out,), or None
        For `predict_set`: the largest log-probability of another class less that of the true one,
        of rows that models with metrics of their own left out; `kernelweave fit` sets it. None:
        leave-one-out values with the metric held, whose sets are too small where rows are few.
    random_state : int, RandomState or None
        Draws rows and landmarks where there are more than `max_exact`, and mixes of the outputs
        where there are more than eight classes.

    Attributes
    ----------
    calibration_coef_ : ndarray of shape (n_outputs, n_outputs)
        Slopes of the logistic regression on leave-one-out values.
    calibration_intercept_ : ndarray of shape (n_outputs,)
        Its intercepts.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_wine
    >>> from kernelweave import MetricKernelClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = MetricKernelClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.98), model.predict_proba(X).shape
    (True, (178, 3))
    """

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = "auto"
    margins: Any = None

    _declaration = BaseMetricKernel._declaration.extended(
        {
            "classes_": "labels[classes]",
            "calibration_coef_": "float[outputs, outputs]",
            "calibration_intercept_": "float[outputs]",
            "_scores": "float[used]",
        }
    )

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseMetricKernel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced", "auto"}), None],
        "margins": ["array-like", None],
    }

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the metric, the decision function and its probabilities.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Training rows; numbers, categories, booleans, dates and gaps. The rows of a Dask table
            of more than `max_exact` rows stay where they are: encoding, metric and landmarks come
            from a sample, the function from two passes over all parts.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            Weights of the squared errors.

        Returns
        -------
        self : MetricKernelClassifier
            The fitted estimator.
        """
        check_margins(self.margins)
        X = self._table(X)
        targets = class_targets(self, X, y, sample_weight)
        values = self._fit(X, self._with_rare_classes(targets))
        self._calibrate(values, targets)
        used = ~np.isnan(values).any(axis=1)
        own = _class_codes(targets.Y[used])[:, None]
        self._scores = np.take_along_axis(margins(values[used]), own, axis=1)[:, 0]
        self.loo_values_ = values[:, 0] if values.shape[1] == 1 else values
        return self

    def _units(self, Y: Floats, weight: Floats) -> tuple[Floats, Floats]:
        return np.zeros(Y.shape[1]), np.ones(Y.shape[1])

    def _with_rare_classes(self, targets: Targets) -> Targets:
        """Return targets in which errors of a rare class count more, where that is automatic."""
        if self.class_weight != "auto" or len(self.classes_) > 2:
            return targets
        rare = targets.Y[:, 0] > 0
        counts = np.array([targets.cost[~rare].sum(), targets.cost[rare].sum()])
        if not counts.min() < _RARE * counts.sum():
            return targets
        power = 1.0 if counts.min() < _VERY_RARE * counts.sum() else 0.5
        factors = (counts.max() / counts) ** power
        return replace(targets, cost=targets.cost * factors[rare.astype(int)][:, None])

    def _calibrate(self, values: Floats, targets: Targets) -> None:
        """Fit a logistic regression to the leave-one-out values."""
        weight = targets.cost.mean(axis=1)
        used = weight > 0
        codes = _class_codes(targets.Y)
        from sklearn.linear_model import LogisticRegression  # takes long to import

        model = LogisticRegression(C=_CALIBRATION, max_iter=1000)
        model.fit(values[used], codes[used], weight[used])
        self.calibration_coef_ = np.asarray(model.coef_)
        self.calibration_intercept_ = np.asarray(model.intercept_)
        if len(self.classes_) == 2 and not self.calibration_coef_[0, 0] > 0:
            # Left-out rows of a class have smaller values: nothing was learned but the shares.
            share = float(weight[used] @ codes[used] / weight[used].sum())
            self.calibration_coef_ = np.zeros((1, 1))
            self.calibration_intercept_ = np.array([np.log(share / (1.0 - share))])

    def _terms(self) -> KernelTerms:
        """Return the calibrated log-odds as a sum over support rows or landmarks."""
        found, slopes = super()._terms(), self.calibration_coef_.T
        terms = tuple(replace(term, coef=term.coef @ slopes) for term in found.terms)
        intercept = found.intercept @ slopes + self.calibration_intercept_
        return replace(found, terms=terms, intercept=intercept)

    @by_parts
    def decision_function(self, X: Any) -> Floats:
        """Return calibrated log-odds, or one score per class.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values support ``classes_[1]``.
        """
        values: Floats = self._decide(X) @ self.calibration_coef_.T + self.calibration_intercept_
        return values[:, 0] if values.shape[1] == 1 else values

    @by_parts
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Rows sum to one.
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            decision = np.column_stack([np.zeros(len(decision)), decision])
        return np.asarray(softmax(decision, axis=1))

    @by_parts
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            ``log(predict_proba(X))``.
        """
        return np.asarray(np.log(self.predict_proba(X)))


def _class_codes(Y: Floats) -> Indices:
    """Return the class of every row of signed targets."""
    return np.asarray(Y.argmax(axis=1) if Y.shape[1] > 1 else (Y[:, 0] > 0).astype(np.intp))
