"""Blocks of a weighted kernel between new rows and kept ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel
from kernelweave.kernels.distances import squared_distances

from .views import Views, gaussian_rate

_FUSED_COLUMNS = 64  # up to which tiles beat distances by a matrix product; by hand
_FUSED_OUTPUTS = 16  # up to which tiles are multiplied at once, not joined to a block; by hand


def cross_block(
    kernels: Sequence[Kernel], weights: Floats, A: Views, B: Views, V: Floats | None = None
) -> Floats:
    """Return ``sum_j weights_j k_j(A, B)``, or its product with ``V``.

    Gaussians on the same columns share their distances, as in a bank. Products with Gaussians and
    Laplacians are summed tile by tile; of few outputs, no block of theirs is formed.

    Parameters
    ----------
    kernels : sequence of Kernel
        As the views were prepared for.
    weights : ndarray of shape (n_kernels,)
        Weights of the kernels as written; zeros are skipped.
    A, B : Views
        Prepared rows.
    V : ndarray of shape (B.n_samples, n_outputs), optional
        Coefficients of the rows of ``B``.

    Returns
    -------
    block : ndarray of shape (A.n_samples, B.n_samples), or (A.n_samples, n_outputs)
        The combined kernel, or its product.
    """
    which = np.flatnonzero(weights).tolist()
    if V is not None:
        rest, out = _fused_products(kernels, weights, which, A, B, V)
        if rest:
            left = np.zeros(len(weights))
            left[rest] = weights[rest]
            out += cross_block(kernels, left, A, B) @ V
        return _finite(out)
    out = np.zeros((A.n_samples, B.n_samples))
    ladders, others = _split(kernels, which, A, B)
    for j in others:
        out += weights[j] * kernels[j].block(A[j], B[j])
    everything = np.arange(A.n_samples)
    for members in ladders:
        distances = squared_distances(A[members[0]], B[members[0]])
        rates = np.array([gaussian_rate(kernels[j]) for j in members])
        _core.ladder_combine_rows(distances, rates, weights[members], everything, out)
    return _finite(out)


def _fused_products(
    kernels: Sequence[Kernel], weights: Floats, which: list[int], A: Views, B: Views, V: Floats
) -> tuple[list[int], Floats]:
    """Return the kernels without fused tiles, and the product with the sum of the others."""
    rest, out = [], np.zeros((A.n_samples, V.shape[1]))
    groups: dict[Any, list[tuple[int, float]]] = {}
    for j in which:
        decay = kernels[j].decay
        moderate = decay is not None and decay.has_moderate_width
        moderate = moderate and A.is_moderate(j) and B.is_moderate(j)
        if decay is None or not moderate or A[j].shape[1] > _FUSED_COLUMNS:
            rest.append(j)
        else:
            groups.setdefault((A.keys[j], decay.distance == "squared"), []).append((j, decay.rate))
    rows = np.arange(A.n_samples)
    points = A.n_samples + np.arange(B.n_samples)
    for (_, squared), members in groups.items():
        ids, rates = (np.array(part) for part in zip(*members, strict=True))
        table = np.concatenate([A[ids[0]], B[ids[0]]])
        if V.shape[1] <= _FUSED_OUTPUTS:
            out += _core.tile_products(table, squared, rates, weights[ids], rows, points, V)
            continue
        block = np.empty((A.n_samples, B.n_samples))
        _core.tile_sums(table, squared, rates, weights[ids], rows, points, False, block)
        out += block @ V
    return rest, out


def cross_products(kernels: Sequence[Kernel], dual_coef: Floats, A: Views, B: Views) -> Floats:
    """Return ``sum_j k_j(A, B) @ coef_j.T``, each kernel with coefficients of its own.

    Parameters
    ----------
    kernels : sequence of Kernel
        As the views were prepared for.
    dual_coef : ndarray of shape (n_kernels, n_outputs, B.n_samples)
        Coefficients of the kernels as written.
    A, B : Views
        Prepared rows.

    Returns
    -------
    values : ndarray of shape (A.n_samples, n_outputs)
        Sums over all kernels and rows of ``B``.
    """
    out = np.zeros((A.n_samples, dual_coef.shape[1]))
    ladders, others = _split(kernels, list(range(len(kernels))), A, B)
    for j in others:
        out += kernels[j].block(A[j], B[j]) @ dual_coef[j].T
    for members in ladders:
        distances = squared_distances(A[members[0]], B[members[0]])
        block = np.empty_like(distances)
        for j in members:
            np.multiply(distances, -gaussian_rate(kernels[j]), out=block)
            out += np.exp(block, out=block) @ dual_coef[j].T
    return _finite(out)


def _split(
    kernels: Sequence[Kernel], which: list[int], A: Views, B: Views
) -> tuple[list[list[int]], list[int]]:
    """Return Gaussians by the columns they share, and the other kernels."""
    ladders: dict[Any, list[int]] = {}
    others = []
    for j in which:
        if A.is_plain_gaussian(kernels[j], j) and B.is_plain_gaussian(kernels[j], j):
            ladders.setdefault(A.keys[j], []).append(j)
        else:
            others.append(j)
    return list(ladders.values()), others


def _finite(out: Floats) -> Floats:
    if not np.isfinite(out).all():
        raise InputError(
            "The learned kernel overflows on these rows; their columns are on another scale than "
            "those of the training data."
        )
    return out
