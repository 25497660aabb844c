"""Blocks of a weighted kernel between new rows and kept ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.errors import InputError
from kernelweave.kernels import Kernel

from .views import Views, is_plain_gaussian


def cross_block(kernels: Sequence[Kernel], weights: Floats, A: Views, B: Views) -> Floats:
    """Return ``sum_j weights_j k_j(A, B)``.

    Gaussians on the same columns share their distances, as in a bank.

    Parameters
    ----------
    kernels : sequence of Kernel
        As the views were prepared for.
    weights : ndarray of shape (n_kernels,)
        Weights of the kernels as written; zeros are skipped.
    A, B : Views
        Prepared rows.

    Returns
    -------
    block : ndarray of shape (A.n_samples, B.n_samples)
        The combined kernel.
    """
    out = np.zeros((A.n_samples, B.n_samples))
    ladders: dict[Any, list[int]] = {}
    for j in np.flatnonzero(weights).tolist():
        if is_plain_gaussian(kernels[j], A[j], B[j]):
            ladders.setdefault(A.keys[j], []).append(j)
        else:
            out += weights[j] * kernels[j].block(A[j], B[j])
    everything = np.arange(A.n_samples)
    for members in ladders.values():
        distances = squared_distances(A[members[0]], B[members[0]])
        rates = np.array([0.5 / kernels[j].width ** 2 for j in members])  # type: ignore[attr-defined]
        _core.ladder_combine_rows(distances, rates, weights[members], everything, out)
    if not np.isfinite(out).all():
        raise InputError(
            "The learned kernel overflows on these rows; their columns are on another scale than "
            "those of the training data."
        )
    return out


def squared_distances(A: Floats, B: Floats) -> Floats:
    """Return the squared distances between the rows of ``A`` and of ``B``."""
    if not len(A) or not len(B):
        return np.empty((len(A), len(B)))
    if A.shape[1] == 1:  # exact, and cheaper than a product
        difference = A - B.T
        return difference * difference
    centre = B.mean(axis=0)
    A, B = A - centre, B - centre
    out = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2.0 * (A @ B.T)
    return np.asarray(np.maximum(out, 0.0, out=out))
