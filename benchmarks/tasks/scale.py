"""Large n: one SVM on features, and kernel weights learned on them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from kernelweave import RBF, MKLClassifier, _core
from kernelweave._memory import parse_bytes
from kernelweave._threads import threads as use_threads
from kernelweave.banks.nystroem.bank import NystroemBank
from kernelweave.banks.nystroem.blocks import LocalBlocks
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.errors import MemoryBudgetError
from kernelweave.inner import solve_inner
from kernelweave.losses import Hinge

from . import Task

Array = NDArray[Any]
N_COLUMNS, WIDTHS = 20, (1.0, 2.0, 4.0)
_DRAWN = 50_000  # rows drawn together, so that any process can draw its part


def svm(n: int, rank: int, tol: float, threads: int, C: float = 1.0) -> Task:
    """Solve a support vector machine on features to a certified gap."""
    kernel, y = _features(n, rank)
    Y, cost = y[:, None], np.full((n, 1), C)

    def work() -> Any:
        with use_threads(threads):
            return solve_inner(Hinge(), kernel, Y, cost, tol=tol)

    return Task(work, lambda found: {"value": found.primal, "gap": found.gap / found.primal})


def linear_svc(n: int, rank: int, tol: float, threads: int, C: float = 1.0) -> Task:
    """Solve the same, but for a bias that is penalised, with liblinear."""
    kernel, y = _features(n, rank)
    features = kernel.features()
    Z = np.concatenate(features.blocks.blocks) * features.roots.astype(np.float32)
    model = LinearSVC(loss="hinge", C=C, tol=tol, max_iter=10_000)

    def tell(fitted: LinearSVC) -> dict[str, Any]:
        w = fitted.coef_.ravel()
        fit = (Z.astype(np.float64) @ w)[:, None]
        loss, _ = Hinge().value(fit, y[:, None], np.full((n, 1), C))
        return {"value": 0.5 * float(w @ w) + loss, "gap": None}

    return Task(lambda: model.fit(Z, y), tell)


def weights(n: int, threads: int, tol: float = 1e-3, norm: float = 1.0) -> Task:
    """Learn the weights of sixty kernels."""
    X, y = _table(n, 0)
    X_test, y_test = _table(20_000, 1)
    model = MKLClassifier(_kernels(), norm=norm, tol=tol, n_jobs=threads)

    def tell(fitted: MKLClassifier) -> dict[str, Any]:
        return {
            "gap": fitted.duality_gap_ / fitted.objective_,
            "kept": int(np.count_nonzero(fitted.weights_)),
            "solves": fitted.n_iter_,
            "accuracy": float(fitted.score(X_test, y_test)),
        }

    return Task(lambda: model.fit(X, y), tell)


def passes(n: int, threads: int, tol: float = 1e-3) -> Task:
    """Count passes over the features by one SVM with equal weights, and by the whole fit."""
    X, y = _table(n, 0)
    bank = _bank(X, tol)
    equal = np.full(bank.n_kernels, 1.0 / bank.n_kernels)
    model = MKLClassifier(_kernels(), tol=tol, n_jobs=threads)

    def work() -> tuple[float, float]:
        with use_threads(threads):
            first = _counted(
                n,
                lambda: solve_inner(
                    Hinge(), bank.combine(equal), y[:, None], np.ones((n, 1)), tol=tol
                ),
            )
        return first, _counted(n, lambda: model.fit(X, y))

    return Task(work, lambda found: {"first": found[0], "fit": found[1]})


def _counted(n: int, work: Callable[[], Any]) -> float:
    """Return how often all rows were read: products, sums, Gram matrices, epochs of descent."""
    count = 0.0

    def count_in(owner: Any, name: str, rows: Callable[[Any], int]) -> AbstractContextManager[Any]:
        plain = getattr(owner, name)

        def reading(first: Any, *args: Any, **options: Any) -> Any:
            nonlocal count
            count += rows(first) / n
            return plain(first, *args, **options)

        return patch.object(owner, name, reading)

    with ExitStack() as stack:
        for name in ("times", "sums", "gram"):
            stack.enter_context(count_in(LocalBlocks, name, lambda blocks: blocks.n_samples))
        stack.enter_context(count_in(_core, "descend_box", len))
        work()
    return count


def elsewhere(n: int, threads: int, where: str, tol: float = 1e-3) -> Task:
    """Learn the same weights with features in memory, in a file, or in two Dask workers."""
    model = MKLClassifier(_kernels(), tol=tol, n_jobs=threads)
    X_test, y_test = _table(20_000, 1)
    if where == "dask":
        X, y, workers = _on_dask(n)
    else:
        X, y = _table(n, 0)
        workers = None
        model.set_params(memory_limit=_least_limit(model, X, y) if where == "file" else "20GB")

    def tell(fitted: MKLClassifier) -> dict[str, Any]:
        return {
            "gap": fitted.duality_gap_ / fitted.objective_,
            "objective": fitted.objective_,
            "solves": fitted.n_iter_,
            "accuracy": float(fitted.score(X_test, y_test)),
            "workers": None if workers is None else workers(),
        }

    return Task(lambda: model.fit(X, y), tell)


def _least_limit(model: MKLClassifier, X: Array, y: Array) -> float:
    """Return a limit at which all features are mapped: a tenth above the least that is asked for.

    Landmarks that are added later need the tenth.
    """
    try:
        model.set_params(memory_limit="1kB").fit(X, y)
    except MemoryBudgetError as error:
        return 1.1 * parse_bytes(str(error).split("memory_limit='")[1].split("'")[0])
    raise ValueError("a limit of 1 kB was not refused")


def _on_dask(n: int) -> tuple[Any, Any, Any]:
    """Draw the table in the workers of a cluster of two; also return how to ask for their peaks."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    client = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0"))
    draws = [(min(_DRAWN, n - k), 0, k // _DRAWN) for k in range(0, n, _DRAWN)]
    parts = [dask.delayed(_draw)(*draw) for draw in draws]
    X = da.concatenate(
        [
            da.from_delayed(part[0], (size, N_COLUMNS), float)
            for part, (size, *_) in zip(parts, draws, strict=True)
        ]
    )
    y = da.concatenate(
        [
            da.from_delayed(part[1], (size,), float)
            for part, (size, *_) in zip(parts, draws, strict=True)
        ]
    )
    X, y = dask.persist(X, y)
    wait([X, y])

    def peaks() -> list[int]:
        return [1024 * peak for peak in client.run(_peak).values()]

    return X, y, peaks


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def svc(n: int, threads: int) -> Task:
    """Fit one Gaussian on all columns with scikit-learn's SVC."""
    X, y = _table(n, 0)
    X_test, y_test = _table(20_000, 1)
    model = SVC(gamma=1.0 / N_COLUMNS, cache_size=1000)
    return Task(lambda: model.fit(X, y), lambda m: {"accuracy": float(m.score(X_test, y_test))})


def nystroem(n: int, threads: int, last: str = "svc") -> Task:
    """Fit a linear SVM on 300 random landmarks of one Gaussian, as one would without us."""
    X, y = _table(n, 0)
    X_test, y_test = _table(20_000, 1)
    final = LinearSVC(loss="hinge", tol=1e-2) if last == "svc" else SGDClassifier(alpha=1.0 / n)
    gamma = 1.0 / N_COLUMNS
    model = make_pipeline(Nystroem(gamma=gamma, n_components=300, random_state=0), final)
    return Task(lambda: model.fit(X, y), lambda m: {"accuracy": float(m.score(X_test, y_test))})


def _table(n: int, seed: int) -> tuple[Array, Array]:
    """Draw normal columns of which eight decide, each by a curve of its own, with noise."""
    parts = [_draw(min(_DRAWN, n - k), seed, k // _DRAWN) for k in range(0, n, _DRAWN)]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _draw(n: int, seed: int, part: int) -> tuple[Array, Array]:
    random = np.random.default_rng([seed, part])
    X = random.standard_normal((n, N_COLUMNS))
    f = sum(np.sin(1.5 * X[:, k]) * (-1) ** k + 0.5 * X[:, k] ** 2 * (k % 3 == 0) for k in range(8))
    return X, np.where(f + random.standard_normal(n) > 1.3, 1.0, -1.0)


def _kernels() -> list[RBF]:
    return [RBF(width, columns=[c]) for c in range(N_COLUMNS) for width in WIDTHS]


def _bank(X: Array, tol: float) -> NystroemBank:
    bank = make_feature_bank(_kernels(), X, tol=tol)
    if bank is None:
        raise ValueError("so few rows are not held as features")
    return bank


def _features(n: int, rank: int) -> tuple[Any, Array]:
    """Return an equal mixture of kernels with about so many features in all, and labels."""
    X, y = _table(n, 0)
    tol = 1e-2 if rank <= 300 else 1e-6
    bank = _bank(X, tol)
    used = np.flatnonzero(np.cumsum(np.diff(bank.offsets)) <= rank)
    mixed = np.zeros(bank.n_kernels)
    mixed[used] = 1.0 / len(used)
    kernel = bank.combine(mixed)
    features = kernel.features()
    columns = features.blocks.rows(np.arange(n), features.used).astype(np.float32)
    features.blocks, features.used = LocalBlocks([columns]), np.arange(columns.shape[1])
    features.squares = features.roots**2
    return kernel, y
