"""Tables that Dask holds in parts; Dask is imported only once such a table is there.

Everything a fit needs is asked for in passes: a pure function of one part and small arguments, run
where the part is. Parts are never sent anywhere and nothing is changed in place, so that any
scheduler serves and a part that is lost with its worker is computed again from its recipe.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from kernelweave._memory import parse_bytes
from kernelweave._types import Indices
from kernelweave.errors import (
    InputError,
    InputTypeError,
    KernelweaveError,
    MemoryBudgetError,
    RowError,
    numbering,
)

if TYPE_CHECKING:
    from dask.delayed import Delayed

_FAN_IN = 4  # parts added up at a time, where they are
_ELSEWHERE = (
    "take some of the rows; MKLClassifier, MKLRegressor, NoiseTolerantKernelClassifier, the rule "
    "ensembles, PairwiseKernelLearner(method='lkcnpc') and, of two classes, "
    "NoisyLabelMKLClassifier learn from the parts of a Dask table where these are"
)

Method = TypeVar("Method", bound=Callable[..., Any])


def is_dask(value: Any) -> bool:
    """Tell whether a value is a collection of Dask."""
    return type(value).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(
        value, "__dask_graph__"
    )


def gather(value: Any) -> Any:
    """Return a collection of Dask as a value of this process, anything else as it is."""
    if isinstance(value, PartedTable):
        value.refuse_if_too_large()
        return value.take(np.arange(len(value)))
    return value.compute() if is_dask(value) else value


def fetch(X: Any) -> Any:
    """Return a Dask table as one of this process, anything else as it is."""
    return gather(PartedTable.of(X, finite=False)) if is_dask(X) else X


def call(function: Callable[..., Any], *args: Any) -> Delayed:
    """Return a task that calls a function; the first argument may be a task."""
    import dask

    return dask.delayed(function, pure=False, traverse=False)(*args)


def run(tasks: Iterable[Delayed]) -> list[Any]:
    """Run tasks, by the scheduler that Dask is told to use; results in order."""
    import dask

    with _quiet():
        return list(dask.compute(*tasks, traverse=False, optimize_graph=False))


def keep(tasks: Iterable[Delayed]) -> list[Delayed]:
    """Run tasks, and leave the results where they were computed."""
    import dask

    with _quiet():
        return list(dask.persist(*tasks, traverse=False))


@contextmanager
def _quiet() -> Iterator[None]:
    """Let vectors with an entry per row travel with the tasks, which is what Dask would warn of."""
    if "distributed" not in sys.modules:  # its settings must not be touched before they are read
        yield
        return
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield


def add_up(tasks: Sequence[Delayed]) -> Delayed:
    """Return a task for the sum of the results of others, in an order that is always the same."""
    while len(tasks) > 1:
        tasks = [call(_add, *tasks[i : i + _FAN_IN]) for i in range(0, len(tasks), _FAN_IN)]
    return tasks[0]


def add_up_here(
    compute: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the sum of what is computed from items, in the order in which `add_up` adds.

    Results are added as they come: beside those that ``compute`` holds itself, one sum is held for
    those that are being added, and one for each of `sum_levels`.
    """
    waiting: list[list[Any]] = []  # of every level, the sum so far
    counts: list[int] = []  # and how many sums it is of
    for i in range(0, len(items), _FAN_IN):
        carried, level = [_sum(compute(items[i : i + _FAN_IN]))], 0
        while True:
            if level == len(waiting):
                waiting.append([])
                counts.append(0)
            waiting[level] = [_sum(waiting[level] + carried)]
            counts[level] += 1
            if counts[level] < _FAN_IN:
                break
            carried, waiting[level], counts[level] = waiting[level], [], 0
            level += 1
        del carried
    rest: list[Any] = []
    for sums in waiting:
        rest = [_sum(sums + rest)] if sums or rest else []
    return tuple(rest[0])


