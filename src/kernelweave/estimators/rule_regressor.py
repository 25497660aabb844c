"""Rule ensembles for regression."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from kernelweave._dask import ScoredByParts
from kernelweave._types import Indices
from kernelweave._validation import Interval, StrOptions
from kernelweave.errors import InputError
from kernelweave.losses import Loss
from kernelweave.solvers import Result

from .duplicates import MergedRows
from .intervals import INTERVALS
from .out_of_fold import LeftOut
from .predictions import TaskRegressor
from .regressor import regression_loss
from .rule_base import BaseRuleEnsemble
from .shared_docs import BOUNDS, COVERED, RULE_PARAMETERS, RULES, shared_attributes
from .targets import Targets, real_targets

_LARGEST = 1e100  # squares must be numbers


@shared_attributes(RULES, BOUNDS, COVERED, parameters=RULE_PARAMETERS)
class RuleEnsembleRegressor(TaskRegressor, ScoredByParts, RegressorMixin, BaseRuleEnsemble):
    """Regression by a weighted sum of readable rules, found among all conjunctions.

    The problem and the search are those of `RuleEnsembleClassifier`, with another loss. Several
    outputs share rules.

    Parameters
    ----------
    loss : {"square", "huber", "epsilon_insensitive"}, default="square"
        Half the squared residual; the same up to ``epsilon`` and linear beyond; or zero up to
        ``epsilon`` and linear beyond.
    epsilon : float, default=0.1
        Threshold of the last two.
    C : float, default=1.0
        Cost of errors.
    intervals : {"auto", "guaranteed"} or None, default=None
        How `predict_interval` gets models that did not see a row, as in `MKLRegressor`.
        "guaranteed" needs ``propositions="given"``, since others are made from all rows.
    calibration_cv : int, splitter, array of shape (n_samples,) or None, default=None
        Folds for it, as in `MKLRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import RuleEnsembleRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = 2.0 * ((X[:, 0] > 0) & (X[:, 1] > 0))
    >>> model = RuleEnsembleRegressor(C=10, n_cuts=9).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _declaration = BaseRuleEnsemble._declaration.extended({"_one_output": "flag"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRuleEnsemble._parameter_constraints,
        "loss": [StrOptions({"square", "huber", "epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "intervals": [StrOptions({"auto", "guaranteed"}), None],
        "calibration_cv": INTERVALS["calibration_cv"],
    }

    def __init__(
        self,
        rho: float = 1.1,
        *,
        loss: str = "square",
        epsilon: float = 0.1,
        C: float = 1.0,
        base: float = 2.0,
        propositions: str = "auto",
        n_cuts: int = 4,
        cut_strategy: str = "quantile",
        categorical: Any = "auto",
        max_length: int | None = None,
        task_correlation: Any = None,
        threshold: float = 1e-3,
        max_rules: int | None = None,
        refit: bool = False,
        monotone: dict[Any, int] | None = None,
        forbidden: Sequence[Any] | None = None,
        required: Sequence[Any] | None = None,
        max_columns: int | None = None,
        n_resamples: int = 0,
        min_stability: float = 0.0,
        random_state: Any = None,
        solver: str = "alternate",
        certificate: str = "tight",
        tol: float = 1e-2,
        max_iter: int = 2000,
        max_nodes: int = 20_000,
        fit_intercept: bool = True,
        intervals: str | None = None,
        calibration_cv: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rho = rho
        self.loss = loss
        self.epsilon = epsilon
        self.C = C
        self.base = base
        self.propositions = propositions
        self.n_cuts = n_cuts
        self.cut_strategy = cut_strategy
        self.categorical = categorical
        self.max_length = max_length
        self.task_correlation = task_correlation
        self.threshold = threshold
        self.max_rules = max_rules
        self.refit = refit
        self.monotone = monotone
        self.forbidden = forbidden
        self.required = required
        self.max_columns = max_columns
        self.n_resamples = n_resamples
        self.min_stability = min_stability
        self.random_state = random_state
        self.solver = solver
        self.certificate = certificate
        self.tol = tol
        self.max_iter = max_iter
        self.max_nodes = max_nodes
        self.fit_intercept = fit_intercept
        self.intervals = intervals
        self.calibration_cv = calibration_cv
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _make_loss(self) -> Loss:
        return regression_loss(self.loss, self.epsilon, fit_intercept=self.fit_intercept)

    def _targets(self, n_rows: int, y: Any, sample_weight: Any, task: Any) -> Targets:
        targets = real_targets(self, np.empty((n_rows, 0)), y, sample_weight)
        largest = np.abs(targets.Y).max()
        if largest > _LARGEST:
            raise InputError(
                f"y: values up to {_LARGEST:g} are possible, got {largest:g}. Hint: divide them by "
                "their standard deviation."
            )
        if self.intervals == "guaranteed" and self.propositions == "auto":
            raise InputError(
                "intervals='guaranteed': propositions are made from all rows, also those that are "
                "left out; use propositions='given' or intervals='auto'."
            )
        return self._split_tasks(targets, task)

    def _leave_out_refitted(
        self, shared: Any, result: Result, rows: MergedRows, fold: Indices, n_folds: int
    ) -> LeftOut:
        # Given propositions do not depend on the rows, so that rows without cost are absent.
        return self._leave_out_learned(shared, result, rows, fold, n_folds, self.max_iter)

    def _ignores_rows(self) -> bool:
        return self.propositions == "given"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
