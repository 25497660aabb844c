"""What a model file keeps beside the model: how it compared, and the warnings of its fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelweave.errors import InputTypeError

from .checks import check_type

_SURE = 2.0  # standard errors from which a difference is called significant


@dataclass(frozen=True)
class ScoredModel:
    """A model as it was compared.

    Parameters
    ----------
    name : str
        For people, such as "SVM baseline".
    scores : dict of float
        By the name of the score, such as "roc_auc".
    rows : int
        Rows that it predicted, none of which it was fitted to.
    behind : tuple of two floats, optional
        Mean of its losses minus those of the model on the same rows, and the standard error of
        that mean; None where only the scores are known.
    same_rows : float, optional
        The first score of the model on the same rows, where they are fewer than all.
    """

    name: str
    scores: Mapping[str, float]
    rows: int
    behind: tuple[float, float] | None = None
    same_rows: float | None = None

    @property
    def verdict(self) -> str:
        """How it compares with the model: "better", "worse", "about the same", or empty."""
        if self.behind is None:
            return ""
        gap, error = self.behind
        if abs(gap) <= _SURE * error or gap == 0.0:
            return "about the same"
        return "worse" if gap > 0 else "better"


@dataclass(frozen=True)
class Importance:
    """Which columns decided predictions of rows of the fit, the most important first.

    Parameters
    ----------
    names : tuple of str
        The columns.
    means, errors : tuple of float
        Mean size of their Shapley values, and its standard error over the rows.
    n_columns : int
        How many columns there are; fewer may be listed.
    n_rows, n_background : int
        Rows that were explained, and rows they were compared with.
    sampled : bool
        Whether the values were sampled.
    quantity : {"decision", "prediction"}
        What was explained.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    errors: tuple[float, ...]
    n_columns: int
    n_rows: int
    n_background: int
    sampled: bool = False
    quantity: str = "prediction"

    def __post_init__(self) -> None:
        for name in ("names", "means", "errors"):
            check_type(name, getattr(self, name), tuple)
        if not len(self.names) == len(self.means) == len(self.errors):
            raise ValueError("the importance has lists of different lengths")
        for text in (*self.names, self.quantity):
            check_type("a name of the importance", text, str)
        for value in (*self.means, *self.errors):
            check_type("an importance", value, Real)
        for count in (self.n_columns, self.n_rows, self.n_background):
            check_type("a number of the importance", count, Integral)


@dataclass(frozen=True)
class FitRecord:
    """How a model was measured when it was fitted, and what its fit warned of.

    `save` writes it into the model file and `describe` reads it, so that a report can say how good
    a model is without data.

    Parameters
    ----------
    models : tuple of ScoredModel
        The model first, then those it was compared with.
    measured : str
        On which rows, such as "on rows left out in 5 folds".
    interval : tuple of two floats, optional
        95% interval of the first score of the model.
    compared_by : str, optional
        Name of the score that decided the comparison, where it is not the first one.
    constant : dict of float
        Scores of the best constant prediction, by name.
    remark : str
        A sentence on what was measured, such as that the model was fitted again to all rows.
    warnings : tuple of str
        Sentences that a reader must know before the scores.
    notes : tuple of str
        Sentences on steps that changed the data or the model.
    facts : dict of str
        Such as the file and the method.
    evaluation : dict, optional
        Curves of the predictions for those rows, in plain values.
    row_hashes : ndarray of int, optional
        Sorted hashes of the rows that the model was fitted to, to recognise them.
    importance : Importance, optional
        Which columns decide.

    Examples
    --------
    >>> from kernelweave.io import FitRecord, ScoredModel
    >>> svm = ScoredModel("SVM baseline", {"accuracy": 0.91}, 200, behind=(0.02, 0.004))
    >>> record = FitRecord(
    ...     (ScoredModel("this model", {"accuracy": 0.93}, 200), svm), "on 200 rows held out"
    ... )
    >>> record.models[1].verdict
    'worse'
    """

    models: tuple[ScoredModel, ...]
    measured: str
    interval: tuple[float, float] | None = None
    compared_by: str | None = None
    constant: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    evaluation: Mapping[str, Any] | None = None
    row_hashes: NDArray[Any] | None = None
    importance: Importance | None = None

    @property
    def measure(self) -> str | None:
        """Name of the first score; None where nothing was measured."""
        return next(iter(self.models[0].scores), None) if self.models else None

    def to_dict(self) -> dict[str, Any]:
        """Return the record in plain values and arrays."""
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        models = [_as_dict(model) for model in self.models]
        out["importance"] = None if self.importance is None else _as_dict(self.importance)
        for model in models:
            model["scores"] = dict(model["scores"])
        for name in ("constant", "facts", "evaluation"):
            out[name] = None if out[name] is None else dict(out[name])
        return out | {"models": models}


def _as_dict(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value)}


def read_record(values: Any) -> FitRecord:
    """Return the record of a model file; ValueError and TypeError describe damaged ones."""
    check_type("the record", values, dict)
    check_type("its models", values["models"], list)
    models = tuple(ScoredModel(**model) for model in values["models"])
    importance = values.get("importance")
    check_type("the importance", importance, dict | None)
    found = None if importance is None else Importance(**importance)
    record = FitRecord(**{**values, "models": models, "importance": found})
    for model in models:
        check_type("the name of a model", model.name, str)
        check_type("the rows of a model", model.rows, Integral)
        _check_scores(model.scores)
        _check_pair(model.behind)
        if model.scores.keys() != models[0].scores.keys():
            raise ValueError("the models have other scores")
    _check_pair(record.interval)
    check_type("compared_by", record.compared_by, str | None)
    _check_scores(record.constant)
    for name in ("measured", "remark"):
        check_type(name, getattr(record, name), str)
    for name in ("warnings", "notes"):
        check_type(name, getattr(record, name), tuple)
        for text in getattr(record, name):
            check_type(f"an item of {name}", text, str)
    check_type("the facts", record.facts, dict)
    for item in (*record.facts, *record.facts.values()):
        check_type("a fact", item, str)
    check_type("the evaluation", record.evaluation, dict | None)
    check_type("row_hashes", record.row_hashes, np.ndarray | None)
    return record


def _check_scores(scores: Any) -> None:
    check_type("the scores", scores, dict)
    for name, value in scores.items():
        check_type("the name of a score", name, str)
        check_type("a score", value, Real)


def _check_pair(values: Any) -> None:
    check_type("an interval", values, tuple | None)
    if values is not None:
        low, high = values
        check_type("an interval", low, Real)
        check_type("an interval", high, Real)


def check_record(record: Any) -> None:
    """Refuse what is neither None nor a record."""
    if record is not None and not isinstance(record, FitRecord):
        raise InputTypeError(
            f"record: must be a kernelweave.io.FitRecord, got {type(record).__name__}."
        )
