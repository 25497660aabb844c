"""How training rows are dealt to folds: evenly by class, the same for the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from kernelweave._dask import is_parted
from kernelweave._types import Indices
from kernelweave._validation import is_frame
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.rules import PackedRows
from kernelweave.errors import InputError

from .duplicates import MergedRows, content_keys
from .targets import Targets

_SEED = 0  # of the order in which rows are dealt to folds: the same data give the same folds


@dataclass(frozen=True)
class FoldPlan:
    """How rows are dealt to folds."""

    cv: Any  # None: ``default`` folds
    default: int  # number of folds where nothing is asked for
    # Class labels; None for a regression and for several labels at once.
    names: Sequence[Any] | None = None

    @property
    def is_given(self) -> bool:
        """Whether the caller says which rows are left out together."""
        return self.cv is not None and not isinstance(self.cv, Integral)

    def deal(
        self, rows: MergedRows, targets: Targets, strata: Indices | None, seed: int = _SEED
    ) -> Indices:
        """Return the fold of every merged row.

        ``strata`` are groups of merged rows that are spread evenly over the folds: the classes, or
        combinations of labels. Another ``seed`` deals other folds, unless they are given.
        """
        present = rows.cost.any(axis=1)  # Dask tables keep rows without weight
        codes = None if self.names is None or strata is None else strata[present]
        n = int(present.sum())
        if codes is not None:
            self._refuse_single(codes)
        if self.is_given:
            fold = self._read(rows, targets)
        else:
            most = n if codes is None else int(np.bincount(codes)[np.unique(codes)].min())
            n_folds = min(self.default, most) if self.cv is None else int(self.cv)
            if n_folds > most:
                what = "rows" if codes is None else "rows of the smallest class"
                raise InputError(
                    f"calibration_cv: {n_folds} folds need as many {what}, but there are {most}."
                )
            fold = _deal(rows, n_folds, strata, seed)
        if codes is not None:
            self._refuse_whole_class(fold[present], codes)
        return fold

    def _refuse_single(self, codes: Indices) -> None:
        counts = np.bincount(codes)
        single = np.flatnonzero(counts == 1)
        if len(single):
            raise InputError(
                "calibration: needs two different rows or more of every class, class "
                f"{_shown(self.names, single[0])} has one."
            )

    def _refuse_whole_class(self, fold: Indices, codes: Indices) -> None:
        for code in np.unique(codes):
            folds = np.unique(fold[codes == code])
            if len(folds) == 1:
                raise InputError(
                    f"calibration_cv: fold {folds[0]} holds all rows of class "
                    f"{_shown(self.names, code)}; spread them over two folds or more."
                )

    def _read(self, rows: MergedRows, targets: Targets) -> Indices:
        """Return the folds of a splitter, or of fold numbers by row."""
        n = len(rows.inverse)
        if not hasattr(self.cv, "split") and _is_flat(self.cv):
            numbers = np.asarray(self.cv)
            if len(numbers) != n:
                raise InputError(
                    f"calibration_cv: needs the fold of each of the {n} rows, got {len(numbers)}."
                )
            fold = np.unique(numbers, return_inverse=True)[1]
        else:
            y = targets.Y[:, 0] if targets.Y.shape[1] == 1 else targets.Y.argmax(axis=1)
            fold = np.full(n, -1)
            splits = check_cv(self.cv).split(np.zeros((n, 1)), y)
            for k, (_, test) in enumerate(splits):
                if (fold[test] >= 0).any():
                    fold[:] = -1
                    break
                fold[test] = k
            if (fold < 0).any():
                raise InputError(
                    "calibration_cv: every row must be in the test part of one split, as in "
                    "KFold; others can be given as an array of fold numbers."
                )
        fold = np.unique(fold[rows.index], return_inverse=True)[1]
        if fold.max() < 1:
            raise InputError("calibration_cv: needs two folds or more, got one.")
        return np.asarray(fold)


def _shown(names: Sequence[Any] | None, code: int) -> str:
    label = code if names is None else names[code]
    return repr(label.item() if isinstance(label, np.generic) else label)


def _is_flat(values: Any) -> bool:
    """Tell fold numbers by row from pairs of training and test rows."""
    if isinstance(values, np.ndarray) or hasattr(values, "to_numpy"):
        return np.ndim(values) == 1
    return isinstance(values, list | tuple) and all(np.ndim(item) == 0 for item in values)


def _deal(rows: MergedRows, n_folds: int, strata: Indices | None, seed: int) -> Indices:
    """Deal rows evenly, group by group, in an order that depends on their content alone."""
    n = len(rows.Y)
    order = np.arange(n)
    plain = not (is_frame(rows.X) or is_parted(rows.X) or isinstance(rows.X, PackedRows))
    if plain and n < large.MANY_ROWS:  # frames and long tables: in the given order
        order = np.argsort(content_keys(rows.X, rows.Y), kind="stable")
    order = order[np.random.default_rng(seed).permutation(n)]
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    fold = np.empty(n, dtype=np.intp)
    fold[order] = np.arange(n) % n_folds
    return fold
