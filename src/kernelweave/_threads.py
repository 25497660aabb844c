"""Numbers of threads, and work split so that these never change a result."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from . import _core

# Most BLAS libraries have one limit for the whole process: the first block that needs one thread
# sets it, the last one to end restores the previous limit.
_lock = threading.Lock()
_holders = 0
_before: list[int] = []
if hasattr(os, "register_at_fork"):  # a child must not inherit a lock that another thread held
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``; None means what the process may use."""
    if n_jobs is not None:
        return max(1, int(joblib.effective_n_jobs(n_jobs)))
    limit = os.environ.get("OMP_NUM_THREADS", "")  # how joblib limits its workers
    return int(limit) if limit.isdigit() and int(limit) > 0 else max(1, int(joblib.cpu_count()))


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _blas_libraries() -> tuple[list[Any], list[Any]]:
    """Return those with a limit of the process, and those with a limit of every thread."""
    found = _pools().select(user_api="blas").lib_controllers
    by_thread = [item for item in found if getattr(item, "threading_layer", "") == "openmp"]
    return [item for item in found if item not in by_thread], by_thread


def _limit(libraries: list[Any], counts: list[int]) -> None:
    """Set the threads of BLAS libraries."""
    for item, count in zip(libraries, counts, strict=True):
        # threadpoolctl >= 3.7 ignores all threads but the first one that sets a limit.
        release = getattr(item, "clear_controlling_thread", lambda force=False: None)
        release(force=True)
        item.set_num_threads(count)
        release()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    shared, own = _blas_libraries()
    _hold(shared)
    try:
        before = [item.get_num_threads() for item in own]
        try:
            _limit(own, [1] * len(own))
            yield
        finally:
            _limit(own, before)
    finally:
        _release(shared)


def _hold(libraries: list[Any]) -> None:
    """Give libraries one thread, unless they have it; an interrupt leaves them as they were."""
    global _holders, _before
    with _lock:
        if _holders == 0:
            _before = [item.get_num_threads() for item in libraries]
            try:
                _limit(libraries, [1] * len(libraries))
            except BaseException:
                _limit(libraries, _before)
                raise
        _holders += 1


def _release(libraries: list[Any]) -> None:
    """Undo `_hold`, even where it is interrupted."""
    global _holders
    with _lock:
        _holders -= 1
        if _holders == 0:
            try:
                _limit(libraries, _before)
            except BaseException:
                _limit(libraries, _before)
                raise


@contextmanager
def threads(n_jobs: int | None) -> Iterator[int]:
    """Work with ``n_jobs`` threads inside the block; other threads keep their own number.

    BLAS gets one thread, because its results depend on their number; `run_blocks` calls it on
    independent blocks of fixed size instead.
    """
    count = thread_count(n_jobs)
    before = _core.get_threads()
    with _one_blas_thread():
        _core.set_threads(count)
        try:
            yield count
        finally:
            _core.set_threads(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """Give BLAS and OpenMP one thread: sums over several come in any order."""
    # OpenMP's limit is that of the calling thread alone.
    with _one_blas_thread(), _pools().limit(limits=1, user_api="openmp"):
        yield


_local = threading.local()


def stop_if_interrupted() -> None:
    """Raise KeyboardInterrupt in a thread of `run_each` whose caller was interrupted.

    Long work calls it between its pieces; Python itself interrupts the main thread only.
    """
    stop = getattr(_local, "stop", None)
    if stop is not None and stop.is_set():
        raise KeyboardInterrupt


def run_blocks(work: Callable[[slice], Any], n: int, size: int) -> list[Any]:
    """Call ``work`` on consecutive slices of ``range(n)``, in threads; results in order."""
    return run_each(work, [slice(i, min(i + size, n)) for i in range(0, n, size)])


def run_each(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call ``work`` on every item, in threads where that helps; results in order."""
    items = list(items)
    allowed = _core.get_threads()
    count = min(allowed, len(items))
    if count <= 1:
        return [work(item) for item in items]
    results: list[Any] = [None] * len(items)
    failures: dict[int, BaseException] = {}
    left = deque(range(len(items)))

    own = _blas_libraries()[1]
    stop = threading.Event()

    def help_out() -> None:
        _local.stop = stop
        _limit(own, [1] * len(own))
        run()

    def run() -> None:
        while left:
            try:
                i = left.popleft()
            except IndexError:  # another thread was quicker
                return
            try:
                results[i] = work(items[i])
            except BaseException as error:
                failures[i] = error
                left.clear()
                if isinstance(error, KeyboardInterrupt):
                    stop.set()

    started = []
    _core.set_threads(1)  # one level of threads is enough; new ones start with that
    try:
        for _ in range(count - 1):
            # A context holds numpy's handling of floating-point errors; each thread needs its own.
            thread = threading.Thread(target=copy_context().run, args=(help_out,))
            try:
                thread.start()
            except RuntimeError:  # the system allows no more: those obtained do all the work
                break
            started.append(thread)
        run()
        for thread in started:  # here, so that an interrupt while waiting stops the others too
            thread.join()
    except KeyboardInterrupt:  # while waiting
        stop.set()
        raise
    finally:
        _core.set_threads(allowed)
        left.clear()  # where interrupted, begin nothing more
        for thread in started:
            thread.join()
    if stop.is_set():
        raise KeyboardInterrupt
    if failures:
        raise failures[min(failures)]  # items are begun in order, so this one is always the same
    return results
