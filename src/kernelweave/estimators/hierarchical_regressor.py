"""Regression on a directed acyclic graph of kernels (gHKL)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from kernelweave._dask import by_parts
from kernelweave._types import Floats
from kernelweave._validation import offered_if
from kernelweave.errors import InputError

from .duplicates import MergedRows
from .hierarchical_base import BaseHierarchical
from .intervals import INTERVALS, lacks_intervals
from .regressor import KernelRegressor
from .shared_docs import BOUNDS, COVERED, NODES, SUPPORT, shared_attributes


@shared_attributes(NODES, BOUNDS, SUPPORT, COVERED)
class HierarchicalMKLRegressor(BaseHierarchical, KernelRegressor):
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

    def __init__(
        self,
        kernels: Any = None,
        *,
        parents: dict[Any, list[Any]] | None = None,
        node_cost: Any = None,
        rho: float = 1.5,
        loss: str = "epsilon_insensitive",
        epsilon: float = 0.1,
        target_scale: float | str | None = "spread",
        normalize: str | None = "diagonal",
        C: float = 1.0,
        task_correlation: Any = None,
        solver: str = "alternate",
        certificate: str = "tight",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_nodes: int = 5000,
        fit_intercept: bool = True,
        intervals: str | None = None,
        calibration_cv: Any = None,
        memory_limit: float | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernels = kernels
        self.parents = parents
        self.node_cost = node_cost
        self.rho = rho
        self.loss = loss
        self.epsilon = epsilon
        self.target_scale = target_scale
        self.normalize = normalize
        self.C = C
        self.task_correlation = task_correlation
        self.solver = solver
        self.certificate = certificate
        self.tol = tol
        self.max_iter = max_iter
        self.max_nodes = max_nodes
        self.fit_intercept = fit_intercept
        self.intervals = intervals
        self.calibration_cv = calibration_cv
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _refuse_outputs(self, n_outputs: int) -> None:
        if n_outputs > 1:
            raise InputError("task: y must have one column where tasks are given.")

    def _scale(self, rows: MergedRows, models: list[Self]) -> MergedRows:
        if not hasattr(self, "tasks_"):
            return super()._scale(rows, models)
        # Targets of other tasks only fill their columns.
        own = (rows.Y * (rows.cost > 0)).sum(axis=1, keepdims=True)
        return replace(super()._scale(replace(rows, Y=own), models), Y=rows.Y)

    @by_parts
    def predict(self, X: Any, task: Any = None) -> Floats:
        """Return the predicted value of every row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        if (own := self._by_task(decision := self._decide(X), task)) is not None:
            return own
        return decision.ravel() if self._one_output else decision

    @offered_if(lacks_intervals)
    @by_parts
    def predict_interval(self, X: Any, coverage: float = 0.9, task: Any = None) -> Floats:
        """Return an interval for every row that holds its target with a given probability.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows to predict.
        coverage : float in (0, 1)
            Share of new rows whose interval should hold their target. It is nominal unless
            `coverage_guarantee_` is a number.
        task : array of shape (n_samples,) or one task
            The task of the rows, where `fit` was given tasks.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends; infinite where the training rows are too few for the coverage.
        """
        intervals = self._intervals_of_outputs(X, coverage)
        if (own := self._by_task(intervals, task)) is not None:
            return own
        return intervals[:, 0] if self._one_output else intervals
