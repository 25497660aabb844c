"""The record of a fit that is kept in its model file, and the rows it was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelweave._summary import count
from kernelweave.io import FitRecord, Importance, ScoredModel

from .curves import (
    Curve,
    class_scores,
    confusion,
    precision_recall_curves,
    reliability,
    residuals,
    roc_curves,
)
from .reading import import_pandas
from .verdicts import doubt_choice

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from .choosing import Choice
    from .fitting import TableFit

_MOST_ROWS = 500  # whose residuals are kept
_POINTS, _FEW_POINTS = 160, 50  # of one curve, and of each of many


def record_fit(found: TableFit, facts: Mapping[str, str]) -> FitRecord:
    """Return how a model compared and what its fit warned of, for `kernelweave.io.save`.

    ``facts`` are further lines for a report, such as the name of the file.
    """
    from kernelweave.report.gaps import find_gaps, summarize_gaps

    X = found.problem.X
    gaps = summarize_gaps(find_gaps(X, list(X.columns)))
    common: dict[str, Any] = {
        "notes": found.notes,
        "facts": {**facts, "method": found.method} | ({"missing values": gaps} if gaps else {}),
        "evaluation": None if found.left_out is None else _curves(found.left_out),
        "row_hashes": np.sort(hash_rows(found.model, found.problem.X, found.problem.y)),
        "importance": _importance(found.model, found.problem.X),
    }
    warnings = tuple(_sentence(text) for text in found.warnings)
    if found.choice is None:
        return FitRecord((), "", **common, warnings=warnings)
    doubts = tuple(doubt_choice(found.choice))
    return _compared(found.choice, found.n_rows, common | {"warnings": (*doubts, *warnings)})


def _importance(model: Pipeline, X: Any) -> Importance | None:
    """Return which columns decide; None for models that have no function to explain."""
    from kernelweave.report.decides import measure_importance

    try:
        return measure_importance(model, X)
    except (TypeError, ValueError):  # errors of the library are among these
        return None


def _compared(choice: Choice, n_rows: int, common: dict[str, Any]) -> FitRecord:
    scoring = choice.scoring
    models = [
        ScoredModel(
            item.name if item.written else f"{item.name} (reference)",
            {name: float(value) for name, value in item.scores.items()},
            item.rows,
            item.behind if k else None,
            item.chosen_score,
        )
        for k, item in enumerate(choice.ranking)
    ]
    folds = f"in {choice.n_folds} folds" if choice.n_folds > 1 else "of the fit"
    return FitRecord(
        tuple(models),
        f"on {count(models[0].rows, 'row')} left out {folds}",
        choice.interval,
        None if scoring.chooses == scoring.shows[0] else scoring.chooses,
        choice.constant,
        f"The comparison was made with models fitted without those rows; {measured_again(n_rows)}",
        **common,
    )


def measured_again(n_rows: int) -> str:
    """Return that the model in the file has seen all rows."""
    return f"the model in the file was then fitted to all {count(n_rows, 'row')}."


def _curves(found: Any) -> dict[str, Any]:
    """Return curves of predictions for rows that were left out, in plain values and arrays."""
    n = len(found)
    out: dict[str, Any] = {"n_rows": n, "coverage": [], "residuals": None, "reliability": None}
    out |= {"classes": None, "confusion": None, "class_scores": [], "roc": []}
    out |= {"precision_recall": []}
    equal = np.ones(n)
    if found.kind == "values":
        rows = np.arange(n)
        if n > _MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(n, _MOST_ROWS, replace=False))
        kept = asdict(residuals(found, np.arange(n), equal))
        some = {name: kept[name][rows] for name in ("rows", "actual", "predicted")}
        return out | {"residuals": kept | some}
    roc, reliable = roc_curves(found, equal), reliability(found, equal, 0)
    return out | {
        "classes": list(found.classes),
        "confusion": confusion(found, equal),
        "class_scores": [asdict(one) for one in class_scores(found, roc)],
        "roc": _thinned(roc),
        "precision_recall": _thinned(precision_recall_curves(found, equal)),
        "reliability": None if reliable is None else asdict(reliable),
    }


def _thinned(curves: tuple[Curve, ...]) -> list[dict[str, Any]]:
    """Return curves without their thresholds, and with few points where they are many."""
    out, most = [], _POINTS if len(curves) == 1 else _FEW_POINTS
    for curve in curves:
        kept = np.unique(np.linspace(0, len(curve.x) - 1, most).round().astype(int))
        values = asdict(curve) | {"x": curve.x[kept], "y": curve.y[kept]}
        out.append({name: value for name, value in values.items() if name != "thresholds"})
    return out


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def hash_rows(model: Pipeline, X: pd.DataFrame, y: Any) -> NDArray[Any]:
    """Return a number for each row and its target, equal for equal rows as the model sees them."""
    prepared = model[0].transform(X).reset_index(drop=True)
    values = np.asarray(y)
    if values.dtype.kind in "biuf":  # whether they were read as whole numbers or not
        values = values.astype(np.float64)
    target = import_pandas().Series(values.astype(str))
    hashed = import_pandas().util.hash_pandas_object(prepared.assign(**{"": target}), index=False)
    # Half of the bits tell millions of rows apart, save for a few.
    return np.asarray((hashed.to_numpy() >> np.uint64(32)).astype(np.int64))


def count_seen(model: Pipeline, known: NDArray[Any], X: pd.DataFrame, y: Any) -> int:
    """Return how many rows are among those that the model was fitted to."""
    return int(np.isin(hash_rows(model, X, y), known).sum())
