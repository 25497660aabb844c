"""Groups of rows by the values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._types import Indices

from .reading import import_pandas, is_number

if TYPE_CHECKING:
    import pandas as pd

_MOST = 20  # groups
_RANGES = 4  # of a column with more different numbers than groups


def split_groups(column: pd.Series[Any]) -> tuple[list[tuple[str, Indices]], list[str]]:
    """Return names and row positions of groups, the largest first, and notes.

    Numbers with many values are split into four ranges of about equal size, in their order; rows
    without a value are a group of their own.
    """
    values, notes, many = column.to_numpy(dtype=object), [], column.nunique() > _MOST
    gaps = column.isna().to_numpy()
    if many and is_number(column):
        pandas = import_pandas()
        ranges = pandas.qcut(column.astype(float), _RANGES, duplicates="drop")
        bounds = ranges.cat.categories
        names = [f"{part.left:.4g} to {part.right:.4g}" for part in bounds]
        codes = ranges.cat.codes.to_numpy()
        groups = [(name, np.flatnonzero(codes == k)) for k, name in enumerate(names)]
        groups = [group for group in groups if len(group[1])]
    else:
        texts = np.array([str(value) for value in values], dtype=object)
        known = np.flatnonzero(~gaps)
        labels, codes = np.unique(texts[known], return_inverse=True)
        order = np.argsort(-np.bincount(codes, minlength=len(labels)), kind="stable")
        groups = [(str(labels[k]), known[codes == k]) for k in order[:_MOST]]
        if len(labels) > _MOST:
            notes.append(
                f"{column.name!r} has {len(labels)} values, of which the {_MOST} largest groups "
                "are shown"
            )
    if gaps.any():
        groups.append(("(missing)", np.flatnonzero(gaps)))
    return groups, notes
