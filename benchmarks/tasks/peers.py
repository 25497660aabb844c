"""Methods on the same ready Gram matrices; kernels are computed before the clock starts.

Every Gram matrix is scaled so that its mean centred diagonal is one, `MKLClassifier`'s default.
Methods get the training blocks in the form they ask for; making that form is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from benchmarks.simplemkl import SimpleMKL
from kernelweave import MKLClassifier, Precomputed

from . import Task
from .problems import DATA, Grams, Problem, families, grams
from .svm import fit_svc, objective_at

Array = NDArray[np.float64]
Tell = Callable[[Any], dict[str, Any]]

_KEPT = 1e-6  # a weight above this share of the largest counts as kept


def method(
    name: str, data: str, n: int, m: int, threads: int, C: float = 1.0, **options: Any
) -> Task:
    """Return a method by name on ``m`` Gram matrices of ``n`` training rows."""
    problem = DATA[data](n)
    return _METHODS[name](problem, grams(problem, m), C, threads, **options)


def from_features(data: str, n: int, m: int, threads: int, C: float = 1.0) -> Task:
    """Fit ours from the features, so that computing the kernels counts."""
    problem = DATA[data](n)
    d = problem.X.shape[1]
    kernels = [k for family in families("both") for k in family.expand(problem.X)][:m]
    model = MKLClassifier(kernels, C=C, n_jobs=threads)
    assert m <= 10 * (d + 1)

    def tell(fitted: MKLClassifier) -> dict[str, Any]:
        return {
            **_told(fitted),
            "objective": float(fitted.objective_),
            "accuracy": float(fitted.score(problem.X_test, problem.y_test)),
        }

    return Task(lambda: model.fit(problem.X, problem.y), tell)


def _told(fitted: MKLClassifier) -> dict[str, Any]:
    return {
        "gap": float(fitted.duality_gap_ / abs(fitted.objective_)),
        "kept": _kept(fitted.weights_),
        "solves": fitted.history_[-1].solves,
        "converged": bool(fitted.converged_),
    }


def _kept(weights: Any) -> int:
    weights = np.asarray(weights, dtype=float).ravel()
    return int((weights > _KEPT * weights.max()).sum())


def _accuracy(decision: Array, problem: Problem) -> float:
    return float((np.where(decision.ravel() > 0, 1.0, -1.0) == problem.y_test).mean())


def _ours(problem: Problem, given: Grams, C: float, threads: int, norm: Any = 1.0) -> Task:
    kernels = [Precomputed(gram, check=False) for gram in given.train]
    model = MKLClassifier(kernels, norm=norm, normalize=None, C=C, n_jobs=threads)
    rows = np.arange(len(problem.y))[:, None]

    def tell(fitted: MKLClassifier) -> dict[str, Any]:
        block = np.tensordot(fitted.weights_, given.test, axes=1)[:, fitted.support_]
        decision = block @ fitted.dual_coef_.T + fitted.intercept_
        facts = {**_told(fitted), "accuracy": _accuracy(decision, problem)}
        if norm in (1.0, "uniform"):  # these weights lie on the simplex
            facts["objective"] = float(fitted.objective_)
        return facts

    return Task(lambda: model.fit(rows, problem.y), tell)


def _average(problem: Problem, given: Grams, C: float, threads: int) -> Task:
    m = len(given.train)

    def work() -> SVC:
        return fit_svc(given.train.mean(axis=0), problem.y, C)

    def tell(fitted: SVC) -> dict[str, Any]:
        decision = fitted.decision_function(given.test.mean(axis=0))
        return {
            "kept": m,
            "accuracy": _accuracy(decision, problem),
            "objective": objective_at(np.full(m, 1.0 / m), given.train, problem.y, C),
        }

    return Task(work, tell)


def _simplemkl(problem: Problem, given: Grams, C: float, threads: int, tol: float) -> Task:
    model = SimpleMKL(C=C, tol=tol)

    def tell(fitted: SimpleMKL) -> dict[str, Any]:
        decision = fitted.svc_.decision_function(np.tensordot(fitted.weights_, given.test, axes=1))
        return {
            "gap": fitted.gap_,
            "kept": _kept(fitted.weights_),
            "solves": fitted.n_solves_,
            "accuracy": _accuracy(decision, problem),
            "objective": objective_at(fitted.weights_, given.train, problem.y, C),
        }

    return Task(lambda: model.fit(given.train, problem.y), tell)


def _mklpy(problem: Problem, given: Grams, C: float, threads: int, algorithm: str) -> Task:
    import torch
    from MKLpy import algorithms

    torch.set_num_threads(threads)
    kernels = [torch.from_numpy(gram) for gram in given.train]
    labels = torch.from_numpy(problem.y)

    def work() -> Any:
        return getattr(algorithms, algorithm)(learner=SVC(C=C)).fit(kernels, labels)

    def tell(fitted: Any) -> dict[str, Any]:
        blocks = [torch.from_numpy(block) for block in given.test]
        decision = np.asarray(fitted.decision_function(blocks))
        return {
            "kept": _kept(fitted.solution.weights),
            "accuracy": _accuracy(decision, problem),
        }

    return Task(work, tell)


def _multimodal(problem: Problem, given: Grams, C: float, threads: int) -> Task:
    from multimodal.kernels.lpMKL import MKL

    views = dict(enumerate(given.train))

    def work() -> Any:
        return MKL(lmbda=1.0 / C, kernel="precomputed").fit(views, problem.y)

    def tell(fitted: Any) -> dict[str, Any]:
        decision = np.tensordot(fitted.weights, given.test, axes=1) @ fitted.C
        return {"kept": _kept(fitted.weights), "accuracy": _accuracy(decision, problem)}

    return Task(work, tell)


def _himalaya(problem: Problem, given: Grams, C: float, threads: int) -> Task:
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    def work() -> Any:
        return MultipleKernelRidgeCV(
            kernels="precomputed",
            solver_params={"n_iter": 20, "progress_bar": False},
            random_state=0,
        ).fit(given.train, problem.y)

    def tell(fitted: Any) -> dict[str, Any]:
        decision = np.asarray(fitted.predict(given.test))
        return {"kept": _kept(np.exp(fitted.deltas_)), "accuracy": _accuracy(decision, problem)}

    return Task(work, tell)


_METHODS: dict[str, Callable[..., Task]] = {
    "ours": _ours,
    "average": _average,
    "simplemkl": _simplemkl,
    "mklpy": _mklpy,
    "multimodal": _multimodal,
    "himalaya": _himalaya,
}
