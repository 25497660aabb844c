"""What a fitted model takes from each source of columns: scores with the source exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.errors import InputError
from kernelweave.kernels import Kernel

from .measures import MEASURES, Evaluator, Predicted, Several, draw, percentiles
from .new_rows import NewRows, predictions_of
from .predicting import last_step

_REPEATS = 5  # permutations of a source
_MOST = 40  # sources


@dataclass(frozen=True)
class SourceScore:
    """The main score of a model whose values of one source are exchanged between rows.

    Attributes
    ----------
    name : str
        Of the view, or the column.
    columns : tuple of str
        Its columns.
    value : float
        The score, a mean over permutations.
    loss : float
        By how much it is worse than with the source.
    interval : tuple of two floats, or None
        95% interval of the loss.
    """

    name: str
    columns: tuple[str, ...]
    value: float
    loss: float
    interval: tuple[float, float] | None


def find_sources(model: Any, columns: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of every source: views by their names, else single columns.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model.
    columns : list of str
        Columns of the table that the model takes, in the order of the fit.
    """
    found: dict[str, list[str]] = {}
    for kernel in getattr(last_step(model), "kernels_", None) or ():
        view, colon, _ = str(kernel.name or "").partition(": ")
        picked = _columns(kernel, columns)
        if not colon or picked is None:
            found = {}
            break
        known = found.setdefault(view, [])
        known += [name for name in picked if name not in known]
    if len(found) < 2:
        return {name: (name,) for name in columns}
    return {view: tuple(names) for view, names in found.items()}


def _columns(kernel: Kernel, columns: list[str]) -> list[str] | None:
    """Return the names of the columns of a kernel; None where they cannot be told."""
    given = kernel.columns
    if isinstance(given, slice):
        return columns[given] if _is_positions(given) else None
    items = [given] if isinstance(given, str | int | np.integer) else given
    if not isinstance(items, list | tuple | np.ndarray):
        return None
    out = []
    for item in items:
        if isinstance(item, str) and item in columns:
            out.append(item)
        elif isinstance(item, int | np.integer) and 0 <= item < len(columns):
            out.append(columns[int(item)])
        else:
            return None
    return out


def _is_positions(given: slice) -> bool:
    return all(end is None or isinstance(end, int) for end in (given.start, given.stop, given.step))


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
    measure, random = MEASURES[main], np.random.default_rng(seed)
    wanted: dict[Any, Any] = {None: (measure, predicted.evaluators()[main])}
    for name, columns in sources.items():
        wanted[name] = (
            measure,
            _mean(
                [
                    predictions_of(model, rows, frame, positive).evaluators()[main]
                    for frame in _exchanged(rows.frame, list(columns), random)
                ]
            ),
        )
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


def _exchanged(frame: Any, columns: list[str], random: Any) -> Iterator[Any]:
    """Yield the frame with the values of some columns exchanged between rows, as they are."""
    for _ in range(_REPEATS):
        order = random.permutation(len(frame))
        moved = frame[columns].iloc[order].reset_index(drop=True)
        yield frame.assign(**{name: moved[name] for name in columns})
