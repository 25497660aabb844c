"""Scores of a model on rows, with intervals, groups, curves and another model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernelweave._types import Floats
from kernelweave.errors import InputError

from .curves import (
    ClassScore,
    Coverage,
    Curve,
    Reliability,
    Residuals,
)
from .measures import (
    MEASURES,
)
from .sources import SourceScore

if TYPE_CHECKING:
    pass

COVERAGES = (0.8, 0.9, 0.95)  # of intervals and sets
FEW = 30  # rows below which a group says little
_SOME = 10  # rows from which on a model without errors is better than a constant


@dataclass(frozen=True)
class Score:
    """A score of a model on rows."""

    # name, title: key and words
    name: str
    title: str
    value: float  # NaN where it is undefined, such as the AUC of rows of one class
    interval: tuple[float, float] | None  # 95% interval; None where the rows are too few to tell
    exact: bool  # whether the interval is that of Clopper and Pearson, not of the bootstrap
    constant: float  # the same score of the best constant prediction for these rows
    # 95% interval of how much better than the constant prediction it is, on the same rows; positive
    # values are better, also where smaller scores are.
    gain: tuple[float, float] | None

    def show(self, value: float | None) -> str:
        """Return a value of this score as text."""
        return MEASURES[self.name].show(value)


@dataclass(frozen=True)
class GroupScores:
    """Scores of the rows of one group; ``few`` where they say little."""

    name: str
    n_rows: int
    scores: tuple[Score, ...]
    few: bool


@dataclass(frozen=True)
class Difference:
    """Scores of two models on the same rows."""

    # name, title: of the score
    name: str
    title: str
    # value, other: of the model, and of the one it is compared with
    value: float
    other: float
    # 95% interval of ``value - other``, by resamples of the rows.
    interval: tuple[float, float] | None
    # Whether the model is significantly better than the other, or worse; None: neither.
    better: bool | None

    def show(self, value: float | None) -> str:
        """Return a value of this score as text."""
        return MEASURES[self.name].show(value)


@dataclass(frozen=True)
class Evaluation:
    """How good a model is on rows that it was not fitted to.

    Attributes
    ----------
    kind : {"classes", "labels", "values", "targets", "quantiles"}
        What is predicted: one or several classes or numbers, or quantiles of a number.
    targets : tuple of str
        Columns that are predicted.
    n_rows : int
        Rows in use.
    main : str
        Name of the score to quote.
    scores : tuple of Score
        All scores; those of several targets are means.
    classes : tuple or None
        Labels, in the order of ``confusion``.
    positive : object or None
        The class that precision, recall and F1 refer to, of two.
    confusion : ndarray of shape (n_classes, n_classes), or None
        Weights of the rows by true class, down, and predicted class, across.
    class_scores : tuple of ClassScore
        Precision and recall of every class.
    roc, precision_recall : tuple of Curve
        For the positive class of two, else for every class against the rest.
    reliability : Reliability or None
        Probabilities beside shares.
    coverage : tuple of Coverage
        Of intervals, sets and quantiles.
    residuals : Residuals or None
        True and predicted numbers; of several quantiles those of the middle one.
    outputs : dict of Evaluation
        Of each target, where there are several.
    groups : tuple of GroupScores
        Scores by the values of ``by``.
    by : str or None
        The column of the groups.
    differences : tuple of Difference
        Comparison with another model.
    against : str or None
        Its name.
    sources : tuple of SourceScore
        The main score without each source.
    notes : tuple of str
        Sentences on what could not be measured, and on rows left out.
    """

    kind: str
    targets: tuple[str, ...]
    n_rows: int
    main: str
    scores: tuple[Score, ...]
    classes: tuple[Any, ...] | None = None
    positive: Any = None
    confusion: Floats | None = None
    class_scores: tuple[ClassScore, ...] = ()
    roc: tuple[Curve, ...] = ()
    precision_recall: tuple[Curve, ...] = ()
    reliability: Reliability | None = None
    coverage: tuple[Coverage, ...] = ()
    residuals: Residuals | None = None
    outputs: dict[str, Evaluation] = field(default_factory=dict)
    groups: tuple[GroupScores, ...] = ()
    by: str | None = None
    differences: tuple[Difference, ...] = ()
    against: str | None = None
    sources: tuple[SourceScore, ...] = ()
    notes: tuple[str, ...] = ()

    def score(self, name: str | None = None) -> Score:
        """Return the score of a name, by default the main one.

        Parameters
        ----------
        name : str, optional
            One of the names in `scores`.

        Returns
        -------
        score : Score
            An error lists the names where it is not there.
        """
        for found in self.scores:
            if found.name == (name or self.main):
                return found
        known = ", ".join(found.name for found in self.scores)
        raise InputError(f"name: must be one of {known}, got {name!r}.")

    def blocks(self) -> list[Any]:
        """Return the tables that were asked for, as text with titles, for a terminal or a page.

        Returns
        -------
        blocks : list of Block
            Of another model, of single targets, of groups and of sources; each has ``title``,
            ``remark``, ``names`` and ``rows``.
        """
        from .findings import further_blocks

        return list(further_blocks(self))
