"""Base class of the rule ensembles: propositions, search over conjunctions, selected rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from kernelweave import _core
from kernelweave._progress import Progress
from kernelweave._summary import NotebookSummary
from kernelweave._threads import threads
from kernelweave._types import Floats
from kernelweave._validation import N_JOBS, Interval, StrOptions, all_or_nothing
from kernelweave.banks.rules import Conjunction, PackedRows
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.errors import InputError, warn
from kernelweave.losses import Loss
from kernelweave.rules import (
    Explanation,
    Proposition,
    Propositions,
    Rule,
    essential,
    explain_rows,
    score_rules,
    to_python,
    to_sql,
)
from kernelweave.rules.packing import RowParts, given_block, pack_block, pack_rows, read_given
from kernelweave.rules.summary import join_summaries, summarise_block
from kernelweave.rules.table import Table, check_table
from kernelweave.solvers import Result
from kernelweave.solvers.dag_active_set import DagWarmStart, dag_active_set
from kernelweave.solvers.dag_problem import DagProblem
from kernelweave.solvers.problem import Limits

from .base import check_costs
from .duplicates import Merged, merge_propositions
from .tasks import Targets, task_matrix

if TYPE_CHECKING:
    import pandas as pd

Statements = tuple[Proposition, ...]

_MANY_ROWS = 5000  # from here on a part of the rows finds the first conjunctions
_SAMPLE, _SHARE = 2000, 50  # rows of that part: so many, or one in so many
_SAMPLE_NODES = 1000  # a small part with the cost of all rows may ask for any number
_POLISH = 0.1  # gap on the active conjunctions, relative to the tolerance
_SAMPLE_TOL = 0.05
_LARGEST_BASE = 1e6
_LEAST = 1e-12  # norm of a rule, relative to the largest or to the targets; less is rounding


@dataclass(frozen=True)
class Ensemble:
    """Conjunctions that were kept, with their values; what rules are written from.

    Parameters
    ----------
    conjunctions : list of tuple
        Numbers of propositions.
    values : ndarray of shape (n_rules, n_outputs)
        What each adds to the scores.
    norms : ndarray of shape (n_rules,)
        Their norms in the objective.
    intercept : ndarray of shape (n_outputs,)
        Where scores begin.
    """

    conjunctions: list[Conjunction]
    values: Floats
    norms: Floats
    intercept: Floats


class BaseRuleEnsemble(NotebookSummary, BaseEstimator):
    """Base of the estimators that learn weights of conjunctions."""

    rho: float
    C: float
    base: float
    propositions: str
    n_cuts: int
    cut_strategy: str
    categorical: Any
    max_length: int | None
    task_correlation: Any
    threshold: float
    tol: float
    max_iter: int
    max_nodes: int
    fit_intercept: bool
    warm_start: bool
    n_jobs: int | None
    verbose: int

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

    def _machine(self) -> Loss:
        raise AssertionError("a subclass says which loss it has")

    def _check_rows(self, X: Any, n_rows: int | None = None) -> Table:
        """Check names and columns; ``n_rows`` is how many rows there are where X is a part."""
        table = check_table(self, X, reset=True)
        if (table.n_rows if n_rows is None else n_rows) < 2:
            raise InputError("X has one sample only, but 2 or more are needed.")
        return table

    def _maker(self) -> Propositions:
        return Propositions(
            self.n_cuts, cut_strategy=self.cut_strategy, categorical=self.categorical
        )

    def _state(self, X: Any, weight: Floats | None) -> tuple[Statements, PackedRows]:
        """Choose the propositions, and tell which rows satisfy which."""
        if self.propositions == "given":
            statements = read_given(check_table(self, X, reset=False))
        else:
            statements = self._maker().fit(X, sample_weight=weight).propositions_
        with threads(self.n_jobs):
            return statements, pack_rows(X, statements)

    def _state_of_parts(
        self, parts: RowParts, weight: Floats | None
    ) -> tuple[Statements, PackedRows]:
        """Do the same for rows in blocks: one pass to choose, and one to tell."""
        if self.propositions == "given":
            found = parts.map(given_block)
            statements: Statements = found[0]
            if any(other != statements for other in found):
                raise InputError(
                    "X: all blocks of rows must have the same columns of the same type where "
                    "propositions='given'."
                )
        else:
            summary = join_summaries(parts.map(summarise_block, parts.n_rows, by_row=weight))
            statements = self._maker().fit_summary(summary).propositions_
        return statements, PackedRows.join(parts.map(pack_block, statements))

    def _fit(self, X: Any, targets: Targets) -> Self:
        return self._fit_packed(*self._state(X, targets.weight), targets)

    def _fit_parts(
        self, parts: RowParts, y: Any, sample_weight: Any = None, *, task: Any = None
    ) -> Self:
        """Fit to a table in blocks of rows; of the blocks only packed propositions come here."""
        with all_or_nothing(self):
            self._check_rows(parts.head, parts.n_rows)
            targets = self._targets(parts.n_rows, y, sample_weight, task)
            return self._fit_packed(*self._state_of_parts(parts, targets.weight), targets)

    def _targets(self, n_rows: int, y: Any, sample_weight: Any, task: Any) -> Targets:
        raise AssertionError("a subclass reads its targets")

    def _fit_packed(self, statements: Statements, P: PackedRows, targets: Targets) -> Self:
        """Learn from what rows satisfy; the table itself is not needed any more."""
        rows = merge_propositions(P, targets.Y, targets.cost, targets.weight)
        with threads(self.n_jobs):
            lattice = self._lattice(rows)
            start = self._resume(lattice, statements, rows) or self._sample(lattice, rows)
            self._learn(lattice, statements, rows, targets, start)
        return self

    def _lattice(self, rows: Merged) -> ConjunctionLattice:
        return ConjunctionLattice(rows.X, base=self.base, max_length=self.max_length)

    def _learn(
        self,
        lattice: ConjunctionLattice,
        statements: Sequence[Proposition],
        rows: Merged,
        targets: Targets,
        start: DagWarmStart | None,
    ) -> Result:
        relation = task_matrix(self.task_correlation, rows.Y.shape[1])
        cost = self.C * rows.cost
        with Progress(self.verbose, self.tol) as report:
            result = dag_active_set(
                DagProblem(lattice, rows.Y, cost, self._machine(), float(self.rho), relation),
                Limits(self.tol, self.max_iter, report),
                max_nodes=self.max_nodes,
                start=start,
                polish=_POLISH * self.tol,
            )
        ensemble = self._select(lattice, result, relation, rows, cost, targets)
        self._store(ensemble, lattice, statements, result, rows)
        return result

    def _select(
        self,
        lattice: ConjunctionLattice,
        result: Result,
        relation: Floats | None,
        rows: Merged,
        cost: Floats,
        targets: Targets,
    ) -> Ensemble:
        """Keep the conjunctions that matter, and fit the bias to what is left."""
        values = result.weights[:, None] * lattice.bank.sums(result.dual_coef)
        if relation is not None:
            values = values @ relation
        norms = result.weights * np.sqrt(result.quadratic_forms)
        everywhere = values[0].copy()  # the empty conjunction is a constant
        norms[0] = 0.0
        least = max(max(self.threshold, _LEAST) * norms.max(), _LEAST * np.abs(rows.Y).max())
        kept = np.flatnonzero(norms > least)
        kept = kept[np.argsort(-norms[kept], kind="stable")]
        before = lattice.bank.products(values)
        masked = np.zeros_like(values)
        masked[kept] = values[kept]
        after = lattice.bank.products(masked)
        intercept = result.intercept + everywhere
        if self.fit_intercept:
            intercept = self._machine().value(after, rows.Y, cost)[1]
        outputs = values[kept]
        for output, score in targets.fixed.items():
            intercept[output], outputs[:, output] = score, 0.0
        self.n_changed_ = self._count_changes(before + result.intercept, after + intercept, rows)
        return Ensemble([lattice.nodes[k] for k in kept], outputs, norms[kept], intercept)

    def _count_changes(self, before: Floats, after: Floats, rows: Merged) -> int:
        """Count training rows that leaving out small rules predicts otherwise."""
        return 0

    def _store(
        self,
        ensemble: Ensemble,
        lattice: ConjunctionLattice,
        statements: Sequence[Proposition],
        result: Result,
        rows: Merged,
    ) -> None:
        self.propositions_ = tuple(statements)
        self.intercept_ = ensemble.intercept
        self.objective_, self.duality_gap_ = result.objective, result.gap
        self.converged_, self.history_ = result.converged, list(result.history)
        self.n_iter_ = result.history[-1].solves
        self.n_nodes_ = len(lattice.nodes)
        self._write_rules(ensemble, lattice, rows)
        self._last: Any = None
        if self.warm_start:
            norms = result.weights * np.sqrt(result.quadratic_forms)
            nodes = list(lattice.nodes)
            self._last = (self.propositions_, nodes, norms, result.dual_coef, self.C)
        if not result.converged:
            gap = result.gap / result.size
            warn(
                f"{type(self).__name__} stopped after {self.n_iter_} solves with {self.n_nodes_} "
                f"conjunctions at a relative duality gap of {gap:.1e} (tol={self.tol:g}). Hint: "
                "raise max_iter or max_nodes, lower C, or accept the gap by raising tol.",
                ConvergenceWarning,
            )
        if not self.propositions_:
            warn(
                f"{type(self).__name__}: no column of X gives a proposition, since all are "
                "constant; the model is an intercept alone."
            )

    def _write_rules(self, ensemble: Ensemble, lattice: ConjunctionLattice, rows: Merged) -> None:
        """Turn conjunctions into rules; those that say the same are one rule."""
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

    def _resume(
        self, lattice: ConjunctionLattice, statements: Sequence[Proposition], rows: Merged
    ) -> DagWarmStart | None:
        """Return where the last fit ended, scaled to the present C, if it can serve."""
        last = getattr(self, "_last", None)
        if not self.warm_start or last is None:
            return None
        known, nodes, norms, dual_coef, C = last
        longest = lattice.max_length
        if known != tuple(statements) or dual_coef.shape != rows.Y.shape:
            return None
        if max(map(len, nodes)) > longest:
            return None
        lattice.add(nodes)
        order = {node: k for k, node in enumerate(nodes)}
        norms = np.array([norms[order[node]] for node in lattice.nodes])
        dual_coef = self._machine().repair(dual_coef * (self.C / C), rows.Y, self.C * rows.cost)
        return DagWarmStart(norms, dual_coef) if norms.any() else None

    def _sample(self, lattice: ConjunctionLattice, rows: Merged) -> DagWarmStart | None:
        """Find the first conjunctions on a part of the rows, where rounds cost little."""
        n = len(rows.Y)
        if n < _MANY_ROWS:
            return None
        # Rows are sorted by content, so every kind is there.
        part = np.arange(0, n, min(_SHARE, n // _SAMPLE))
        cost = rows.cost[part]
        totals = cost.sum(axis=0)
        if not (totals > 0).all():
            return None
        small = ConjunctionLattice(rows.X[part], base=self.base, max_length=self.max_length)
        cost = self.C * cost * (rows.cost.sum(axis=0) / totals)
        relation = task_matrix(self.task_correlation, rows.Y.shape[1])
        problem = DagProblem(small, rows.Y[part], cost, self._machine(), float(self.rho), relation)
        result = dag_active_set(
            problem,
            Limits(max(self.tol, _SAMPLE_TOL), self.max_iter),
            max_nodes=min(self.max_nodes, _SAMPLE_NODES),
        )
        norms = result.weights * np.sqrt(result.quadratic_forms)
        if not norms.any():
            return None
        large = norms > 1e-3 * norms.max()
        lattice.add([node for node, there in zip(small.nodes, large, strict=True) if there])
        known = dict(zip(small.nodes, norms.tolist(), strict=True))
        return DagWarmStart(np.array([known[node] for node in lattice.nodes]))

    def _path(self, X: Any, targets: Targets, Cs: Iterable[float]) -> list[Self]:
        """Fit one estimator per C on one lattice, from small to large C, each from the last."""
        values = check_costs(Cs)
        statements, P = self._state(X, targets.weight)
        rows = merge_propositions(P, targets.Y, targets.cost, targets.weight)
        fitted: dict[float, Self] = {}
        with threads(self.n_jobs):
            lattice = self._lattice(rows)
            start = self._with_cost(min(values))._sample(lattice, rows)
            for C in sorted(set(values)):
                model = self._with_cost(C)
                result = model._learn(lattice, statements, rows, targets, start)
                fitted[C] = model
                norms = result.weights * np.sqrt(result.quadratic_forms)
                start = DagWarmStart(norms, result.dual_coef) if norms.any() else None
                if start is not None:
                    larger = [value for value in values if value > C]
                    factor = min(larger, default=C) / C
                    start = DagWarmStart(norms, factor * result.dual_coef)
        return [fitted[C] for C in values]

    def _with_cost(self, C: float) -> Self:
        """Return a copy for another C that knows what was learned from the data so far."""
        known = {k: v for k, v in vars(self).items() if k.endswith("_in_") or k in self._learned}
        model: Self = clone(self).set_params(C=C)
        model.__dict__.update(known)
        return model

    _learned: ClassVar[tuple[str, ...]] = ()

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        check_table(self, X, reset=False)
        with threads(self.n_jobs):
            return score_rules(self.rules_, self.intercept_, X)

    def explain(self, X: Any) -> tuple[Explanation, ...]:
        """Tell for each row which rules hold, and what they add up to.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows to explain.

        Returns
        -------
        explanations : tuple of Explanation
            One for each row; ``print`` shows the rules that hold, heaviest first.
        """
        check_is_fitted(self)
        check_table(self, X, reset=False)
        return explain_rows(self.rules_, self.intercept_, X)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all rules, heaviest first.

        Returns
        -------
        frame : pandas.DataFrame
            ``rule`` (text), a weight for each output, ``coverage`` (share of the training rows),
            ``length`` and ``norm`` (what the rule counts in the objective).
        """
        check_is_fitted(self)
        import pandas as pd

        names = self._weight_names()
        weights = {name: [rule.weights[t] for rule in self.rules_] for t, name in enumerate(names)}
        return pd.DataFrame(
            {
                "rule": [rule.text for rule in self.rules_],
                **weights,
                "coverage": [rule.coverage for rule in self.rules_],
                "length": [rule.length for rule in self.rules_],
                "norm": self.norms_,
            }
        )

    def _weight_names(self) -> list[str]:
        n_outputs = len(self.intercept_)
        return ["weight"] if n_outputs == 1 else [f"weight_{t}" for t in range(n_outputs)]

    def _export(self) -> dict[str, Any]:
        check_is_fitted(self)
        one = len(self.intercept_) == 1
        intercept = float(self.intercept_[0]) if one else self.intercept_.tolist()
        return {"rules": self.rules_, "intercept": intercept, "classes": self._classes()}

    def _classes(self) -> list[Any] | None:
        return None

    def to_sql(
        self, dialect: str = "standard", *, table: str | Sequence[str] = "data", **options: Any
    ) -> str:
        """Write the model as an SQL query over a table.

        Parameters
        ----------
        dialect : {"standard", "sqlite", "postgresql", "duckdb", "mysql"}, default="standard"
            The database that will run the query.
        table : str or sequence of str, default="data"
            The table.
        **options
            ``keep``, ``rename``, ``score`` and ``prediction`` of `kernelweave.rules.to_sql`.

        Returns
        -------
        query : str
            It returns the score and the prediction of every row.
        """
        return to_sql(**self._export(), dialect=dialect, table=table, **options)

    def to_python(self, name: str = "predict", **options: Any) -> str:
        """Write the model as a Python function that imports nothing.

        Parameters
        ----------
        name : str, default="predict"
            Name of the function.
        **options
            ``rename`` of `kernelweave.rules.to_python`.

        Returns
        -------
        code : str
            Text of the function.
        """
        return to_python(**self._export(), name=name, **options)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.propositions == "auto"
        tags.input_tags.string = tags.input_tags.categorical = self.propositions == "auto"
        return tags
