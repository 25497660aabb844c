"""Base class of the kernel classifiers: labels, class weights, decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import check_consistent_length

from kernelweave._dask import ScoredByParts, by_parts
from kernelweave._types import Floats, Indices
from kernelweave._validation import (
    StrOptions,
    check_labels,
    check_table,
    check_weights,
    fit_context,
)
from kernelweave.errors import InputError

from .base import BaseMKL


class BaseClassifier(ScoredByParts, ClassifierMixin, BaseMKL):
    """Base of everything that reads class labels and votes."""

    _declaration = BaseMKL._declaration.extended({"classes_": "labels[classes]"})

    def _read_labels(self, X: Any, y: Any) -> tuple[Any, np.ndarray[Any, Any], Indices]:
        """Return the table, the labels, and their codes; learn the classes."""
        X = check_table(self, X, reset=True, parts=self._takes_features)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = check_labels(y)
        check_consistent_length(X, y)
        encoder = LabelEncoder()
        codes = encoder.fit_transform(y)
        self.classes_ = encoder.classes_
        return X, y, codes

    def _refuse_one_class(self, present: Indices, where: str = "") -> None:
        if len(present) < 2:
            label = self.classes_[present[0]]
            label = label.item() if isinstance(label, np.generic) else label
            raise InputError(
                f"{type(self).__name__} needs two classes or more in y, but got one class only: "
                f"{label!r}{where}."
            )

    @by_parts
    def decision_function(self, X: Any) -> Floats:
        """Return ``f(x)`` for every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive speaks for ``classes_[1]``; more: one column per class.
        """
        decision = self._decide(X)
        return decision.ravel() if len(self.classes_) == 2 else decision

    @by_parts
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the predicted class of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Class labels.
        """
        decision = self.decision_function(X)
        codes = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(self.classes_[codes])


class KernelClassifier(BaseClassifier):
    """Base of the classifiers: several classes are learned one against the rest."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseMKL._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    class_weight: dict[Any, float] | str | None

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and a classifier.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows; for `Precomputed` kernels a column of row numbers.
        y : array of shape (n_samples,)
            Class labels of any type, two classes or more.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row; a weight of two is the same as giving the row twice.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, Y, cost, weight = self._targets(X, y, sample_weight)
        return self._fit(X, Y, self.C * cost, weight)

    @fit_context(prefer_skip_nested_validation=True)
    def fit_path(
        self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None
    ) -> list[Self]:
        """Fit for several values of C, sharing kernels and starting each fit from the last.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,)
            Class labels.
        Cs : iterable of float
            Values of C in any order.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row.

        Returns
        -------
        models : list
            A fitted estimator for each C, in the order given.
        """
        X, Y, cost, weight = self._targets(X, y, sample_weight)
        return self._path(X, Y, cost, Cs, weight)

    def _targets(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, Floats, Floats, Floats | None]:
        """Return the table, signed targets, costs for C = 1 and the weights of rows."""
        X, y, codes = self._read_labels(X, y)
        weight = check_weights(sample_weight, len(codes))
        present = np.unique(codes if weight is None else codes[weight > 0])
        self._refuse_one_class(
            present, "" if weight is None else " among the rows of positive weight"
        )
        factors = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weight
        )
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            raise InputError(
                f"class_weight: weights must be finite numbers > 0, got {self.class_weight!r}."
            )
        row_cost = factors[codes] * (1.0 if weight is None else weight)
        n_classes = len(self.classes_)
        columns = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
        Y = np.where(codes[:, None] == columns, 1.0, -1.0)
        cost = np.repeat(row_cost[:, None], len(columns), axis=1)
        return X, Y, cost, weight