def sum_levels(n_items: int) -> int:
    """Return for how many levels `add_up_here` holds a sum while it computes from the last item."""
    levels, groups = 0, -(-n_items // _FAN_IN)
    while groups > 1:
        levels, groups = levels + 1, -(-groups // _FAN_IN)
    return levels


def _add(*results: Any) -> Any:
    return _sum(results)


def _sum(results: Iterable[Any]) -> Any:
    return functools.reduce(
        lambda total, other: tuple(a + b for a, b in zip(total, other, strict=True)), results
    )


class PartedTable:
    """The rows of a Dask array or data frame, part by part.

    Parameters
    ----------
    parts : list of Delayed
        Arrays, sparse matrices or data frames; none of them empty.
    lengths : sequence of int
        Their numbers of rows.
    meta : array or data frame
        No rows, but the columns.
    """

    def __init__(self, parts: Sequence[Delayed], lengths: Sequence[int], meta: Any) -> None:
        self.parts, self.meta = list(parts), meta
        self.starts: Indices = np.concatenate(([0], np.cumsum(lengths))).astype(np.intp)

    @classmethod
    def of(cls, X: Any, *, finite: bool = True) -> PartedTable:
        """Read the table, and refuse what is not finite in an array unless that may be.

        Where that may be and Dask knows how long the parts are, nothing is computed.
        """
        parts, meta = parts_of(X)
        lengths = _known_lengths(X)
        if not finite and lengths is not None:
            found = [(length, None) for length in lengths]
        else:
            found = run(call(_look_at, part) for part in parts)
        starts = np.concatenate(([0], np.cumsum([length for length, _ in found]))).astype(int)
        for number, (first, (_, bad)) in enumerate(zip(starts, found, strict=False)):
            if finite and bad is not None:
                raise InputError(
                    f"X: contains NaN or infinity, first in row {first + bad[0]} (row {bad[0]} of "
                    f"part {number}), column {bad[1]}. Hint: fill missing values, for example "
                    "with scikit-learn's SimpleImputer."
                )
        filled = [i for i, (length, _) in enumerate(found) if length]
        return cls([parts[i] for i in filled], [found[i][0] for i in filled], meta)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self)

    @property
    def head(self) -> Any:
        """The first row, in this process."""
        return self.take(np.arange(min(1, len(self))))

    def map(
        self, function: Callable[..., Any], *args: Any, by_row: NDArray[Any] | None = None
    ) -> list[Any]:
        """Return ``function(part, first, own, *args)`` of every part.

        ``first`` is the number of rows before the part, and ``own`` its rows of ``by_row``.
        """
        slices = self.slices()
        own = [None if by_row is None else by_row[rows] for rows in slices]
        each = [[arg] * len(slices) for arg in args]
        return run(self.calls(function, [rows.start for rows in slices], own, *each))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), int(self.meta.shape[1])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def slices(self) -> list[slice]:
        """Return the rows of every part."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.starts)]

    def calls(self, function: Callable[..., Any], *each: Sequence[Any]) -> list[Delayed]:
        """Return a task for every part: the function of it and of its items of some lists.

        What the function refuses, it refuses with the rows of the part.
        """
        return [
            call(_named, part, function, rows, *args)
            for part, rows, *args in zip(self.parts, self.slices(), *each, strict=True)
        ]

    def refuse_if_too_large(
        self,
        index: Indices | None = None,
        memory_limit: float | str | None = None,
        hint: str = _ELSEWHERE,
    ) -> None:
        """Refuse to fetch a table, or some of its rows, that this process cannot hold."""
        allowed = parse_bytes(memory_limit)
        n, columns = len(self) if index is None else len(index), self.shape[1]
        if 8.0 * n * columns <= allowed:
            return
        # Sparse rows may be much smaller; only where it matters they are measured.
        wanted = self._homes(np.arange(n) if index is None else index)[0]
        needed = float(sum(run(_used(self.calls(_count_bytes, wanted), wanted))))
        if needed <= allowed:
            return
        raise MemoryBudgetError(
            f"X: {n} rows of {columns} columns need {1e-9 * needed:.3g} GB in this process, which "
            f"may use {1e-9 * allowed:.3g} GB. Hint: {hint}."
        )

    def aligned(self, n_rows: int) -> PartedTable:
        """Return the same rows in parts of so many, the last apart, whatever the parts were."""
        parts, lengths, slices = [], [], self.slices()
        for first in range(0, len(self), n_rows):
            last = min(first + n_rows, len(self))
            homes = np.searchsorted(self.starts, [first, last - 1], side="right") - 1
            pieces = [
                self.parts[i]
                if first <= slices[i].start and slices[i].stop <= last
                else call(
                    _pick,
                    self.parts[i],
                    slice(max(first - slices[i].start, 0), last - slices[i].start),
                )
                for i in range(homes[0], homes[1] + 1)
            ]
            parts.append(pieces[0] if len(pieces) == 1 else call(_stack, *pieces))
            lengths.append(last - first)
        return PartedTable(parts, lengths, self.meta)

    def take(self, index: Indices) -> Any:
        """Return some rows as a table of this process, in the order asked for."""
        if not self.parts:
            return self.meta
        wanted, order = self._homes(index)
        found = run(_used(self.calls(_pick, wanted), wanted))
        if not found:  # no row is asked for
            return self.meta
        if (np.diff(order) > 0).all():  # as asked for already
            return _stack(*found)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return _pick(_stack(*found), places)

    def _homes(self, index: Indices) -> tuple[list[Indices], Indices]:
        """Return the rows wanted of every part by its own numbers, and which of all they are."""
        home = np.searchsorted(self.starts, index, side="right") - 1
        order = np.argsort(home, kind="stable")
        ends = np.searchsorted(home[order], np.arange(1, len(self.parts)))
        own = index - self.starts[home]
        return np.split(own[order], ends), order


def parts_of(X: Any) -> tuple[list[Delayed], Any]:
    """Return the parts of a Dask table, and an empty table with its columns."""
    if hasattr(X, "to_delayed") and hasattr(X, "_meta"):
        if hasattr(X, "map_partitions") and getattr(X._meta, "ndim", 0) == 2:
            return list(X.to_delayed()), X._meta
        if getattr(X, "ndim", 0) == 2:
            if not np.isfinite(X.shape[1]):
                raise InputError(
                    "X: Dask does not know how many columns the array has. Hint: call "
                    "X.compute_chunk_sizes() first."
                )
            if len(X.chunks[1]) > 1:
                X = X.rechunk({1: -1})
            if X.dtype.kind not in "biuf":
                raise InputTypeError(
                    f"X: a Dask array must hold numbers, got dtype {X.dtype}; "
                    "a Dask data frame may hold categories."
                )
            return list(X.to_delayed().ravel()), np.empty((0, X.shape[1]))
        if hasattr(X, "ndim"):
            raise InputError(
                f"X: expected a Dask array or data frame of two dimensions, got one of {X.ndim}."
            )
    raise InputTypeError(
        "X: of Dask's collections an array or a data frame is needed, "
        f"got {type(X).__module__}.{type(X).__name__}."
    )


def by_parts(method: Method) -> Method:
    """Let a method of a fitted estimator answer a Dask table with a lazy Dask array.

    It is called for every part, where the part is, with the entries of other arguments that belong
    to its rows.
    """

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **options)
        given = inspect.signature(method).bind(self, X, *args, **options).arguments
        others = [gather(value) for value in list(given.values())[2:]]
        lazy = _lazily(self, method.__name__, X, others)
        # A container of scikit-learn's is made of numbers, not of the promise of some.
        return gather(lazy) if _has_container(self, method.__name__) else lazy

    return wrapped  # type: ignore[return-value]


class ScoredByParts:
    """Stands before scikit-learn's mixins and lets their `score` take a Dask table.

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
    """Tell whether scikit-learn puts the answer of a method into a data frame."""
    if name != "transform":
        return False
    own = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return bool((own or get_config()["transform_output"]) != "default")


