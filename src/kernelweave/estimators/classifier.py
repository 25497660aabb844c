"""Base class of the kernel classifiers: labels, class weights, decisions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kernelweave._dask import ScoredByParts, by_parts
from kernelweave._types import Floats
from kernelweave._validation import StrOptions, check_table

from .base import BaseMKL
from .calibration import CALIBRATION, CalibratedClassifier
from .fit import PathMixin
from .targets import DecidedClasses, Targets, class_targets, label_table, label_targets


class BaseClassifier(DecidedClasses, ScoredByParts, ClassifierMixin, BaseMKL):
    """Base of the estimators that predict classes."""

    _declaration = BaseMKL._declaration.extended({"classes_": "labels[classes]"})

    @by_parts
    def decision_function(self, X: Any) -> Floats:
        decision = self._decide(X)
        return decision.ravel() if decision.shape[1] == 1 else decision


class KernelClassifier(CalibratedClassifier, PathMixin, BaseClassifier):
    """Base of the classifiers: several classes are learned one against the rest."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseMKL._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **CALIBRATION,
    }

    class_weight: dict[Any, float] | str | None

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        X = check_table(self, X, reset=True, parts=self._takes_features)
        return X, class_targets(self, X, y, sample_weight)


class LabelClassifier(KernelClassifier):
    """Base of the classifiers that also learn several labels of every row, one output for each."""

    _several: bool = False  # whether y had several columns

    def _targets(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets]:
        table = label_table(y)
        self._several = table is not None
        if table is None:
            return super()._targets(X, y, sample_weight)
        X = check_table(self, X, reset=True, parts=self._takes_features)
        return X, label_targets(self, X, table, sample_weight)

    @by_parts
    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        if not self._several:
            return super().predict(X)
        return (self._decide(X) > 0).astype(int)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
