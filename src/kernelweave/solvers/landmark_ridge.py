"""Ridge regression with every kernel and ridge over many rows, which are read in passes.

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
import scipy.linalg

from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices
from kernelweave.banks import Views, large, make_bank
from kernelweave.banks.landmarks import Landmarks
from kernelweave.banks.large import begin, rows_of, settle, spread_rows
from kernelweave.banks.source import Pass, RowSource, fill_block, row_slices
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel, Scaled, Sum
from kernelweave.kernels.base import take

from .loo_ridge import (
    RidgeAverage,
    averaging_weights,
    default_ridges,
    inverse,
    left_out,
    spectra_bytes,
)
from .spectrum import DENSE_ROWS, Directions, distinct_kernels

_TOL = 1e-9  # all landmarks are used
_COPY_ROWS = 500  # rows that tell copies of kernels
_FLAT = 1e-12  # centred trace, relative to the plain one, that is rounding


@dataclass(frozen=True)
class Rotated:
    """The centred features of one kernel along the eigenvectors of their products."""

    item: Landmarks
    root: float  # of the factor that gives the kernel unit mean diagonal
    centre: Floats  # mean of the features
    turn: Floats  # W
    values: Floats  # d

    def rows(self, part: Any) -> Floats:
        """Return ``T`` of some rows."""
        return (self.item.features(part) - self.centre) @ (self.root * self.turn)

    def directions(self) -> Directions:
        """Return how functions are written with the landmarks."""
        length = np.sqrt(self.values)
        solved = scipy.linalg.solve_triangular(
            self.item.triangle, self.turn * length, lower=True, trans="T", check_finite=False
        )
        return Directions(
            values=self.values,
            rows=self.item.index,
            basis=solved / self.root,
            offsets=self.root * (self.centre @ self.turn) * length,
        )


@dataclass(frozen=True)
class LandmarkSpectra:
    """Spectra of kernels by landmarks; eigenvectors are computed as rows are passed over.

    Attributes
    ----------
    source : RowSource
        The rows as the kernels of the spectra see them.
    rotated : tuple of Rotated
        One for each spectrum.
    spectra : tuple of Directions
        The same, as far as functions are concerned.
    targets : ndarray of shape (n_samples, n_outputs)
        Centred targets.
    along : tuple of ndarray of shape (rank, n_outputs)
        These along the features of each kernel, which spares a pass where they are asked for.
    """

    source: RowSource
    rotated: tuple[Rotated, ...]
    spectra: tuple[Directions, ...]
    targets: Floats
    along: tuple[Floats, ...]

    def coordinates(self, V: Floats) -> list[Floats]:
        """Return targets along the eigenvectors of every spectrum."""
        return [
            part / np.sqrt(item.values)[:, None]
            for item, part in zip(self.rotated, self._along(V), strict=True)
        ]

    def _along(self, V: Floats) -> tuple[Floats, ...]:
        if np.array_equal(V, self.targets):
            return self.along
        return self.source.add_up(_sum_targets, V, self.rotated)

    def loo(self, Y: Floats, weights: Floats, ridges: Floats, power: int) -> Floats:
        """Return averaged leave-one-out values; `weights` has a row for each spectrum."""
        along = self._along(Y - Y.mean(axis=0))
        models = Models(self.rotated, along, Y.mean(axis=0), ridges, len(Y))
        return self.source.collect(_average_values, Y, (models, ((power, weights),)))


@dataclass(frozen=True)
class Models:
    """Everything that the leave-one-out values of a row depend on, but for the row."""

    rotated: tuple[Rotated, ...]
    along: tuple[Floats, ...]  # targets along the features of each kernel
    means: Floats  # of the targets
    ridges: Floats
    n_samples: int

    def values(self, k: int, T: Floats, Y: Floats, which: Any, power: int) -> Floats:
        """Return the leave-one-out values of some rows for one kernel and some of the ridges."""
        factors = inverse(self.rotated[k].values, self.ridges[which], power)
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

    They do for as many rows as in other learners, and from where eigenvectors are those of a factor
    anyway (`kernel_spectrum`), if these would not fit in the memory.
    """
    return n >= large.MANY_ROWS or (n > DENSE_ROWS and spectra_bytes(n_spectra, n) > memory)


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

    Returns
    -------
    fitted : ByLandmarks
        The models, and the rows that they are written with.
    """
    n = len(Y)
    ridges = default_ridges(n) if ridges is None else ridges
    report = report or (lambda: None)
    source = rows_of(kernels, X)
    kept, scales = np.arange(len(kernels)), np.ones(len(kernels))
    if drop_copies:
        kept, scales = _distinct(kernels, source)
    items, moments = _measure([kernels[j] for j in kept], X, Y, inner=not joint)
    used = np.flatnonzero(moments.sizes > 0)
    kept = kept[used]
    if not len(kept):
        raise InputError(
            "kernels: every kernel is constant on these rows, so there is nothing to learn from."
        )
    scales[kept] = 1.0 / moments.sizes[used]
    report()
    shares = np.eye(len(kernels))[kept]
    if joint:
        shares = shares.mean(axis=0, keepdims=True)
        mean = Sum(tuple(Scaled(kernels[j], float(scales[j]) / len(kept)) for j in kept))
        items, moments = _measure([mean], X, Y, inner=True)
        roots, used = np.ones(1), np.zeros(1, dtype=np.intp)
    else:
        roots = np.sqrt(scales[kept])
    turned = run_each(
        lambda pair: _rotate(items[pair[0]], moments, pair[0], pair[1], n),
        zip(used, roots, strict=True),
    )
    rotated, along = (tuple(part) for part in zip(*turned, strict=True))
    means = Y.mean(axis=0)
    eigen = LandmarkSpectra(
        rows_of([item.item.kernel for item in rotated], X),
        rotated,
        tuple(item.directions() for item in rotated),
        Y - means,
        along,
    )
    models = Models(rotated, along, means, ridges, n)
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


def _distinct(kernels: Sequence[Kernel], source: RowSource) -> tuple[Indices, Floats]:
    """Return the kernels that are not copies of earlier ones, and scales, by some of the rows."""
    bank = make_bank(kernels, source.take(spread_rows(source.n_samples, _COPY_ROWS)))
    constant = bank.is_constant  # perhaps on these rows only
    if constant.all():
        return np.arange(len(kernels)), bank.scales.copy()
    return np.union1d(np.flatnonzero(constant), distinct_kernels(bank)), bank.scales.copy()


@dataclass(frozen=True)
class _Moments:
    """Sums over all rows, by kernel; features are shifted by centres near their means."""

    centres: tuple[Floats, ...]
    sums: tuple[Floats, ...]  # of shifted features
    inner: tuple[Floats, ...]  # their products
    cross: tuple[Floats, ...]  # their products with targets
    sizes: Floats  # means of the centred diagonals


def _measure(
    kernels: Sequence[Kernel], X: Any, Y: Floats, *, inner: bool
) -> tuple[list[Landmarks], _Moments]:
    """Find landmarks, and sum up features and their products over all rows."""
    source, samples, landmarks = begin(kernels, X, _TOL)
    V = Y - Y.mean(axis=0)
    m = len(kernels)

    def compute(landmarks: Sequence[Landmarks]) -> tuple[_Moments, Pass]:
        # A common offset of the features would take digits of their products.
        centres = tuple(item.features(item.rows).mean(axis=0) for item in landmarks)
        found = source.add_up(_sum_products, V, (tuple(landmarks), centres, inner))
        totals, rest = found[0], found[1:]
        sums, products, cross, worst = (rest[k * m : (k + 1) * m] for k in range(4))
        n = len(Y)
        spread = totals[:, 3] - np.array([float(part @ part) / n for part in sums])
        sizes = (spread + totals[:, 2]) / n
        sizes = np.where(sizes > _FLAT * totals[:, 0] / n, sizes, 0.0)
        moments = _Moments(centres, sums, products, cross, sizes)
        rows = [np.asarray(list(found), dtype=np.intp) for found in worst]
        return moments, Pass(
            totals[:, 0], totals[:, 1], totals[:, 2], totals[:, 0] / n, list(sums), rows
        )

    landmarks, moments, _ = settle(source, samples, landmarks, _TOL, compute)
    return landmarks, moments


def _rotate(
    item: Landmarks, moments: _Moments, k: int, root: float, n: int
) -> tuple[Rotated, Floats]:
    """Return a kernel along its eigenvectors, and the targets along them."""
    shift = moments.sums[k] / n
    C = moments.inner[k] - np.outer(moments.sums[k], shift)
    values, turn = scipy.linalg.eigh(root**2 * C, driver="evd", check_finite=False)
    kept = values > 1e-16 * max(float(values.max(initial=0.0)), 1e-300)
    values, turn = values[kept], np.ascontiguousarray(turn[:, kept])
    # Targets are centred, so that a shift of the features changes nothing.
    along = root * (turn.T @ moments.cross[k])
    return Rotated(item, root, moments.centres[k] + shift, turn, values), along


def _parts(views: Views, k: int, size: int) -> Any:
    """Yield the rows of a kernel in pieces that a processor likes, with their places."""
    for rows in row_slices(views.n_samples, size, float):
        yield rows, take(views[k], rows)


def _sum_products(views: Views, V: Floats, first_row: int, known: Any) -> tuple[Any, ...]:
    """Return what a block adds to the moments of every kernel."""
    landmarks, centres, inner = known
    totals = np.zeros((len(landmarks), 4))
    answers: list[tuple[Any, ...]] = []
    for k, (item, centre) in enumerate(zip(landmarks, centres, strict=True)):
        r = item.size
        sums, cross = np.zeros(r), np.zeros((r, V.shape[1]))
        products = np.zeros((r, r) if inner else (1, 1))
        worst: list[Indices] = []
        for rows, part in _parts(views, k, r):
            Z = np.empty((rows.stop - rows.start, max(1, r)))
            share = np.ones(len(Z))
            found = fill_block(Z, [item], [part], share, first_row + rows.start)[0]
            Z = Z[:, :r] - centre
            totals[k, :3] += found[0][:3]
            totals[k, 3] += float(np.einsum("nr,nr->", Z, Z))
            worst += [found[2]]
            sums += Z.sum(axis=0)
            cross += Z.T @ V[rows]
            if inner:
                products += Z.T @ Z
        answers.append((sums, products, cross, np.concatenate(worst).tolist()))
    return (totals, *(part for kind in zip(*answers, strict=True) for part in kind))


def _sum_targets(
    views: Views, V: Floats, first_row: int, rotated: tuple[Rotated, ...]
) -> tuple[Floats, ...]:
    """Return targets along the features of every kernel."""
    out = []
    for k, item in enumerate(rotated):
        total = np.zeros((len(item.values), V.shape[1]))
        for rows, part in _parts(views, k, item.item.size):
            total += item.rows(part).T @ V[rows]
        out.append(total)
    return tuple(out)


def _square_errors(views: Views, Y: Floats, first_row: int, known: Any) -> tuple[Floats]:
    """Return the squared leave-one-out errors of every power, kernel and ridge."""
    models, powers = known
    total = np.zeros((len(powers), len(models.rotated), len(models.ridges)))
    for k, item in enumerate(models.rotated):
        for rows, part in _parts(views, k, item.item.size):
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
    for k, item in enumerate(models.rotated):
        for rows, part in _parts(views, k, item.item.size):
            T = item.rows(part)
            for w, (power, weights) in enumerate(ways):
                which = np.flatnonzero(weights[k])
                values = models.values(k, T, Y[rows], which, power)
                columns = slice(w * n_outputs, (w + 1) * n_outputs)
                out[rows, columns] += np.tensordot(weights[k, which], values, axes=1)
    return out
