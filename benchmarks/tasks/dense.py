"""Gaussian kernels on all columns, tens of thousands of rows: support vector machines and peers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC

from kernelweave import RBF, MKLClassifier, MKLRegressor

from . import Task

Array = NDArray[Any]
_TEST = 5000
# Informative columns, clusters of a class, share of flipped labels, columns.
_KINDS = {"noisy": (10, 4, 0.02, 20), "easy": (6, 1, 0.0, 20), "wide": (20, 4, 0.02, 200)}


def _table(n: int, kind: str) -> tuple[Array, Array, Array, Array, float]:
    """Return training and test rows, and the width that SVC takes by default."""
    informative, clusters, flip, columns = _KINDS[kind]
    X, y = make_classification(
        n + _TEST,
        columns,
        n_informative=informative,
        n_clusters_per_class=clusters,
        flip_y=flip,
        random_state=0,
    )
    width = float(np.sqrt(0.5 * columns * X[:n].var()))
    return X[:n], y[:n], X[n:], y[n:], width


def gaussian(n: int, C: float, threads: int, kind: str = "noisy") -> Task:
    """Fit one Gaussian to a certified gap of 1e-3; the same problem as `svc`."""
    return _ours(n, C, threads, kind, (1.0,))


def ladder(n: int, C: float, threads: int, kind: str = "noisy") -> Task:
    """Learn the weights of five widths to a certified gap of 1e-3."""
    return _ours(n, C, threads, kind, (0.25, 0.5, 1.0, 2.0, 4.0))


def default(n: int, C: float, threads: int, kind: str = "noisy") -> Task:
    """Learn the weights of the default kernels to a certified gap of 1e-3."""
    return _ours(n, C, threads, kind, None)


def _ours(n: int, C: float, threads: int, kind: str, factors: tuple[float, ...] | None) -> Task:
    X, y, X_test, y_test, width = _table(n, kind)
    kernels = None if factors is None else [RBF(width=factor * width) for factor in factors]
    normalize = None if factors == (1.0,) else "trace"
    model = MKLClassifier(kernels, C=C, normalize=normalize, n_jobs=threads)

    def tell(fitted: MKLClassifier) -> dict[str, Any]:
        decision = fitted.decision_function(X_test)
        return {
            "accuracy": float(((decision > 0) == (y_test > 0)).mean()),
            "gap": fitted.duality_gap_ / fitted.objective_,
            "support": len(fitted.support_),
            "solves": fitted.n_iter_,
            "decision": decision.tolist(),
        }

    return Task(lambda: model.fit(X, y), tell)


def svc(n: int, C: float, threads: int, kind: str = "noisy", package: str = "sklearn") -> Task:
    """Fit an SVC with one Gaussian, of scikit-learn or of its extension by Intel."""
    X, y, X_test, y_test, _ = _table(n, kind)
    if package == "sklearnex":
        from sklearnex.svm import SVC as Machine
    else:
        Machine = SVC
    model = Machine(C=C, cache_size=1000)

    def tell(fitted: Any) -> dict[str, Any]:
        decision = np.ravel(fitted.decision_function(X_test))
        return {
            "accuracy": float(((decision > 0) == (y_test > 0)).mean()),
            "support": len(fitted.support_),
            "decision": decision.tolist(),
        }

    return Task(lambda: model.fit(X, y), tell)


def nystroem(n: int, C: float, threads: int, kind: str = "noisy", rank: int = 500) -> Task:
    """Fit a linear SVM to Nystroem features of one Gaussian."""
    X, y, X_test, y_test, width = _table(n, kind)
    features = Nystroem(gamma=0.5 / width**2, n_components=min(rank, n), random_state=0)
    model = make_pipeline(features, LinearSVC(loss="hinge", C=C, max_iter=10_000))
    return Task(
        lambda: model.fit(X, y), lambda fitted: {"accuracy": float(fitted.score(X_test, y_test))}
    )


def boosting(n: int, C: float, threads: int, kind: str = "noisy") -> Task:
    """Fit scikit-learn's gradient boosting."""
    X, y, X_test, y_test, _ = _table(n, kind)
    model = HistGradientBoostingClassifier(random_state=0)
    return Task(
        lambda: model.fit(X, y), lambda fitted: {"accuracy": float(fitted.score(X_test, y_test))}
    )


def _quantities(n: int) -> tuple[Array, Array, Array, Array, float]:
    """Return the rows of `_table` with noisy numbers as targets."""
    X, _, X_test, _, width = _table(n, "noisy")
    rows = np.concatenate([X, X_test])
    signal = np.sin(rows[:, 0]) + np.tanh(rows[:, 3])
    signal += 0.3 * rows[:, 1] * rows[:, 2] / np.abs(rows[:, 2]).mean()
    y = (signal - signal.mean()) / signal.std()
    y += 0.2 * np.random.default_rng(0).normal(size=len(y))
    return X, y[:n], X_test, y[n:], width


def regression(n: int, C: float, threads: int, widths: int = 1) -> Task:
    """Fit one Gaussian or learn the weights of five widths, epsilon-insensitive loss."""
    X, y, X_test, y_test, width = _quantities(n)
    factors = (1.0,) if widths == 1 else (0.25, 0.5, 1.0, 2.0, 4.0)
    model = MKLRegressor(
        [RBF(width=factor * width) for factor in factors],
        C=C,
        normalize=None if widths == 1 else "trace",
        target_scale=None,
        n_jobs=threads,
    )
    return Task(
        lambda: model.fit(X, y),
        lambda fitted: {
            "accuracy": float(fitted.score(X_test, y_test)),
            "gap": fitted.duality_gap_ / fitted.objective_,
            "support": len(fitted.support_),
        },
    )


def svr(n: int, C: float, threads: int) -> Task:
    """Fit an SVR with one Gaussian; the same problem as `regression` with one width."""
    X, y, X_test, y_test, _ = _quantities(n)
    model = SVR(C=C, cache_size=1000)
    return Task(
        lambda: model.fit(X, y),
        lambda fitted: {
            "accuracy": float(fitted.score(X_test, y_test)),
            "support": len(fitted.support_),
        },
    )
