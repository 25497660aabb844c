"""Methods of fitted estimators on Dask tables: called for every part, where the part is."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from sklearn import get_config

from kernelweave.errors import InputError, KernelweaveError, numbering

from .table import gather, is_dask, known_lengths, parts_of
from .tasks import call, run

Method = TypeVar("Method", bound=Callable[..., Any])


def by_parts(method: Method) -> Method:
    """Let a method of a fitted estimator return a lazy Dask array for a Dask table.

    It is called for every part with the entries of other arguments that belong to its rows.
    """

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **options)
        given = inspect.signature(method).bind(self, X, *args, **options).arguments
        others = [gather(value) for value in list(given.values())[2:]]
        lazy = _lazily(self, method.__name__, X, others)
        # A container of scikit-learn's cannot be lazy.
        return gather(lazy) if _has_container(self, method.__name__) else lazy

    return wrapped  # type: ignore[return-value]


class ScoredByParts:
    """Mixin, before scikit-learn's, whose `score` accepts a Dask table.

    Rows are predicted where they are; only predictions and targets come to this process.
    """

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of classes, or R2 of quantities.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            What is true.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts.

        Returns
        -------
        score : float
            At most 1.
        """
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        from sklearn.base import is_classifier
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if is_classifier(self) else r2_score
        predicted = gather(self.predict(X))  # type: ignore[attr-defined]
        return float(measure(gather(y), predicted, sample_weight=gather(sample_weight)))


def _has_container(estimator: Any, name: str) -> bool:
    """Whether scikit-learn puts the result of a method into a data frame."""
    if name != "transform":
        return False
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return bool((own or get_config()["transform_output"]) != "default")


def _lazily(estimator: Any, name: str, X: Any, others: Sequence[Any]) -> Any:
    """Return the results of a method for all parts, concatenated."""
    import dask
    import dask.array as da
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    parts, meta = parts_of(X)
    lengths = known_lengths(X)
    if lengths is None and any(np.ndim(other) for other in others):
        lengths = run(call(_count_rows, part) for part in parts)
    starts = None if lengths is None else np.concatenate(([0], np.cumsum(lengths))).astype(int)
    rows = [None] * len(parts) if starts is None else [slice(*ends) for ends in pairwise(starts)]
    others = [other if np.ndim(other) == 0 else np.asarray(other) for other in others]
    for other in others:
        if np.ndim(other) and starts is not None and len(other) != starts[-1]:
            raise InputError(
                f"{name}: X has {starts[-1]} rows, but an argument beside it has {len(other)} "
                "entries."
            )
    # One row shows the shape and the type of all results; what it holds is no fault of the caller.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = getattr(estimator, name)(_one_row(meta), *_entries(others, slice(0, 1)))
    example = np.asarray(answer)
    model = dask.delayed(estimator, traverse=False)
    answers = [
        da.from_delayed(
            call(_answer, part, model, name, example[:0], number, here, _entries(others, here)),
            shape=(np.nan if here is None else here.stop - here.start, *example.shape[1:]),
            dtype=example.dtype,
        )
        for number, (part, here) in enumerate(zip(parts, rows, strict=True))
    ]
    return da.concatenate(answers, allow_unknown_chunksizes=True)


def _entries(values: Sequence[Any], rows: slice | None) -> list[Any]:
    """Return the entries of some rows; a scalar belongs to all."""
    return [value if rows is None or np.ndim(value) == 0 else value[rows] for value in values]


def _one_row(meta: Any) -> Any:
    """Return a row of zeros, of first categories and of empty text."""
    if isinstance(meta, np.ndarray):
        return np.zeros((1, meta.shape[1]))
    row: dict[Any, Any] = {}
    for name, kind in meta.dtypes.items():
        categories = getattr(kind, "categories", None)
        if categories is not None and len(categories):
            row[name] = categories[:1].astype(kind)
        elif getattr(kind, "kind", "O") in "biufmM":
            row[name] = np.zeros(1).astype(kind if isinstance(kind, np.dtype) else float)
        else:
            row[name] = np.array([""], dtype=object)
    return type(meta)(row, columns=meta.columns)


def _count_rows(part: Any) -> int:
    return int(part.shape[0])


def _answer(
    part: Any,
    model: Any,
    name: str,
    empty: Any,
    number: int,
    rows: slice | None,
    others: Sequence[Any],
) -> Any:
    if not part.shape[0]:
        return empty
    try:
        with numbering(None if rows is None else range(rows.start, rows.stop)):
            answer = getattr(model, name)(part, *others)
    except KernelweaveError as error:
        if rows is None:
            raise InputError(f"In part {number} of X: {error}") from None
        raise
    return answer.toarray() if hasattr(answer, "toarray") else np.asarray(answer)
