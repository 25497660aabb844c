"""Base class of the estimators on a graph of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kernelweave._progress import Progress
from kernelweave._threads import threads
from kernelweave._types import Floats
from kernelweave._validation import Interval, StrOptions, check_table
from kernelweave.banks import Views, check_memory, make_bank
from kernelweave.banks.products import ProductBank, ProductSum
from kernelweave.candidates import ProductLattice
from kernelweave.candidates.dag import ExplicitDag
from kernelweave.candidates.product_graph import ProductGraph
from kernelweave.errors import InputError, warn
from kernelweave.kernels import Constant, Kernel
from kernelweave.kernels.base import is_number
from kernelweave.solvers import Result
from kernelweave.solvers.dag_active_set import DagWarmStart, dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.rounding import keep_kernels

from .base import BaseMKL, check_costs
from .duplicates import Merged, merge_rows
from .graphs import KernelGraph, check_cost, cost_table, is_graph, read_networkx
from .tasks import task_matrix

if TYPE_CHECKING:
    import pandas as pd

_KERNEL_TOL = 1e-9  # of the factors that kernels are held as: rounding, so that bounds need no care
_INHERITED = "kernels normalize C tol max_iter fit_intercept memory_limit n_jobs verbose".split()


class BaseHierarchical(BaseMKL):
    """Base of the estimators that learn on a graph of kernels."""

    parents: Any
    node_cost: Any
    rho: float
    task_correlation: Any
    solver: str
    certificate: str
    max_nodes: int
    warm_start = False

    _constraints: ClassVar[dict[str, Any]] = {
        **{name: BaseMKL._parameter_constraints[name] for name in _INHERITED},
        "parents": "no_validation",  # graphs check themselves, with the name of the wrong node
        "node_cost": "no_validation",
        "rho": [Interval(Real, 1, 2, closed="right")],
        "task_correlation": "no_validation",  # checked with the number of outputs
        "solver": [StrOptions({"alternate", "mirror"})],
        "certificate": [StrOptions({"tight", "paper"})],
        "max_nodes": [Interval(Integral, 1, None, closed="left")],
    }

    def _fit(self, X: Any, Y: Floats, cost: Floats, sample_weight: Floats | None) -> Self:
        rows = merge_rows(X, Y, cost, sample_weight)
        with threads(self.n_jobs):
            self._learn(self._graph(rows), rows, rows.cost, None)
        return self

    def _path(
        self, X: Any, Y: Floats, cost: Floats, Cs: Iterable[float], sample_weight: Floats | None
    ) -> list[Self]:
        values = check_costs(Cs)
        rows = merge_rows(X, Y, cost, sample_weight)
        fitted: dict[float, Self] = {}
        with threads(self.n_jobs):
            graph, before = self._graph(rows), 1.0
            result: Result | None = None
            for C in sorted(set(values)):
                model = self._with_cost(C)
                start = None if result is None else DagWarmStart.at(result, C / before)
                result, before = model._learn(graph, rows, C * rows.cost, start), C
                fitted[C] = model
        return [fitted[C] for C in values]

    def _graph(self, rows: Merged) -> ExplicitDag | ProductGraph:
        kernels = ProductLattice() if self.kernels is None else self.kernels
        options: dict[str, Any] = {
            "normalize": self.normalize,
            "centred": self.fit_intercept,
            "tol": _KERNEL_TOL,
            "memory_limit": self.memory_limit,
            "sample_weight": rows.weight,
        }
        if not isinstance(kernels, ProductLattice):
            graph = KernelGraph.of(kernels, self.parents, rows.X, rows.weight)
            costs = graph.costs(self.node_cost)
            bank = make_bank(list(graph.kernels.values()), rows.X, **options)
            return ExplicitDag(bank, list(graph.kernels), graph.parents, costs)
        if self.parents is not None:
            raise InputError("parents: a lattice has its own order, so parents must be None.")
        base = kernels.base
        if self.node_cost is not None:
            if not is_number(self.node_cost):
                raise InputError(
                    "node_cost: in a lattice the cost must be a power of a base, so give that as a "
                    "number > 0, or None."
                )
            base = check_cost("node_cost", self.node_cost)
        ladders = kernels.expand(rows.X, rows.weight)
        flat = [kernel for ladder in ladders for kernel in ladder]
        check_memory(
            f"A lattice of {len(flat)} kernels needs",
            ProductBank.memory(len(flat), len(rows.Y)),
            self.memory_limit,
            "use fewer rows, or kernels of fewer columns",
        )
        return ProductGraph(
            make_bank(flat, rows.X, **options),
            [len(ladder) for ladder in ladders],
            base=base,
            max_order=kernels.max_order,
            max_visited=kernels.max_visited,
        )

    def _learn(
        self,
        graph: ExplicitDag | ProductGraph,
        rows: Merged,
        cost: Floats,
        start: DagWarmStart | None,
    ) -> Result:
        relation = task_matrix(self.task_correlation, rows.Y.shape[1])
        with Progress(self.verbose, self.tol) as report:
            result = dag_active_set(
                DagProblem(graph, rows.Y, cost, self._machine(), float(self.rho), relation),
                Limits(self.tol, self.max_iter, report),
                max_nodes=self.max_nodes,
                start=start,
                solver=self.solver,
                certificate=self.certificate,
            )
        self._keep(graph, result, rows, cost, relation)
        self._warn(graph, result)
        return result

    def _keep(
        self,
        graph: ExplicitDag | ProductGraph,
        result: Result,
        rows: Merged,
        cost: Floats,
        relation: Floats | None,
    ) -> None:
        norms = result.weights * np.sqrt(result.quadratic_forms)
        if self.fit_intercept:
            # What is left of a constant kernel is the rounding of its quadratic form.
            constant = [isinstance(k, Constant) for k in graph.describe(graph.nodes)[0]]
            norms[constant] = 0.0
        slopes = self._machine().slope_bounds(result.dual_coef, rows.Y, cost)
        matter = keep_kernels(
            result.weights,
            norms,
            slopes,
            result.objective,
            graph.diagonal_sums,
            lambda weights: graph.combine(weights) @ result.dual_coef,
        )
        kept = np.flatnonzero(matter)
        if not len(kept):
            kept = np.flatnonzero(result.weights)[:1]
        self.active_nodes_ = [graph.nodes[k] for k in kept]
        kernels, self.scales_ = graph.describe(self.active_nodes_)
        self.kernels_: list[Kernel] = kernels
        self.weights_, self.block_norms_ = result.weights[kept], norms[kept]
        parts = (result.weights * result.quadratic_forms)[kept]
        self.contributions_ = parts / (parts.sum() or 1.0)
        self.n_nodes_ = len(graph.nodes)
        self.objective_, self.duality_gap_ = result.objective, result.gap
        self.n_iter_ = result.history[-1].solves
        self.converged_, self.history_ = result.converged, list(result.history)
        dual_coef = result.dual_coef if relation is None else result.dual_coef @ relation
        support = np.flatnonzero(dual_coef.any(axis=1))
        support = support[np.argsort(rows.index[support], kind="stable")]
        self.support_ = rows.index[support]
        self.dual_coef_ = np.ascontiguousarray(dual_coef[support].T)
        self.intercept_ = result.intercept
        self._support_views = Views.of(self._products().factors, rows.X).take(support)

    def _warn(self, graph: ExplicitDag | ProductGraph, result: Result) -> None:
        who = type(self).__name__
        if not self.block_norms_.any():
            warn(
                f"{who}: the best function is zero but for its bias. Hint: raise C, or give "
                "kernels that tell the rows apart."
            )
        if result.converged:
            return
        if isinstance(graph, ProductGraph) and not graph.complete:
            warn(
                f"{who}: the search of the lattice was cut after {graph.max_visited} products, so "
                "that the model is not certified. Hint: lower max_order or raise base or "
                "max_visited of the ProductLattice, or lower C.",
                ConvergenceWarning,
            )
        elif len(graph.nodes) >= self.max_nodes and self.n_iter_ < self.max_iter:
            warn(
                f"{who} stopped with {len(graph.nodes)} nodes at a relative duality gap of "
                f"{result.gap / result.size:.1e} (tol={self.tol:g}). Hint: raise max_nodes or "
                "node_cost, lower C, or accept the gap by raising tol.",
                ConvergenceWarning,
            )
        else:
            self._warn_unless_converged(result)

    def _plain_parameters(self) -> dict[str, Any]:
        """Return the parameters with dicts in place of graphs and functions, for model files."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        kernels, costs = parameters["kernels"], parameters["node_cost"]
        if is_graph(kernels):
            kernels, parameters["parents"] = read_networkx(kernels)
            parameters["kernels"] = kernels
        if callable(costs) and isinstance(kernels, Mapping):
            parameters["node_cost"] = cost_table(costs, list(kernels))
        return parameters

    def _products(self) -> ProductSum:
        """Return the kernels in use, taken apart into factors."""
        return ProductSum.of(self.kernels_)

    def kernel(self, X: Any, Y: Any = None) -> Floats:
        """Return the learned kernel between the rows of ``X`` and of ``Y``.

        Parameters
        ----------
        X : array, sparse matrix or data frame
            Rows like those of the training data.
        Y : array, sparse matrix or data frame, optional
            Rows of the other side; ``X`` by default.

        Returns
        -------
        block : ndarray of shape (n_rows of X, n_rows of Y)
            ``sum_w weights_w k_w``, with the normalisation of the training data.
        """
        check_is_fitted(self)
        products = self._products()
        A = Views.of(products.factors, check_table(self, X, reset=False))
        B = A if Y is None else Views.of(products.factors, check_table(self, Y, reset=False))
        with threads(self.n_jobs):
            return products.block(self.weights_ * self.scales_, A, B)

    def _decide(self, X: Any) -> Floats:
        check_is_fitted(self)
        products, weights = self._products(), self.weights_ * self.scales_
        rows = Views.of(products.factors, check_table(self, X, reset=False))

        def values(part: slice) -> Floats:
            block = products.block(weights, rows.take(part), self._support_views)
            return np.asarray(block @ self.dual_coef_.T)

        entries = max(1, len(self.support_)) * len(products.factors)
        return self._in_blocks(values, rows.n_samples, entries)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all nodes in use, those with the largest norm first.

        Returns
        -------
        frame : pandas.DataFrame
            ``node``, ``kernel`` (name), ``weight``, ``norm`` (of its function, as the objective
            counts it) and ``contribution``, the share of the squared norm of the decision function
            in the learned kernel.
        """
        check_is_fitted(self)
        import pandas as pd

        frame = pd.DataFrame(
            {
                "node": pd.Series(self.active_nodes_, dtype=object),
                "kernel": [str(kernel) for kernel in self.kernels_],
                "weight": self.weights_,
                "norm": self.block_norms_,
                "contribution": self.contributions_,
            }
        )
        return frame.sort_values("norm", ascending=False, kind="stable", ignore_index=True)
