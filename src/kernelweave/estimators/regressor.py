"""Base class of the kernel regressors: losses, targets, predictions."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length

from kernelweave._dask import ScoredByParts, by_parts
from kernelweave._types import Floats
from kernelweave._validation import Interval, StrOptions, check_table, check_weights, fit_context
from kernelweave.errors import InputError
from kernelweave.losses import EpsilonInsensitive, Huber, Loss, Square
from kernelweave.solvers import Callback, Result, WarmStart

from .base import BaseMKL


class KernelRegressor(ScoredByParts, RegressorMixin, BaseMKL):
    """Base of the regressors: several targets share one set of weights."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseMKL._parameter_constraints,
        "loss": [StrOptions({"epsilon_insensitive", "square", "huber"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    loss: str
    epsilon: float

    def _n_solved(self, n: int) -> int:
        return n if self.loss == "square" else super()._n_solved(n)

    def _machine(self) -> Loss:
        if self.loss == "square":
            return Square(fit_intercept=self.fit_intercept)
        if self.loss == "huber":
            if self.epsilon <= 0:
                raise InputError("epsilon: Huber's threshold must be > 0, got 0.")
            return Huber(threshold=self.epsilon, fit_intercept=self.fit_intercept)
        return EpsilonInsensitive(epsilon=self.epsilon, fit_intercept=self.fit_intercept)

    def _solve(
        self, bank: Any, Y: Floats, cost: Floats, start: WarmStart | None, report: Callback | None
    ) -> Result:
        """Solve for targets without their common part, which an intercept has for nothing.

        A large one takes the digits that tell targets apart.
        """
        if not self.fit_intercept:
            return super()._solve(bank, Y, cost, start, report)
        shift = np.median(Y, axis=0)
        result = super()._solve(bank, Y - shift, cost, start, report)
        intercept = result.intercept + shift
        # The sum may be rounded; from its best bias a loss grows by the square, or straight.
        exact = intercept - shift == result.intercept
        error = np.where(exact, 0.0, np.spacing(np.abs(intercept)))
        machine = self._machine()
        shape, scale = machine.box(Y, cost), machine.zero_loss(Y, cost)
        growth = error * np.where(shape.ridge > 0.0, 0.0, shape.upper)
        np.divide(0.5 * error**2, shape.ridge, out=growth, where=shape.ridge > 0.0)
        return result.widened(float(growth.sum()), self.tol, scale, intercept=intercept)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn kernel weights and a regression function.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows; for `Precomputed` kernels a column of row numbers.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
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
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
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
        X = check_table(self, X, reset=True, parts=self._takes_features)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(X, y)
        self._one_output = y.ndim == 1
        Y = y.reshape(len(y), -1)
        weight = check_weights(sample_weight, len(Y))
        cost = np.ones_like(Y) if weight is None else np.repeat(weight[:, None], Y.shape[1], axis=1)
        return X, Y, cost, weight

    @by_parts
    def predict(self, X: Any) -> Floats:
        """Return the predicted value of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        decision = self._decide(X)
        return decision.ravel() if self._one_output else decision

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
