"""Base class of the kernel regressors: losses, targets, predictions."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from kernelweave._dask import ScoredByParts, by_parts
from kernelweave._types import Floats
from kernelweave._validation import Interval, StrOptions, check_table
from kernelweave.banks import Bank
from kernelweave.errors import InputError
from kernelweave.kernels.spread import column_deviations, quantiles
from kernelweave.losses import EpsilonInsensitive, Huber, Loss, Square
from kernelweave.solvers import Callback, Result, WarmStart

from .base import BaseMKL
from .duplicates import MergedRows
from .fit import PathMixin
from .intervals import INTERVALS, IntervalRegressor
from .out_of_fold import HeldProblem
from .targets import Targets, real_targets

_HUGE_UNIT = 1e100  # objectives are squares of units, which must not overflow or vanish
_LINEAR = ("epsilon_insensitive", "quantile")  # losses that grow linearly with the residual


def regression_loss(loss: str, epsilon: float, *, fit_intercept: bool) -> Loss:
    """Return the loss that a regressor names."""
    if loss == "square":
        return Square(fit_intercept=fit_intercept)
    if loss == "huber":
        if epsilon <= 0:
            raise InputError("epsilon: Huber's threshold must be > 0, got 0.")
        return Huber(threshold=epsilon, fit_intercept=fit_intercept)
    return EpsilonInsensitive(epsilon=epsilon, fit_intercept=fit_intercept)


def _unit(target_scale: float | str | None, rows: MergedRows) -> float:
    """Return the unit of the targets: their spread, or the one given."""
    if target_scale is None:
        return 1.0
    if target_scale != "spread":
        return float(target_scale)
    # Less the median, beside which a small spread would seem to be rounding.
    deviations = column_deviations(rows.Y - quantiles(rows.Y, 0.5, rows.weight), rows.weight)
    # Several targets share one unit, as they share the weights; constant ones have none.
    known = deviations[np.isfinite(deviations)]
    largest = float(known.max(initial=0.0)) or 1.0  # its square may overflow
    unit = largest * float(np.sqrt(np.mean((known / largest) ** 2))) if known.size else 1.0
    return min(max(unit, 1.0 / _HUGE_UNIT), _HUGE_UNIT)


class KernelRegressor(IntervalRegressor, PathMixin, ScoredByParts, RegressorMixin, BaseMKL):
    """Base of the regressors: several targets share one set of weights.

    Parameters
    ----------
    epsilon : float
        Half-width of the insensitive zone, or Huber's threshold, in units of the target.
    target_scale : "spread", float or None
        Unit of the target, in which ``epsilon`` and residuals are measured, so that C means the
        same for dollars and for thousands of them. "spread": its standard deviation, outliers cut
        off; None: one.

    Attributes
    ----------
    target_scale_ : float
        Unit of the target.
    """

    _declaration = BaseMKL._declaration.extended(
        {"_one_output": "flag"},
        optional={**BaseMKL._declaration.optional, "target_scale_": "positive"},
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseMKL._parameter_constraints,
        "loss": [StrOptions({"epsilon_insensitive", "square", "huber"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "target_scale": [
            StrOptions({"spread"}),
            Interval(Real, 0, None, closed="neither"),
            None,
        ],
        **INTERVALS,
    }

    loss: str
    epsilon: float
    target_scale: float | str | None

    def _n_solved(self, n: int) -> int:
        return n if self.loss == "square" else super()._n_solved(n)

    def _make_loss(self) -> Loss:
        # A path asks the estimator that it belongs to, which has no unit, for the kind of loss.
        epsilon = self.epsilon * getattr(self, "target_scale_", 1.0)
        return regression_loss(self.loss, epsilon, fit_intercept=self.fit_intercept)

    def _solve(
        self, bank: Bank, Y: Floats, cost: Floats, start: WarmStart | None, report: Callback | None
    ) -> Result:
        """Solve for targets less their median, which the intercept adds without a penalty.

        A large common offset would cost the targets their last digits.
        """
        if not self.fit_intercept:
            return super()._solve(bank, Y, cost, start, report)
        shift = np.median(Y, axis=0)
        result = super()._solve(bank, Y - shift, cost, start, report)
        intercept = result.intercept + shift
        # Rounding moves the intercept from its optimum: a loss grows by the square, or linearly.
        exact = intercept - shift == result.intercept
        error = np.where(exact, 0.0, np.spacing(np.abs(intercept)))
        loss = self._make_loss()
        shape, scale = loss.box(Y, cost), loss.zero_loss(Y, cost)
        steepest = np.maximum(shape.upper, -shape.lower)
        growth = error * np.where(shape.ridge > 0.0, 0.0, steepest)
        np.divide(0.5 * error**2, shape.ridge, out=growth, where=shape.ridge > 0.0)
        return result.widened(float(growth.sum()), self.tol, scale, intercept=intercept)

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        X = check_table(self, X, reset=True, parts=self._takes_features)
        targets = real_targets(self, X, y, sample_weight)
        self._check_intervals(len(targets.Y))
        return X, targets

    def _ignores_rows(self) -> bool:
        # The unit of the targets is that of all rows, and matters unless the loss is a square.
        return super()._ignores_rows() and (self.loss == "square" or self.target_scale != "spread")

    def _hold(self, shared: Any, result: Result, rows: MergedRows) -> HeldProblem | None:
        problem = super()._hold(shared, result, rows)
        if problem is None or not self.fit_intercept:
            return problem
        shift = np.median(rows.Y, axis=0)  # as in `_solve`
        return replace(problem, Y=rows.Y - shift, shift=shift)

    def _scale(self, rows: MergedRows, models: list[Self]) -> MergedRows:
        """Return the rows with costs in units of the targets.

        The problem of targets and functions in units of u is that of plain numbers divided by u^2
        when linear losses cost C u, quadratic ones C.
        """
        unit = _unit(self.target_scale, rows)
        for model in models:
            model.target_scale_ = unit
        return replace(rows, cost=rows.cost * unit) if self.loss in _LINEAR else rows

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
            Predictions; of several quantiles one column per level, increasing in every row.
        """
        decision = self._decide(X)
        return decision.ravel() if self._one_output else decision

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
