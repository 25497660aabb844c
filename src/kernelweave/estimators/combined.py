"""Convex combinations of fitted models, with targets transformed and scores calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats
from kernelweave._validation import check_mixed_table, fit_context
from kernelweave.errors import InputError
from kernelweave.kernels import Linear

from .combination import BaseCombination, to_probabilities, undo_logarithm
from .left_out_scores import (
    MarginSets,
    ResidualIntervals,
    check_margins,
    check_residuals,
    log_probabilities,
)
from .mkl import MKLClassifier, MKLRegressor
from .shared_docs import CLASSES, shared_attributes
from .targets import DecidedClasses, class_codes, encode_labels, real_targets, refuse_one_class
from .terms import FunctionTerms, MemberTerms

COMBINED = {
    "members_ : list": "The fitted models.",
    "names_ : list of str": "Their names.",
    "weights_ : ndarray of shape (n_members,)": "Their weights, which sum to one.",
    "intercept_ : ndarray of shape (n_outputs,)": "Zeros.",
    "objective_ : float": "NaN: members have objectives of their own.",
    "duality_gap_ : float": "NaN, for the same reason.",
    "converged_ : bool": "Whether all members have converged.",
    "n_iter_ : int": "Sum over the members.",
    "history_ : list": "Empty.",
    "coverage_guarantee_ : float": "NaN: members are chosen by the rows that were left out.",
}


@shared_attributes(COMBINED)
@dataclass(eq=False, repr=False)
class CombinedRegressor(ResidualIntervals, RegressorMixin, BaseCombination):
    """Weighted mean of the predictions of several regressors.

    A member may learn the logarithm of the target, which is undone in its predictions. The command
    ``kernelweave fit`` writes such a model where a combination predicts left-out rows better than
    any model alone, or where a skewed target is learned on a logarithmic scale.

    Parameters
    ----------
    logarithms : sequence of None or (offset, scale), or None
        For each member None, or numbers with which it learns ``log(y + offset)`` and predicts
        ``scale * exp(f(x)) - offset``.
    residuals : array of shape (n_left_out,) or (n_left_out, n_outputs), or None
        True less predicted values of rows that were left out, for `predict_interval`. Where all
        members learn a logarithm with one offset, differences of these logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import CombinedRegressor, MetricKernelRegressor
    >>> X = np.linspace(0, 5, 60)[:, None]
    >>> metric = ("learned metric", MetricKernelRegressor())
    >>> model = CombinedRegressor([metric], logarithms=[(0.0, 1.0)]).fit(X, np.exp(X[:, 0]))
    >>> bool(abs(model.predict([[2.5]])[0] / np.exp(2.5) - 1) < 0.01)
    True
    """

    estimators: Sequence[tuple[str, Any]] | None = None
    _: KW_ONLY
    weights: Sequence[float] | None = None
    logarithms: Sequence[tuple[float, float] | None] | None = None
    residuals: Any = None

    _declaration = BaseCombination._declaration.extended({"_one_output": "flag"})

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseCombination._parameter_constraints,
        "logarithms": [list, tuple, None],
        "residuals": ["array-like", None],
    }

    def _usual_members(self) -> list[tuple[str, Any]]:
        return [("kernels", MKLRegressor()), ("linear", MKLRegressor([Linear()]))]

    def _logarithms(self, n_members: int) -> list[tuple[float, float] | None]:
        found = self._per_member("logarithms", n_members)
        for item in found:
            if item is None:
                continue
            if len(item) != 2 or not np.isfinite(item).all() or not item[1] > 0:
                raise InputError(
                    f"logarithms: must be None or (offset, scale) with a scale > 0, got {item!r}."
                )
        return found

    def _common_offset(self) -> float | None:
        used = self._logarithms(len(self.weights_))
        offsets = {None if item is None else float(item[0]) for item in used}
        return offsets.pop() if len(offsets) == 1 else None

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all members.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows, for members that take them.

        Returns
        -------
        self : CombinedRegressor
            The fitted estimator.
        """
        X = check_mixed_table(self, X, reset=True)
        Y = real_targets(self, X, y, sample_weight).Y
        targets = []
        for item in self._logarithms(len(self._named())):
            if item is not None and not (Y + item[0] > 0).all():
                raise InputError(
                    f"logarithms: y + {item[0]:g} must be > 0, but the smallest y is {Y.min():g}."
                )
            own = Y if item is None else np.log(Y + item[0])
            targets.append(own[:, 0] if self._one_output else own)
        self.intercept_ = np.zeros(Y.shape[1])
        check_residuals(self.residuals, Y.shape[1])
        self._fit_members(X, targets, sample_weight)
        return self

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
        check_is_fitted(self)
        X = check_mixed_table(self, X, reset=False)
        total: Any = 0.0
        logarithms = self._logarithms(len(self.members_))
        for weight, member, item in zip(self.weights_, self.members_, logarithms, strict=True):
            values = np.asarray(member.predict(X))
            total = total + weight * (values if item is None else undo_logarithm(values, *item))
        return np.asarray(total)

    def _terms(self) -> MemberTerms | FunctionTerms:
        used = np.flatnonzero(self.weights_).tolist()
        logarithms = self._logarithms(len(self.members_))
        n_outputs = len(self.intercept_)
        if any(logarithms[j] is not None for j in used):
            reason = "members that learn a logarithm do not add up"
            return FunctionTerms(lambda X: self.predict(X).reshape(-1, n_outputs), reason)
        slopes = ((self.members_[j], self.weights_[j] * np.eye(n_outputs)) for j in used)
        return MemberTerms(tuple(slopes), self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.string = True
        return tags


@shared_attributes(COMBINED, CLASSES)
@dataclass(eq=False, repr=False)
class CombinedClassifier(MarginSets, DecidedClasses, ClassifierMixin, BaseCombination):
    """Weighted mean of the probabilities of several classifiers.

    Decision values of members without probabilities of their own are calibrated. The command
    ``kernelweave fit`` writes such a model where a combination predicts left-out rows better than
    any model alone.

    Parameters
    ----------
    calibrations : sequence of None or (slopes, intercepts), or None
        For each member None, where its own probabilities are used, or a matrix and a vector: the
        log-odds of its classes are ``decision @ slopes.T + intercepts``. None for all, where
        members have no probabilities: slope 1, intercept 0.
    margins : array of shape (n_left_out,), or None
        For rows that were left out, the largest log-probability of another class less that of the
        true one, for `predict_set`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from kernelweave import CombinedClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> CombinedClassifier().fit(X, y).predict_proba(X).shape
    (178, 3)
    """

    estimators: Sequence[tuple[str, Any]] | None = None
    _: KW_ONLY
    weights: Sequence[float] | None = None
    calibrations: Sequence[tuple[Floats, Floats] | None] | None = None
    margins: Any = None

    _declaration = BaseCombination._declaration.extended({"classes_": "labels[classes]"})

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseCombination._parameter_constraints,
        "calibrations": [list, tuple, None],
        "margins": ["array-like", None],
    }

    def _usual_members(self) -> list[tuple[str, Any]]:
        return [("kernels", MKLClassifier()), ("linear", MKLClassifier([Linear()]))]

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit all members.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Class labels.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows, for members that take them.

        Returns
        -------
        self : CombinedClassifier
            The fitted estimator.
        """
        X = check_mixed_table(self, X, reset=True)
        labels, codes = encode_labels(self, X, y)
        refuse_one_class(self, codes)
        n_members = len(self._named())
        self._per_member("calibrations", n_members)
        check_margins(self.margins)
        self._fit_members(X, [labels] * n_members, sample_weight)
        self.intercept_ = np.zeros(1 if len(self.classes_) == 2 else len(self.classes_))
        return self

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
        check_is_fitted(self)
        X = check_mixed_table(self, X, reset=False)
        total: Any = 0.0
        calibrations = self._per_member("calibrations", len(self.members_))
        for weight, member, item in zip(self.weights_, self.members_, calibrations, strict=True):
            if item is None and hasattr(member, "predict_proba"):
                own = np.asarray(member.predict_proba(X))
            else:
                own = to_probabilities(member.decision_function(X), *(item or (1.0, 0.0)))
            total = total + weight * own
        return np.asarray(total)

    def decision_function(self, X: Any) -> Floats:
        """Return log-odds, or the logarithms of the probabilities of several classes.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive values support ``classes_[1]``.
        """
        logs = log_probabilities(self.predict_proba(X))
        return np.asarray(logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs)

    def _terms(self) -> MemberTerms | FunctionTerms:
        used = np.flatnonzero(self.weights_).tolist()
        calibrations = self._per_member("calibrations", len(self.members_))
        item = calibrations[used[0]]
        if len(used) == 1 and len(self.classes_) == 2 and item is not None:
            # Log-odds of one calibrated member are linear in its decision.
            slopes = np.reshape(np.asarray(item[0], dtype=np.float64).ravel()[:1], (1, 1))
            member = ((self.members_[used[0]], slopes),)
            return MemberTerms(member, np.asarray(item[1], dtype=np.float64).ravel()[:1])
        n, reason = (
            len(self.intercept_),
            "log-odds of mean probabilities do not add up over members",
        )
        return FunctionTerms(lambda X: self.decision_function(X).reshape(-1, n), reason)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        codes = class_codes(self.decision_function(X))
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags
