"""Fits of radius-based kernel learning, and of margin-based learning on the same kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave import RBF, Linear, MKLClassifier, Polynomial, RadiusMKLClassifier

from . import Task
from .problems import DATA, WIDTHS

_METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "radius": (RadiusMKLClassifier, {}),
    "projection": (RadiusMKLClassifier, {"solver": "projection"}),
    "upper": (RadiusMKLClassifier, {"radius": "upper"}),
    "uniform": (RadiusMKLClassifier, {"norm": "uniform"}),
    "margin": (MKLClassifier, {}),
}


def fit(name: str, data: str, n: int, threads: int, C: float = 1.0) -> Task:
    """Fit a method on the twenty kernels of Gai, Chen and Zhang (2010), kernels counted."""
    problem = DATA[data](n)
    kernels = [RBF(width) for width in WIDTHS]
    kernels += [Linear(), *(Polynomial(degree, 1.0) for degree in range(2, 11))]  # type: ignore[list-item]
    kind, options = _METHODS[name]
    model = kind(kernels, C=C, n_jobs=threads, **options)

    def tell(fitted: Any) -> dict[str, Any]:
        shares = fitted.weights_ / fitted.weights_.sum()
        return {
            "objective": float(fitted.objective_),
            "gap": float(fitted.duality_gap_ / abs(fitted.objective_)),
            "kept": int(np.count_nonzero(shares > 1e-3)),
            "solves": int(fitted.n_iter_),
            "accuracy": float(fitted.score(problem.X_test, problem.y_test)),
        }

    return Task(lambda: model.fit(problem.X, problem.y), tell)
