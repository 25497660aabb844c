"""Shapley values of a Gaussian support vector regression, by kernelweave and by its peers.

All explain the same function. Peers explain few rows, because their time is proportional to these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave import RBF, MKLRegressor
from kernelweave.inspection import explain

from . import Task


def _problem(n: int, d: int) -> tuple[Any, Any]:
    """Return a fitted model and 50 new rows; the target depends on a few columns."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n + 50, d))
    y = X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.1 * random.standard_normal(len(X))
    model = MKLRegressor([RBF(np.sqrt(d))], C=10.0, epsilon=0.01).fit(X[:n], y[:n])
    return model, X


def values(name: str, n: int, d: int, m: int, rows: int, threads: int) -> Task:
    """Explain some rows against a background of m training rows."""
    model, X = _problem(n, d)
    new, background = X[n : n + rows], X[:m]
    game = name.split(",")[0] if name.startswith(("independent", "functional")) else "joint"
    exact = explain(model, new, background, value=game, n_jobs=threads)
    work = _EXPLAINERS.get(name, _ours)(model, background, new, name)

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


def _kernel_shap(model: Any, background: Any, new: Any, name: str) -> Callable[[], Any]:
    import shap

    explainer = shap.KernelExplainer(model.predict, background)
    return lambda: explainer.shap_values(new, silent=True)


def _permutation_shap(model: Any, background: Any, new: Any, name: str) -> Callable[[], Any]:
    import shap

    explainer = shap.PermutationExplainer(model.predict, background, seed=0)
    return lambda: explainer(new, silent=True).values


def _product_kernel(model: Any, background: Any, new: Any, name: str) -> Callable[[], Any]:
    from shapiq.explainer.product_kernel.base import ProductKernelModel
    from shapiq.explainer.product_kernel.explainer import ProductKernelExplainer

    (term,) = model._terms().terms
    ((kernel, support),) = term.factors
    parts = ProductKernelModel(
        alpha=term.coef[:, 0],
        X_train=support,
        n=len(support),
        d=support.shape[1],
        gamma=0.5 / kernel.width**2,
        kernel_type="rbf",
        intercept=float(model.intercept_[0]),
    )
    explainer = ProductKernelExplainer(parts)

    def work() -> Any:
        found = [explainer.explain(row) for row in new]
        return np.array([[one[(j,)] for j in range(new.shape[1])] for one in found])

    return work


_EXPLAINERS = {
    "shap.KernelExplainer": _kernel_shap,
    "shap.PermutationExplainer": _permutation_shap,
    "functional, shapiq": _product_kernel,
}


def large(n: int, d: int, m: int, threads: int) -> Task:
    """Explain one row of a model with many terms, for its memory."""
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d))
    model = MKLRegressor([RBF(np.sqrt(d))], norm="uniform", normalize=None).fit(X[:300], X[:300, 0])
    # A model with as many terms, of which only the numbers matter here.
    model._support_views = type(model._support_views).of(model.kernels_, X)
    model.dual_coef_ = random.standard_normal((1, n))
    new, background = random.standard_normal((1, d)), random.standard_normal((m, d))

    def tell(found: Any) -> dict[str, Any]:
        gap = np.abs(found.predictions - model.predict(new)).max()
        return {"nodes": found.nodes, "efficiency": float(gap / np.abs(model.dual_coef_).sum())}

    return Task(lambda: explain(model, new, background, n_jobs=threads), tell)
