"""Class probabilities of losses that are minus the logarithm of a likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.utils.metaestimators import available_if

from kernelweave._dask import by_parts
from kernelweave._types import Floats


def _has_probabilities(model: Any) -> bool:
    if model.loss == "logistic":
        return True
    raise AttributeError(
        f"{type(model).__name__} with loss={model.loss!r} has no probabilities. Hint: set "
        "loss='logistic'."
    )


class NativeProbabilities:
    """Mixin of classifiers with a parameter ``loss`` that may be "logistic"."""

    loss: str
    _several: bool

    @available_if(_has_probabilities)
    @by_parts
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; each row sums to one. Of several labels, the probability
            that a row has the label.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_has_probabilities)
    @by_parts
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of the probability of every class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Finite, however small the probability.
        """
        return self._native_log_proba(self._decide(X))  # type: ignore[attr-defined]

    def _native_log_proba(self, decision: Floats) -> Floats:
        """Return log-probabilities from decision values, one column per output."""
        if self._several:  # of every label
            return np.asarray(-np.logaddexp(0.0, -decision))
        if decision.shape[1] == 1:  # of the two classes, those of log-odds
            return np.asarray(-np.logaddexp(0.0, decision * np.array([[1.0, -1.0]])))
        return np.asarray(log_softmax(decision, axis=1))
