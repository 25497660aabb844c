"""Build a bank of features over many rows: landmarks from a sample, then one pass over all rows."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from kernelweave._threads import run_each
from kernelweave._types import Floats, Indices, Stored
from kernelweave.kernels import Kernel, Precomputed
from kernelweave.kernels.base import take

from .blocks import LocalBlocks
from .build import parse_bytes, prepare_kernels, scales_for
from .features import FeatureBank
from .landmarks import Landmarks, find_landmarks
from .views import Views

MANY_ROWS = 5000  # from here on kernels of low rank are held as features
TOO_MANY_ROWS = 20_000  # from here on others are, too, by landmarks that leave something out

_MOST_FEATURES = 0.25  # a row, for a Gram matrix to be the dearer one
_SAMPLE = 4096  # rows among which landmarks are looked for first
_MOST_LANDMARKS = 500  # of a kernel whose rank is not low
_ROUNDS = 3  # of adding rows that the sample did not stand for
_WORST = 32  # such rows taken of every block and kernel
_MISSED = 1e-10  # mean residual, relative to the mean diagonal, that calls for them
_BLOCK_BYTES = 3.2e7


@dataclass(frozen=True)
class _Pass:
    """What one pass over the rows measured, by kernel."""

    diagonals: Floats  # traces
    kept: Floats  # what the features kept leave out of them
    left: Floats  # what all landmarks together leave out
    means: list[Floats]  # weighted means of the features kept
    worst: list[Indices]  # rows that all landmarks together serve worst


def make_feature_bank(
    kernels: Sequence[Kernel],
    X: Any,
    *,
    normalize: str | None = "trace",
    centred: bool = True,
    tol: float = 1e-3,
    memory_limit: float | str | None = None,
    sample_weight: Floats | None = None,
) -> FeatureBank | None:
    """Hold kernels over many rows as features; see `make_bank` for the parameters.

    Returns
    -------
    bank : FeatureBank or None
        None where a Gram matrix serves better: for few rows, and for kernels of high rank while
        their matrices are of a bearable size.
    """
    if _all_grams(kernels, X, normalize):
        return None
    kernels = prepare_kernels(kernels, normalize)
    views, samples, landmarks = _begin(kernels, X, tol)
    n = views.n_samples
    everything = list(range(len(kernels)))
    complete = all(item.complete for item in landmarks)
    low = sum(item.rank for item in landmarks) <= _MOST_FEATURES * n
    if n < TOO_MANY_ROWS and not (complete and low):
        return None
    share = np.full(n, 1.0 / n) if sample_weight is None else sample_weight / sample_weight.sum()
    dtype = np.float32 if tol >= 1e-5 else np.float64
    for left_over in reversed(range(_ROUNDS)):
        blocks, measured = _features(landmarks, views, share, dtype, memory_limit)
        missed = [j for j in everything if landmarks[j].complete and _misses(measured, j)]
        if not missed:
            break
        if not left_over:  # features stay with the landmarks they were computed from
            for j in missed:
                landmarks[j] = replace(landmarks[j], complete=False)
            break
        # The sample missed something; the rows that show it are the best new candidates.
        for j in missed:
            samples[j] = np.union1d(samples[j], measured.worst[j])
        again = find_landmarks(
            kernels, missed, views, [samples[j] for j in missed], **_options(tol)
        )
        for j, item in zip(missed, again, strict=True):
            landmarks[j] = item
    means = np.array([float(mean @ mean) for mean in measured.means])
    weighted = measured.diagonals / n  # the mean diagonal, by weight where rows have any
    if sample_weight is not None:
        weighted = np.array([share @ k.diagonal(views[j]) for j, k in enumerate(kernels)])
    centred_means = np.where(weighted - means > 1e-12 * weighted, weighted - means, 0.0)
    sizes = {"trace": centred_means if centred else weighted, "diagonal": weighted}
    return FeatureBank(
        landmarks=tuple(landmarks),
        blocks=blocks,
        scales=scales_for(kernels, sizes.get(normalize or "")),
        diagonals=measured.diagonals,
        centred=n * centred_means if sample_weight is None else measured.diagonals,
        kept=measured.kept,
        left=measured.left,
        views=views,
    )


def count_features(
    kernels: Sequence[Kernel], X: Any, *, normalize: str | None = "trace", tol: float = 1e-3
) -> list[int] | None:
    """Tell how many features of a row each kernel will have in `make_feature_bank`, about.

    A machine takes time proportional to the number of rows and the square of their sum.

    Returns
    -------
    n_features : list of int or None
        As many as rows for a kernel that would be held as a Gram matrix; None where all would be.
    """
    if _all_grams(kernels, X, normalize):
        return None
    views, _, landmarks = _begin(prepare_kernels(kernels, normalize), X, tol)
    n = views.n_samples
    return [k.rank if k.complete or n >= TOO_MANY_ROWS else n for k in landmarks]


def _all_grams(kernels: Sequence[Kernel], X: Any, normalize: str | None) -> bool:
    """Tell whether features are not for these rows or kernels."""
    few = _num_samples(X) < MANY_ROWS
    return few or normalize == "radius" or any(isinstance(k, Precomputed) for k in kernels)


def _begin(
    kernels: Sequence[Kernel], X: Any, tol: float
) -> tuple[Views, list[Indices], list[Landmarks]]:
    """Find landmarks in a sample of the rows."""
    views = Views.of(kernels, X)
    n = views.n_samples
    sample = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
    samples = [sample] * len(kernels)
    which = range(len(kernels))
    return views, samples, find_landmarks(kernels, which, views, samples, **_options(tol))


def _options(tol: float) -> dict[str, Any]:
    return {"tol": 1e-4 * tol, "max_rank": _MOST_LANDMARKS}


def _misses(measured: _Pass, j: int) -> bool:
    return bool(measured.left[j] > _MISSED * measured.diagonals[j])


def _features(
    landmarks: Sequence[Landmarks],
    views: Views,
    share: Floats,
    dtype: Any,
    memory_limit: float | str | None,
) -> tuple[LocalBlocks, _Pass]:
    """Compute all features, and what they leave out, in one pass over the rows."""
    n, rank = views.n_samples, max(1, sum(item.rank for item in landmarks))
    width = np.dtype(dtype).itemsize * rank
    at_a_time = int(max(1, min(n, _BLOCK_BYTES // width)))
    store = _allocate(n, rank, dtype, memory_limit)
    slices = [slice(a, min(a + at_a_time, n)) for a in range(0, n, at_a_time)]

    def fill(rows: slice) -> list[tuple[Floats, Floats, Indices]]:
        out, first = [], 0
        for j, item in enumerate(landmarks):
            part = take(views[j], rows)
            features = item.features(part)
            last = first + item.rank
            store[rows, first:last] = features[:, : item.rank]
            diagonal = item.kernel.diagonal(part)
            squares = features * features
            kept = np.maximum(diagonal - squares[:, : item.rank].sum(axis=1), 0.0)
            left = np.maximum(kept - squares[:, item.rank :].sum(axis=1), 0.0)
            worst = rows.start + np.argsort(-left, kind="stable")[:_WORST]
            sums = np.array([diagonal.sum(), kept.sum(), left.sum()])
            out.append((sums, share[rows] @ features[:, : item.rank], worst))
            first = last
        return out

    answers = run_each(fill, slices)
    sums = np.array([[part[0] for part in answer] for answer in answers]).sum(axis=0)
    means = [sum(answer[j][1] for answer in answers) for j in range(len(landmarks))]
    worst = [np.concatenate([answer[j][2] for answer in answers]) for j in range(len(landmarks))]
    blocks = LocalBlocks([store[rows] for rows in slices])
    return blocks, _Pass(sums[:, 0], sums[:, 1], sums[:, 2], means, worst)


def _allocate(n: int, rank: int, dtype: Any, memory_limit: float | str | None) -> Stored:
    """Return an array in memory, or in a file without a name where the memory is not enough."""
    needed = float(n) * rank * np.dtype(dtype).itemsize
    if needed <= parse_bytes(memory_limit):
        return np.empty((n, rank), dtype=dtype)
    with tempfile.TemporaryFile() as file:  # the map keeps it until it goes itself
        return np.memmap(file, dtype=dtype, mode="w+", shape=(n, rank))
