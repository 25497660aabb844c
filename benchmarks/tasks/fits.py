"""Whole fits from features, their two parts, and what they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from kernelweave import MKLClassifier, solvers
from kernelweave._threads import threads as using
from kernelweave.banks import KernelBank, make_bank
from kernelweave.kernels import expand_kernels
from kernelweave.losses import Hinge
from kernelweave.solvers import Limits, Result, newton_bundle
from kernelweave.weights import Simplex

from . import Task
from .problems import WIDTHS, Problem, additive, centred_size, families
from .svm import fit_svc, primal

Array = NDArray[np.float64]

TOL = 1e-3
_MAX_ITER = 200


def whole(
    n: int, threads: int, d: int = 20, which: str = "both", norm: Any = 1.0, C: float = 1.0
) -> Task:
    """Fit `MKLClassifier` from features: all kernel computations, solver and bookkeeping."""
    data = additive(n, d)
    model = MKLClassifier(families(which), norm=norm, C=C, tol=TOL, n_jobs=threads)

    def tell(fitted: MKLClassifier) -> dict[str, Any]:
        last = fitted.history_[-1]
        return {
            "n_kernels": len(fitted.weights_),
            "objective": float(fitted.objective_),
            "gap": float(fitted.duality_gap_ / abs(fitted.objective_)),
            "kept": int((fitted.weights_ > 0).sum()),
            "solves": last.solves,
            "updates": last.work,
            "passes": last.n_passes,
            "converged": bool(fitted.converged_),
            "accuracy": float(fitted.score(data.X_test, data.y_test)),
        }

    return Task(lambda: model.fit(data.X, data.y), tell)


def bank(n: int, threads: int, d: int = 20, which: str = "both") -> Task:
    """Build the bank alone: the first part of `whole`."""
    data = additive(n, d)

    def work() -> KernelBank:
        with using(threads):
            return build_bank(data, which)

    return Task(work, lambda built: {"nbytes": built.nbytes, "n_kernels": built.n_kernels})


def solve(n: int, threads: int, d: int = 20, which: str = "both", C: float = 1.0) -> Task:
    """Learn weights on a bank that is there already: the second part of `whole`."""
    data = additive(n, d)
    with using(threads):
        built = build_bank(data, which)
    Y, cost = data.y[:, None], np.full((n, 1), C)

    def work() -> Result:
        with using(threads):
            problem = solvers.Problem(built, Y, cost, Hinge(), Simplex())
            return newton_bundle(problem, Limits(TOL, _MAX_ITER))

    return Task(work, lambda result: {"objective": result.objective})


def grams_and_svc(
    n: int,
    threads: int,
    d: int = 20,
    which: str = "both",
    C: float = 1.0,
    blas_threads: int | None = None,
) -> Task:
    """Compute ten dense Gaussian Gram matrices on all features, then solve one SVM.

    ``blas_threads`` other than ``threads`` is for thin matrix products, which some libraries do
    more slowly with several threads than with one.
    """
    data = additive(n, d)
    K = final_kernel(data, threads, which, C)

    def work() -> Any:
        with threadpool_limits(blas_threads, user_api="blas"):
            for width in WIDTHS:
                rbf_kernel(data.X, gamma=0.5 / width**2)
            return fit_svc(K, data.y, C)

    return Task(work)


def svc(n: int, threads: int, d: int = 20, which: str = "both", C: float = 1.0) -> Task:
    """Solve one SVM on the kernel that `whole` ends with."""
    data = additive(n, d)
    K = final_kernel(data, threads, which, C)
    return Task(
        lambda: fit_svc(K, data.y, C),
        lambda fitted: {"objective": primal(fitted, K, data.y, C)},
    )


def average_and_svc(n: int, threads: int, d: int = 20, C: float = 1.0) -> Task:
    """Average all the kernels of "both", one dense Gram matrix at a time, then solve one SVM."""
    data = additive(n, d)
    views = [list(range(d)), *([j] for j in range(d))]
    kernels = [(columns, 0.5 / width**2) for columns in views for width in WIDTHS]
    scales: list[float] = []

    def work() -> tuple[Any, Array]:
        scales.clear()
        K = np.zeros((n, n))
        for columns, gamma in kernels:
            gram = rbf_kernel(data.X[:, columns], gamma=gamma)
            scales.append(1.0 / (len(kernels) * centred_size(gram)))
            gram *= scales[-1]
            K += gram
        return fit_svc(K, data.y, C), K

    def tell(result: tuple[Any, Array]) -> dict[str, Any]:
        fitted, K = result
        test = np.zeros((len(data.X_test), n))
        for scale, (columns, gamma) in zip(scales, kernels, strict=True):
            test += scale * rbf_kernel(data.X_test[:, columns], data.X[:, columns], gamma=gamma)
        return {
            "n_kernels": len(kernels),
            "objective": primal(fitted, K, data.y, C),
            "kept": len(kernels),
            "accuracy": float(fitted.score(test, data.y_test)),
        }

    return Task(work, tell)


def build_bank(data: Problem, which: str) -> KernelBank:
    """Build a bank as `MKLClassifier` does with its default normalisation."""
    return make_bank(
        expand_kernels(families(which), data.X), data.X, normalize="trace", centred=True, tol=TOL
    )


def final_kernel(data: Problem, threads: int, which: str = "both", C: float = 1.0) -> Array:
    """Return the combined Gram matrix that a fit ends with."""
    model = MKLClassifier(families(which), C=C, tol=TOL, n_jobs=threads)
    return np.ascontiguousarray(model.fit(data.X, data.y).kernel(data.X))
