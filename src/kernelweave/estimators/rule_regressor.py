"""Rule ensembles for regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
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


@shared_attributes(RULES, BOUNDS, COVERED, parameters=RULE_PARAMETERS)
@dataclass(eq=False, repr=False)
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

    _: KW_ONLY
    loss: str = "square"
    epsilon: float = 0.1
    intervals: str | None = None

    _declaration = BaseRuleEnsemble._declaration.extended({"_one_output": "flag"})
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRuleEnsemble._parameter_constraints,
        "loss": [StrOptions({"square", "huber", "epsilon_insensitive"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "intervals": [StrOptions({"auto", "guaranteed"}), None],
        "calibration_cv": INTERVALS["calibration_cv"],
    }

    def _make_loss(self) -> Loss:
        return regression_loss(self.loss, self.epsilon, fit_intercept=self.fit_intercept)

    def _targets(self, n_rows: int, y: Any, sample_weight: Any, task: Any) -> Targets:
        targets = real_targets(self, np.empty((n_rows, 0)), y, sample_weight)
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
