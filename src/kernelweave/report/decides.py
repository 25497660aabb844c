"""Section on what decides: importance of the columns, shape functions and pairs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier, is_regressor

from kernelweave._summary import count, largest, listed, weight_noun
from kernelweave._text import clip
from kernelweave._validation import is_frame
from kernelweave.inspection.coalitions import MOST_ENUMERATED

from .charts import Chart, linear
from .rendering import Section
from .shapes import Bar, draw_importance, draw_shape

if TYPE_CHECKING:
    from .subject import Subject

_FIRST = 6  # bars of the first screen
_FIRST_SHAPES, _SHAPES = 3, 6  # shape functions of the first screen, and of the section
_BARS = 25  # columns of the section
_PAIRS = 5
_ROWS, _LEAST_ROWS = 200, 20  # rows explained
_BACKGROUND, _SAMPLED = 200, 40  # rows to compare with; where values are sampled
_WORK = 5e9  # operations that importance may take: two seconds, more or less
_QUICK_WORK = 1e9  # of a page that must not take long
_QUICK_ROWS, _QUICK_POINTS = 30, 11  # of its shape functions, where values are sampled
_NODES = 6.0  # of the quadrature of a product of kernels on columns, as a rule
_LITTLE = 0.02  # length of a bar that is not worth a word
_SURE = 2.0  # standard errors of a band


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
    model = subject.estimator
    refused: list[str] = []
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

    model, X = subject.model, subject.X
    refused: list[str] = []
    values: Any = None
    curves: Any = None
    size = _affordable(subject)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on the rows, which the scores show
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
        n_pairs = _PAIRS if X.shape[1] > 1 and size.n_rows > _LEAST_ROWS else 0
        more: dict[str, Any] = {}
        if subject.quick and size.n_permutations is not None:
            X, n_pairs, more = _some(X, _QUICK_ROWS), 0, {"n_points": _QUICK_POINTS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            curves = effects(model, X, columns, pairs=n_pairs, **more)
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
    kept = float(sum(max(int(np.size(getattr(one, "support_", ()))), 1) for one in parts))
    sampled = model._declaration.learns in ("metric", "members")
    few = d <= MOST_ENUMERATED
    if sampled:
        work = kept * (d + n_outputs) * (2.0**d if few else 2.0 * (d + 1))
    else:
        work = kept * d * _NODES * max(int(np.count_nonzero(getattr(model, "weights_", [1.0]))), 1)
    n_background = _SAMPLED if sampled else _BACKGROUND
    most = _QUICK_WORK if subject.quick else _WORK
    n_rows = most / (work * n_background)
    if n_rows < _LEAST_ROWS:
        n_background = int(np.clip(most / (work * _LEAST_ROWS), _LEAST_ROWS, n_background))
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
