"""Build a Nystroem bank: landmarks from a sample, then features in one pass over all rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import _num_samples

from kernelweave._dask import is_parted
from kernelweave._memory import parse_bytes
from kernelweave._types import Floats, Indices
from kernelweave.banks.build import prepare_kernels, scales_for, trial_rank
from kernelweave.banks.row_source import MOST_LANDMARKS as _MOST_LANDMARKS
from kernelweave.banks.row_source import SAMPLE as _SAMPLE
from kernelweave.banks.row_source import LocalRows, Pass, RowSource
from kernelweave.banks.storage import precision
from kernelweave.banks.views import Views
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import Rows

from .bank import NystroemBank
from .blocks import RowBlocks
from .dask import DaskRows
from .landmarks import Landmarks, find_landmarks

# Rows from which on (chosen by hand): kernels of low rank are held as Nystroem
# features; leave-one-out ridge works in passes over the rows; all kernels are held as features.
MANY_ROWS = 3000
PASS_ROWS = 5000
TOO_MANY_ROWS = 20_000
# Between these numbers of rows, kernels of high rank may be computed on demand; kernels without
# fused tiles only where all would be features, up to this many entries of all Gram matrices.
FIRST_ON_DEMAND = 3000
ON_DEMAND_ROWS = 200_000
WHOLE_ROWS = 50_000  # where solvers multiply by the whole matrix
_ON_DEMAND_ENTRIES = 5e9
_ON_DEMAND_BYTES = 256e6  # limits below do not count all workspace of such fits

_MOST_FEATURES = 0.25  # features per row above which a Gram matrix is cheaper
_ROUNDS = 3  # passes at most, each with further landmarks
_MISSED = 1e-10  # mean residual, relative to the mean diagonal, above which landmarks are added

Computed = TypeVar("Computed")


def make_feature_bank(
    kernels: Sequence[Kernel],
    X: Any,
    *,
    normalize: str | None = "trace",
    centred: bool = True,
    tol: float = 1e-3,
    memory_limit: float | str | None = None,
    sample_weight: Floats | None = None,
    passes: bool = False,
    on_demand: bool = False,
    n_landmarks: int | None = None,
) -> NystroemBank | None:
    """Hold kernels as Nystroem features; see `make_bank` for the parameters.

    With ``passes``, there must be memory for passes over the rows by other landmarks, too. Returns
    None where Gram matrices are better: for few rows, and for kernels of high rank while their
    matrices fit in memory, or if they may be computed ``on_demand``. With ``n_landmarks``, kernels
    of high rank are approximated by that many landmarks each, from `MANY_ROWS` rows on.
    """
    if _all_grams(kernels, X, normalize):
        return None
    kernels = prepare_kernels(kernels, normalize)
    source = rows_of(kernels, X)
    n = source.n_samples
    # A few rows show which kernels have a high rank; no landmarks are searched for these.
    exact = n_landmarks is None
    if exact and (on_demand or n < TOO_MANY_ROWS) and _some_high_rank(kernels, source, tol):
        return None
    most = _MOST_LANDMARKS if n_landmarks is None else n_landmarks
    samples, landmarks = begin(kernels, source, tol, most)
    complete = all(item.complete for item in landmarks)
    low = sum(item.rank for item in landmarks) <= _MOST_FEATURES * n
    few = n < TOO_MANY_ROWS and not (complete and low)
    if exact and (few or (on_demand and not complete)):
        return None
    share = np.full(n, 1.0 / n) if sample_weight is None else sample_weight / sample_weight.sum()
    dtype = precision(np.empty(0), tol)

    def compute(landmarks: Sequence[Landmarks]) -> tuple[RowBlocks, Pass]:
        return source.features(landmarks, share, dtype, memory_limit, passes)

    found, blocks, measured = settle(source, samples, landmarks, tol, compute)
    if dtype != precision(measured.diagonals, tol):
        dtype = np.float64
        found, blocks, measured = settle(source, samples, landmarks, tol, compute)
    means = np.array([float(mean @ mean) for mean in measured.means])
    weighted = measured.weighted
    centred_means = np.where(weighted - means > 1e-12 * weighted, weighted - means, 0.0)
    sizes = {"trace": centred_means if centred else weighted, "diagonal": weighted}
    return NystroemBank(
        landmarks=tuple(found),
        blocks=blocks,
        scales=scales_for(kernels, sizes.get(normalize or "")),
        diagonals=measured.diagonals,
        centred=n * centred_means if sample_weight is None else measured.diagonals,
        kept=measured.kept,
        left=measured.left,
        source=source,
        unit=0.5 * float(np.finfo(dtype).eps),
    )


def count_features(
    kernels: Sequence[Kernel], X: Any, *, normalize: str | None = "trace", tol: float = 1e-3
) -> list[int] | None:
    """Estimate the number of Nystroem features of each kernel in `make_feature_bank`.

    An inner solve takes time proportional to n times the square of their sum. A kernel that would
    be held as a Gram matrix counts as n; None where all would be.
    """
    if _all_grams(kernels, X, normalize):
        return None
    kernels = prepare_kernels(kernels, normalize)
    n, (_, landmarks) = _num_samples(X), begin(kernels, rows_of(kernels, X), tol)
    return [k.rank if k.complete or n >= TOO_MANY_ROWS else n for k in landmarks]


def may_compute(
    kernels: Sequence[Kernel],
    X: Any,
    normalize: str | None,
    memory_limit: float | str | None,
    *,
    whole: bool = False,
    features: bool = True,
) -> bool:
    """Whether n is so large that kernels of high rank are better computed on demand.

    With ``whole``, a solver multiplies by the whole matrix in every step. Without ``features``,
    kernels of low rank are held as factors by a bank that is not on demand.
    """
    n = _num_samples(X)
    if parse_bytes(memory_limit) < _ON_DEMAND_BYTES:
        return False
    first, last = min(FIRST_ON_DEMAND, TOO_MANY_ROWS), WHOLE_ROWS if whole else ON_DEMAND_ROWS
    if not first <= n <= last or is_parted(X) or any(k.is_precomputed for k in kernels):
        return False
    kernels = prepare_kernels(kernels, normalize)
    slow = [kernel for kernel in kernels if kernel.decay is None]
    if n >= TOO_MANY_ROWS:
        return len(slow) * float(n) ** 2 <= _ON_DEMAND_ENTRIES
    if not features and not _some_high_rank(kernels, rows_of(kernels, X), tol=1e-3):
        return False
    return not slow or not _some_high_rank(slow, rows_of(slow, X), tol=1e-3)


def _some_high_rank(kernels: Sequence[Kernel], source: RowSource, tol: float) -> bool:
    """Whether the rank of some kernel exceeds the number of landmarks on a few rows already."""
    some = source.take(even_rows(source.n_samples, 2 * _MOST_LANDMARKS))
    every = np.arange(some.n_samples)
    wide = sorted(_narrowest(kernels), key=lambda j: -_width(some[j]))  # most likely first
    return any(trial_rank(kernels[j], some[j], every, 1e-4 * tol) is None for j in wide)


def _narrowest(kernels: Sequence[Kernel]) -> list[int]:
    """Return the positions of the kernels, of several widths on the same rows the smallest alone.

    The rank of a Gaussian or Laplacian falls as its width grows.
    """
    found: dict[Hashable, tuple[float, int]] = {}
    for j, kernel in enumerate(kernels):
        decay = kernel.decay
        key = j if decay is None else (decay.distance, kernel.view)
        width = 0.0 if decay is None else decay.width
        found[key] = min(found.get(key, (width, j)), (width, j))
    return [j for _, j in found.values()]


def _width(rows: Rows) -> int:
    """Return the number of prepared columns; sums and products have those of their parts."""
    return sum(map(_width, rows)) if isinstance(rows, tuple) else int(rows.shape[1])


def _all_grams(kernels: Sequence[Kernel], X: Any, normalize: str | None) -> bool:
    """Whether the rows are too few, or the kernels not suited, for Nystroem features."""
    few = _num_samples(X) < MANY_ROWS
    return few or normalize == "radius" or any(k.is_precomputed for k in kernels)


def begin(
    kernels: Sequence[Kernel], source: RowSource, tol: float, most: int | None = None
) -> tuple[list[Indices], list[Landmarks]]:
    """Return a sample of the rows for every kernel, and at most so many landmarks found in it."""
    most = most or _MOST_LANDMARKS
    n_rows = max(_SAMPLE, _SAMPLE // _MOST_LANDMARKS * most)
    samples = [even_rows(source.n_samples, n_rows)] * len(kernels)
    which = range(len(kernels))
    return samples, _find(source, kernels, which, samples, **_options(tol, most))


def rows_of(kernels: Sequence[Kernel], X: Any) -> RowSource:
    """Return the rows of a table, prepared for kernels, in memory or in the parts of Dask."""
    if is_parted(X):
        return DaskRows(kernels, X)
    return LocalRows(Views.of(kernels, X), X.shape[1])


def even_rows(n: int, most: int) -> Indices:
    """Return rows spread evenly over a table."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))


