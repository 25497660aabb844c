"""Regression of one or several quantiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import d2_pinball_score

from kernelweave._dask import by_parts, gather
from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.losses import Loss, Quantile

from .regressor import KernelRegressor
from .targets import Targets, finite_floats


class QuantileRegressor(KernelRegressor):
    """Base of the regressors whose loss may be that of quantiles.

    Several levels are outputs with the same target and one set of kernel weights. Functions of
    several levels may cross; sorting the predictions of every row never raises the loss
    (Chernozhukov, Fernandez-Val and Galichon 2010).
    """

    quantile: Any

    def _levels(self) -> tuple[float, ...]:
        """Return the levels of the quantiles."""
        levels = np.atleast_1d(finite_floats(self.quantile))
        inside = len(levels) and levels.ndim == 1 and ((levels > 0) & (levels < 1)).all()
        if not inside or not (np.diff(levels) > 0).all():
            raise InputError(
                "quantile: must be a number between 0 and 1 or an increasing sequence of such "
                f"numbers, got {self.quantile!r}."
            )
        return tuple(levels.tolist())

    @property
    def _several_levels(self) -> bool:
        return self.loss == "quantile" and np.ndim(self.quantile) > 0

    def _make_loss(self) -> Loss:
        if self.loss == "quantile":
            return Quantile(self._levels(), fit_intercept=self.fit_intercept)
        return super()._make_loss()

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        levels = self._levels() if self.loss == "quantile" else ()
        X, targets = super()._targets(X, y, sample_weight)
        if not self._several_levels:
            return X, targets
        if targets.Y.shape[1] > 1:
            raise InputError(
                f"quantile: several levels need one target, but y has {targets.Y.shape[1]} columns."
                " Hint: fit one model for each target."
            )
        self._one_output = False
        Y, cost = (np.repeat(part, len(levels), axis=1) for part in (targets.Y, targets.cost))
        return X, replace(targets, Y=Y, cost=cost)

    @by_parts
    def predict(self, X: Any) -> Floats:
        decision = self._decide(X)
        if self._several_levels:
            return np.sort(decision, axis=1)
        return decision.ravel() if self._one_output else decision

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2, or for quantiles the mean share of the pinball loss that is explained.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            What is true.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        score : float
            At most 1. The constant that is best for these rows scores 0.
        """
        if self.loss != "quantile":
            return super().score(X, y, sample_weight)
        y, weight, predicted = gather(y), gather(sample_weight), gather(self.predict(X))
        columns = predicted.T if self._several_levels else [predicted]
        scores = [
            d2_pinball_score(y, values, sample_weight=weight, alpha=level)
            for level, values in zip(self._levels(), columns, strict=True)
        ]
        return float(np.mean(scores))
