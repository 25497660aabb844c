"""Pairwise constraints: their checks, and pairs drawn from classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from kernelweave._types import Floats, Indices
from kernelweave._validation import read_labels
from kernelweave.errors import InputError, warn

_PER_ROW = 10  # pairs drawn for every row where no number is given; chosen by hand


@dataclass(frozen=True)
class Constraints:
    """Labelled pairs of rows.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Row numbers, the smaller one first.
    labels : ndarray of shape (n_pairs,)
        +1 for same, -1 for different.
    n_samples : int
        Rows of the data they belong to.
    """

    pairs: Indices
    labels: Floats
    n_samples: int


def read_pairs(
    pairs: Any,
    labels: Any,
    y: Any,
    n_samples: int,
    *,
    n_pairs: int | None = None,
    random_state: Any = None,
) -> tuple[Indices, Floats]:
    """Return the given pairs and labels, checked, or pairs drawn from the classes ``y``.

    Without ``pairs``, ``n_pairs`` are drawn, half of them same; None: ten for every row.
    """
    if pairs is not None:
        if labels is None:
            raise InputError("labels: must be +1 or -1 for every pair, got None.")
        return check_pairs(pairs, labels, n_samples)
    if y is None:
        raise InputError(
            "pairs: give pairs with labels, or classes y to draw pairs from; both are None."
        )
    if labels is not None:
        raise InputError("labels: belong to pairs, but pairs is None.")
    count = _PER_ROW * n_samples if n_pairs is None else n_pairs
    return draw_pairs(y, n_samples, count, random_state)


def draw_pairs(y: Any, n_samples: int, n_pairs: int, random_state: Any) -> tuple[Indices, Floats]:
    """Draw as many pairs of rows of one class as of two classes; repeats are kept.

    ``n_pairs`` counts both kinds together; there is one of each at least.
    """
    y = read_labels(y)
    check_consistent_length(np.empty(n_samples), y)
    _, codes = np.unique(y, return_inverse=True)
    if codes.max() == 0 or len(np.unique(codes)) == n_samples:
        raise InputError(
            "y: two classes or more with two rows or more are needed to draw pairs from."
        )
    random = check_random_state(random_state)
    each = n_pairs // 2
    found: dict[bool, Indices] = {True: np.empty((0, 2), int), False: np.empty((0, 2), int)}
    while min(map(len, found.values())) < max(1, each):
        drawn = random.randint(0, n_samples, size=(4 * each + 100, 2))
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        same = codes[drawn[:, 0]] == codes[drawn[:, 1]]
        for kind in found:
            found[kind] = np.concatenate([found[kind], drawn[same == kind]])[: max(1, each)]
    pairs = np.concatenate([found[True], found[False]])
    return pairs, np.repeat([1.0, -1.0], [len(found[True]), len(found[False])])


def check_pairs(pairs: Any, labels: Any, n_samples: int) -> tuple[Indices, Floats]:
    """Return pairs as row numbers of shape (n_pairs, 2), and their labels as +1 or -1."""
    array = check_rows(pairs, n_samples)
    signs = _check_labels(labels, len(array))
    _warn_contradictions(array, signs, n_samples)
    return array, signs


def check_rows(pairs: Any, n_samples: int) -> Indices:
    """Return pairs as row numbers of shape (n_pairs, 2), or refuse them."""
    try:
        array = np.asarray(pairs)
        whole = array.dtype.kind in "iu" or bool(
            (np.isfinite(array) & (array == np.floor(array))).all()
        )
    except (TypeError, ValueError):
        whole = False
    if not whole or array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise InputError(
            "pairs: must be row numbers of shape (n_pairs, 2), one pair or more, got "
            f"{_shown(pairs)}."
        )
    array = array.astype(np.intp)
    out = np.flatnonzero((array < 0).any(axis=1) | (array >= n_samples).any(axis=1))
    if len(out):
        raise InputError(
            f"pairs: row numbers must lie between 0 and {n_samples - 1}, but pair {out[0]} is "
            f"{array[out[0]].tolist()}."
        )
    alone = np.flatnonzero(array[:, 0] == array[:, 1])
    if len(alone):
        raise InputError(
            f"pairs: a pair needs two rows, but pair {alone[0]} is {array[alone[0]].tolist()}."
        )
    return array


def _check_labels(labels: Any, n_pairs: int) -> Floats:
    try:
        signs = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        signs = np.empty(0)
    if signs.shape != (n_pairs,) or not np.isin(signs, (-1.0, 1.0)).all():
        raise InputError(
            f"labels: must be +1 (same) or -1 (different) for each of the {n_pairs} pairs, got "
            f"{_shown(labels)}."
        )
    for sign, word in ((1.0, "same, +1"), (-1.0, "different, -1")):
        if not (signs == sign).any():
            raise InputError(f"labels: no pair is labelled {word}; both kinds are needed.")
    return signs


def _warn_contradictions(pairs: Indices, signs: Floats, n_samples: int) -> None:
    keys = pairs.min(axis=1) * n_samples + pairs.max(axis=1)
    both = len(np.intersect1d(keys[signs > 0], keys[signs < 0]))
    if both:
        warn(f"labels: {both} pair(s) are labelled both +1 and -1; all of them are kept.")


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"an array of shape {shape}" if shape is not None else repr(value)[:80]
