"""Charts and tables of an evaluation: calibration, ROC, confusions, coverage, residuals.

An evaluation is that of `kernelweave.tables.evaluate_table`, or what a model file kept of one; only
its attributes are read here, which are plain values and arrays.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from kernelweave._summary import show_number
from kernelweave._text import clip
from kernelweave._types import Floats

from .charts import SMALL, Axis, Chart, Mark, linear
from .matrix import Matrix, confusion_chart
from .tables import Cell, Column, Table, meter, number, percent, share, text_column

_POINTS, _FEW_POINTS = 160, 50  # of one curve, and of each of many
_MOST_CURVES = 40
_MOST_ROWS = 500  # of residuals that are drawn
_MOST_CONFUSIONS = 30
_MOST_CLASSES = 60  # of a confusion matrix


def from_plain(values: Any) -> Any:
    """Return an evaluation whose parts are attributes, from that of a model file."""
    if isinstance(values, dict) and all(isinstance(key, str) for key in values):
        return SimpleNamespace(**{key: from_plain(value) for key, value in values.items()})
    if isinstance(values, list | tuple):
        return tuple(from_plain(value) for value in values)
    return values


def _some(n: int) -> Any:
    if n <= _MOST_ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, _MOST_ROWS, replace=False))


def draw_curves(found: Any, *, pooled: bool = False) -> dict[str, Any]:
    """Return the charts and tables of an evaluation, None or empty where it has none.

    ``pooled``: the rows are those of several folds, whose scores are means over the folds.
    """
    charts = [
        *([] if found.reliability is None else [_reliability(found.reliability)]),
        *([_roc(found.roc, pooled)] if found.roc else []),
        *([_precision_recall(found.precision_recall)] if found.precision_recall else []),
        *([] if found.residuals is None else _residuals(found.residuals)),
    ]
    return {
        "charts": charts,
        "matrix": _matrix(found),
        "confusions": _confusions(found),
        "classes": _classes(found.class_scores) if found.class_scores else None,
        "coverage": _coverage(found.coverage) if found.coverage else None,
        "sets": bool(found.coverage) and found.coverage[0].kind == "set",
    }


def _shares() -> Axis:
    return Axis(0.0, 1.0, [(k / 4, f"{25 * k}%") for k in range(5)])


_DIAGONAL = (np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def _reliability(found: Any) -> Chart:
    whose = "of the predicted class" if found.label is None else f"of {clip(found.label, 24)}"
    good = found.error <= found.tolerated
    verdict = (
        "as small as chance alone leaves it"
        if good
        else f"more than the {found.tolerated:.2%} that chance alone would leave"
    )
    marks = [
        Mark(*values)
        for values in zip(found.predicted, found.observed, found.low, found.high, strict=True)
    ]
    return Chart(
        _shares(),
        f"Predicted and observed shares {whose} in {len(marks)} groups of rows.",
        f"Each point is a group of rows: their mean probability {whose}, and how often it was "
        "true, with its 95% interval. On the dashed line probabilities are right. They are off by "
        f"{found.error:.2%} on average, {verdict}.",
        title="predicted probability",
        y=_shares(),
        y_title="observed",
        heading="Are the probabilities right?",
        height=SMALL,
        reference=_DIAGONAL,
        marks=marks,
    )


def _thin(curve: Any, most: int) -> tuple[Floats, Floats]:
    x, y = np.asarray(curve.x), np.asarray(curve.y)
    kept = np.unique(np.linspace(0, len(x) - 1, most).round().astype(int))
    return x[kept], y[kept]


def _curve_chart(curves: Any, **words: Any) -> Chart:
    one = len(curves) == 1
    return Chart(
        _shares(),
        y=_shares(),
        height=SMALL,
        line=_thin(curves[0], _POINTS) if one else None,
        faint=() if one else [_thin(c, _FEW_POINTS) for c in curves[:_MOST_CURVES]],
        **words,
    )


def _roc(curves: Any, pooled: bool) -> Chart:
    first, areas = curves[0], [curve.area for curve in curves]
    said = (
        f"Rows ranked by their score for {clip(first.label, 24)}: the area under the curve is "
        f"{first.area:.3f}; guessing gives the dashed line and 0.5."
        if len(curves) == 1
        else f"One curve for each class against the rest; areas from {min(areas):.3f} to "
        f"{max(areas):.3f}. Guessing gives the dashed line."
    )
    if pooled and len(curves) == 1:
        said += " The rows of all folds are ranked together here, within folds for the AUC above."
    return _curve_chart(
        curves,
        label=f"ROC curve; area {np.mean(areas):.3f}.",
        caption=said,
        title="false positives",
        y_title="true positives",
        heading="Does it rank rows well? (ROC)",
        reference=_DIAGONAL,
    )


def _precision_recall(curves: Any) -> Chart:
    first, areas = curves[0], [curve.area for curve in curves]
    one = len(curves) == 1
    said = (
        f"Among the rows called {clip(first.label, 24)}, the share that is right (precision), "
        f"against the share of all such rows that is found (recall). Average precision "
        f"{first.area:.3f}; guessing gives {first.base:.3f}."
        if one
        else f"One curve for each class against the rest; average precisions from "
        f"{min(areas):.3f} to {max(areas):.3f}."
    )
    base = (np.array([0.0, 1.0]), np.array([first.base, first.base]))
    return _curve_chart(
        curves,
        label=f"Precision and recall; average precision {np.mean(areas):.3f}.",
        caption=said,
        title="recall",
        y_title="precision",
        heading="Precision and recall",
        reference=base if one else None,
    )


def _residuals(found: Any) -> list[Chart]:
    kept = _some(len(found.actual))
    actual, predicted = np.asarray(found.actual)[kept], np.asarray(found.predicted)[kept]
    shown = f" {len(kept):,} rows are drawn, at random." if len(kept) < len(found.actual) else ""
    errors = actual - predicted
    x = linear(float(predicted.min()), float(predicted.max()))
    truth = linear(float(actual.min()), float(actual.max()))
    low, high = max(x.low, truth.low), min(x.high, truth.high)
    low90, high90 = (show_number(float(found.quantiles[level])) for level in (0.05, 0.95))
    return [
        Chart(
            x,
            "True against predicted values.",
            f"Each point is a row; on the dashed line the prediction is right.{shown}",
            title="predicted",
            y=truth,
            y_title="true",
            heading="Predicted and true values",
            height=SMALL,
            reference=(np.array([low, high]),) * 2 if low < high else None,
            cloud=(predicted, actual),
        ),
        Chart(
            x,
            "Errors against predicted values.",
            f"True minus predicted. 90% of the rows lie between {low90} and {high90}. "
            "A bend or a funnel shows where the model is wrong or unsure.",
            title="predicted",
            y=linear(float(errors.min()), float(errors.max())),
            y_title="true minus predicted",
            heading="Residuals",
            height=SMALL,
            reference=(np.array([x.low, x.high]), np.zeros(2)),
            cloud=(predicted, errors),
        ),
    ]


def _matrix(found: Any) -> Matrix | None:
    if found.confusion is None or len(found.classes) > _MOST_CLASSES:
        return None
    return confusion_chart(np.asarray(found.confusion).round().astype(int), found.classes)


def _confusions(found: Any) -> Table | None:
    """Return the most frequent confusions of many classes, which no one finds in a matrix."""
    if found.confusion is None or len(found.classes) < 4:
        return None
    counts = np.asarray(found.confusion).round().astype(int)
    wrong = counts * (1 - np.eye(len(counts), dtype=int))
    order = [k for k in np.argsort(-wrong, axis=None, kind="stable") if wrong.ravel()[k]]
    rows = []
    for k in order[:_MOST_CONFUSIONS]:
        i, j = divmod(int(k), len(counts))
        bar = meter(wrong[i, j] / wrong.max(), f"{wrong[i, j]:,}")
        of = share(wrong[i, j] / counts[i].sum())
        rows.append([str(found.classes[i]), str(found.classes[j]), bar, of])
    columns = [text_column("true"), text_column("predicted"), Column("rows", sorted="descending")]
    table = Table("confusions", [*columns, Column("of the true class")], rows, len(order))
    return table if rows else None


def _classes(scores: Any) -> Table:
    columns = [text_column("class"), *map(Column, ("rows", "recall", "precision", "AUC"))]
    rows = []
    for one in scores:
        values = [_part(one.recall), _part(one.precision)]
        area = Cell("\u2013", 0.0) if np.isnan(one.auc) else number(one.auc, ".3f")
        rows.append([str(one.label), number(one.n_rows, ",d"), *values, area])
    return Table("classes", columns, rows)


def _part(value: float) -> Cell:
    return Cell("\u2013", 0.0) if np.isnan(value) else meter(value, percent(value))


def _coverage(items: Any) -> Table:
    sets, quantiles = items[0].kind == "set", items[0].kind == "quantile"
    asked, reached = ("level", "rows below") if quantiles else ("asked", "reached")
    columns = [Column(asked), Column(reached), text_column("95% interval")]
    if not quantiles:
        width = "classes in a set" if sets else "mean width"
        columns += [
            Column(width),
            Column("all classes" if sets else "width of a constant interval"),
        ]
    rows = []
    for item in items:
        row: list[Any] = [share(item.asked), meter(item.reached, percent(item.reached))]
        row.append(f"{percent(item.low)} to {percent(item.high)}")
        if not quantiles:
            row += [_size(item.size), _size(item.beside)]
        rows.append(row)
    return Table("coverage", columns, rows)


def _size(value: float) -> Cell:
    return Cell(show_number(value), value) if np.isfinite(value) else Cell("no end", 1e300)
