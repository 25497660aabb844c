"""Kernels that could each do the work alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kernelweave._types import Floats

from .base import Kernel, KernelFamily, Rows, is_sparse
from .discrete import Overlap
from .expression import Product
from .gaussian import RBF, Additive
from .ladders import ColumnFamily
from .spread import column_deviations, typical_distance
from .table import Columns, normal_columns, read_table
from .vector import Linear

# In units of the typical distance; with steps of sqrt(2) a Gaussian is the square of the next.
_WIDTHS = (0.25, 0.5**1.5, 0.5, 0.5**0.5, 1.0, 2**0.5, 2.0, 4.0)
_PRODUCT_WIDTHS = (0.5, 1.0, 2.0)
_COLUMN_WIDTHS = (0.5, 1.0, 2.0)  # in units of a column's standard deviation
_POWERS = (1, 2, 4, 8)


@dataclass(frozen=True)
class CompleteLadder(ColumnFamily):
    """What `complete_ladder` returns."""

    label: ClassVar[str] = "complete_ladder"

    columns: Columns
    missing: str = "refuse"

    def expand(self, X: Any, sample_weight: Floats | None = None) -> list[Kernel]:
        """Write out the kernels for ``X``."""
        kernels = self._refusing(X, sample_weight)
        return [kernel.with_missing(self.missing) for kernel in kernels]

    def _refusing(self, X: Any, sample_weight: Floats | None) -> list[Kernel]:
        """Return the kernels without their rule for missing values."""
        table = read_table(X, str(self))
        picked, numeric = table.positions(self.columns, str(self)), table.numeric()
        numbers = [i for i in picked if numeric[i]]
        others = [i for i in picked if not numeric[i]]
        if not numbers:
            return _of_categories(self.columns if self.columns is None else table.keys(others))
        everything = numbers == list(range(table.n_columns))
        columns = None if everything else table.keys(numbers)
        rows = table.numbers(columns, str(self), gaps=self.encodes_gaps)
        middle = typical_distance(rows, sample_weight, table.keys(numbers))
        gaussians = [RBF(step * middle, columns=columns) for step in _WIDTHS]
        if not others:
            return _of_numbers(rows, columns, gaussians, sample_weight)
        return _of_both(rows, columns, gaussians, table.keys(others), sample_weight)


def _of_numbers(
    rows: Rows, columns: Columns, gaussians: list[RBF], weight: Floats | None
) -> list[Kernel]:
    return [*gaussians, *_additive(rows, columns, weight), Linear(columns=columns)]


def _of_categories(columns: Columns) -> list[Kernel]:
    overlap = Overlap(columns=columns)
    return [overlap if power == 1 else Product((overlap,) * power) for power in _POWERS]


def _of_both(
    rows: Rows,
    columns: Columns,
    gaussians: list[RBF],
    others: Sequence[str | int],
    weight: Floats | None,
) -> list[Kernel]:
    """Let every kernel see numbers and categories, in shares that follow the number of columns."""
    overlap = Overlap(columns=list(others))
    n_numbers, n_others = rows.shape[1], len(others)
    chosen = [gaussians[_WIDTHS.index(width)] for width in _PRODUCT_WIDTHS]
    return [
        *(n_numbers * kernel + n_others * overlap for kernel in gaussians),
        *(kernel * overlap for kernel in chosen),
        *(n_numbers * kernel + n_others * overlap for kernel in _additive(rows, columns, weight)),
        Linear(columns=columns) + n_others * overlap,
    ]


def _additive(rows: Rows, columns: Columns, weight: Floats | None) -> list[Kernel]:
    if is_sparse(rows):  # usually too many columns to take one by one, and Linear is additive too
        return []
    deviations = column_deviations(rows, weight)
    return [
        Additive(tuple((step * deviations).tolist()), columns=columns) for step in _COLUMN_WIDTHS
    ]


def complete_ladder(*, columns: Columns = None, missing: str = "refuse") -> KernelFamily:
    """Offer kernels each of which sees all columns and could classify alone.

    Gaussians of eight widths (a quarter to four times the root mean squared distance between two
    rows), additive kernels of three widths (half, one and two standard deviations of each column),
    and the linear kernel. Categories come in by `Overlap`, which is added to each of these and
    multiplied by three of the Gaussians; where there is nothing else, `Overlap` and its powers 2, 4
    and 8 are offered. Sparse rows get no additive kernels.

    Columns are taken as they are: put scikit-learn's `StandardScaler` in front, or a column with
    large numbers decides the Gaussians and the linear kernel.

    Parameters
    ----------
    columns : name, position, list of either, slice, boolean mask, callable or narwhals selector
        None means all columns.
    missing : {"refuse", "off", "fill", "expected"}
        The rule for missing values; see the guide "Some of my data are missing".

    Returns
    -------
    family : KernelFamily
        Estimators expand it when they see the data.

    Examples
    --------
    >>> kernels = complete_ladder().expand([[0.0, 1.0], [2.0, 4.0], [1.0, 0.0]])
    >>> len(kernels), str(kernels[-1])
    (12, 'linear')
    """
    return CompleteLadder(normal_columns(columns, "complete_ladder"), RBF(missing=missing).missing)
