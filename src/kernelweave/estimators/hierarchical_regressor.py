"""Regression on a directed acyclic graph of kernels (gHKL)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

from .duplicates import MergedRows
from .hierarchical_base import BaseHierarchical
from .intervals import INTERVALS
from .predictions import TaskRegressor
from .regressor import KernelRegressor
from .shared_docs import BOUNDS, COVERED, NODES, SUPPORT, shared_attributes


@shared_attributes(NODES, BOUNDS, SUPPORT, COVERED)
@dataclass(eq=False, repr=False)
class HierarchicalMKLRegressor(TaskRegressor, BaseHierarchical, KernelRegressor):
    """Regression on a directed acyclic graph of kernels.

    Minimises the norm of `HierarchicalMKLClassifier`, halved and squared, plus
    ``C sum_i loss(y_i, f(x_i))``. Several targets are tasks that share the choice of kernels.

    Parameters
    ----------
    loss : {"epsilon_insensitive", "square", "huber"}
        The loss, as in `MKLRegressor`.
    C : float
        Cost of errors; useful values are larger than in `MKLRegressor`.
    intervals : {"auto", "guaranteed", "jackknife+"} or None
        How `predict_interval` gets models that did not see a row, as in `MKLRegressor`.
    calibration_cv : int, splitter, array of shape (n_samples,) or None
        Folds for it, as in `MKLRegressor`.

    References
    ----------
    Jawanpuria, Saketha Nath and Ramakrishnan (2015), Generalized hierarchical kernel learning,
    JMLR 16, equations (5) to (8), (13) and (15), Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import HierarchicalMKLRegressor, ProductLattice
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(80, 5))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> model = HierarchicalMKLRegressor(ProductLattice(), loss="square", C=100).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _: KW_ONLY
    loss: str = "epsilon_insensitive"
    epsilon: float = 0.1
    target_scale: float | str | None = "spread"
    intervals: str | None = None

    _declaration = BaseHierarchical._declaration.extended(
        {"_one_output": "flag"},
        optional={
            **KernelRegressor._declaration.optional,
            **BaseHierarchical._declaration.optional,
        },
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseHierarchical._constraints,
        **{
            name: KernelRegressor._parameter_constraints[name]
            for name in ("loss", "epsilon", "target_scale")
        },
        **INTERVALS,
    }

    def _scale(self, rows: MergedRows, models: list[Self]) -> MergedRows:
        if not hasattr(self, "tasks_"):
            return super()._scale(rows, models)
        # Targets of other tasks only fill their columns.
        own = (rows.Y * (rows.cost > 0)).sum(axis=1, keepdims=True)
        return replace(super()._scale(replace(rows, Y=own), models), Y=rows.Y)
