"""Tasks of Dask: run, kept where they are, and added in a fixed order."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dask.delayed import Delayed

_FAN_IN = 4  # results added at a time, where they are


def call(function: Callable[..., Any], *args: Any) -> Delayed:
    """Return a task that calls a function; arguments may be tasks."""
    import dask

    return dask.delayed(function, pure=False, traverse=False)(*args)


def run(tasks: Iterable[Delayed]) -> list[Any]:
    """Run tasks with the scheduler of Dask; results in order."""
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
    """Silence Dask's warning of large graphs: vectors with an entry per row are sent with tasks."""
    if "distributed" not in sys.modules:  # its settings must not be touched before they are read
        yield
        return
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        yield


def add_up(tasks: Sequence[Delayed]) -> Delayed:
    """Return a task for the sum of the results of others, in a fixed order."""
    while len(tasks) > 1:
        tasks = [call(_add, *tasks[i : i + _FAN_IN]) for i in range(0, len(tasks), _FAN_IN)]
    return tasks[0]


def add_up_here(
    compute: Callable[[Sequence[Any]], Iterable[Any]], items: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the sum of the results of items, in the order of `add_up`.

    Results are added as they come: beside those that ``compute`` holds, there is one sum for those
    being added, and one for each of `sum_levels`.
    """
    waiting: list[list[Any]] = []  # the sum so far of every level
    counts: list[int] = []  # the number of its summands
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
    """Return the number of levels of `add_up_here` that hold a sum at the last item."""
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
