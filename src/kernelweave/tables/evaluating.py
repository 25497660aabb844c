"""Evaluate a fitted model, as it is, on the rows of a new table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from kernelweave._types import Floats
from kernelweave.errors import InputError

from .choosing import Announce, silent
from .curves import (
    Coverage,
    class_scores,
    confusion,
    precision_recall_curves,
    reliability,
    residuals,
    roc_curves,
)
from .evaluation import Difference, Evaluation, GroupScores, Score
from .groups import split_groups
from .measures import MEASURES, Predicted
from .new_rows import NewRows, Outcome, predict_rows, take_rows, unwrap
from .predicting import last_step
from .resampling import Draws, Several, draw, exact_interval, percentiles
from .sources import score_sources

if TYPE_CHECKING:
    import pandas as pd

COVERAGES = (0.8, 0.9, 0.95)  # of intervals and sets
FEW = 30  # rows below which a group says little
_SOME = 10  # rows from which on a model without errors is better than a constant


def evaluate_table(
    model: Any,
    frame: pd.DataFrame,
    target: str | Sequence[str] | None = None,
    *,
    weight: str | None = None,
    by: str | None = None,
    against: Any = None,
    against_name: str = "the other model",
    sources: bool = False,
    positive: Any = None,
    seed: int = 0,
    announce: Announce = silent,
) -> Evaluation:
    """Score a fitted model on rows with a known target; nothing is fitted.

    Intervals hold 95% of resamples of the rows (bootstrap), those of shares such as the accuracy
    are exact. They say how the score varies with the rows, not with the model.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted classifier or regressor.
    frame : pandas.DataFrame
        Rows that were not used to fit or choose the model, with the columns of the model and the
        target; others are ignored.
    target : str or sequence of str, optional
        The column to predict, several for several targets or labels; by default the one that a
        model of `fit_table` was fitted to.
    weight : str, optional
        A column that says how much each row counts.
    by : str, optional
        A column; scores are also given for each of its values, or for four ranges of many numbers.
    against : estimator, Pipeline or search, optional
        Another fitted model, to be compared on the same rows.
    against_name : str
        Its name in sentences.
    sources : bool
        Whether to score without each source: its columns are exchanged between rows, so that the
        model learns nothing from it about a row.
    positive : object, optional
        Of two classes, the one that precision, recall and F1 refer to; by default the second.
    seed : int
        Seed of all random draws.
    announce : callable
        Called with the current step and the share of it that is done.

    Returns
    -------
    evaluation : Evaluation
        Scores with intervals beside a constant prediction, curves, tables and notes.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from kernelweave.tables import evaluate_table, fit_table
    >>> x = np.linspace(-3, 3, 180)
    >>> frame = pd.DataFrame({"x": x, "y": np.where(np.abs(x) > 1, "out", "in")})
    >>> model = fit_table(frame[::2], "y", C=10.0).model
    >>> found = evaluate_table(model, frame[1::2])
    >>> found.n_rows, found.score("accuracy").value > 0.9
    (90, True)
    """
    model = unwrap(model)
    rows = take_rows(model, frame, target, weight, by)
    announce(f"predicting {len(rows)} rows", 0.0)
    outcome = predict_rows(model, rows, COVERAGES, positive)
    announce("scoring", 0.3)
    found = _measure(outcome, rows, seed)
    if by is not None:
        announce("scoring groups", 0.5)
        found = _by_group(found, outcome, rows, seed)
    if against is not None:
        announce("comparing", 0.7)
        if is_classifier(last_step(unwrap(against))) != is_classifier(last_step(model)):
            raise InputError(
                "--against: one of the models predicts classes and the other numbers, so that they "
                "cannot be compared."
            )
        other = predict_rows(unwrap(against), rows, (), positive)
        found = replace(_compare(found, outcome, other, rows, seed), against=against_name)
    if sources:
        announce("scoring without each source", 0.8)
        parts, said = score_sources(model, rows, outcome.predicted, found.main, positive, seed)
        found = replace(found, sources=parts, notes=(*found.notes, *said))
    return found


def _measure(outcome: Outcome, rows: NewRows, seed: int) -> Evaluation:
    """Return the evaluation of all rows."""
    scores = score_predictions(outcome.predicted, rows.weight, seed)
    if outcome.kind in ("labels", "targets"):
        main = outcome.predicted.main
        found = Evaluation(outcome.kind, rows.targets, len(rows), main, scores)
        parts = {
            name: _single(output, coverage, (name,), rows, seed)
            for name, output, coverage in zip(
                rows.targets, outcome.outputs, outcome.coverage, strict=True
            )
        }
        found = replace(found, outputs=parts)
    else:
        middle = outcome.outputs[len(outcome.outputs) // 2]
        found = _single(middle, outcome.coverage[0], rows.targets, rows, seed)
        found = replace(found, kind=outcome.kind, scores=scores)
    return replace(found, notes=(*rows.notes, *outcome.notes, *_remarks(outcome, found)))


def _single(
    found: Any,
    coverage: tuple[Coverage, ...],
    targets: tuple[str, ...],
    rows: NewRows,
    seed: int,
) -> Evaluation:
    """Return the scores and curves of one output."""
    scores = score_predictions(found, rows.weight, seed)
    if found.kind == "values":
        return Evaluation(
            "values",
            targets,
            len(rows),
            found.main,
            scores,
            coverage=coverage,
            residuals=residuals(found, rows.numbers, rows.weight),
        )
    roc, two = roc_curves(found, rows.weight), len(found.classes) == 2
    return Evaluation(
        "classes",
        targets,
        len(rows),
        found.main,
        scores,
        classes=found.classes,
        positive=found.classes[found.positive] if two else None,
        confusion=confusion(found, rows.weight),
        class_scores=class_scores(found, roc, rows.weight),
        roc=roc,
        precision_recall=precision_recall_curves(found, rows.weight),
        reliability=reliability(found, rows.weight, seed),
        coverage=coverage,
    )


def score_predictions(
    predicted: Predicted | Several, weight: Floats, seed: int
) -> tuple[Score, ...]:
    """Return all scores with intervals, beside those of a constant prediction."""
    own = predicted.evaluators()
    constants = predicted.constant(weight)
    wanted: dict[Any, Any] = {(n, "model"): (MEASURES[n], own[n]) for n in own}
    wanted |= {(n, "constant"): (MEASURES[n], constants[n].evaluators()[n]) for n in own}
    drawn = draw(wanted, predicted.n_ranked, predicted.strata, weight, seed)
    equal = bool((weight == weight[0]).all()) and len(predicted.outputs) == 1
    out = []
    for name in own:
        measure, model, constant = MEASURES[name], drawn[name, "model"], drawn[name, "constant"]
        ends = percentiles(model.resampled)
        exact = measure.share and equal
        if exact:
            ends = exact_interval(model.value * len(weight), len(weight))
        value = model.value if np.isfinite(model.value) else float("nan")
        out.append(
            Score(
                name,
                predicted.title(name),
                value,
                None if np.isnan(value) else ends,
                exact,
                constant.value,
                _gain(model, constant, measure.smaller, len(weight)),
            )
        )
    return tuple(out)


def _gain(model: Draws, other: Draws, smaller: bool, n: int) -> tuple[float, float] | None:
    """Return the interval of how much better a model is than another, on the same resamples.

    A model without errors has the same gain in all resamples, which says something of many rows.
    """
    sign = -1.0 if smaller else 1.0
    return percentiles(sign * (model.resampled - other.resampled), equal=n >= _SOME)


def _remarks(outcome: Outcome, found: Evaluation) -> list[str]:
    """Return sentences on scores that are undefined or missing."""
    notes = []
    output: Any
    for name, output in zip(found.targets, outcome.outputs, strict=False):
        if output.kind != "classes":
            continue
        there = np.unique(output.y)
        absent = [output.classes[k] for k in range(len(output.classes)) if k not in there]
        if len(there) == 1:
            label = output.classes[int(there[0])]
            notes.append(
                f"all rows have the value {str(label)!r} of {name!r}, so that AUC and average "
                "precision are undefined and balanced accuracy is that of one class"
            )
        elif absent:
            listed = ", ".join(map(str, absent[:8]))
            notes.append(f"no row has the class {listed} of {name!r}; means are over the others")
    first: Any = outcome.outputs[0]
    if first.kind == "classes" and first.proba is None:
        notes.append(
            "the model has no probabilities, so that log-loss, Brier score and calibration are "
            "not known; set calibration='auto' before fit, or use kernelweave fit"
        )
    return notes


def _by_group(found: Evaluation, outcome: Outcome, rows: NewRows, seed: int) -> Evaluation:
    groups, notes = split_groups(rows.frame[rows.by])
    out = []
    for name, members in groups:
        part = outcome.predicted.take(members)
        scores = score_predictions(part, rows.weight[members], seed)
        out.append(GroupScores(name, len(members), scores, len(members) < FEW))
    return replace(found, groups=tuple(out), by=rows.by, notes=(*found.notes, *notes))


def _compare(
    found: Evaluation, outcome: Outcome, other: Outcome, rows: NewRows, seed: int
) -> Evaluation:
    """Return the evaluation with differences of all scores that both models have."""
    if outcome.kind != other.kind:
        raise InputError(
            f"--against: one of the models predicts {outcome.kind} and the other {other.kind}, so "
            "that they cannot be compared."
        )
    one, two = outcome.predicted.evaluators(), other.predicted.evaluators()
    names = [name for name in one if name in two]
    wanted: dict[Any, Any] = {(n, 0): (MEASURES[n], one[n]) for n in names}
    wanted |= {(n, 1): (MEASURES[n], two[n]) for n in names}
    strata, n_outputs = outcome.predicted.strata, outcome.predicted.n_ranked
    drawn = draw(wanted, n_outputs, strata, rows.weight, seed)
    out = []
    for name in names:
        ours, theirs, smaller = drawn[name, 0], drawn[name, 1], MEASURES[name].smaller
        ends = percentiles(ours.resampled - theirs.resampled)
        better = None
        if ends is not None and (ends[0] > 0 or ends[1] < 0):
            better = (ends[0] > 0) != smaller
        title = outcome.predicted.title(name)
        out.append(Difference(name, title, ours.value, theirs.value, ends, better))
    notes = list(found.notes)
    if len(names) < len(one):
        notes.append("the other model has no probabilities, so that fewer scores are compared")
    return replace(found, differences=tuple(out), notes=tuple(notes))
