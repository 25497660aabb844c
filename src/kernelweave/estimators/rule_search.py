"""Search over conjunctions: on the whole hierarchy for rho > 1, with an l1 norm for rho = 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kernelweave._types import Floats
from kernelweave.banks.rules import Conjunction
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.errors import InputError
from kernelweave.losses.base import InnerSolver
from kernelweave.rules.constraints import strongest_columns
from kernelweave.solvers import Callback, Result
from kernelweave.solvers.dag_active_set import DagWarmStart, dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.sparse_lattice import (
    SparseProblem,
    SparseStart,
    sparse_lattice,
)

from .duplicates import MergedRows
from .out_of_fold import start_on_graph
from .targets import task_matrix


@dataclass(frozen=True)
class SearchOptions:
    """Constants of the search over conjunctions."""

    min_rows: int = 5000  # from here on a sample of the rows finds the first conjunctions
    sample: int = 2000  # least rows of the sample
    largest_step: int = 50  # at least one row in this many is in the sample
    sample_nodes: int = 1000  # conjunctions of the sample, which can fit too many
    sample_tol: float = 0.05  # relative gap on the sample
    polish: float = 0.1  # gap on the active conjunctions, relative to the tolerance


OPTIONS = SearchOptions()


@dataclass(frozen=True)
class RuleProblem:
    """What the models of a path share."""

    lattice: ConjunctionLattice  # the conjunctions over the training rows
    fixed: dict[int, float]  # constant scores of outputs with one class
    signs: NDArray[np.int8] | None = None  # of every proposition, where columns are monotone


@dataclass(frozen=True)
class Weighted:
    """Conjunctions and what they add to the scores."""

    nodes: Sequence[Conjunction]  # the conjunctions
    values: Floats  # (n_nodes, n_outputs): what each adds to the scores
    norms: Floats  # (n_nodes,): of each in the objective
    constant: Floats  # (n_outputs,): part of the scores that no rule shows: the empty conjunction
    # Scores of the training rows for other values of the same conjunctions.
    score: Callable[[Floats], Floats]


class RuleSearch(ABC):
    """How the rules of a model are found; the model has the parameters."""

    activates: ClassVar[bool] = False  # whether a solve activates nodes of the shared lattice

    @abstractmethod
    def learn(
        self, model: Any, shared: RuleProblem, rows: MergedRows, start: Any, report: Callback | None
    ) -> Result:
        """Solve the problem of a model."""

    @abstractmethod
    def weigh(self, model: Any, shared: RuleProblem, result: Result, rows: MergedRows) -> Weighted:
        """Return the conjunctions of a result."""

    @abstractmethod
    def resume(self, model: Any, shared: RuleProblem, rows: MergedRows) -> Any:
        """Return the start of the first fit."""

    @abstractmethod
    def proceed(self, result: Result, ratio: float) -> Any:
        """Return a start from the result for another C."""

    @abstractmethod
    def fold_start(self, model: Any, shared: RuleProblem, result: Result, rows: MergedRows) -> Any:
        """Return the start of a fit in which some rows have no cost."""

    @abstractmethod
    def n_nodes(self, shared: RuleProblem, result: Result) -> int:
        """Return the number of activated conjunctions."""

    def keep(self, model: Any, shared: RuleProblem, result: Result) -> Any:
        """Return what a later fit with ``warm_start`` begins from."""
        norms = result.weights * np.sqrt(result.quadratic_forms)
        nodes = list(shared.lattice.nodes)
        return model.propositions_, nodes, norms, result.dual_coef, model.C


class HierarchicalSearch(RuleSearch):
    """The norm of hierarchical kernel learning with rho > 1."""

    activates = True

    def learn(
        self, model: Any, shared: RuleProblem, rows: MergedRows, start: Any, report: Callback | None
    ) -> Result:
        return dag_active_set(
            self._problem(model, shared.lattice, rows.Y, model.C * rows.cost),
            Limits(model.tol, model.max_iter, report),
            max_nodes=model.max_nodes,
            start=start,
            solver=model.solver,
            certificate=model.certificate,
            polish=OPTIONS.polish * model.tol,
        )

    def _problem(
        self, model: Any, lattice: ConjunctionLattice, Y: Floats, cost: Floats
    ) -> DagProblem:
        relation = task_matrix(model.task_correlation, Y.shape[1])
        return DagProblem(lattice, Y, cost, model._make_loss(), float(model.rho), relation)

    def weigh(self, model: Any, shared: RuleProblem, result: Result, rows: MergedRows) -> Weighted:
        lattice, relation = shared.lattice, task_matrix(model.task_correlation, rows.Y.shape[1])
        values = result.weights[:, None] * lattice.bank.sums(result.dual_coef)
        if relation is not None:
            values = values @ relation
        norms = result.weights * np.sqrt(result.quadratic_forms)
        norms[0] = 0.0  # the empty conjunction is a constant
        return Weighted(lattice.nodes, values, norms, values[0].copy(), lattice.bank.values)

    def proceed(self, result: Result, ratio: float) -> DagWarmStart | None:
        return DagWarmStart.at(result, ratio)

    def fold_start(
        self, model: Any, shared: RuleProblem, result: Result, rows: MergedRows
    ) -> DagWarmStart | None:
        return start_on_graph(shared.lattice, model._make_loss(), result, rows, model.C)

    def n_nodes(self, shared: RuleProblem, result: Result) -> int:
        return len(shared.lattice.nodes)

    def resume(self, model: Any, shared: RuleProblem, rows: MergedRows) -> DagWarmStart | None:
        return self._start_from_last(model, shared.lattice, rows) or self._start_from_sample(
            model, shared.lattice, rows
        )

    def _start_from_last(
        self, model: Any, lattice: ConjunctionLattice, rows: MergedRows
    ) -> DagWarmStart | None:
        """Return the last result, scaled to the present C, where the rows are the same."""
        last = getattr(model, "_last", None)
        if not model.warm_start or last is None:
            return None
        known, nodes, norms, dual_coef, C = last
        same_rows = known == model.propositions_ and dual_coef.shape == rows.Y.shape
        if not same_rows or max(map(len, nodes)) > lattice.max_length:
            return None
        lattice.add(nodes)
        order = {node: k for k, node in enumerate(nodes)}
        norms = np.array([norms[order[node]] for node in lattice.nodes])
        loss = model._make_loss()
        dual_coef = loss.repair(dual_coef * (model.C / C), rows.Y, model.C * rows.cost)
        return DagWarmStart(norms, dual_coef) if norms.any() else None

    def _start_from_sample(
        self, model: Any, lattice: ConjunctionLattice, rows: MergedRows
    ) -> DagWarmStart | None:
        """Find the first conjunctions on a part of the rows, where an iteration costs little."""
        n = len(rows.Y)
        if n < OPTIONS.min_rows:
            return None
        # Merged rows are sorted by content, so an even spread represents all of it.
        part = np.arange(0, n, min(OPTIONS.largest_step, n // OPTIONS.sample))
        cost = rows.cost[part]
        totals = cost.sum(axis=0)
        if not (totals > 0).all():
            return None
        small = model._lattice(rows.X[part])
        cost = model.C * cost * (rows.cost.sum(axis=0) / totals)
        result = dag_active_set(
            self._problem(model, small, rows.Y[part], cost),
            Limits(max(model.tol, OPTIONS.sample_tol), model.max_iter),
            max_nodes=min(model.max_nodes, OPTIONS.sample_nodes),
            solver=model.solver,
        )
        norms = result.weights * np.sqrt(result.quadratic_forms)
        if not norms.any():
            return None
        large = norms > 1e-3 * norms.max()
        lattice.add([node for node, there in zip(small.nodes, large, strict=True) if there])
        known = dict(zip(small.nodes, norms.tolist(), strict=True))
        return DagWarmStart(np.array([known[node] for node in lattice.nodes]))


class SparseSearch(RuleSearch):
    """The limit of the norm at rho = 1: a weighted l1 norm, for smooth losses."""

    def learn(
        self, model: Any, shared: RuleProblem, rows: MergedRows, start: Any, report: Callback | None
    ) -> Result:
        lattice = shared.lattice
        problem = SparseProblem(
            lattice.bank,
            rows.Y,
            model.C * rows.cost,
            model._make_loss(),
            model.base,
            lattice.max_length,
            shared.signs,
        )
        required = model._positions("required")
        if model.max_columns is not None and len(required) > model.max_columns:
            raise InputError(
                f"required: must be at most max_columns={model.max_columns} columns, got "
                f"{len(required)}."
            )
        limits = Limits(model.tol, model.max_iter, report)
        result = sparse_lattice(problem, limits, max_nodes=model.max_nodes, start=start)
        if model.max_columns is None:
            return result
        statements = model._statements
        rules = [[statements[c] for c in node] for node in result.nodes]
        used = {proposition.position for rule in rules for proposition in rule}
        if len(used | required) <= model.max_columns:
            return result
        # Greedy: the columns with the largest rules stay, and the problem is solved on them alone.
        spread = lattice.bank.features(result.nodes).deviations(np.ones(len(rows.Y)))
        sizes = np.sqrt((result.values**2).sum(axis=1)) * spread
        chosen = strongest_columns(rules, sizes, model.max_columns, required)
        allowed = np.array([statement.position in chosen for statement in statements])
        few = replace(problem, bank=lattice.bank.restricted(allowed))
        kept = [k for k, node in enumerate(result.nodes) if allowed[list(node)].all()]
        begin = SparseStart(tuple(result.nodes[k] for k in kept), result.values[kept])
        return sparse_lattice(few, limits, max_nodes=model.max_nodes, start=begin)

    def weigh(self, model: Any, shared: RuleProblem, result: Any, rows: MergedRows) -> Weighted:
        features = shared.lattice.bank.features(result.nodes)
        lengths = np.array([len(node) for node in result.nodes], dtype=np.float64)
        norms = (1.0 + model.base) ** lengths * np.sqrt((result.values**2).sum(axis=1))
        nothing = np.zeros(rows.Y.shape[1])
        return Weighted(result.nodes, result.values, norms, nothing, features.times)

    def resume(self, model: Any, shared: RuleProblem, rows: MergedRows) -> None:
        return None

    def keep(self, model: Any, shared: RuleProblem, result: Result) -> None:
        return None

    def proceed(self, result: Any, ratio: float) -> SparseStart:
        return SparseStart(result.nodes, result.values)

    def fold_start(
        self, model: Any, shared: RuleProblem, result: Result, rows: MergedRows
    ) -> SparseStart:
        return self.proceed(result, 1.0)

    def n_nodes(self, shared: RuleProblem, result: Any) -> int:
        return len(result.nodes)


def search_of(model: Any) -> RuleSearch:
    """Return the search that the parameters of a model ask for; refuse what it cannot do."""
    if model._has_lines and model.propositions == "given":
        raise InputError("linear_terms: needs propositions='auto', got 'given'.")
    if model.rho > 1.0:
        for name in ("monotone", "max_columns"):
            if getattr(model, name) is not None:
                raise InputError(f"{name}: needs rho=1, got rho={model.rho:g}.")
        if model._has_lines:
            raise InputError(f"linear_terms: needs rho=1, got rho={model.rho:g}.")
        return HierarchicalSearch()
    if model.task_correlation is not None:
        raise InputError("task_correlation: must be None with rho=1. Hint: use rho=1.1.")
    for name, usual in (("solver", "alternate"), ("certificate", "tight")):
        if getattr(model, name) != usual:
            raise InputError(f"{name}: must be {usual!r} with rho=1, got {getattr(model, name)!r}.")
    if model._make_loss().inner_solver not in (InnerSolver.NEWTON, InnerSolver.LINEAR_SYSTEM):
        raise InputError(
            f"loss: rho=1 needs a smooth loss, 'logistic' or 'square', got {model.loss!r}. Hint: "
            "set the loss, or use rho=1.1."
        )
    return SparseSearch()
