"""What a fitted model takes from each source of columns: scores with the source exchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelweave.errors import InputError

from .measures import MEASURES, Evaluator, Predicted
from .new_rows import NewRows, predict_changed
from .predicting import last_step
from .reading import import_pandas
from .resampling import Several, draw, percentiles

_REPEATS = 5  # permutations of a source
_MOST = 40  # sources


@dataclass(frozen=True)
class SourceScore:
    """The main score of a model whose values of one source are exchanged between rows."""

    name: str  # of the view, or the column
    columns: tuple[str, ...]
    value: float  # the score, a mean over permutations
    loss: float  # by how much it is worse than with the source
    interval: tuple[float, float] | None  # 95% interval of the loss


def find_sources(model: Any, columns: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of every source: views by their names, and columns that are in none.

    ``columns`` are those of the table that the model takes, in the order of the fit.
    """
    empty, found = import_pandas().DataFrame(columns=columns), dict[str, dict[str, None]]()
    for kernel in getattr(last_step(model), "kernels_", None) or ():
        view, colon, _ = str(kernel.name or "").partition(": ")
        if colon:
            picked = kernel.source_positions(empty).tolist()
            found.setdefault(view, {}).update(dict.fromkeys(columns[j] for j in picked))
    rest = [name for name in columns if not any(name in own for own in found.values())]
    if len(found) + len(rest) < 2:
        found, rest = {}, columns
    return {view: tuple(names) for view, names in found.items()} | {c: (c,) for c in rest}


def score_sources(
    model: Any,
    rows: NewRows,
    predicted: Predicted | Several,
    main: str,
    positive: Any,
    seed: int,
) -> tuple[tuple[SourceScore, ...], list[str]]:
    """Return the main score without each source, the largest loss first, and notes."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        left = rows.frame.drop(columns=[*rows.others])
        names = [name for name in left.columns if name != rows.by][: model.n_features_in_]
    sources = find_sources(model, list(names))
    if len(sources) < 2:
        raise InputError("--sources: the model has one source only, so that there is none to drop.")
    notes = []
    if len(sources) > _MOST:
        notes.append(f"the first {_MOST} of {len(sources)} sources are scored")
        sources = dict(list(sources.items())[:_MOST])
    n, measure, random = len(rows), MEASURES[main], np.random.default_rng(seed)
    wanted: dict[Any, Any] = {None: (measure, predicted.evaluators()[main])}
    for name, columns in sources.items():
        changed = predict_changed(model, _exchange(rows, list(columns), random), positive)
        parts = [changed.take(slice(k * n, (k + 1) * n)) for k in range(_REPEATS)]
        wanted[name] = measure, _mean([part.evaluators()[main] for part in parts])
    drawn = draw(wanted, len(wanted) * _REPEATS, predicted.strata, rows.weight, seed)
    sign, own = -1.0 if measure.smaller else 1.0, drawn[None]
    out = []
    for name, columns in sources.items():
        other = drawn[name]
        ends = percentiles(sign * (own.resampled - other.resampled))
        loss = sign * (own.value - other.value)
        out.append(SourceScore(name, columns, other.value, loss, ends))
    return tuple(sorted(out, key=lambda item: -item.loss)), notes


def _mean(evaluators: list[Evaluator]) -> Evaluator:
    return lambda weights: np.mean([evaluate(weights) for evaluate in evaluators], axis=0)


def _exchange(rows: NewRows, columns: list[str], random: Any) -> NewRows:
    """Return the rows several times over, the values of some columns exchanged between rows.

    All are predicted at once, since to prepare a table costs more than to predict some rows.
    """
    n, frame = len(rows), rows.frame
    order = np.concatenate([random.permutation(n) for _ in range(_REPEATS)])
    whole = frame.iloc[np.tile(np.arange(n), _REPEATS)].reset_index(drop=True)
    moved = frame[columns].iloc[order].reset_index(drop=True)
    return replace(rows, frame=whole.assign(**{name: moved[name] for name in columns}))
