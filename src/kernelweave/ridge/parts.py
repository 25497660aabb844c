"""Nystroem features of the rows of a Dask table, computed where its parts are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._dask import PartedTable, add_up, call, run
from kernelweave._types import Floats
from kernelweave.kernels.metric import MetricLaplacian

from .landmarks import Solved, Sums, feature_moments, features_of

_ROWS = 4096  # whose features a worker computes together


@dataclass(frozen=True, eq=False)
class Marks:
    """Landmarks of a kernel: encoded rows, and the triangle of the kernel between them."""

    kernel: MetricLaplacian
    rows: Floats
    triangle: Floats

    def features(self, part: Any) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of the rows of a part and their features."""
        encoded = self.kernel.prepare(part)
        for a in range(0, len(encoded), _ROWS):
            rows = slice(a, a + _ROWS)
            yield rows, features_of(self.kernel.block(self.rows, encoded[rows]), self.triangle)


@dataclass(frozen=True, eq=False)
class PartedFeatures:
    """Features of a Dask table; every pass encodes its parts again and moves no rows."""

    X: PartedTable
    marks: Marks

    def moments(self, Y: Floats, weight: Floats) -> Sums:
        """Sum over all parts, in a fixed order."""
        tasks = self._tasks(_part_moments, Y, weight)
        sums, gram, along, explained = run([add_up(tasks)])[0]
        return sums, gram, along, float(explained)

    def residuals(self, Y: Floats, weight: Floats, solved: Solved) -> Floats:
        """Part by part; only residuals come to this process."""
        return np.concatenate(run(self._tasks(_part_residuals, Y, weight, solved)))

    def _tasks(self, function: Any, Y: Floats, weight: Floats, *known: Any) -> list[Any]:
        shared = call(_together, self.marks, *known)  # sent once, not with every part
        own = [(Y[rows], weight[rows]) for rows in self.X.slices()]
        return self.X.calls(function, own, [shared] * len(own))


def _together(*values: Any) -> tuple[Any, ...]:
    return values


def _part_moments(part: Any, own: tuple[Floats, Floats], shared: tuple[Marks]) -> Sums:
    (Y, weight), (marks,) = own, shared
    m = len(marks.rows)
    sums, gram, along, explained = np.zeros(m), np.zeros((m, m)), np.zeros((m, Y.shape[1])), 0.0
    for rows, Z in marks.features(part):
        a, b, c, d = feature_moments(Z, Y[rows], weight[rows])
        sums, gram, along, explained = sums + a, gram + b, along + c, explained + d
    return sums, gram, along, explained


def _part_residuals(part: Any, own: tuple[Floats, Floats], shared: tuple[Marks, Solved]) -> Floats:
    (Y, weight), (marks, solved) = own, shared
    found = [solved.residuals(Z, Y[rows], weight[rows]) for rows, Z in marks.features(part)]
    return np.concatenate(found)
