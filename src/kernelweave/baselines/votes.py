"""What ensembles of voting conjunctions have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats, Indices
from kernelweave._validation import check_table, is_frame
from kernelweave.errors import InputError

Rule = tuple[int, ...]


def covered(X: Floats, rules: Sequence[Rule]) -> Floats:
    """Return which rows (n_samples, n_rules) fulfil every condition, as zeros and ones."""
    conditions = np.zeros((X.shape[1], len(rules)))
    for k, rule in enumerate(rules):
        conditions[list(rule), k] = 1.0
    return np.asarray(X @ conditions > conditions.sum(axis=0) - 0.5, dtype=np.float64)


class RuleVotes(ClassifierMixin, BaseEstimator):
    """A classifier whose rules vote for one class each, with a weight."""

    threshold: float | None
    rules_: list[Rule]
    weights_: Floats
    rule_classes_: NDArray[Any]
    intercept_: Floats
    classes_: NDArray[Any]

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

    def decision_function(self, X: Any) -> Floats:
        """Return the sum of the votes and the default.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Propositions of the rows to judge.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive speaks for ``classes_[1]``; more: one column per class.
        """
        check_is_fitted(self)
        X = self._propositions(X, reset=False)
        votes = covered(X, self.rules_) * self.weights_
        own = self.rule_classes_[:, None] == self.classes_
        if len(self.classes_) > 2:
            return np.asarray(votes @ own.astype(np.float64) + self.intercept_)
        return np.asarray(votes @ np.where(own[:, 1], 1.0, -1.0) + self.intercept_[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Propositions of the rows to judge.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Class labels.
        """
        decision = self.decision_function(X)
        best = decision > 0 if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[np.asarray(best, dtype=np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Propositions are wanted: measured columns cut at one threshold may say little.
        tags.classifier_tags.poor_score = True
        return tags