def settle(
    source: RowSource,
    samples: list[Indices],
    landmarks: list[Landmarks],
    tol: float,
    compute: Callable[[Sequence[Landmarks]], tuple[Computed, Pass]],
    missed: float = _MISSED,
) -> tuple[list[Landmarks], Computed, Pass]:
    """Pass over all rows, and again with further landmarks where the residuals are too large.

    ``samples``, ``landmarks`` and ``tol`` are those of `begin`; ``compute`` is one pass with given
    landmarks, and ``missed`` the mean residual, relative to the mean diagonal, above which
    landmarks are added. Landmarks, result and `Pass` of the last pass are returned.
    """
    samples, landmarks = list(samples), list(landmarks)
    kernels = [item.kernel for item in landmarks]
    for left_over in reversed(range(_ROUNDS)):
        computed, measured = compute(landmarks)
        over = measured.left > missed * measured.diagonals
        again = [j for j, item in enumerate(landmarks) if item.complete and over[j]]
        if not again:
            break
        if not left_over:  # the result belongs to these landmarks
            for j in again:
                landmarks[j] = replace(landmarks[j], complete=False)
            break
        # Rows with the largest residuals are the best new candidates.
        for j in again:
            samples[j] = np.union1d(samples[j], measured.worst[j])
        found = _find(source, kernels, again, [samples[j] for j in again], **_options(tol))
        for j, item in zip(again, found, strict=True):
            landmarks[j] = item
    return landmarks, computed, measured


def _options(tol: float, most: int | None = None) -> dict[str, Any]:
    return {"tol": 1e-4 * tol, "max_rank": most or _MOST_LANDMARKS}


def _find(
    source: RowSource,
    kernels: Sequence[Kernel],
    which: Sequence[int],
    samples: Sequence[Indices],
    **options: Any,
) -> list[Landmarks]:
    """Return landmarks of some kernels among the rows of their samples."""
    rows = functools.reduce(np.union1d, samples)
    places = [np.searchsorted(rows, sample) for sample in samples]
    found = find_landmarks(kernels, which, source.take(rows), places, **options)
    return [replace(item, index=rows[item.index]) for item in found]
