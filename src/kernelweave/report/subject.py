"""The subject of a report: a fitted model, and data where they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kernelweave._declaration import declared, has_aspect
from kernelweave._summary import column_names, count
from kernelweave.errors import InputError, InputTypeError
from kernelweave.inspection.tables import model_columns
from kernelweave.io import FitRecord, TablePreparer

from .cross_validation import CrossValidation, NotMeasured, measure
from .decides import Deciding, what_decides


@dataclass(frozen=True)
class Subject:
    """A fitted model, pipeline or search, with data to measure it on; see `to_html`."""

    model: Any
    X: Any = None
    y: Any = None
    cv: Any = 5
    scoring: Any = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    record: FitRecord | None = None
    evaluation: Any = None
    data_name: str | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if declared(self.estimator) is None:
            raise InputTypeError(
                "model: must be an estimator of kernelweave, or a pipeline or search around one, "
                f"got {type(self.estimator).__name__}."
            )
        check_is_fitted(self.estimator)
        if self.y is not None and self.X is None:
            raise InputError(
                "X: y was given without the rows it belongs to; pass both, or X alone."
            )
        if self.y is not None:
            check_consistent_length(self.X, self.y)
        if self.X is not None:
            # A target that is still in the table would be learned in cross-validation.
            first = self.chosen.steps[0][1] if isinstance(self.chosen, Pipeline) else self.chosen
            object.__setattr__(self, "X", model_columns(first, self.X))

    @cached_property
    def rows(self) -> Any:
        """The rows as they reach the estimator, through the steps before it."""
        if self.X is None or not isinstance(self.chosen, Pipeline) or len(self.chosen) == 1:
            return self.X
        return self.chosen[:-1].transform(self.X)

    @cached_property
    def chosen(self) -> Any:
        """The model, or the best one that a search has found."""
        return getattr(self.model, "best_estimator_", self.model)

    @cached_property
    def estimator(self) -> Any:
        """The estimator itself, the last step of a pipeline."""
        return self.chosen[-1] if isinstance(self.chosen, Pipeline) else self.chosen

    @cached_property
    def preparer(self) -> TablePreparer | None:
        """The preparation step of the command line, if the model has it."""
        first = self.chosen[0] if isinstance(self.chosen, Pipeline) else None
        return first if isinstance(first, TablePreparer) else None

    @cached_property
    def name(self) -> str:
        """Name of the estimator's class."""
        return type(self.estimator).__name__

    @cached_property
    def target(self) -> str | None:
        """Name of the target, where it has one."""
        name = None if self.preparer is None else self.preparer.target_
        named = getattr(self.y, "name", None)
        return name or (named if isinstance(named, str) else None)

    @cached_property
    def n_rows(self) -> int | None:
        """Rows that the model was fitted to; None if unknown."""
        if self.preparer is not None:
            return int(self.preparer.n_samples_seen_)
        for aspect, attribute in (("labels", "label_quality_"), ("clusters", "labels_")):
            if has_aspect(self.estimator, aspect):
                return len(getattr(self.estimator, attribute))
        return None

    @cached_property
    def columns(self) -> list[str] | None:
        """Names of the columns, or their numbers; None for a precomputed kernel."""
        if getattr(self.estimator, "affinity", None) == "precomputed":
            return None
        known = self.estimator if self.preparer is None else self.preparer
        return column_names(known, int(known.n_features_in_))

    @cached_property
    def decides(self) -> Deciding | None:
        """The columns that decide, or the heaviest parts of the model."""
        return what_decides(self)

    @cached_property
    def measured_on(self) -> str:
        """On which rows the model was evaluated."""
        if self.evaluation is None:
            return ""
        rows = count(int(self.evaluation.n_rows), "row")
        return f"on the {rows} of {self.data_name or 'the table given'}; it was not refitted"

    @cached_property
    def folds(self) -> CrossValidation | NotMeasured:
        """Scores by cross-validation, or the reason why there are none."""
        return measure(self.model, self.estimator, self.X, self.y, self.cv, self.scoring)
