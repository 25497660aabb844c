"""Shapley values of a Gaussian support vector regression, by kernelweave and by its peers.

All explain the same function. Peers explain few rows, because their time is proportional to these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import SVR

from kernelweave import RBF, MKLRegressor
from kernelweave.inspection import explain

from . import Task


def _problem(n: int, d: int) -> tuple[Any, Any, Any]:
    """Return a model, scikit-learn's with the same function, and rows of which 50 are new."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n + 50, d))
    y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.1 * random.standard_normal(len(X))
    width = np.sqrt(d)
    peer = SVR(gamma=0.5 / width**2, C=10.0, epsilon=0.01).fit(X[:n], y[:n])
    model = MKLRegressor([RBF(width)], norm="uniform", normalize=None).fit(X[:n], y[:n])
    _replace(model, peer.support_vectors_, peer.dual_coef_, peer.intercept_)
    return model, peer, X


def _replace(model: Any, rows: Any, dual_coef: Any, intercept: Any) -> None:
    """Give a model on one kernel other rows and coefficients."""
    model.weights_ = model.scales_ = np.ones(1)
    model._support_views = type(model._support_views).of(model.kernels_, rows)
    model.dual_coef_, model.intercept_ = np.ascontiguousarray(dual_coef), intercept


def values(name: str, n: int, d: int, m: int, rows: int, threads: int) -> Task:
    """Explain some rows against a background of m training rows."""
    model, peer, X = _problem(n, d)
    new, background = X[n : n + rows], X[:m]
    game = name.split(",")[0] if name.startswith(("independent", "functional")) else "joint"
    exact = explain(model, new, background, value=game, n_jobs=threads)
    predict = (peer if "SVR" in name else model).predict
    make = _EXPLAINERS.get(name.split(",")[0])
    work = _ours(model, background, new, game) if make is None else make(predict, background, new)
    if name == "functional, shapiq":
        work = _product_kernel(peer, new)

    def tell(found: Any) -> dict[str, Any]:
        errors = np.abs(found - exact.values)
        return {
            "rows": rows,
            "nodes": exact.nodes,
            "largest": float(errors.max() / np.abs(exact.values).max()),
            "mean": float(errors.mean() / np.abs(exact.values).mean()),
            "efficiency": float(np.abs(exact.predictions - model.predict(new)).max()),
        }

    return Task(work, tell)


def _ours(model: Any, background: Any, new: Any, name: str) -> Callable[[], Any]:
    return lambda: explain(model, new, background, value=name, n_jobs=1).values


def _kernel_shap(predict: Any, background: Any, new: Any) -> Callable[[], Any]:
    import shap

    explainer = shap.KernelExplainer(predict, background)
    return lambda: explainer.shap_values(new, silent=True)


def _permutation_shap(predict: Any, background: Any, new: Any) -> Callable[[], Any]:
    import shap

    explainer = shap.PermutationExplainer(predict, background, seed=0)
    return lambda: explainer(new, silent=True).values


def _product_kernel(peer: Any, new: Any) -> Callable[[], Any]:
    from shapiq.explainer.product_kernel.explainer import ProductKernelExplainer

    explainer = ProductKernelExplainer(peer)

    def work() -> Any:
        found = [explainer.explain(row) for row in new]
        return np.array([[one[(j,)] for j in range(new.shape[1])] for one in found])

    return work


_EXPLAINERS = {"KernelExplainer": _kernel_shap, "PermutationExplainer": _permutation_shap}


def large(n: int, d: int, m: int, threads: int) -> Task:
    """Explain one row of a model with many terms, for its memory."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d))
    model = MKLRegressor([RBF(np.sqrt(d))], norm="uniform", normalize=None).fit(X[:300], X[:300, 0])
    # A model with as many terms, of which only the numbers matter here.
    _replace(model, X, random.standard_normal((1, n)), np.zeros(1))
    new, background = random.standard_normal((1, d)), random.standard_normal((m, d))

    def tell(found: Any) -> dict[str, Any]:
        gap = np.abs(found.predictions - model.predict(new)).max()
        return {"nodes": found.nodes, "efficiency": float(gap / np.abs(model.dual_coef_).sum())}

    return Task(lambda: explain(model, new, background, n_jobs=threads), tell)
