"""Explain predictions for the rows of a table with a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave._summary import count
from kernelweave._validation import pick_rows
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import DataError, InputError
from kernelweave.inspection import Attributions, explain
from kernelweave.inspection.explain import MOST_BACKGROUND
from kernelweave.inspection.models import check_model
from kernelweave.inspection.separable import separable_form
from kernelweave.inspection.tables import model_columns, two_samples

from .predicting import last_step

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS = 20  # rows that can be compared with each other
_MOST_ROWS = 200  # behind the importance of columns
_TRIED = 50  # rows on which the steps of a pipeline are tried

# Where columns are compared together, every mixed row is predicted: a hundredth (learned metrics)
# to a tenth of a second a row with these numbers, and a few per cent of error in values, which are
# then averaged over rows.
_SAMPLED_ROWS = 100
_SAMPLED_BACKGROUND = 100
_SINGLE = 20  # rows up to which all of the background is used all the same


def explain_table(
    model: Any,
    frame: pd.DataFrame,
    background: pd.DataFrame | None = None,
    *,
    rows: Sequence[int] | None = None,
    every: bool = True,
    by: str = "column",
) -> tuple[Attributions, list[int]]:
    """Return what each column, source, kernel or rule added to predictions.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted classifier or regressor.
    frame : pandas.DataFrame
        Rows; see `read_for`.
    background : pandas.DataFrame, optional
        Rows to compare with, such as the training table; those of ``frame`` by default.
    rows : sequence of int, optional
        Which rows to explain, from 0; all by default.
    every : bool
        Whether to explain all rows, or some that are enough for the importance of columns, spread
        evenly: 200, or 100 where the model compares columns together.
    by : {"column", "source", "kernel", "rule"}
        The players.

    Returns
    -------
    attributions : Attributions
        Their values.
    rows : list of int
        The rows explained.
    """
    if hasattr(last_step(model), "tasks_"):
        raise InputError(
            "This model was fitted with tasks, which the command line does not support; use "
            "kernelweave.io.load and kernelweave.inspection.explain in Python."
        )
    if background is None and len(frame) < _LEAST_ROWS:
        raise DataError(
            f"The table has {count(len(frame), 'row')}, too few to be compared with each other; "
            "give the table that the model was learned from with --background."
        )
    named = isinstance(model, Pipeline) or hasattr(last_step(model), "feature_names_in_")

    def given(part: pd.DataFrame) -> Any:
        return part if named else part.to_numpy(dtype=np.float64)

    cheap = by != "column" or _is_cheap(model, given(frame))
    rough = rows is None and not every  # importance alone, for which a few permutations are enough
    behind = frame if background is None else background
    if rough and background is None:
        n_rows = _MOST_ROWS if cheap else _SAMPLED_ROWS
        n_behind = min(MOST_BACKGROUND, max(len(frame) - n_rows, n_rows))
        some, others = two_samples(len(frame), n_rows, n_behind)
        rows, behind = some.tolist(), frame.iloc[others]
    elif rows is None:
        most = len(frame) if every else _MOST_ROWS if cheap else _SAMPLED_ROWS
        rows = even_rows(len(frame), most).tolist()
    if wrong := [row for row in rows if not 0 <= row < len(frame)]:
        raise InputError(
            f"--rows: the table has the rows 0 to {len(frame) - 1}, counted from 0 below the "
            f"header, got {wrong[0]}."
        )
    permutations = None
    if not cheap and len(rows) > _SINGLE:
        behind = behind.iloc[even_rows(len(behind), _SAMPLED_BACKGROUND)]
        permutations = len(behind) if rough else 2 * len(behind)
    found = explain(
        model,
        given(frame.iloc[list(rows)]),
        background=given(behind),
        by=by,
        n_permutations=permutations,
    )
    return found, list(rows)


def _is_cheap(model: Any, table: Any) -> bool:
    """Return whether no row has to be mixed and predicted."""
    check_model(last_step(model))
    first = model[0] if isinstance(model, Pipeline) else model
    some = model_columns(first, pick_rows(table, even_rows(len(table), _TRIED)))
    return separable_form(model, some) is not None
