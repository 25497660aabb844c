"""Bases of the baseline classifiers: decision functions, and rules that vote for a class each."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats, Indices
from kernelweave._validation import check_table, fit_context, is_frame
from kernelweave.errors import InputError
from kernelweave.estimators.targets import DecidedClasses, class_codes
from kernelweave.noise.ranking import read_labels

Rule = tuple[int, ...]  # columns that must be true


class DecisionClassifier(DecidedClasses, ClassifierMixin, BaseEstimator):
    """A classifier whose subclasses implement `_decide`."""

    def _decide(self, X: Any) -> Floats:
        """Return decision values, one column where there are two classes or a vector."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._decide(X)

    def predict(self, X: Any) -> NDArray[Any]:
        codes = class_codes(self.decision_function(X))
        return np.asarray(self.classes_[codes])


def covered(X: Floats, rules: Sequence[Rule]) -> Floats:
    """Return which rows satisfy every condition, as zeros and ones (n_samples, n_rules)."""
    conditions = np.zeros((X.shape[1], len(rules)))
    for k, rule in enumerate(rules):
        conditions[list(rule), k] = 1.0
    return np.asarray(X @ conditions > conditions.sum(axis=0) - 0.5, dtype=np.float64)


class RuleVotes(DecisionClassifier):
    """A classifier whose rules vote for one class each, with a weight.

    Subclasses implement `_learn`, which ends with `_keep`.

    Parameters
    ----------
    threshold : float or None
        Values above it are true. None: columns must hold 0 and 1 only.

    Attributes
    ----------
    rule_classes_ : ndarray of shape (n_rules,)
        The class that each rule votes for.
    n_rules_ : int
        Rules without the default rule.
    mean_length_ : float
        Mean number of conditions.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "threshold": [Real, None],
        "random_state": ["random_state"],
    }

    threshold: float | None
    random_state: Any
    rules_: list[Rule]
    weights_: Floats
    rule_classes_: NDArray[Any]
    intercept_: Floats

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the rules.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Propositions of the training rows.
        y : array of shape (n_samples,)
            Class labels, two classes or more.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._propositions(X, reset=True)
        codes, self.classes_ = read_labels(X, column_or_1d(y, warn=True))
        self._learn(X, codes, check_random_state(self.random_state))
        return self

    def _learn(self, X: Floats, codes: Indices, random: Any) -> None:
        raise NotImplementedError

    def _propositions(self, X: Any, *, reset: bool) -> Floats:
        """Return the table as zeros and ones."""
        table = check_table(self, X, reset=reset)
        try:
            values = np.asarray(table.to_numpy() if is_frame(table) else table, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"X: {type(self).__name__} needs columns of truth values, got text or objects."
            ) from None
        if self.threshold is not None:
            return (values > self.threshold).astype(np.float64)
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InputError(
                f"X: {type(self).__name__} needs propositions, 0 or 1, but row {row}, column "
                f"{column} holds {values[row, column]:g}. Hint: make propositions of the columns, "
                "or set threshold to take values above it as true."
            )
        return values

    def _keep(self, rules: list[Rule], weights: Any, codes: Indices, intercept: Floats) -> None:
        """Store the rules; ``codes`` are the numbers of the classes they vote for."""
        self.rules_ = rules
        self.weights_ = np.asarray(weights, dtype=np.float64)
        self.rule_classes_ = self.classes_[codes]
        self.intercept_ = intercept
        self.n_rules_ = len(rules)
        self.mean_length_ = float(np.mean([len(rule) for rule in rules])) if rules else 0.0

    def _decide(self, X: Any) -> Floats:
        votes = covered(self._propositions(X, reset=False), self.rules_) * self.weights_
        own = self.rule_classes_[:, None] == self.classes_
        if len(self.classes_) > 2:
            return np.asarray(votes @ own.astype(np.float64) + self.intercept_)
        return np.asarray(votes @ np.where(own[:, 1], 1.0, -1.0) + self.intercept_[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Numeric columns cut at a single threshold may carry little information.
        tags.classifier_tags.poor_score = True
        return tags
