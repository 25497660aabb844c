"""Shape functions of a model: what single columns and pairs of columns do to predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kernelweave._summary import column_names
from kernelweave._threads import threads
from kernelweave._types import Floats
from kernelweave._validation import pick_rows
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import InputError, InputTypeError

from .anova import Separable
from .conditional import Conditional, conditional, is_manageable, most_rows
from .curves import Curve, Effects, PairEffect
from .explain import _outputs
from .grids import Grid, make_grid
from .models import check_model, function_of, last_step
from .names import find_name
from .separable import separable_form, thresholds
from .tables import model_columns

_AT_ONCE = 50_000  # rows predicted at a time
_TRIED = 50  # rows on which the steps of a pipeline are tried
_BAND = (0.05, 0.95)  # quantiles of refitted curves


def effects(
    model: Any,
    X: Any,
    columns: Sequence[Any] | None = None,
    pairs: int = 0,
    *,
    output: Any = None,
    n_points: int = 21,
    total: bool = True,
    y: Any = None,
    n_refits: int = 0,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Effects:
    """Compute how the prediction depends on each column, on average over the other columns.

    The effect of a value v of a column is the mean over the rows of ``X`` of the prediction with
    v in this column, minus the mean prediction: partial dependence, centred. Of models that are
    sums of products of functions of single columns (most kernels, rules) no row is predicted and
    variances are exact; of others, such as learned metrics, rows are mixed and predicted.

    Parameters
    ----------
    model : estimator, Pipeline or search
        A fitted estimator of kernelweave that predicts, or a pipeline or search around one.
    X : array or data frame
        The background, such as the training rows; at most 500 are used, 200 where rows are
        predicted, spread evenly.
    columns : sequence of names or positions, optional
        Which columns; None: all.
    pairs : int
        How many pairs of columns to return, those with the largest effect beyond the sum of both;
        where rows are predicted, among the ten strongest columns and on a coarse grid.
    output : label, name or number, optional
        One output of several, such as a class; None: all.
    n_points : int
        Most points of a column of numbers or dates. Rules have their thresholds instead.
    total : bool
        Whether to compute exact variances with total and Shapley effects, where the model allows
        it; the time grows with the square of the number of support rows. False: variances are
        those of the curves.
    y : array of shape (n_rows,), optional
        Targets of ``X``, for refits.
    n_refits : int
        How many times to fit the model again to a bootstrap sample of ``X`` and ``y``, for the
        bands of the curves; 0: none.
    random_state : int, RandomState or None
        Seed of bootstrap samples and shuffles.
    n_jobs : int or None
        Threads; None: all that the process may use. The result does not depend on it.

    Returns
    -------
    effects : Effects
        Curves, strongest first, pairs, and shares of the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressor
    >>> from kernelweave.inspection import effects
    >>> X = np.random.default_rng(0).uniform(-2, 2, (100, 2))
    >>> model = MKLRegressor().fit(X, X[:, 0] ** 2)
    >>> found = effects(model, X)
    >>> found.names[0], bool(found.main_share > 0.9)
    ('column 0', True)
    """
    subject = _Subject.of(model)
    table = model_columns(subject.first, X)
    if hasattr(table, "tocsr"):
        raise InputTypeError("X: sparse data cannot be used here; pass X.toarray().")
    if table.shape[0] < 2:
        raise InputError(f"X: effects need 2 rows or more, got {table.shape[0]}.")
    least_of = {"pairs": (pairs, 0), "n_points": (n_points, 2), "n_refits": (n_refits, 0)}
    for name, (value, least) in least_of.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{name} must be a whole number >= {least}, got {value!r}.")
    if n_refits and y is None:
        raise InputError("y: refits need the targets of X; pass y, or n_refits=0.")
    random = check_random_state(random_state)
    with threads(n_jobs):
        form = _form(subject, table)
        background = pick_rows(table, even_rows(table.shape[0], most_rows(form, table.shape[1])))
        grids = _grids(subject, background, columns, n_points)
        work = conditional(subject.predict, form, background, grids, random)
        found = _assemble(subject, work, int(pairs), bool(total))
        if n_refits:
            found = _with_bands(found, subject, work, (table, y), int(n_refits), random)
    return found if output is None else found[..., output]


@dataclass(frozen=True)
class _Subject:
    """A fitted model and its parts."""

    chosen: Any
    first: Any
    estimator: Any

    @classmethod
    def of(cls, model: Any) -> _Subject:
        chosen = getattr(model, "best_estimator_", model)
        estimator = last_step(chosen)
        check_model(estimator)
        check_is_fitted(estimator)
        return cls(chosen, chosen[0] if isinstance(chosen, Pipeline) else chosen, estimator)

    def predict(self, table: Any) -> Floats:
        """Return decision values or predictions, (n_rows, n_outputs)."""
        outputs, n = function_of(self.chosen), table.shape[0]
        return np.concatenate(
            [
                outputs(pick_rows(table, np.arange(start, min(n, start + _AT_ONCE))))
                for start in range(0, n, _AT_ONCE)
            ]
        )


def _form(subject: _Subject, table: Any) -> Separable | None:
    """Return the model as a sum of products of functions, where that is cheaper to evaluate."""
    form = separable_form(subject.chosen, pick_rows(table, even_rows(table.shape[0], _TRIED)))
    return form if is_manageable(form, table.shape[1]) else None


def _grids(subject: _Subject, table: Any, columns: Any, n_points: int) -> list[Grid]:
    """Return the values of the columns that are asked for."""
    names = column_names(subject.first, table.shape[1])
    if columns is None:
        places = list(range(len(names)))
    else:
        given = [columns] if isinstance(columns, str | int) else list(columns)
        places = [_place(column, names) for column in given]
        if len(set(places)) < len(places):
            raise InputError(f"columns: each may be listed once, got {given!r}.")
    formats = getattr(subject.first, "dates", None) or {}
    cuts = thresholds(subject.chosen)
    return [
        make_grid(
            table, j, names[j], n_points, date_format=formats.get(names[j]), cuts=cuts.get(j, ())
        )
        for j in places
    ]


def _place(column: Any, names: list[str]) -> int:
    if isinstance(column, int | np.integer) and not isinstance(column, bool):
        if 0 <= column < len(names):
            return int(column)
        raise InputError(f"columns: there are {len(names)} columns, got {column}.")
    return find_name(column, names, "columns")


def _assemble(subject: _Subject, work: Conditional, n_pairs: int, total: bool) -> Effects:
    """Return curves, variances and pairs, the strongest first."""
    ice = work.ice
    centred = [_centred(curve, ice.predictions) for curve in ice.curves]
    found = work.variances([values for values, _ in centred], n_pairs > 0, total)
    order = np.argsort(-_relative(found.first_order, found.variance).max(axis=1), kind="stable")
    curves = [
        Curve(
            grid.name,
            grid.kind,
            grid.values,
            _squeezed(values),
            _squeezed(errors),
            _squeezed(curve),
            grid.rows,
        )
        for grid, (values, errors), curve in zip(work.grids, centred, ice.curves, strict=True)
    ]

    def sorted_by(variances: Floats | None) -> Any:
        return None if variances is None else _squeezed(variances[order])

    return Effects(
        curves=tuple(curves[k] for k in order),
        pairs=tuple(_strongest_pairs(work, found.pairs, found.variance, n_pairs)),
        base=_squeezed(ice.predictions.mean(axis=0)),
        variance=_squeezed(found.variance),
        first_order=sorted_by(found.first_order),
        shapley=sorted_by(found.shapley),
        total=sorted_by(found.total),
        output_names=_outputs(subject.estimator, ice.predictions.shape[1])[0],
        quantity="decision" if is_classifier(subject.estimator) else "prediction",
        n_background=len(ice.predictions),
        additive=work.is_additive,
        exact=found.total is not None,
    )


def _strongest_pairs(
    work: Conditional, pairs: Floats | None, variance: Any, n_pairs: int
) -> list[PairEffect]:
    """Return the pairs with the largest share of the variance of any output."""
    if pairs is None:
        return []
    shares = _relative(pairs, variance)
    first, second = np.triu_indices(len(pairs), 1)
    order = np.argsort(-shares[first, second].max(axis=1), kind="stable")[:n_pairs]
    found = []
    for k, j in zip(first[order].tolist(), second[order].tolist(), strict=True):
        points, surface = work.surface(k, j)
        names = (work.grids[k].name, work.grids[j].name)
        found.append(PairEffect(names, points, _squeezed(surface), _squeezed(shares[k, j])))
    return found


def _with_bands(
    found: Effects,
    subject: _Subject,
    work: Conditional,
    data: tuple[Any, Any],
    n_refits: int,
    random: Any,
) -> Effects:
    """Add the spread of the curves of models fitted to bootstrap samples."""
    table, y = data
    check_consistent_length(table, y)
    refitted: list[list[Floats]] = []
    for _ in range(n_refits):
        rows = random.randint(0, table.shape[0], table.shape[0])
        again = clone(subject.chosen).fit(pick_rows(table, rows), pick_rows(y, rows))
        own = _Subject.of(again)
        ice = conditional(own.predict, _form(own, table), work.table, work.grids, random).ice
        refitted.append([_centred(curve, ice.predictions)[0] for curve in ice.curves])
    bands = {
        grid.name: _squeezed(np.quantile([curves[k] for curves in refitted], _BAND, axis=0))
        for k, grid in enumerate(work.grids)
    }
    curves = tuple(replace(curve, band=bands[curve.name]) for curve in found.curves)
    return replace(found, curves=curves, n_refits=n_refits)


def _centred(curves: Floats, predictions: Floats) -> tuple[Floats, Floats]:
    """Return the mean of ``f(v, z_t) - f(z_t)`` over rows t, and its standard error."""
    changes = curves - predictions[:, None]
    n = len(changes)
    return changes.mean(axis=0), changes.std(axis=0, ddof=1) / np.sqrt(n)


def _relative(part: Floats, whole: Any) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0))


def _squeezed(values: Any) -> Any:
    """Drop the axis of the outputs where there is one."""
    values = np.asarray(values)
    if values.shape[-1] != 1:
        return values
    return float(values[0]) if values.ndim == 1 else values[..., 0]
