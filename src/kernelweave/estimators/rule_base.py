"""Base class of the rule ensembles: propositions, search over conjunctions, selected rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from kernelweave import _core
from kernelweave._dask import PartedTable, fetch, is_dask
from kernelweave._declaration import CERTIFICATE, Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._threads import threads
from kernelweave._types import Floats, Indices
from kernelweave._validation import N_JOBS, Interval, StrOptions, all_or_nothing, fit_context
from kernelweave.banks.rules import Conjunction, PackedRows
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.errors import InputError, warn
from kernelweave.losses import Loss
from kernelweave.rules import Proposition, Propositions, Rule, essential
from kernelweave.rules.packing import RowParts, given_block, pack_block, pack_rows, read_given
from kernelweave.rules.summary import join_summaries, summarise_block
from kernelweave.rules.table import check_table
from kernelweave.solvers import Callback, Result
from kernelweave.solvers.dag_active_set import DagWarmStart, dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits

from .duplicates import MergedRows, merge_propositions
from .fit import FitMixin
from .out_of_fold import SAVED, OutOfFold, fold_solves, start_on_graph
from .rule_export import RuleExport
from .targets import Targets, TaskOutputs, task_matrix

Statements = tuple[Proposition, ...]

_LARGEST_BASE = 1e6
_LEAST = 1e-12  # norm of a rule, relative to the largest or to the targets; less is rounding


@dataclass(frozen=True)
class SearchOptions:
    """Constants of the search over conjunctions."""

    min_rows: int = 5000  # from here on a sample of the rows finds the first conjunctions
    sample: int = 2000  # least rows of the sample
    largest_step: int = 50  # at least one row in so many is in the sample
    sample_nodes: int = 1000  # conjunctions of the sample, which can fit too many
    sample_tol: float = 0.05  # relative gap on the sample
    polish: float = 0.1  # gap on the active conjunctions, relative to the tolerance


_SEARCH = SearchOptions()


@dataclass(frozen=True)
class _RuleProblem:
    """The lattice over the training rows, and constant scores of outputs with one class."""

    lattice: ConjunctionLattice
    fixed: dict[int, float]


@dataclass(frozen=True)
class Ensemble:
    """Selected conjunctions and their values."""

    conjunctions: list[Conjunction]
    values: Floats  # what each adds to the scores, (n_rules, n_outputs)
    norms: Floats  # in the objective
    intercept: Floats
    scores: Floats  # of the rows, (n_rows, n_outputs)


class BaseRuleEnsemble(
    TaskOutputs, RuleExport, OutOfFold, FitMixin, NotebookSummary, BaseEstimator
):
    """Base of the estimators that learn weights of conjunctions."""

    rho: float
    base: float
    propositions: str
    n_cuts: int
    cut_strategy: str
    categorical: Any
    max_length: int | None
    task_correlation: Any
    threshold: float
    max_nodes: int
    fit_intercept: bool
    propositions_: Statements

    _declaration: ClassVar[Declaration] = Declaration(
        "rules",
        saved={
            "rules_": "list[rules]",
            "norms_": "float[rules]",
            "intercept_": "float[outputs]",
            "propositions_": "any",
            "n_nodes_": "integer",
            "n_changed_": "integer",
            **CERTIFICATE,
            "n_features_in_": "integer",
            "_last": "any",
        },
        optional={"feature_names_in_": "names", "tasks_": "labels[outputs]", **SAVED},
        aspects=("rules",),
        method="rules",
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rho": [Interval(Real, 1, 2, closed="right")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "base": [Interval(Real, 0, _LARGEST_BASE, closed="right")],
        "propositions": [StrOptions({"auto", "given"})],
        "n_cuts": Propositions._parameter_constraints["n_cuts"],
        "cut_strategy": Propositions._parameter_constraints["cut_strategy"],
        "categorical": Propositions._parameter_constraints["categorical"],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "task_correlation": "no_validation",  # checked with the number of outputs
        "threshold": [Interval(Real, 0, 1, closed="left")],
        "tol": [Interval(Real, 1e-7, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_nodes": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "warm_start": ["boolean"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def _make_loss(self) -> Loss:
        raise AssertionError("a subclass says which loss it has")

    def _check_rows(self, X: Any, n_rows: int | None = None) -> int:
        """Check names and columns; return the number of rows, ``n_rows`` where X is a part."""
        table = check_table(self, X, reset=True)
        n_rows = table.n_rows if n_rows is None else n_rows
        if n_rows < 2:
            raise InputError("X has one sample only, but 2 or more are needed.")
        return n_rows

    def _maker(self) -> Propositions:
        return Propositions(
            self.n_cuts, cut_strategy=self.cut_strategy, categorical=self.categorical
        )

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> Self:
        """Learn rules and their weights.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Numbers, truth values, text and categories; values may be missing.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels, zeros and ones for several labels, or targets of a regression.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row; a weight of two is the same as giving the row twice.
        task : array of shape (n_samples,), optional
            The task of every row, for two classes or one target. Tasks share rules but not their
            weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if is_dask(X):
            parts = PartedTable.of(X, finite=False)
            return self._fit_parts(parts, y, sample_weight, task=task)
        targets = self._targets(self._check_rows(X), y, sample_weight, task)
        return self._fit_models([self], self._pack(X, targets.weight), targets)[0]

    @fit_context(prefer_skip_nested_validation=True)
    def fit_path(
        self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None, *, task: Any = None
    ) -> list[Self]:
        """Fit for several values of C, each fit starting from the rules of the last.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Training rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels or targets.
        Cs : iterable of float
            Values of C in any order.
        sample_weight : array of shape (n_samples,), optional
            Factors of C by row.
        task : array of shape (n_samples,), optional
            The task of every row.

        Returns
        -------
        models : list
            A fitted estimator for each C, in the order given.
        """
        X = fetch(X)
        targets = self._targets(self._check_rows(X), y, sample_weight, task)
        return self._fit_path(Cs, self._pack(X, targets.weight), targets)

    def _fit_parts(
        self, parts: RowParts, y: Any, sample_weight: Any = None, *, task: Any = None
    ) -> Self:
        """Fit to a table in blocks of rows, of which only packed propositions are gathered."""
        with all_or_nothing(self):
            n_rows = self._check_rows(parts.head, parts.n_rows)
            targets = self._targets(n_rows, y, sample_weight, task)
            return self._fit_models([self], self._pack_parts(parts, targets.weight), targets)[0]

    def _targets(self, n_rows: int, y: Any, sample_weight: Any, task: Any) -> Targets:
        """Return the targets; learn classes and tasks."""
        raise NotImplementedError

    def _pack(self, X: Any, weight: Floats | None) -> PackedRows:
        """Choose the propositions, and return which rows satisfy which."""
        if self.propositions == "given":
            self.propositions_ = read_given(check_table(self, X, reset=False))
        else:
            self.propositions_ = self._maker().fit(X, sample_weight=weight).propositions_
        with threads(self.n_jobs):
            return pack_rows(X, self.propositions_)

    def _pack_parts(self, parts: RowParts, weight: Floats | None) -> PackedRows:
        """Do the same for rows in blocks: one pass to choose propositions, one to pack."""
        if self.propositions == "given":
            found = parts.map(given_block)
            self.propositions_ = found[0]
            if any(other != found[0] for other in found):
                raise InputError(
                    "X: all blocks of rows must have the same columns of the same type where "
                    "propositions='given'."
                )
        else:
            summary = join_summaries(parts.map(summarise_block, parts.n_rows, by_row=weight))
            self.propositions_ = self._maker().fit_summary(summary).propositions_
        return PackedRows.join(parts.map(pack_block, self.propositions_))

    def _merge(self, X: PackedRows, targets: Targets) -> MergedRows:
        return merge_propositions(X, targets.Y, targets.cost, targets.weight)

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> _RuleProblem:
        return _RuleProblem(self._lattice(rows.X), targets.fixed)

    def _lattice(self, P: PackedRows) -> ConjunctionLattice:
        return ConjunctionLattice(P, base=self.base, max_length=self.max_length)

    def _learn(
        self, shared: _RuleProblem, rows: MergedRows, start: DagWarmStart | None, report: Callback
    ) -> Result:
        return dag_active_set(
            self._problem(shared.lattice, rows.Y, self.C * rows.cost),
            Limits(self.tol, self.max_iter, report),
            max_nodes=self.max_nodes,
            start=start,
            polish=_SEARCH.polish * self.tol,
        )

    def _problem(self, lattice: ConjunctionLattice, Y: Floats, cost: Floats) -> DagProblem:
        relation = task_matrix(self.task_correlation, Y.shape[1])
        return DagProblem(lattice, Y, cost, self._make_loss(), float(self.rho), relation)

    def _select(self, shared: _RuleProblem, result: Result, rows: MergedRows) -> Ensemble:
        """Keep the conjunctions that matter, and fit the bias to the residuals."""
        lattice, relation = shared.lattice, task_matrix(self.task_correlation, rows.Y.shape[1])
        values = result.weights[:, None] * lattice.bank.sums(result.dual_coef)
        if relation is not None:
            values = values @ relation
        norms = result.weights * np.sqrt(result.quadratic_forms)
        everywhere = values[0].copy()  # the empty conjunction is a constant
        norms[0] = 0.0
        least = max(max(self.threshold, _LEAST) * norms.max(), _LEAST * np.abs(rows.Y).max())
        kept = np.flatnonzero(norms > least)
        kept = kept[np.argsort(-norms[kept], kind="stable")]
        before = lattice.bank.values(values)
        masked = np.zeros_like(values)
        masked[kept] = values[kept]
        after = lattice.bank.values(masked)
        intercept = result.intercept + everywhere
        if self.fit_intercept:
            intercept = self._make_loss().value(after, rows.Y, self.C * rows.cost)[1]
        outputs = values[kept]
        for output, score in shared.fixed.items():
            intercept[output], outputs[:, output], after[:, output] = score, 0.0, 0.0
        scores = after + intercept
        self.n_changed_ = self._count_changes(before + result.intercept, scores, rows)
        nodes = [lattice.nodes[k] for k in kept]
        return Ensemble(nodes, outputs, norms[kept], intercept, scores)

    def _count_changes(self, before: Floats, after: Floats, rows: MergedRows) -> int:
        """Count training rows that leaving out small rules predicts otherwise."""
        return 0

    def _store(self, shared: _RuleProblem, result: Result, rows: MergedRows) -> None:
        lattice, ensemble = shared.lattice, self._select(shared, result, rows)
        self.intercept_ = ensemble.intercept
        self._store_bounds(result)
        self.n_nodes_ = len(lattice.nodes)
        self._write_rules(ensemble, lattice, rows)
        self._last: Any = None
        if self.warm_start:
            norms = result.weights * np.sqrt(result.quadratic_forms)
            nodes = list(lattice.nodes)
            self._last = (self.propositions_, nodes, norms, result.dual_coef, self.C)
        if not result.converged:
            gap = result.gap / result.size
            self._warn_stopped(
                f"with {self.n_nodes_} conjunctions at a relative duality gap of {gap:.1e}",
                "raise max_iter or max_nodes, lower C, or accept the gap by raising tol.",
            )
        if not self.propositions_:
            warn(
                f"{type(self).__name__}: no column of X gives a proposition, since all are "
                "constant; the model is an intercept alone."
            )

    def _write_rules(
        self, ensemble: Ensemble, lattice: ConjunctionLattice, rows: MergedRows
    ) -> None:
        """Turn conjunctions into rules; equivalent ones are merged."""
        statements = self.propositions_
        place = {node: k for k, node in enumerate(lattice.nodes)}
        counts = np.ones(len(rows.Y)) if rows.weight is None else rows.weight
        merged: dict[
            frozenset[Proposition], tuple[tuple[Proposition, ...], Floats, float, int]
        ] = {}
        for node, value, norm in zip(
            ensemble.conjunctions, ensemble.values, ensemble.norms, strict=True
        ):
            conditions = essential([statements[c] for c in node])
            key = frozenset(conditions)
            if key in merged:
                _, other, size, k = merged[key]
                merged[key] = (conditions, other + value, size + norm, k)
            else:
                merged[key] = (conditions, value, norm, place[node])
        found = sorted(merged.values(), key=lambda item: -item[2])
        bits = lattice.bank.bits[[k for *_, k in found]] if found else lattice.bank.bits[:0]
        covered = _core.bit_sums(bits, counts[:, None])[:, 0] / counts.sum()
        one = len(ensemble.intercept) == 1
        self.rules_ = [
            Rule(conditions, float(value[0]) if one else tuple(value.tolist()), min(1.0, share))
            for (conditions, value, _, _), share in zip(found, covered.tolist(), strict=True)
        ]
        self.norms_ = np.array([norm for _, _, norm, _ in found])

    def _n_learned(self, shared: _RuleProblem) -> float:
        return np.inf  # all conjunctions are candidates

    def _fold_start(
        self, shared: _RuleProblem, result: Result, rows: MergedRows
    ) -> DagWarmStart | None:
        return start_on_graph(shared.lattice, self._make_loss(), result, rows, self.C)

    def _fold_limit(self, shared: _RuleProblem, result: Result) -> int:
        return fold_solves(result, self.max_iter)

    def _row_values(
        self, shared: _RuleProblem, result: Result, rows: MergedRows, test: Indices
    ) -> Floats:
        return self._select(shared, result, rows).scores[test]

    def _outputs(self, X: Any) -> Floats:
        return self._scores(X)

    def _resume(self, shared: _RuleProblem, rows: MergedRows) -> DagWarmStart | None:
        return self._start_from_last(shared.lattice, rows) or self._start_from_sample(
            shared.lattice, rows
        )

    def _continue(self, result: Result, ratio: float) -> DagWarmStart | None:
        return DagWarmStart.at(result, ratio)

    def _start_from_last(
        self, lattice: ConjunctionLattice, rows: MergedRows
    ) -> DagWarmStart | None:
        """Return the last result, scaled to the present C, where the rows are the same."""
        last = getattr(self, "_last", None)
        if not self.warm_start or last is None:
            return None
        known, nodes, norms, dual_coef, C = last
        same_rows = known == self.propositions_ and dual_coef.shape == rows.Y.shape
        if not same_rows or max(map(len, nodes)) > lattice.max_length:
            return None
        lattice.add(nodes)
        order = {node: k for k, node in enumerate(nodes)}
        norms = np.array([norms[order[node]] for node in lattice.nodes])
        dual_coef = self._make_loss().repair(dual_coef * (self.C / C), rows.Y, self.C * rows.cost)
        return DagWarmStart(norms, dual_coef) if norms.any() else None

    def _start_from_sample(
        self, lattice: ConjunctionLattice, rows: MergedRows
    ) -> DagWarmStart | None:
        """Find the first conjunctions on a part of the rows, where an iteration costs little."""
        n = len(rows.Y)
        if n < _SEARCH.min_rows:
            return None
        # Merged rows are sorted by content, so an even spread represents all of it.
        part = np.arange(0, n, min(_SEARCH.largest_step, n // _SEARCH.sample))
        cost = rows.cost[part]
        totals = cost.sum(axis=0)
        if not (totals > 0).all():
            return None
        small = self._lattice(rows.X[part])
        cost = self.C * cost * (rows.cost.sum(axis=0) / totals)
        result = dag_active_set(
            self._problem(small, rows.Y[part], cost),
            Limits(max(self.tol, _SEARCH.sample_tol), self.max_iter),
            max_nodes=min(self.max_nodes, _SEARCH.sample_nodes),
        )
        norms = result.weights * np.sqrt(result.quadratic_forms)
        if not norms.any():
            return None
        large = norms > 1e-3 * norms.max()
        lattice.add([node for node, there in zip(small.nodes, large, strict=True) if there])
        known = dict(zip(small.nodes, norms.tolist(), strict=True))
        return DagWarmStart(np.array([known[node] for node in lattice.nodes]))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.propositions == "auto"
        tags.input_tags.string = tags.input_tags.categorical = self.propositions == "auto"
        return tags
