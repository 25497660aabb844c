"""Kernels on all columns of a mixed table together, and on each alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from kernelweave._types import Floats
from kernelweave._validation import pick_rows
from kernelweave.errors import InputError, warn

from .base import Kernel, KernelFamily
from .discrete import Constant
from .encoding import NothingToEncodeError, TableEncoding
from .gaps import Known
from .gaussian import RBF, Laplacian
from .spread import typical_distance
from .table import Columns, describe_columns, normal_columns, read_table
from .vector import Linear

# Chosen on nine development tables with C = 1 and norm 1: Laplacians beside Gaussians gain up to
# .04 of R2 or AUC, kernels on single columns up to .012.
_LAPLACIANS = (0.5, 1.0, 2.5, 6.0)  # widths, in units of the mean absolute distance of rows
_GAUSSIANS = (0.5, 1.0, 2.0)  # widths, in units of their root mean squared distance
_SPARSE_GAUSSIANS = (0.5, 1.0, 2.0, 4.0, 8.0)
_MANY_COLUMNS = 60  # more than this get no kernels of their own


@dataclass(frozen=True)
class MixedLadder(KernelFamily):
    """What `mixed_ladder` returns."""

    columns: Columns
    per_feature: bool
    missing: str = "fill"

    @property
    def encodes_gaps(self) -> bool:
        return True

    def with_missing(self, rule: str) -> Self:
        """Return this family switched off where all columns of a row are missing, if asked for."""
        if rule not in ("off", "fill"):
            raise InputError(
                f"{self}: missing must be 'fill' or 'off', got {rule!r}; other kernels know "
                "further rules, and views() of two sources or more know 'complete'."
            )
        return dataclasses.replace(self, missing="off" if rule == "off" else self.missing)

    def __str__(self) -> str:
        return "mixed_ladder" + describe_columns(self.columns)

    def on(self, columns: Columns) -> Self:
        """Return this family on other columns."""
        return dataclasses.replace(self, columns=normal_columns(columns, str(self)))

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels for ``X``."""
        table = read_table(X, str(self))
        table.positions(self.columns, str(self))
        if table.is_sparse:
            return self._of_sparse(X, sample_weight)
        if self.missing == "off":
            return self._of_present(X, sample_weight)
        return self._of_encoded(X, sample_weight)

    def _of_present(self, X: Any, sample_weight: Floats | None) -> list[Kernel]:
        """Return kernels learned from the rows that have some of the columns, off elsewhere."""
        gate = Known(every=False, columns=self.columns, name=str(self))
        there = np.flatnonzero(gate.diagonal(gate.prepare(X)))
        if not len(there):
            raise InputError(f"{self}: no training row has this source; leave it out.")
        weight = None if sample_weight is None else sample_weight[there]
        kernels = self._of_encoded(pick_rows(X, there), weight)
        return [kernel.with_missing("off") for kernel in kernels]

    def _of_encoded(self, X: Any, sample_weight: Floats | None) -> list[Kernel]:
        try:
            encoding = TableEncoding.learn(X, self.columns, sample_weight)
        except NothingToEncodeError as error:
            warn(f"{error} The prediction is the same for all rows.")
            return [Constant()]
        rows = encoding.encode(X)
        far = _mean_absolute_distance(rows, sample_weight)
        middle = typical_distance(rows, sample_weight)
        kernels: list[Kernel] = [
            *(Laplacian(step * far, columns=encoding) for step in _LAPLACIANS),
            *(RBF(step * middle, columns=encoding) for step in _GAUSSIANS),
            Linear(columns=encoding),
            *_in_own_units(encoding),
        ]
        if self.per_feature and 1 < len(encoding.keys) <= _MANY_COLUMNS:
            kernels += [RBF(1.0, columns=encoding.only([key])) for key in encoding.keys]
        return kernels

    def _of_sparse(self, X: Any, sample_weight: Floats | None) -> list[Kernel]:
        """Return kernels on the columns as they are: encoding them would fill the zeros."""
        off = self.missing == "off"
        rows = read_table(X, str(self)).numbers(self.columns, str(self), gaps=off)
        middle = typical_distance(rows, sample_weight)
        kernels: list[Kernel] = [RBF(step * middle) for step in _SPARSE_GAUSSIANS]
        rule = "off" if off else "refuse"
        return [k.on(self.columns).with_missing(rule) for k in [*kernels, Linear()]]


def _in_own_units(encoding: TableEncoding) -> list[Kernel]:
    """Return Gaussians of columns that keep their spread, where all are numbers without gaps.

    Columns of one unit, such as pixels or concentrations, may matter the more the more they vary.
    """
    own = encoding.in_own_units()
    if own is None:
        return []
    # Root mean squared distance of columns with these standard deviations.
    middle = float(np.sqrt(2.0) * np.linalg.norm(own.spreads))
    gaussians = [RBF(step * middle, columns=own) for step in _GAUSSIANS]
    return [kernel.renamed(f"{kernel}, in own units") for kernel in gaussians]


def _mean_absolute_distance(rows: Floats, weight: Floats | None) -> float:
    """Return the mean of ``|x - z|_1`` over pairs of rows, or 1 if it is 0.

    A column's share is Gini's mean difference, ``2 sum_i p_i x_i (2 F_i - p_i - 1)`` over sorted
    values with probabilities p and their cumulative sums F.
    """
    p = np.full(len(rows), 1.0) if weight is None else weight
    total = 0.0
    for column in rows.T:
        order = np.argsort(column, kind="stable")
        share = p[order] / p.sum()
        total += 2.0 * float((share * column[order]) @ (2.0 * np.cumsum(share) - share - 1.0))
    return total if total > 0 else 1.0


def mixed_ladder(
    *, columns: Columns = None, per_feature: bool = True, missing: str = "fill"
) -> KernelFamily:
    """Offer kernels on numbers, categories, dates and gaps together; the default of estimators.

    The columns are encoded first: numbers are standardised and averaged with their normal scores,
    categories become indicators of their levels, dates a number and the place in the year, week
    and day, and gaps are filled by the median beside an indicator. On the encoded columns together
    stand Laplacian kernels of four widths, Gaussians of three and the linear kernel; where all are
    numbers without gaps, also Gaussians of three widths on columns of their own spread. Each column
    has a Gaussian of its own. Neither units nor outliers decide which columns count. Sparse tables
    are taken as they are, with Gaussians of five widths and the linear kernel.

    Parameters
    ----------
    columns : name, position, list of either, slice, boolean mask, callable or narwhals selector
        None means all columns.
    per_feature : bool
        Whether to add a kernel for each column, where there are 2 to 60 of them.
    missing : {"fill", "off"}
        Gaps are filled with an indicator beside them. With "off", kernels are also zero for rows in
        which all their columns are missing, and learn nothing from these rows.

    Returns
    -------
    family : KernelFamily
        Estimators expand it when they see the data.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [30.0, None, 41.0, 30.0], "town": ["Ulm", "Bonn", "Ulm", "Ulm"]})
    >>> [str(kernel) for kernel in mixed_ladder().expand(X)][-2:]
    ['rbf(width=1) on age', 'rbf(width=1) on town']
    """
    family = MixedLadder(normal_columns(columns, "mixed_ladder"), bool(per_feature))
    return family.with_missing(missing)
