"""Leave-one-out ridge regression with Nystroem features, in passes over the rows.

With centred Nystroem features ``Z`` and ``Z'Z = W diag(d) W'``, the hat matrix is
``1/n + T diag(inverse(d)) T'`` with ``T = Z W``: given W and d, which one pass over the rows
provides, leverages and leave-one-out values of a row need that row alone. So no array of rows times
landmarks is ever held, and rows may be in memory or in the parts of a Dask table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices
from kernelweave.banks import Views, make_bank
from kernelweave.banks.nystroem import build
from kernelweave.banks.nystroem.build import even_rows, rows_of
from kernelweave.banks.row_source import RowSource
from kernelweave.errors import ConstantKernelsError
from kernelweave.kernels import Kernel, Scaled, Sum

from .leave_one_out import (
    LEVERAGE_GAP,
    RidgeAverage,
    averaging_weights,
    default_ridges,
    inverse,
    left_out,
    means_of_others,
    spectra_pieces,
)
from .moments import EigenFeatures, Moments, measure, pieces
from .spectrum import DENSE_ROWS, Directions, distinct_kernels

_COPY_ROWS = 500  # rows on which kernels are compared to find copies
_HELD = 0.5  # share of the memory for the features of a map that is used many times
_NEGLIGIBLE = 1e-18  # weight of a model, of all that sum to one, that is below rounding
_COPY = 1e-5  # relative difference of the quadratic forms over all rows of copies


@dataclass(frozen=True)
class NystroemSpectra:
    """Spectra of Nystroem kernels; eigenvectors are computed in passes over the rows."""

    source: RowSource  # the rows, prepared for the kernels of the spectra
    items: tuple[EigenFeatures, ...]  # one for each spectrum
    spectra: tuple[Directions, ...]  # theirs
    targets: Floats  # (n_samples, n_outputs): centred targets
    # (rank, n_outputs): ``T' targets`` of each kernel, which saves a pass where it is asked for.
    along: tuple[Floats, ...]
    memory: float = np.inf  # bytes for what is held

    def coordinates(self, V: Floats) -> list[Floats]:
        return [
            part / np.sqrt(item.values)[:, None]
            for item, part in zip(self.items, self._along(V), strict=True)
        ]

    def _along(self, V: Floats) -> tuple[Floats, ...]:
        if np.array_equal(V, self.targets):
            return self.along
        return self.source.add_up(_sum_targets, V, self.items)

    def errors(self, Y: Floats, ridges: Floats, power: int) -> Floats:
        (total,) = self.source.add_up(_square_errors, Y, (self._models(Y, ridges), (power,)))
        return np.asarray(total[0] / len(Y))

    def _models(self, Y: Floats, ridges: Floats) -> Models:
        along = self._along(Y - Y.mean(axis=0))
        return Models(self.items, along, Y.mean(axis=0), ridges, len(Y))

    def loo(self, Y: Floats, weights: Floats, ridges: Floats, power: int) -> Floats:
        models = self._models(Y, ridges)
        return self.source.collect(_average_values, Y, (models, ((power, weights),)))

    def loo_map(self, weights: Floats, ridges: Floats, power: int) -> Callable[[Floats], Floats]:
        """Hold the features where memory allows; else make two passes over the rows for a use."""
        weights = np.where(weights > _NEGLIGIBLE, weights, 0.0)
        used = np.flatnonzero(weights.any(axis=1)).tolist()
        size = sum(len(self.items[k].values) for k in used)
        if 8.0 * size * len(self.targets) > _HELD * self.memory:
            return lambda Y: self.loo(Y, weights, ridges, power) - means_of_others(Y)
        items = tuple(self.items[k] if k in used else None for k in range(len(self.items)))
        T = self.source.collect(_features, self.targets, items)
        n, parts, first = len(T), [], 0
        for k in used:
            rank, which = len(self.items[k].values), np.flatnonzero(weights[k])
            own, first = T[:, first : first + rank], first + rank
            factors = inverse(self.items[k].values, ridges[which], power)
            leverages = 1.0 / n + (own * own) @ factors.T
            shares = weights[k, which] / np.maximum(1.0 - leverages, LEVERAGE_GAP)
            parts.append((own, factors, shares, (shares * leverages).sum(axis=1)[:, None]))

        def averaged(Y: Floats) -> Floats:
            means = Y.mean(axis=0)
            out = np.zeros_like(Y)
            for own, factors, shares, kept in parts:
                along = own.T @ (Y - means)
                for factor, share in zip(factors, shares.T, strict=True):
                    out += share[:, None] * (means + own @ (factor[:, None] * along))
                out -= kept * Y
            return out - means_of_others(Y)

        return averaged


@dataclass(frozen=True)
class Models:
    """Everything but the row itself that leave-one-out values of a row depend on."""

    items: tuple[EigenFeatures, ...]
    along: tuple[Floats, ...]  # T' targets of each kernel
    means: Floats  # of the targets
    ridges: Floats
    n_samples: int

    def values(self, k: int, T: Floats, Y: Floats, which: Any, power: int) -> Floats:
        """Return the leave-one-out values of some rows for one kernel and some of the ridges."""
        factors = inverse(self.items[k].values, self.ridges[which], power)
        return left_out(T, factors, self.along[k], self.means, Y, self.n_samples)


@dataclass(frozen=True)
class NystroemRidge:
    """An average of ridge models, with the kernels as written, their scales and the rows."""

    kernels: tuple[Kernel, ...]
    scales: Floats
    average: RidgeAverage
    source: RowSource


def uses_nystroem(n_spectra: int, n: int, memory: float) -> bool:
    """Whether Nystroem features replace eigenvectors of the kernels.

    They do for large n; and above `DENSE_ROWS`, from where eigenvectors are those of a factor
    anyway, if these do not fit in the memory.
    """
    need = sum(spectra_pieces(n_spectra, n).values())
    return n >= build.PASS_ROWS or (n > DENSE_ROWS and need > memory)


def average_ridges_nystroem(
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
) -> NystroemRidge:
    """Do what `average_ridges` does for large n, with Nystroem features.

    Three passes over the rows: products of features, errors of all models, the averaged values;
    `report` is called after each. Leave-one-out values are exact for the kernels that predict,
    those of the landmarks. No kernel may be `Precomputed`, and the result does not depend on where
    the rows are. ``memory`` is that of products of features, in bytes; less memory takes more
    passes.
    """
    n, means = len(Y), Y.mean(axis=0)
    ridges = default_ridges(n) if ridges is None else ridges
    report = report or (lambda: None)
    source = rows_of(kernels, X)
    moments = measure(kernels, source, Y - means, products=not joint, memory=memory)
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
        source_of_mean = source.prepared_for([mean])
        moments = measure([mean], source_of_mean, Y - means, products=True, memory=memory)
        shares, own = shares.mean(axis=0, keepdims=True), np.ones(1)
    report()
    items, along = zip(
        *run_each(lambda pair: pair[0].diagonalise(pair[1], n), zip(moments, own, strict=True)),
        strict=True,
    )
    eigen = NystroemSpectra(
        source.prepared_for([one.item.kernel for one in items]),
        items,
        tuple(one.directions() for one in items),
        Y - means,
        along,
        memory,
    )
    models = Models(items, along, means, ridges, n)
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
    return NystroemRidge(tuple(kernels), scales, average, source)


def _distinct(
    kernels: Sequence[Kernel],
    source: RowSource,
    moments: Sequence[Moments],
    scales: Floats,
    varied: Indices,
) -> Indices:
    """Return those of the varied kernels that are not copies of earlier ones.

    Copies agree on some of the rows, and in their quadratic forms at the targets of all.
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
    views: Views, V: Floats, first_row: int, items: tuple[EigenFeatures, ...]
) -> tuple[Floats, ...]:
    """Return ``T' V`` of every kernel."""
    out = []
    for k, item in enumerate(items):
        total = np.zeros((len(item.values), V.shape[1]))
        for rows, part in pieces(views, k, item.item.size):
            total += item.rows(part).T @ V[rows]
        out.append(total)
    return tuple(out)


