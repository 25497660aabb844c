"""Leave-one-out ridge regression by Nystroem features, in passes over the rows.

With the centred features ``Z`` of a kernel's landmarks and ``Z'Z = W diag(d) W'``, the hat matrix
is ``1/n + T diag(inverse(d)) T'`` with ``T = Z W``: given W and d, which a pass over the rows sums
up, leverages and leave-one-out values of a row need that row alone. So nothing that grows with rows
times landmarks is ever held, and rows can be anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices
from kernelweave.banks import Views, make_bank
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.build import even_rows, rows_of
from kernelweave.banks.row_source import RowSource
from kernelweave.errors import ConstantKernelsError
from kernelweave.kernels import Kernel, Scaled, Sum

from .leave_one_out import (
    RidgeAverage,
    averaging_weights,
    default_ridges,
    inverse,
    left_out,
    spectra_pieces,
)
from .moments import Moments, Turned, measure, pieces
from .spectrum import DENSE_ROWS, Directions, distinct_kernels

_COPY_ROWS = 500  # rows that tell copies of kernels, with
_COPY = 1e-5  # relative difference of quadratic forms of all rows


@dataclass(frozen=True)
class LandmarkSpectra:
    """Spectra of kernels by landmarks; eigenvectors are computed as rows are passed over.

    Attributes
    ----------
    source : RowSource
        The rows as the kernels of the spectra see them.
    turned : tuple of Turned
        One for each spectrum.
    spectra : tuple of Directions
        The same, as far as functions are concerned.
    targets : ndarray of shape (n_samples, n_outputs)
        Centred targets.
    along : tuple of ndarray of shape (rank, n_outputs)
        These along the features of each kernel, which spares a pass where they are asked for.
    """

    source: RowSource
    turned: tuple[Turned, ...]
    spectra: tuple[Directions, ...]
    targets: Floats
    along: tuple[Floats, ...]

    def coordinates(self, V: Floats) -> list[Floats]:
        """Return targets along the eigenvectors of every spectrum."""
        return [
            part / np.sqrt(item.values)[:, None]
            for item, part in zip(self.turned, self._along(V), strict=True)
        ]

    def _along(self, V: Floats) -> tuple[Floats, ...]:
        if np.array_equal(V, self.targets):
            return self.along
        return self.source.add_up(_sum_targets, V, self.turned)

    def loo(self, Y: Floats, weights: Floats, ridges: Floats, power: int) -> Floats:
        """Return averaged leave-one-out values; `weights` has a row for each spectrum."""
        along = self._along(Y - Y.mean(axis=0))
        models = Models(self.turned, along, Y.mean(axis=0), ridges, len(Y))
        return self.source.collect(_average_values, Y, (models, ((power, weights),)))


@dataclass(frozen=True)
class Models:
    """Everything that the leave-one-out values of a row depend on, but for the row."""

    turned: tuple[Turned, ...]
    along: tuple[Floats, ...]  # targets along the features of each kernel
    means: Floats  # of the targets
    ridges: Floats
    n_samples: int

    def values(self, k: int, T: Floats, Y: Floats, which: Any, power: int) -> Floats:
        """Return the leave-one-out values of some rows for one kernel and some of the ridges."""
        factors = inverse(self.turned[k].values, self.ridges[which], power)
        return left_out(T, factors, self.along[k], self.means, Y, self.n_samples)


@dataclass(frozen=True)
class ByLandmarks:
    """Many rows, and an average of ridge models fitted to them.

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels as written.
    scales : ndarray of shape (n_kernels,)
        What normalises them.
    average : RidgeAverage
        The models.
    source : RowSource
        The rows as the kernels see them.
    """

    kernels: tuple[Kernel, ...]
    scales: Floats
    average: RidgeAverage
    source: RowSource


def many_rows(n_spectra: int, n: int, memory: float) -> bool:
    """Tell whether landmarks are to stand for the rows.

    They do for many, and from where eigenvectors are those of a factor anyway (`kernel_spectrum`),
    if these would not fit in the memory.
    """
    need = sum(spectra_pieces(n_spectra, n).values())
    return n >= large.PASS_ROWS or (n > DENSE_ROWS and need > memory)


def average_by_landmarks(
    kernels: Sequence[Kernel],
    X: Any,
    Y: Floats,
    *,
    ridges: Floats | None = None,
    temperature: float = 4.0,
    floor: float = 0.5,
    joint: bool = False,
    power: int = 1,
    drop_copies: bool = True,
    memory: float = np.inf,
    report: Callable[[], None] | None = None,
) -> ByLandmarks:
    """Do what `average_ridges` does over many rows, with landmarks in place of eigenvectors.

    Three passes over the rows: products of features, errors of all models, the averaged values.
    Leave-one-out values are exact for the kernels that predict, those of the landmarks.

    Parameters
    ----------
    kernels : sequence of Kernel
        None of them `Precomputed`.
    X : array, sparse matrix, data frame or PartedTable
        The rows; the result does not depend on where they are.
    Y : ndarray of shape (n_samples, n_outputs)
        Targets.
    ridges, temperature, floor, joint, power, drop_copies, report
        As in `average_ridges`; `report` is called after every pass.
    memory : float
        Bytes that products of features may take; with less, rows are read more often.

    Returns
    -------
    fitted : ByLandmarks
        The models, and the rows that they are written with.
    """
    n, means = len(Y), Y.mean(axis=0)
    ridges = default_ridges(n) if ridges is None else ridges
    report = report or (lambda: None)
    source = rows_of(kernels, X)
    moments = measure(kernels, X, Y - means, products=not joint, memory=memory)
    sizes = np.array([one.size(n) for one in moments])
    kept, scales = np.flatnonzero(sizes), np.ones(len(kernels))
    if not len(kept):
        raise ConstantKernelsError
    scales[kept] = 1.0 / sizes[kept]
    if drop_copies:
        kept = _distinct(kernels, source, moments, scales, kept)
    moments = [moments[int(j)] for j in kept]
    shares, own = np.eye(len(kernels))[kept], scales[kept]
    if joint:
        mean = Sum(tuple(Scaled(kernels[int(j)], float(scales[j]) / len(kept)) for j in kept))
        moments = measure([mean], X, Y - means, products=True, memory=memory)
        shares, own = shares.mean(axis=0, keepdims=True), np.ones(1)
    report()
    turned, along = zip(
        *run_each(lambda pair: pair[0].turned(pair[1], n), zip(moments, own, strict=True)),
        strict=True,
    )
    eigen = LandmarkSpectra(
        rows_of([one.item.kernel for one in turned], X),
        turned,
        tuple(one.directions() for one in turned),
        Y - means,
        along,
    )
    models = Models(turned, along, means, ridges, n)
    powers = (power,) if power == 1 else (power, 1)
    (total,) = eigen.source.add_up(_square_errors, Y, (models, powers))
    report()
    errors = total / n  # of every power, kernel and ridge
    weights = averaging_weights(errors[0], n, temperature, floor)
    soft = averaging_weights(errors[-1], n, temperature, 0.0)
    both = eigen.source.collect(_average_values, Y, (models, ((power, weights), (1, soft))))
    report()
    average = RidgeAverage(
        n_kernels=len(kernels),
        shares=tuple(shares),
        eigen=eigen,
        ridges=ridges,
        errors=errors[0],
        weights=weights,
        scores=both[:, : Y.shape[1]],
        soft_scores=both[:, Y.shape[1] :],
        power=power,
    )
    return ByLandmarks(tuple(kernels), scales, average, source)


def _distinct(
    kernels: Sequence[Kernel],
    source: RowSource,
    moments: Sequence[Moments],
    scales: Floats,
    varied: Indices,
) -> Indices:
    """Return those of the varied kernels that are not copies of earlier ones.

    Copies are told by some of the rows, and by their quadratic form at the targets of all.
    """
    bank = make_bank(kernels, source.take(even_rows(source.n_samples, _COPY_ROWS)))
    if bank.is_constant.all():  # on these rows
        return varied
    apart = np.union1d(np.flatnonzero(bank.is_constant), distinct_kernels(bank))
    quadratic_forms = scales * [float(np.vdot(one.cross, one.cross)) for one in moments]
    kept: list[int] = []
    for j in varied.tolist():
        near = [
            i
            for i in kept
            if abs(quadratic_forms[i] - quadratic_forms[j]) <= _COPY * abs(quadratic_forms[i])
        ]
        if j in apart or not near:
            kept.append(j)
    return np.array(kept)


def _sum_targets(
    views: Views, V: Floats, first_row: int, turned: tuple[Turned, ...]
) -> tuple[Floats, ...]:
    """Return targets along the features of every kernel."""
    out = []
    for k, item in enumerate(turned):
        total = np.zeros((len(item.values), V.shape[1]))
        for rows, part in pieces(views, k, item.item.size):
            total += item.rows(part).T @ V[rows]
        out.append(total)
    return tuple(out)


def _square_errors(views: Views, Y: Floats, first_row: int, known: Any) -> tuple[Floats]:
    """Return the squared leave-one-out errors of every power, kernel and ridge."""
    models, powers = known
    total = np.zeros((len(powers), len(models.turned), len(models.ridges)))
    for k, item in enumerate(models.turned):
        for rows, part in pieces(views, k, item.item.size):
            T = item.rows(part)
            for p, power in enumerate(powers):
                values = models.values(k, T, Y[rows], slice(None), power)
                total[p, k] += ((Y[rows] - values) ** 2).sum(axis=(1, 2))
    return (total,)


def _average_values(views: Views, Y: Floats, first_row: int, known: Any) -> Floats:
    """Return leave-one-out values averaged in several ways, side by side."""
    models, ways = known
    n_outputs = Y.shape[1]
    out = np.zeros((len(Y), len(ways) * n_outputs))
    for k, item in enumerate(models.turned):
        # Of most kernels few models count at all.
        used = [np.flatnonzero(weights[k]) for _, weights in ways]
        if not any(len(which) for which in used):
            continue
        for rows, part in pieces(views, k, item.item.size):
            T = item.rows(part)
            for w, ((power, weights), which) in enumerate(zip(ways, used, strict=True)):
                if not len(which):
                    continue
                values = models.values(k, T, Y[rows], which, power)
                columns = slice(w * n_outputs, (w + 1) * n_outputs)
                out[rows, columns] += np.tensordot(weights[k, which], values, axes=1)
    return out
