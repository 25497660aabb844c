"""Pairs as a user gives them, or drawn from classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length

from kernelweave._types import Floats, Indices
from kernelweave._validation import read_labels
from kernelweave.errors import InputError

from .features import check_pairs

_PER_ROW = 10  # pairs drawn for every row where no number is given


def read_pairs(
    pairs: Any,
    labels: Any,
    y: Any,
    n_samples: int,
    *,
    n_pairs: int | None = None,
    random_state: Any = None,
) -> tuple[Indices, Floats]:
    """Return the pairs given with their labels or, where none are given, pairs drawn from classes.

    Parameters
    ----------
    pairs : array of shape (n_pairs, 2) or None
        Row numbers.
    labels : array of shape (n_pairs,) or None
        +1 for same and -1 for different.
    y : array of shape (n_samples,) or None
        Classes, used only where ``pairs`` is None.
    n_samples : int
        Rows.
    n_pairs : int or None
        Pairs to draw, half of them same; None: ten a row.
    random_state : int, RandomState or None
        For the draw.
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

    Parameters
    ----------
    y : array of shape (n_samples,)
        Classes.
    n_samples : int
        Rows that the classes must belong to.
    n_pairs : int
        Pairs of both kinds together; one of each at least.
    random_state : int, RandomState or None
        For the draw.
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
