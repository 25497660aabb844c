"""Section on what decides: importance of the columns, shape functions and pairs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from kernelweave._summary import count, largest, listed, weight_noun
from kernelweave._text import clip
from kernelweave._validation import pick_rows
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.inspection.coalitions import FEW_ENUMERATED, MOST_ENUMERATED
from kernelweave.inspection.models import last_step
from kernelweave.inspection.tables import two_samples
from kernelweave.io import Importance

from .charts import Chart, linear
from .rendering import Section
from .shapes import Bar, draw_importance, draw_shape

if TYPE_CHECKING:
    from .subject import Subject

_FIRST = 6  # bars of the first screen
_FIRST_SHAPES, _SHAPES = 3, 6  # shape functions of the first screen, and of the section
_BARS = 25  # columns of the section
_PAIRS = 5
_KEPT = 200  # columns whose importance a model file keeps
_ROWS, _LEAST_ROWS = 200, 20  # rows explained
_BACKGROUND, _SAMPLED = 200, 40  # rows to compare with; where values are sampled
_SHAPE_ROWS = 40  # rows over which shape functions are averaged
_WORK = 5e8  # operations that importance may take: a quarter of a second, more or less
_MEMBER_WORK = 7e8  # the same for members that do not add up: half a second
_WALKED = 40  # background rows of a learned metric
_WALK_WORK = 6e7  # its steps times terms: a quarter of a second
_PAIR_WORK = 2e8  # the same for pairs, which are left out of slow models
_PAIR_ROWS = 27_000.0  # predictions that pairs take: 15 pairs, 36 points, 50 rows
_EXPONENTIAL = 10.0  # operations for the exponential of a term
_NODES = 4.0  # operations for each term and column where these are products or sums
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
    by_column : bool
        Whether the bars are columns; otherwise parts of the model.
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
    by_column: bool = False
    refused: tuple[str, ...] = ()

    @property
    def first_bars(self) -> tuple[Bar, ...]:
        """Bars of the first screen: those of columns that are used."""
        return tuple(bar for bar in self.bars[:_FIRST] if bar.length > 0) or self.bars[:1]

    @property
    def sentence(self) -> str:
        """The columns that decide most; empty where it is not known."""
        if not self.by_column:
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
    if found is None or not (found.by_column or found.refused):
        return None
    return Section("decides", "What decides, in detail", {"found": found})


def what_decides(subject: Subject) -> Deciding | None:
    """Return the columns that decide, or else the heaviest parts of the model; None: neither."""
    model = subject.estimator
    refused: list[str] = []
    known = None if subject.record is None else subject.record.importance
    if is_classifier(model) or is_regressor(model):
        if subject.X is not None:
            known = known or _try_importance(subject, refused)
        curves = None if subject.X is None else _try_curves(subject, known, refused)
        if known is not None or curves is not None:
            return _by_column(subject, known, curves, refused)
    heaviest = largest(model, _FIRST)
    if not heaviest:
        return Deciding((), "", refused=tuple(refused)) if refused else None
    rules = model._declaration.learns == "rules"
    title = "The most important rules" if rules else f"Weights of {weight_noun(model)}s"
    note = "" if rules else "Weights are shares of their sum; they are no measure of importance."
    bars = tuple(Bar(name, text, length) for name, text, length in heaviest)
    return Deciding(bars, title, note, refused=tuple(refused))


def measure_importance(model: Any, X: Any) -> Importance:
    """Return the importance of the columns on some rows, as many as a fraction of a second allows.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted classifier or regressor.
    X : array or data frame
        Rows, such as those of the fit.

    Returns
    -------
    importance : Importance
        For the record of a fit.
    """
    from kernelweave.inspection import explain

    size = _affordable(model, X)
    rows, behind = two_samples(X.shape[0], size.n_rows, size.n_background)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on the rows, which the scores show
        values = explain(
            model,
            pick_rows(X, rows),
            background=pick_rows(X, behind),
            n_permutations=size.n_permutations,
        )
    means, errors = values.mean_sizes(all_outputs=True)
    order = np.argsort(-means, kind="stable")[:_KEPT]
    return Importance(
        tuple(values.feature_names[j] for j in order),
        tuple(means[order].tolist()),
        tuple(errors[order].tolist()),
        len(means),
        len(values),
        values.n_background,
        values.n_permutations > 0,
        values.quantity,
    )


def _try_importance(subject: Subject, refused: list[str]) -> Importance | None:
    try:
        return measure_importance(subject.chosen, subject.X)
    except (TypeError, ValueError) as error:  # errors of the library are among these
        refused.append(f"Importance is not shown: {error}")
        return None


def _try_curves(subject: Subject, known: Importance | None, refused: list[str]) -> Any:
    """Return shape functions of the most important columns, or None and the reason."""
    from kernelweave.inspection import effects

    X, columns = subject.X, None
    if known is not None and set(known.names) <= set(subject.columns or ()):
        columns = list(known.names[:_SHAPES])
    pairs = _PAIRS if X.shape[1] > 1 and _fast_enough(subject.chosen, X) else 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            some = pick_rows(X, even_rows(X.shape[0], _SHAPE_ROWS))
            return effects(subject.chosen, some, columns, pairs=pairs, total=False)
    except (TypeError, ValueError) as error:
        refused.append(f"Shape functions are not shown: {error}")
        return None


def _by_column(
    subject: Subject, known: Importance | None, curves: Any, refused: list[str]
) -> Deciding:
    """Return importance and shape functions, at least one of which is known."""
    if known is None:
        bars, title, n_all = _shares(curves), "Share of the variance by each column alone", 0
    else:
        bars = draw_importance(known.names, known.means, known.errors)
        title, n_all = "Importance, with standard errors", known.n_columns
    n_background = curves.n_background if known is None else known.n_background
    note = (
        f"Values compare each row with {count(n_background, 'row')} of the data; they describe the "
        "model, not causes."
    )
    if curves is not None and is_classifier(subject.estimator) and len(curves.output_names) == 1:
        note += f" Upwards means {clip(curves.output_names[0], 40)}."
    return Deciding(
        bars[:_BARS],
        title,
        note,
        () if curves is None else _shapes(curves, [bar.name for bar in bars]),
        _words(known, curves),
        () if curves is None else _pairs(curves),
        n_all or len(bars),
        by_column=True,
        refused=tuple(refused),
    )


@dataclass(frozen=True)
class _Sizes:
    """Rows to explain, rows to compare each with, and permutations where values are sampled."""

    n_rows: int
    n_background: int
    n_permutations: int | None = None


def _affordable(model: Any, X: Any, share: float = 1.0) -> _Sizes:
    """Return how much is explained in a fraction of a second, or in a share of it.

    The work for one row and one background row is that of a prediction for every coalition of
    columns that is looked at; of a sum of products over columns it is that of a quadrature.
    """
    estimator, d = last_step(getattr(model, "best_estimator_", model)), int(X.shape[1])
    members = estimator._declaration.learns == "members"
    if members and (added := getattr(estimator._terms(), "members", ())):  # each on its own
        return _least([_affordable(member, X, share / len(added)) for member, _ in added])
    if estimator._declaration.learns == "metric":
        # Rows and the background have about the same share in the error of importance.
        pairs = share * _WALK_WORK / (_n_terms(estimator) * d)
        n_background = int(np.clip(np.sqrt(pairs), _LEAST_ROWS, _WALKED))
        n_rows = int(np.clip(pairs / n_background, _LEAST_ROWS, _ROWS))
        return _Sizes(n_rows, n_background, n_background)
    sampled, few = _n_sampled(estimator), d <= (FEW_ENUMERATED if members else MOST_ENUMERATED)
    if sampled:
        work = sampled * _prediction_work(estimator, d) * (2.0**d if few else d + 1)
    else:
        weights = getattr(estimator, "weights_", [1.0])
        work = _n_terms(estimator) * d * _NODES * max(int(np.count_nonzero(weights)), 1)
    pairs = share * (_MEMBER_WORK if members else _WORK) / work  # of rows and background rows
    # The permutations of sampled rows are their own, so that more rows are better than a larger
    # background.
    n_background = np.sqrt(pairs / 2.0 if sampled else pairs)
    n_background = int(np.clip(n_background, _LEAST_ROWS, _SAMPLED if sampled else _BACKGROUND))
    n_rows = int(np.clip(pairs / n_background, _LEAST_ROWS, _ROWS))
    return _Sizes(n_rows, n_background, n_background if sampled and not few else None)


def _least(sizes: list[_Sizes]) -> _Sizes:
    """Return what all members of a sum can afford."""
    n_background = min(size.n_background for size in sizes)
    sampled = any(size.n_permutations is not None for size in sizes)
    pairs = min(size.n_rows * size.n_background for size in sizes)
    n_rows = int(np.clip(pairs / n_background, _LEAST_ROWS, _ROWS))
    return _Sizes(n_rows, n_background, n_background if sampled else None)


def _fast_enough(model: Any, X: Any) -> bool:
    """Return whether pairs of columns take a fraction of a second."""
    estimator = last_step(getattr(model, "best_estimator_", model))
    return _PAIR_ROWS * _prediction_work(estimator, int(X.shape[1])) <= _PAIR_WORK


def _prediction_work(estimator: Any, n_columns: int) -> float:
    """Return the operations of the prediction of one row."""
    n_outputs = int(np.size(getattr(estimator, "classes_", 0)))
    return _n_terms(estimator) * (n_columns + n_outputs + _EXPONENTIAL)


def _n_terms(estimator: Any) -> float:
    """Return the number of support rows, of all members where there are several."""
    parts = [last_step(one) for one in getattr(estimator, "members_", [estimator])]
    return float(sum(max(int(np.size(getattr(one, "support_", ()))), 1) for one in parts))


def _n_sampled(estimator: Any) -> int:
    """Return how many parts of the model are predicted for mixed rows.

    These parts are no sums of known parts.
    """
    if estimator._declaration.learns == "members" or not getattr(estimator, "paths_", True):
        return 1
    kernels = getattr(estimator, "kernels_", ())
    opaque = [any(a.kind == "opaque" for m in k.monomials() for a in m.atoms) for k in kernels]
    weights = np.asarray(getattr(estimator, "weights_", ()))
    used = weights > 0 if weights.shape == (len(opaque),) else True
    return int(np.sum(np.array(opaque, dtype=bool) & used))


def _words(known: Importance | None, curves: Any) -> str:
    """Return how importance and shape functions are to be read."""
    text = ""
    if known is not None:
        what = "decision value" if known.quantity == "decision" else "prediction"
        text = (
            f"Importance is the mean size of the share of a column in the {what}, over "
            f"{count(known.n_rows, 'row')}; the error is that of these rows and of those that they "
            "are compared with."
        )
        if known.sampled:
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


def _shapes(curves: Any, names: list[str]) -> tuple[Chart, ...]:
    """Return shape functions in the order of the bars, the strongest one of several outputs."""
    place = {name: k for k, name in enumerate(names)}
    ordered = sorted(curves.curves, key=lambda curve: place.get(curve.name, len(place)))
    found = []
    for curve in ordered[:_SHAPES]:
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
