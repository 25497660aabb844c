"""Threads: how many, and work split so that their number never changes a result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from . import _core

_current: ContextVar[int] = ContextVar("kernelweave_threads", default=1)


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``; None means what the process may use."""
    if n_jobs is not None:
        return max(1, int(joblib.effective_n_jobs(n_jobs)))
    told = os.environ.get("OMP_NUM_THREADS", "")  # joblib's workers are given their share this way
    return int(told) if told.isdigit() and int(told) > 0 else max(1, int(joblib.cpu_count()))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads(n_jobs: int | None) -> Iterator[int]:
    """Work with ``n_jobs`` threads inside the block.

    BLAS gets one thread, because its results depend on how many it has; `run_blocks` gives it
    independent blocks of fixed size instead.
    """
    count = thread_count(n_jobs)
    before = _core.get_threads()
    token = _current.set(count)
    _core.set_threads(count)
    try:
        with _pools().limit(limits=1, user_api="blas"):
            yield count
    finally:
        _core.set_threads(before)
        _current.reset(token)


@contextmanager
def one_thread() -> Iterator[None]:
    """Give BLAS and OpenMP one thread: sums over several come in any order."""
    with _pools().limit(limits=1):
        yield


def run_blocks(work: Callable[[slice], Any], n: int, size: int) -> list[Any]:
    """Call ``work`` on consecutive slices of ``range(n)``, in threads; results in order."""
    return run_each(work, [slice(i, min(i + size, n)) for i in range(0, n, size)])


def run_each(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call ``work`` on every item, in threads where that helps; results in order."""
    items = list(items)
    count = min(_current.get(), len(items))
    if count <= 1:
        return [work(item) for item in items]
    before = _core.get_threads()
    _core.set_threads(1)  # one level of threads is enough
    try:
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(work, items))
    finally:
        _core.set_threads(before)