def _features(
    views: Views, Y: Floats, first_row: int, items: tuple[EigenFeatures | None, ...]
) -> Floats:
    """Return the features of some kernels side by side."""
    out = []
    for k, item in enumerate(items):
        if item is not None:
            own = np.empty((len(Y), len(item.values)))
            for rows, part in pieces(views, k, item.item.size):
                own[rows] = item.rows(part)
            out.append(own)
    return np.concatenate(out, axis=1)


def _square_errors(views: Views, Y: Floats, first_row: int, known: Any) -> tuple[Floats]:
    """Return the squared leave-one-out errors of every power, kernel and ridge."""
    models, powers = known
    total = np.zeros((len(powers), len(models.items), len(models.ridges)))
    for k, item in enumerate(models.items):
        for rows, part in pieces(views, k, item.item.size):
            T = item.rows(part)
            for p, power in enumerate(powers):
                values = models.values(k, T, Y[rows], slice(None), power)
                total[p, k] += ((Y[rows] - values) ** 2).sum(axis=(1, 2))
    return (total,)


def _average_values(views: Views, Y: Floats, first_row: int, known: Any) -> Floats:
    """Return leave-one-out values averaged with several sets of weights, side by side."""
    models, ways = known
    n_outputs = Y.shape[1]
    out = np.zeros((len(Y), len(ways) * n_outputs))
    for k, item in enumerate(models.items):
        # Most models of most kernels have no weight.
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
