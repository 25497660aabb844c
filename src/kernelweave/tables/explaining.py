"""Explain predictions for the rows of a table with a saved model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import DataError, InputError
from kernelweave.inspection import Attributions, explain

from .predicting import last_step

if TYPE_CHECKING:
    import pandas as pd

_LEAST_ROWS = 20  # rows that can be compared with each other


def explain_table(
    model: Any,
    frame: pd.DataFrame,
    background: pd.DataFrame | None = None,
    *,
    rows: Sequence[int] | None = None,
    limit: int | None = None,
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
    limit : int, optional
        Most rows to explain, spread evenly over the table.
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
            f"The table has {len(frame)} rows, too few to be compared with each other; give the "
            "table that the model was learned from with --background."
        )
    if rows is None:
        rows = even_rows(len(frame), limit or len(frame)).tolist()
    if wrong := [row for row in rows if not 0 <= row < len(frame)]:
        raise InputError(
            f"--rows: the table has the rows 0 to {len(frame) - 1}, counted from 0 below the "
            f"header, got {wrong[0]}."
        )
    behind = frame if background is None else background
    named = isinstance(model, Pipeline) or hasattr(last_step(model), "feature_names_in_")

    def given(part: pd.DataFrame) -> Any:
        return part if named else part.to_numpy(dtype=np.float64)

    found = explain(model, given(frame.iloc[list(rows)]), background=given(behind), by=by)
    return found, list(rows)
