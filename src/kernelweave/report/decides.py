"""Section on what decides: importance of the columns, shape functions and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier, is_regressor

from kernelweave._summary import count, largest, listed, show_number, weight_noun
from kernelweave._text import clip
from kernelweave._validation import is_frame
from kernelweave.inspection.coalitions import MOST_ENUMERATED

from .charts import Axis, Chart, Interval, linear
from .rendering import Section

if TYPE_CHECKING:
    from .subject import Subject

_FIRST = 6  # bars of the first screen
_FIRST_SHAPES, _SHAPES = 3, 6  # shape functions of the first screen, and of the section
_BARS = 25  # columns of the section
_PAIRS = 5
_ROWS, _LEAST_ROWS = 200, 20  # rows explained
_BACKGROUND, _SAMPLED = 200, 40  # rows to compare with; where values are sampled
_WORK = 1.5e10  # operations that importance may take: five seconds, more or less
_NODES = 6.0  # of the quadrature of a product of kernels on columns, as a rule
_LEVELS = 6  # categories of a shape function
_RUG = 60  # rows marked below a shape function
_DATES = 4  # ticks of an axis of dates
_MARGIN = 27.0  # per cent of the width of a small chart, for numbers
_LITTLE = 0.02  # length of a bar that is not worth a word
_SURE = 2.0  # standard errors of a band


@dataclass(frozen=True)
class Bar:
    """A bar: name, value as text, length and ends of the error from 0 to 1."""

    name: str
    text: str
    length: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Deciding:
    """What decides, for the first screen and for the section.

    Parameters
    ----------
    bars : tuple of Bar
        The most important first.
    title : str
        What the bars are.
    note : str
        How to read them.
    shapes : tuple of Chart
        Shape functions, the strongest first.
    words : str
        How to read these.
    pairs : tuple of Bar
        Strongest interactions.
    n_all : int
        How many columns there are.
    refused : tuple of str
        Why something is missing.
    """

    bars: tuple[Bar, ...]
    title: str
    note: str = ""
    shapes: tuple[Chart, ...] = ()
    words: str = ""
    pairs: tuple[Bar, ...] = ()
    n_all: int = 0
    refused: tuple[str, ...] = ()

    @property
    def first_bars(self) -> tuple[Bar, ...]:
        """Bars of the first screen."""
        return self.bars[:_FIRST]

    @property
    def sentence(self) -> str:
        """The columns that decide most; empty where it is not known."""
        if not self.shapes:
            return ""
        names = [bar.name for bar in self.bars[:_FIRST_SHAPES] if bar.length > _LITTLE]
        return f" It looks most at {listed(names)}." if names else ""

    @property
    def first_shapes(self) -> tuple[Chart, ...]:
        """Shape functions of the first screen."""
        return self.shapes[:_FIRST_SHAPES]


def section(subject: Subject) -> Section | None:
    """Return the importance of all columns and the shape functions; None where there are none."""
    found = subject.decides
    if found is None or not (found.shapes or found.refused):
        return None
    return Section("decides", "What decides, in detail", {"found": found})


def what_decides(subject: Subject) -> Deciding | None:
    """Return the columns that decide, or else the heaviest parts of the model; None: neither."""
    model, refused = subject.estimator, []
    if subject.X is not None and (is_classifier(model) or is_regressor(model)):
        found, refused = _explained(subject)
        if found is not None:
            return found
    heaviest = largest(model, _FIRST)
    if not heaviest:
        return Deciding((), "", refused=tuple(refused)) if refused else None
    rules = model._declaration.learns == "rules"
    title = "The most important rules" if rules else f"Weights of {weight_noun(model)}s"
    note = "" if rules else "Weights are shares of their sum; they are no measure of importance."
    bars = tuple(Bar(name, text, length) for name, text, length in heaviest)
    return Deciding(bars, title, note, refused=tuple(refused))


def _explained(subject: Subject) -> tuple[Deciding | None, list[str]]:
    """Return importance and shape functions, and the reasons why some of them are missing."""
    from kernelweave.inspection import effects, explain

    model, X, refused = subject.model, subject.X, []
    values = curves = None
    size = _affordable(subject)
    try:
        values = explain(
            model,
            _some(X, size.n_rows),
            background=_some(X, size.n_background),
            n_permutations=size.n_permutations,
        )
    except (TypeError, ValueError) as error:  # errors of the library are among these
        refused.append(f"Importance is not shown: {error}")
    try:
        columns = None
        if values is not None:
            sizes = np.abs(values.values).reshape(len(values), len(values.feature_names), -1)
            columns = np.argsort(-sizes.mean(axis=(0, 2)), kind="stable")[:_SHAPES].tolist()
        # Pairs of a slow model would take as long as all the rest.
        pairs = _PAIRS if X.shape[1] > 1 and size.n_rows > _LEAST_ROWS else 0
        curves = effects(model, X, columns, pairs=pairs)
    except (TypeError, ValueError) as error:
        refused.append(f"Shape functions are not shown: {error}")
    if values is None and curves is None:
        return None, refused
    if values is None:
        bars, title = _shares(curves), "Share of the variance by each column alone"
    else:
        sizes = np.abs(values.values).reshape(len(values), len(values.feature_names), -1)
        bars, title = draw_importance(values.feature_names, sizes.mean(axis=2)), "Importance"
        title += ", with standard errors"
    n_background = (values or curves).n_background
    note = (
        f"Values compare each row with {count(n_background, 'row')} of the data; they describe the "
        "model, not causes."
    )
    shapes = () if curves is None else _shapes(curves)
    pairs = () if curves is None else _pairs(curves)
    words = _words(values, curves)
    if curves is not None and is_classifier(subject.estimator) and len(curves.output_names) == 1:
        note += f" Upwards means {clip(curves.output_names[0], 40)}."
    n_all = len(bars)
    return Deciding(bars[:_BARS], title, note, shapes, words, pairs, n_all, tuple(refused)), refused


@dataclass(frozen=True)
class _Sizes:
    """Rows to explain, rows to compare each with, and permutations where values are sampled."""

    n_rows: int
    n_background: int
    n_permutations: int | None = None


def _affordable(subject: Subject) -> _Sizes:
    """Return how much is explained in some seconds.

    The work for one row and one background row is that of a prediction for every coalition of
    columns that is looked at; of a sum of products over columns it is that of a quadrature.
    """
    model, d = subject.estimator, int(subject.X.shape[1])
    n_outputs = np.size(getattr(model, "classes_", 0))
    members = getattr(model, "members_", [model])
    parts = [one[-1] if hasattr(one, "steps") else one for one in members]
    kept = sum(max(np.size(getattr(one, "support_", ())), 1) for one in parts)
    sampled = model._declaration.learns in ("metric", "members")
    few = d <= MOST_ENUMERATED
    if sampled:
        work = kept * (d + n_outputs) * (2.0**d if few else 2.0 * (d + 1))
    else:
        work = kept * d * _NODES * max(np.count_nonzero(getattr(model, "weights_", [1.0])), 1)
    n_background = _SAMPLED if sampled else _BACKGROUND
    n_rows = _WORK / (work * n_background)
    if n_rows < _LEAST_ROWS:
        n_background = int(np.clip(_WORK / (work * _LEAST_ROWS), _LEAST_ROWS, n_background))
    n_rows = int(np.clip(n_rows, _LEAST_ROWS, _ROWS))
    return _Sizes(n_rows, n_background, 2 * n_background if sampled and not few else None)


def _some(X: Any, most: int) -> Any:
    """Return rows, spread evenly."""
    n = X.shape[0]
    if n <= most:
        return X
    rows = np.linspace(0, n - 1, most).round().astype(int)
    if is_frame(X):
        return nw.to_native(nw.from_native(X, eager_only=True)[rows])
    return X[rows]


def _words(values: Any, curves: Any) -> str:
    """Return how importance and shape functions are to be read."""
    text = ""
    if values is not None:
        what = "decision value" if values.quantity == "decision" else "prediction"
        text = (
            f"Importance is the mean size of the share of a column in the {what}, over "
            f"{count(len(values), 'row')}; the error is that of these rows."
        )
        if values.n_permutations:
            text += " The shares are sampled, since this model is no sum or product over columns."
    if curves is not None:
        what = "decision value" if curves.quantity == "decision" else "prediction"
        text += (
            f" A shape function is the mean {what} with the column at a value, minus the mean. "
            "Bands are two standard errors over the rows, not of the fit."
        )
        if curves.additive:
            text += " This model is exactly the sum of its shape functions."
    return text.strip()


def draw_importance(names: Sequence[str], sizes: Any) -> tuple[Bar, ...]:
    """Return bars with standard errors from sizes of shape (n_rows, n_columns), largest first."""
    means = sizes.mean(axis=0)
    spread = sizes.std(axis=0, ddof=1) if len(sizes) > 1 else np.zeros(len(means))
    errors = spread / np.sqrt(len(sizes))
    top = float((means + errors).max()) or 1.0
    return tuple(
        Bar(
            names[j],
            _with_error(float(means[j]), float(errors[j])),
            float(means[j]) / top,
            float(max(means[j] - errors[j], 0.0)) / top,
            float(means[j] + errors[j]) / top,
        )
        for j in np.argsort(-means, kind="stable")
    )


def _with_error(mean: float, error: float) -> str:
    """Return a number and its error with as many digits as the error has two."""
    if not error > 0:
        return show_number(mean)
    places = max(0, 1 - int(np.floor(np.log10(error))))
    if places > 6:
        return f"{mean:.2g} \u00b1 {error:.1g}"
    return f"{mean:,.{places}f} \u00b1 {error:,.{places}f}"


def _shares(curves: Any) -> tuple[Bar, ...]:
    """Return the shares of the variance that columns explain alone."""
    total = float(np.sum(curves.variance)) or 1.0
    parts = np.reshape(curves.first_order, (len(curves.curves), -1)).sum(axis=1) / total
    names = [curve.name for curve in curves.curves]
    top = float(parts.max()) or 1.0
    order = np.argsort(-parts, kind="stable")
    return tuple(Bar(names[j], f"{parts[j]:.1%}", float(parts[j]) / top) for j in order)


def _pairs(curves: Any) -> tuple[Bar, ...]:
    shares = [float(np.max(pair.share)) for pair in curves.pairs]
    top = max(shares, default=0.0) or 1.0
    return tuple(
        Bar(listed(pair.names), f"{share:.1%}", share / top)
        for pair, share in zip(curves.pairs, shares, strict=True)
        if share > 1e-4
    )


def _shapes(curves: Any) -> tuple[Chart, ...]:
    """Return the strongest shape functions, of several outputs the strongest one of each column."""
    found = []
    for curve in curves.curves[:_SHAPES]:
        values = np.reshape(curve.values, (len(curve.points), -1))
        errors = np.reshape(curve.errors, values.shape)
        k = int(np.ptp(values, axis=0).argmax())
        said = curves.output_names[k] if len(curves.output_names) > 1 else ""
        found.append((curve, values[:, k], _SURE * errors[:, k], said))
    if not found:
        return ()
    low = min(float((values - errors).min()) for _, values, errors, _ in found)
    high = max(float((values + errors).max()) for _, values, errors, _ in found)
    axis = linear(min(low, 0.0), max(high, 0.0), n_ticks=3)  # one scale for all
    return tuple(
        draw_shape(
            curve.name,
            curve.points if curve.kind == "category" else curve.places,
            values,
            errors,
            axis,
            kind=curve.kind,
            rows=curve.rows,
            output=said,
        )
        for curve, values, errors, said in found
    )


def draw_shape(
    name: str,
    points: Any,
    values: Any,
    errors: Any,
    axis: Axis,
    *,
    kind: str = "number",
    rows: Any = (),
    output: str = "",
) -> Chart:
    """Return the shape function of a column: a curve with a band, or a line for each category.

    ``points`` are numbers, days since 1970 or categories, ``errors`` half the width of the band,
    and ``axis`` that of the effect.
    """
    of = f", for {clip(output, 20)}" if output else ""
    heading = f"{clip(name, 28)}{of}"
    spoken = f"Effect of {clip(name)}{of}, from {values.min():.3g} to {values.max():.3g}."
    if kind == "category":
        kept = range(min(len(points), _LEVELS))
        levels = [
            Interval(
                clip(str(points[i]), 24),
                float(values[i]),
                float(values[i] - errors[i]),
                float(values[i] + errors[i]),
                np.empty(0),
            )
            for i in kept
        ]
        more = f"{len(points) - len(kept)} rarer values are not shown." if len(points) > 6 else ""
        step = axis.ticks[1][0] - axis.ticks[0][0]
        ticks = [tick for tick in axis.ticks if round(tick[0] / step) % 2 == 0]  # zero among them
        return Chart(
            replace(axis, ticks=ticks),
            spoken,
            more,
            heading=heading,
            intervals=levels,
            upright=(0.0, ""),
            step=34.0,
            height=34.0 * len(levels) + 54.0,
        )
    low, high = float(points[0]), float(points[-1])
    ticks = _dates(low, high) if kind == "date" else linear(low, high).ticks
    inside = np.asarray(rows, dtype=np.float64)
    inside = np.unique(inside[(inside >= low) & (inside <= high)])
    some = inside[np.linspace(0, len(inside) - 1, min(len(inside), _RUG)).round().astype(int)]
    return Chart(
        Axis(low, high, [tick for tick in ticks if low <= tick[0] <= high]),
        spoken,
        "",
        y=axis,
        heading=heading,
        height=170.0,
        margin=_MARGIN,
        line=(points, values),
        band=(points, values - errors, values + errors),
        reference=(np.array([low, high]), np.zeros(2)),
        rug=some,
    )


def _dates(low: float, high: float) -> list[tuple[float, str]]:
    """Return ticks at the start of years, or of months in a short time; days since 1970."""
    letters = {"Y": 4, "M": 7, "D": 10}  # of a date that is shown
    ends = np.array([low, high]).astype(np.int64).astype("datetime64[D]")
    for unit in letters:
        first, last = ends.astype(f"datetime64[{unit}]")
        starts = np.arange(first, last + 1)
        if len(starts) > 3:
            break
    days = starts[:: -(-len(starts) // _DATES)].astype("datetime64[D]")
    return [(float(day.astype(int)), str(day)[: letters[unit]]) for day in days]
