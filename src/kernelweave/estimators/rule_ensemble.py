"""Rule ensembles by generalised hierarchical kernel learning on the lattice of conjunctions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from kernelweave._dask import ScoredByParts
from kernelweave._types import Floats
from kernelweave._validation import StrOptions, check_weights, refuse_missing_labels
from kernelweave.errors import InputError, warn
from kernelweave.losses import Hinge, Logistic, Loss
from kernelweave.rules import Link

from .calibration import CALIBRATION, lacks_probabilities
from .duplicates import MergedRows
from .predictions import TaskClassifier
from .rule_base import BaseRuleEnsemble
from .shared_docs import BOUNDS, CALIBRATED, RULE_PARAMETERS, RULES, shared_attributes
from .targets import Targets, class_targets, require_target, weighted


@shared_attributes(RULES, BOUNDS, CALIBRATED, parameters=RULE_PARAMETERS)
@dataclass(eq=False, repr=False)
class RuleEnsembleClassifier(TaskClassifier, ScoredByParts, ClassifierMixin, BaseRuleEnsemble):
    """Classify by a weighted sum of readable rules, found among all conjunctions.

    Every column becomes propositions such as ``age <= 41.5``, and every conjunction of them is a
    candidate rule. The weights minimise::

        1/2 (sum_v d_v (sum over conjunctions w that contain v of |f_w|^rho)^(1/rho))^2 + C hinge

    with ``d_v = base ** length``, so that length costs: a conjunction also pays for all those it is
    made of, which need no rule of their own in `rules_`. The search is certified: `duality_gap_`
    holds for all conjunctions, however many there are. Several classes are learned one against the
    rest with shared rules.

    Parameters
    ----------
    loss : {"hinge", "logistic"}, default="hinge"
        The logistic loss gives probabilities; ``rho=1`` needs it.
    C : float, default=1.0
        Cost of errors. Useful values are often between 1 and 1000.

    Attributes
    ----------
    classes_ : ndarray
        The classes; for labels in columns their numbers.

    References
    ----------
    .. [1] P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel
           learning", JMLR 16, 2015.

    Examples
    --------
    >>> from kernelweave import RuleEnsembleClassifier
    >>> from kernelweave.datasets import make_monks
    >>> monks = make_monks(1)
    >>> model = RuleEnsembleClassifier(C=10).fit(monks.X, monks.y)
    >>> bool(model.converged_), round(model.score(monks.X, monks.y), 2)
    (True, 1.0)
    >>> model.rules_[0].text
    'jacket_color != 1'
    """

    _: KW_ONLY
    loss: str = "hinge"
    class_weight: dict[Any, float] | str | None = None
    calibration: str | None = None

    _declaration = BaseRuleEnsemble._declaration.extended(
        {"classes_": "labels[classes]", "_multilabel": "flag"}
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseRuleEnsemble._parameter_constraints,
        "loss": [StrOptions({"hinge", "logistic"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CALIBRATION,
    }

    def _make_loss(self) -> Loss:
        if self.loss == "logistic":
            return Logistic(fit_intercept=self.fit_intercept)
        return Hinge(fit_intercept=self.fit_intercept)

    @property
    def _is_native(self) -> bool:
        return self.loss == "logistic"

    def _native_log_proba(self, decision: Floats) -> Floats:
        if self._has_labels:
            return np.asarray(log_expit(decision))
        if decision.shape[1] == 1:
            return np.asarray(log_expit(decision * np.array([[-1.0, 1.0]])))
        ones = log_expit(decision)  # of every class against the rest
        return np.asarray(ones - logsumexp(ones, axis=1, keepdims=True))

    def _targets(self, n_rows: int, y: Any, sample_weight: Any, task: Any) -> Targets:
        require_target(self, y)
        X = np.empty((n_rows, 0))
        check_consistent_length(X, y)
        refuse_missing_labels(y)
        self._multilabel = type_of_target(y, input_name="y").startswith("multilabel")
        if self._multilabel:
            targets = self._several_labels(y, check_weights(sample_weight, n_rows))
        else:
            targets = class_targets(self, X, y, sample_weight)
        targets = self._split_tasks(targets, task)
        return replace(targets, fixed=self._fixed(targets.Y, targets.cost))

    def _several_labels(self, y: Any, weight: Floats | None) -> Targets:
        """Return one output per label; a label of one class only is no error here."""
        if self.class_weight is not None:
            raise InputError("class_weight: must be None where y has several labels.")
        labels = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        self.classes_ = np.arange(labels.shape[1])
        cost = weighted(np.ones(labels.shape), weight)
        return Targets(np.where(labels > 0, 1.0, -1.0), cost, weight)

    def _fixed(self, Y: Floats, cost: Floats) -> dict[int, float]:
        """Return constant scores of outputs with one class only; their costs become zero."""
        fixed = {}
        for t in range(Y.shape[1]):
            there = Y[cost[:, t] > 0, t]
            if len(there) and (there == there[0]).all():
                fixed[t] = float(there[0])
        if not fixed:
            return fixed
        names = self.tasks_ if hasattr(self, "tasks_") else self.classes_
        shown = ", ".join(repr(names[t].item()) for t in list(fixed)[:5])
        kind = "task" if hasattr(self, "tasks_") else "label"
        warn(
            f"y: one class only for {kind} {shown}; it is predicted always and nothing is learned."
        )
        cost[:, list(fixed)] = 0.0
        return fixed

    def _count_changes(self, before: Floats, after: Floats, rows: MergedRows) -> int:
        if before.shape[1] > 1 and not self._multilabel and not hasattr(self, "tasks_"):
            return int((before.argmax(axis=1) != after.argmax(axis=1)).sum())
        changed = ((before > 0) != (after > 0)) & (rows.cost > 0)
        return int(changed.any(axis=1).sum())

    def _classes(self) -> list[Any] | None:
        return [0, 1] if self._multilabel else list(self.classes_)

    def _separate(self) -> bool:
        return self._has_labels

    def _link(self) -> Link:
        if (missing := lacks_probabilities(self)) is not None:
            raise InputError(f"probability: {missing}")
        if self.calibration is None:  # of the logistic loss
            n_outputs = len(self.intercept_)
            shares = n_outputs > 1 and not self._has_labels
            return Link((1.0,) * n_outputs, (0.0,) * n_outputs, shares=shares)
        return self.calibrator_.link()

    def _weight_names(self) -> list[str]:
        if len(self.intercept_) == 1:
            return ["weight"]
        names = self.tasks_ if hasattr(self, "tasks_") else self.classes_
        return [f"weight {name}" for name in names]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