def _lazily(estimator: Any, name: str, X: Any, others: Sequence[Any]) -> Any:
    """Return what a method says about every part, one after the other."""
    import dask
    import dask.array as da
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    parts, meta = parts_of(X)
    lengths = _known_lengths(X)
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
    # One row tells the shape and the type of all answers.
    example = np.asarray(getattr(estimator, name)(_one_row(meta), *_entries(others, slice(0, 1))))
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
    """Return what belongs to some rows; a single value belongs to all."""
    return [value if rows is None or np.ndim(value) == 0 else value[rows] for value in values]


def _known_lengths(X: Any) -> list[int] | None:
    """Return how many rows every part has, if Dask knows."""
    chunks = getattr(X, "chunks", None)  # of a data frame, perhaps a column of that name
    if not isinstance(chunks, tuple) or not np.isfinite(chunks[0]).all():
        return None
    return [int(length) for length in chunks[0]]


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


def _look_at(part: Any) -> tuple[int, tuple[int, int] | None]:
    """Return the number of rows, and the place of the first value of an array that is missing."""
    length = int(part.shape[0])
    if hasattr(part, "columns") or not length:
        return length, None
    if hasattr(part, "tocoo"):
        entries = part.tocoo()
        wrong = np.flatnonzero(~np.isfinite(entries.data))
        places = [(int(entries.row[i]), int(entries.col[i])) for i in wrong[:1]]
    else:
        places = [(int(i), int(j)) for i, j in np.argwhere(~np.isfinite(part))[:1]]
    return length, places[0] if places else None


def _named(part: Any, function: Callable[..., Any], rows: slice, *args: Any) -> Any:
    try:
        with numbering(range(rows.start, rows.stop)):
            return function(_as_table(part), *args)
    except RowError:
        raise
    except KernelweaveError as error:
        where = f"In rows {rows.start} to {rows.stop - 1} of X"
        raise type(error)(f"{where}: {error}") from None


def _as_table(part: Any) -> Any:
    if hasattr(part, "columns") or hasattr(part, "tocsr") or part.dtype.kind == "b":
        return part
    return np.asarray(part, float)


def _used(tasks: Sequence[Delayed], wanted: Sequence[Indices]) -> list[Delayed]:
    """Return the tasks of parts of which some row is wanted."""
    return [task for task, rows in zip(tasks, wanted, strict=True) if len(rows)]


def _count_bytes(part: Any, rows: Indices) -> int:
    """Return what some rows of a part take."""
    picked = _pick(part, rows)
    if hasattr(picked, "columns"):
        return int(picked.memory_usage(index=False).sum())
    if hasattr(picked, "indptr"):
        return int(picked.data.nbytes + picked.indices.nbytes + picked.indptr.nbytes)
    return int(picked.nbytes)


def _pick(part: Any, rows: Indices | slice) -> Any:
    return part.iloc[rows] if hasattr(part, "iloc") else part[rows]


def _stack(*parts: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(list(parts), ignore_index=True)
    if hasattr(parts[0], "tocsr"):
        import scipy.sparse as sp

        return sp.vstack(list(parts), format="csr")
    return np.concatenate(list(parts))
