"""Base class of the estimators on a graph of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kernelweave._types import Floats, Indices
from kernelweave._validation import Interval, StrOptions, fit_context
from kernelweave.banks import Views, check_memory, make_bank
from kernelweave.banks.products import ProductBank, ProductSum
from kernelweave.candidates import ProductLattice
from kernelweave.candidates.dag import ExplicitDag
from kernelweave.candidates.product_graph import ProductGraph
from kernelweave.errors import InputError, warn
from kernelweave.kernels import Kernel
from kernelweave.kernels.base import is_number
from kernelweave.solvers import Callback, Result
from kernelweave.solvers.dag_active_set import DagWarmStart, dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.rounding import keep_kernels

from .base import BaseMKL, BlockFunction
from .duplicates import MergedRows
from .fit import PathMixin
from .graphs import KernelGraph, check_cost, cost_table, is_graph, read_networkx
from .out_of_fold import HeldProblem, HeldSolution, fold_solves, start_on_graph
from .targets import Targets, TaskOutputs, task_matrix
from .terms import KernelTerm

if TYPE_CHECKING:
    import pandas as pd

_KERNEL_TOL = 1e-9  # relative error of low-rank factors; at rounding, so that bounds need no term
_INHERITED = """kernels missing normalize C tol max_iter fit_intercept memory_limit n_jobs
verbose""".split()


@dataclass(eq=False, repr=False)
class BaseHierarchical(TaskOutputs, PathMixin, BaseMKL):
    """Base of the estimators that learn on a graph of kernels.

    Parameters
    ----------
    kernels : dict, networkx graph, ProductLattice, list or None
        A dict of nodes (any hashable) and kernels; a directed graph with edges from parents to
        children and a node attribute ``kernel``; a list, whose nodes are its positions; or a
        lattice of products, explored on demand. None: `ProductLattice()`, all products of
        one-feature kernels on numbers, categories, dates and gaps.
    parents : dict or None
        Parents of each node of a dict or list of kernels; nodes that are missing have none.
    node_cost : float, dict, callable or None
        Cost ``d_v`` of each node: a dict, a function of the node, or a number a for ``a**depth``,
        depth being the longest way from a node without parents. None: ``2**depth``, or the base of
        the lattice. In a lattice only a number.
    rho : float
        In (1, 2]. 2 selects a node only with all its ancestors; smaller values are sparser.
    normalize : {"diagonal", "trace", "cosine", "radius"} or None
        What is made one before weights are learned: the mean diagonal, which products nearly keep;
        the mean centred diagonal; every diagonal entry; the radius of the smallest ball around the
        training rows; or nothing. In a lattice it applies to the kernels of the ladders.
    task_correlation : float, array of shape (n_outputs, n_outputs) or None
        Relation of the functions of several classes, labels or targets: a positive semi-definite
        matrix B, or a number mu for ``B = I + 11' / mu``, which is stronger for small mu. None:
        they share the choice of kernels only.
    solver : {"alternate", "mirror"}
        Node weights in closed form, alternating with inner solves; or the published mirror descent.
    certificate : {"tight", "paper"}
        When a node is activated: by its own quadratic form, which is nearly exact; or by the
        published sufficient condition, which activates many more.
    max_iter : int
        Maximum number of inner solves; may be exceeded by one step.
    max_nodes : int
        Maximum number of activated nodes.
    """

    kernels: Any = None
    _: KW_ONLY
    missing: str | None = None
    parents: dict[Any, list[Any]] | None = None
    node_cost: Any = None
    rho: float = 1.5
    normalize: str | None = "diagonal"
    C: float = 1.0
    task_correlation: Any = None
    solver: str = "alternate"
    certificate: str = "tight"
    tol: float = 1e-3
    max_iter: int = 1000
    max_nodes: int = 5000
    fit_intercept: bool = True
    calibration_cv: Any = None
    memory_limit: float | str | None = None
    n_jobs: int | None = None
    verbose: int = 0

    warm_start = False

    _declaration = BaseMKL._declaration.extended(
        {
            "active_nodes_": "list[kernels]",
            "block_norms_": "float[kernels]",
            "n_nodes_": "integer",
        },
        optional={**BaseMKL._declaration.optional, "tasks_": "labels[tasks]"},
        learns="nodes",
        substitutes={},
        aspects=("structure", "kernels"),
    )
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> Self:
        """Learn kernel weights and a decision or regression function.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Training rows; for `Precomputed` kernels a column of row numbers.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, two classes or more; or targets of a regression.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row; a weight of two is the same as giving the row twice.
        task : array of shape (n_samples,), optional
            The task of every row, for two classes or one target. Tasks share the choice of kernels
            but not their functions, unless `task_correlation` relates these.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        table, targets = self._targets(X, y, sample_weight)
        return self._fit_models([self], table, self._split_tasks(targets, task))[0]

    def _prepare(
        self, rows: MergedRows, targets: Targets, models: list[Self]
    ) -> ExplicitDag | ProductGraph:
        return self._graph(rows)

    def _continue(self, result: Result, ratio: float) -> DagWarmStart | None:
        return DagWarmStart.at(result, ratio)

    def _default_kernels(self) -> Any:
        return ProductLattice(missing="refuse" if self.missing == "refuse" else None)

    def _graph(self, rows: MergedRows) -> ExplicitDag | ProductGraph:
        kernels = self._with_targets(self._given_kernels(), rows.Y)
        options: dict[str, Any] = {
            "normalize": self.normalize,
            "centred": self.fit_intercept,
            "tol": _KERNEL_TOL,
            "memory_limit": self.memory_limit,
            "sample_weight": rows.weight,
        }
        if not isinstance(kernels, ProductLattice):
            graph = KernelGraph.of(kernels, self.parents, rows.X, rows.weight, self.missing)
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
        shared: ExplicitDag | ProductGraph,
        rows: MergedRows,
        start: DagWarmStart | None,
        report: Callback,
    ) -> Result:
        relation = task_matrix(self.task_correlation, rows.Y.shape[1])
        cost = self.C * rows.cost
        return dag_active_set(
            DagProblem(shared, rows.Y, cost, self._make_loss(), float(self.rho), relation),
            Limits(self.tol, self.max_iter, report),
            max_nodes=self.max_nodes,
            start=start,
            solver=self.solver,
            certificate=self.certificate,
        )

    def _store(self, shared: ExplicitDag | ProductGraph, result: Result, rows: MergedRows) -> None:
        graph = shared
        norms = result.weights * np.sqrt(result.quadratic_forms)
        if self.fit_intercept:
            # The quadratic form of a constant kernel is zero but for rounding.
            constant = [k.is_constant for k in graph.describe(graph.nodes)[0]]
            norms[constant] = 0.0
        cost = self.C * rows.cost
        slopes = self._make_loss().slope_bounds(result.dual_coef, rows.Y, cost, result.gap)
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
        self._store_contributions((result.weights * result.quadratic_forms)[kept])
        self.n_nodes_ = len(graph.nodes)
        self._store_bounds(result)
        relation = task_matrix(self.task_correlation, rows.Y.shape[1])
        dual_coef = result.dual_coef if relation is None else result.dual_coef @ relation
        support = self._store_support(dual_coef, result.intercept, rows)
        self._support_views = Views.of(self._products().factors, rows.X).take(support)
        self._warn(graph, result)

    def _n_learned(self, shared: ExplicitDag | ProductGraph) -> float:
        return shared.n_nodes

    def _hold(
        self, shared: ExplicitDag | ProductGraph, result: Result, rows: MergedRows
    ) -> HeldProblem | None:
        relation, cost = task_matrix(self.task_correlation, rows.Y.shape[1]), self.C * rows.cost
        n_related = 1 if relation is None else len(relation)
        kernel = shared.combine(_padded(shared, result), n_related)
        loss = self._make_loss()
        return HeldProblem(kernel, loss, rows.Y, cost, result.dual_coef, self.tol, relation)

    def _place(
        self, shared: ExplicitDag | ProductGraph, rows: MergedRows, solution: HeldSolution
    ) -> None:
        n, n_outputs = rows.Y.shape
        relation, dual_coef = task_matrix(self.task_correlation, n_outputs), solution.dual_coef
        if relation is not None:
            dual_coef = (dual_coef.reshape(n, -1, n_outputs) @ relation).reshape(n, -1)
        support = self._store_support(dual_coef, solution.intercept, rows)
        self._support_views = Views.of(self._products().factors, rows.X).take(support)

    def _fold_start(
        self, shared: ExplicitDag | ProductGraph, result: Result, rows: MergedRows
    ) -> DagWarmStart | None:
        return start_on_graph(shared, self._make_loss(), result, rows, self.C)

    def _fold_limit(self, shared: ExplicitDag | ProductGraph, result: Result) -> int:
        return fold_solves(result, self.max_iter)

    def _row_values(
        self,
        shared: ExplicitDag | ProductGraph,
        result: Result,
        rows: MergedRows,
        test: Indices,
    ) -> Floats:
        relation = task_matrix(self.task_correlation, rows.Y.shape[1])
        values = shared.combine(_padded(shared, result)) @ result.dual_coef
        values = values if relation is None else values @ relation
        return np.asarray(values[test] + result.intercept)

    def _warn(self, graph: ExplicitDag | ProductGraph, result: Result) -> None:
        who = type(self).__name__
        if not self.block_norms_.any():
            warn(
                f"{who}: the best function is zero but for its bias. Hint: raise C, or give "
                "kernels that distinguish the rows."
            )
        if result.converged:
            return
        if graph.cut_after is not None:
            warn(
                f"{who}: the search of the lattice was cut after {graph.cut_after} products, so "
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
        """Return the active kernels as products of factors."""
        return ProductSum.of(self.kernels_)

    def _learned_kernel(self) -> tuple[list[Kernel], BlockFunction]:
        products = self._products()
        return list(products.factors), partial(products.block, self.weights_ * self.scales_)

    def _support_terms(self) -> list[KernelTerm]:
        place = {factor: j for j, factor in enumerate(self._products().factors)}
        return [
            KernelTerm(
                str(kernel),
                tuple((factor, self._support_views[place[factor]]) for factor in kernel.factors),
                weight * self.dual_coef_.T,
            )
            for kernel, weight in zip(self.kernels_, self.weights_ * self.scales_, strict=True)
            if weight
        ]

    def _blocks_at_once(self, kernels: list[Kernel]) -> int:
        return len(kernels)

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

        columns = {
            "node": pd.Series(self.active_nodes_, dtype=object),
            "kernel": [str(kernel) for kernel in self.kernels_],
            "weight": self.weights_,
            "norm": self.block_norms_,
        }
        return self._sorted_frame(columns, by="norm")


def _padded(graph: ExplicitDag | ProductGraph, result: Result) -> Floats:
    """Return kernel weights of all active nodes, also those activated since the result."""
    return np.pad(result.weights, (0, len(graph.nodes) - len(result.weights)))
