"""Tables of rows to be explained: columns of the model, rows that are taken, merged and mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from kernelweave._dask import gather
from kernelweave._summary import listed
from kernelweave._types import Bools, Floats, Indices
from kernelweave._validation import is_frame, pick_rows
from kernelweave.banks.nystroem.build import even_rows
from kernelweave.errors import InputError
from kernelweave.kernels.table import is_sparse, read_table


def model_columns(first: Any, X: Any, argument: str = "X") -> Any:
    """Return rows with the columns that a model was fitted to, in their order.

    Parameters
    ----------
    first : estimator
        The first step of a pipeline, or the estimator.
    X : table
        With these columns, and possibly others where it has names.
    argument : str
        How messages call it.
    """
    X = gather(X)
    X = X if hasattr(X, "shape") else read_table(X, argument).body
    names = getattr(first, "feature_names_in_", None)
    if is_frame(X) and names is not None:
        frame = nw.from_native(X, eager_only=True)
        if lost := [name for name in names if name not in frame.columns]:
            raise InputError(f"{argument}: lacks {listed(map(repr, lost))}, which the model needs.")
        return nw.to_native(frame.select(list(names)))
    expected = getattr(first, "n_features_in_", None)
    if expected is not None and np.ndim(X) == 2 and X.shape[1] != expected:
        raise InputError(
            f"{argument}: has {X.shape[1]} columns, but the model was fitted to {expected}."
        )
    return X


def two_samples(n: int, n_rows: int, n_background: int) -> tuple[Indices, Indices]:
    """Return rows to explain and rows to compare with, both spread evenly over ``n`` rows.

    They have no row in common, where there are enough: standard errors take them for two samples.
    """
    rows = even_rows(n, n_rows)
    others = np.setdiff1d(np.arange(n), rows)
    if len(others) < n_background:
        return rows, even_rows(n, n_background)
    return rows, others[even_rows(len(others), n_background)]


def cells(X: Any, columns: Sequence[int]) -> NDArray[Any]:
    """Return some columns as they are: floats where all are numbers, else objects."""
    table = read_table(X, "X")
    if table.is_sparse:
        return np.asarray(table.body[:, list(columns)].toarray())
    if table.names is None:
        return np.asarray(table.body[:, list(columns)])
    numeric = table.numeric()
    parts = [table.body[:, int(c)] for c in columns]
    if all(numeric[c] for c in columns) and not any(part.null_count() for part in parts):
        return np.column_stack([part.to_numpy().astype(np.float64) for part in parts])
    out = np.empty((table.body.shape[0], len(parts)), dtype=object)
    for j, part in enumerate(parts):
        out[:, j] = part.to_list()
    return out


def merge_equal(Z: Any) -> tuple[Any, Floats]:
    """Return the distinct rows of an array in the order of their first occurrence, with shares.

    Frames and sparse tables are returned as they are.
    """
    n = Z.shape[0]
    if is_frame(Z) or is_sparse(Z) or Z.dtype.kind not in "fiub":
        return Z, np.full(n, 1.0 / n)
    _, first, inverse = np.unique(Z, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(first), dtype=np.intp)
    place[order] = np.arange(len(first))
    counts = np.bincount(place[inverse.ravel()], minlength=len(first))
    return Z[first[order]], counts / n


class Mixer:
    """Makes rows of which some columns come from one table and the others from another.

    Parameters
    ----------
    X, Z : tables
        With the same columns.
    """

    def __init__(self, X: Any, Z: Any) -> None:
        self.n = X.shape[0]
        self.stacked = _stack(X, Z)

    def rows(self, x: Indices, z: Indices, from_x: Bools) -> Any:
        """Return rows whose column c is that of ``X[x]`` where ``from_x[:, c]``, else of ``Z[z]``.

        Parameters
        ----------
        x, z : ndarray of int
            Rows of both tables.
        from_x : ndarray of shape (len(x), n_columns)
            Which cells come from X.
        """
        stacked = self.stacked
        if is_sparse(stacked):
            left = stacked[x].multiply(from_x)
            return sp.csr_array(left + stacked[self.n + z].multiply(~from_x))
        index = np.where(from_x, x[:, None], self.n + z[:, None])
        if not is_frame(stacked):
            return stacked[index, np.arange(stacked.shape[1])]
        frame = nw.from_native(stacked, eager_only=True)
        columns = [frame[:, j][index[:, j]] for j in range(index.shape[1])]
        return nw.to_native(frame[np.zeros(len(x), dtype=np.intp)].with_columns(*columns))


def _stack(X: Any, Z: Any) -> Any:
    """Return the rows of both tables in one."""
    if is_sparse(X) or is_sparse(Z):
        return sp.csr_array(sp.vstack([X, Z]))
    if not is_frame(X) and not is_frame(Z):
        return np.concatenate([np.asarray(X), np.asarray(Z)])
    if not is_frame(Z) or not is_frame(X):
        raise InputError("background: must be a table of the same kind as X.")
    upper, lower = (nw.from_native(part, eager_only=True) for part in (X, Z))
    if upper.schema == lower.schema:
        return nw.to_native(nw.concat([upper, lower.select(upper.columns)]))
    columns = {name: upper[name].to_list() + lower[name].to_list() for name in upper.columns}
    return nw.to_native(nw.from_dict(columns, backend=upper.implementation))


__all__ = ["Mixer", "cells", "merge_equal", "model_columns", "pick_rows"]
