"""Base class of the rule ensembles: propositions, search over conjunctions, selected rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from kernelweave._dask import PartedTable, fetch, is_dask
from kernelweave._declaration import CERTIFICATE, Declaration
from kernelweave._summary import NotebookSummary
from kernelweave._threads import threads
from kernelweave._types import Floats, Indices
from kernelweave._validation import N_JOBS, Interval, StrOptions, all_or_nothing, fit_context
from kernelweave.banks.rules import PackedRows
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.errors import InputError, warn
from kernelweave.losses import Loss
from kernelweave.rules import LinearTerm, Proposition, Propositions
from kernelweave.rules.constraints import find_columns, proposition_signs, read_directions
from kernelweave.rules.linear import linear_columns
from kernelweave.rules.packing import RowParts, given_block, pack_block, pack_rows, read_given
from kernelweave.rules.summary import TableSummary, join_summaries, summarise, summarise_block
from kernelweave.rules.table import check_table
from kernelweave.solvers import Callback, Result

from .duplicates import MergedRows, merge_propositions
from .fit import FitMixin, quiet_overflow
from .out_of_fold import SAVED, OutOfFold, fold_solves
from .rule_export import RuleExport
from .rule_search import RuleProblem, search_of
from .rule_selection import Ensemble, Shortener
from .rule_stability import Resampling
from .targets import Targets, TaskOutputs

Statements = tuple[Proposition, ...]

_LARGEST_BASE = 1e6
_LEAST = 1e-12  # norm of a rule, relative to the largest or to the targets; less is rounding


@dataclass(eq=False, repr=False)
class BaseRuleEnsemble(
    TaskOutputs, RuleExport, OutOfFold, FitMixin, NotebookSummary, BaseEstimator
):
    """Base of the estimators that learn weights of conjunctions."""

    rho: float = 1.1
    _: KW_ONLY
    C: float = 1.0
    base: float = 2.0
    propositions: str = "auto"
    n_cuts: int = 4
    cut_strategy: str = "quantile"
    categorical: Any = "auto"
    max_length: int | None = None
    linear_terms: bool | str = False
    task_correlation: Any = None
    threshold: float = 1e-3
    max_rules: int | None = None
    refit: bool = False
    monotone: dict[Any, int] | None = None
    forbidden: Sequence[Any] | None = None
    required: Sequence[Any] | None = None
    max_columns: int | None = None
    n_resamples: int = 0
    min_stability: float = 0.0
    random_state: Any = None
    solver: str = "alternate"
    certificate: str = "tight"
    tol: float = 1e-2
    max_iter: int = 2000
    max_nodes: int = 20_000
    fit_intercept: bool = True
    calibration_cv: Any = None
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0

    n_features_in_: int = field(init=False)
    propositions_: Statements = field(init=False)

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
        optional={
            "feature_names_in_": "names",
            "tasks_": "labels[outputs]",
            "refit_gap_": "real",
            "stability_": "float[rules]",
            "_linear": "any",
            "linear_terms_": "list[linear terms]",
            "linear_norms_": "float[linear terms]",
            "linear_stability_": "float[linear terms]",
            **SAVED,
        },
        aspects=("rules",),
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rho": [Interval(Real, 1, 2, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "base": [Interval(Real, 0, _LARGEST_BASE, closed="right")],
        "propositions": [StrOptions({"auto", "given"})],
        "n_cuts": Propositions._parameter_constraints["n_cuts"],
        "cut_strategy": Propositions._parameter_constraints["cut_strategy"],
        "categorical": Propositions._parameter_constraints["categorical"],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "linear_terms": ["boolean", StrOptions({"auto"})],
        "task_correlation": "no_validation",  # checked with the number of outputs
        "threshold": [Interval(Real, 0, 1, closed="left")],
        "max_rules": [Interval(Integral, 1, None, closed="left"), None],
        "refit": ["boolean"],
        "monotone": [dict, None],
        "forbidden": ["array-like", None],
        "required": ["array-like", None],
        "max_columns": [Interval(Integral, 1, None, closed="left"), None],
        "n_resamples": [Interval(Integral, 0, None, closed="left")],
        "min_stability": [Interval(Real, 0, 1, closed="both")],
        "random_state": ["random_state"],
        "solver": [StrOptions({"alternate", "mirror"})],
        "certificate": [StrOptions({"tight", "paper"})],
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

    def _fit_grid(
        self,
        X: Any,
        y: Any,
        candidates: list[dict[str, Any]],
        limit: float,
        sample_weight: Any = None,
        *,
        task: Any = None,
    ) -> list[Self]:
        """Fit for several parameters, ordered by C; end where there are too many conjunctions.

        Candidates with the same C share one solution, and differ in what is kept of it.
        """
        X = fetch(X)
        targets = self._targets(self._check_rows(X), y, sample_weight, task)
        packed = self._pack(X, targets.weight)
        models = [self._copy(**candidate) for candidate in candidates]
        with threads(self.n_jobs), quiet_overflow():
            rows = self._merge(packed, targets)
            shared = self._prepare(rows, targets, models)
            last: tuple[Self, Result] | None = None
            for k, model in enumerate(models):
                if last is not None and last[0].C == model.C:
                    result = last[1]
                elif last is not None and np.count_nonzero(last[1].weights) > limit:
                    return models[:k]
                else:
                    result = model._learn(shared, rows, model._start(shared, rows, last), None)
                    model._check_finite(result)
                model._store(shared, result, rows)
                last = model, result
        return models

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
        table = check_table(self, X, reset=False)
        if self.propositions == "given":
            self._take(read_given(table))
        else:
            self._propose(summarise(table, weight))
        with threads(self.n_jobs):
            return pack_rows(X, self.propositions_, self._linear)

    def _pack_parts(self, parts: RowParts, weight: Floats | None) -> PackedRows:
        """Do the same for rows in blocks: one pass to choose propositions, one to pack."""
        if self.propositions == "given":
            found = parts.map(given_block)
            self._take(found[0])
            if any(other != found[0] for other in found):
                raise InputError(
                    "X: all blocks of rows must have the same columns of the same type where "
                    "propositions='given'."
                )
        else:
            self._propose(join_summaries(parts.map(summarise_block, parts.n_rows, by_row=weight)))
        return PackedRows.join(parts.map(pack_block, self.propositions_, self._linear))

    def _propose(self, summary: TableSummary) -> None:
        """Choose the propositions and the columns of linear terms by the values of the columns."""
        maker = self._maker().fit_summary(summary)
        nominal = maker.nominal_columns(summary)
        self._take(maker.propositions_, linear_columns(summary, nominal) if self._has_lines else ())

    def _take(self, propositions: Statements, linear: tuple[LinearTerm, ...] = ()) -> None:
        """Leave out what is about forbidden columns, and check the columns of all constraints."""
        search_of(self)
        forbidden = self._positions("forbidden")
        if both := forbidden & self._positions("required"):
            raise InputError(f"required: column {min(both)} is also in forbidden.")
        read_directions(self.monotone, *self._known_columns())
        self.propositions_ = tuple(p for p in propositions if p.position not in forbidden)
        # In the scale of the fit: columns of numbers beside the propositions.
        self._linear = tuple(term for term in linear if term.position not in forbidden)

    @property
    def _has_lines(self) -> bool:
        """Whether linear terms are wanted; "auto": where they are possible."""
        possible = self.rho == 1.0 and self.propositions == "auto"
        return possible if self.linear_terms == "auto" else bool(self.linear_terms)

    @property
    def _statements(self) -> tuple[Proposition | LinearTerm, ...]:
        """What the numbers in conjunctions stand for."""
        return (*self.propositions_, *self._linear)

    def _known_columns(self) -> tuple[list[str] | None, int]:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names), self.n_features_in_

    def _positions(self, parameter: str) -> set[int]:
        """Return the positions of the columns that a parameter lists."""
        return find_columns(getattr(self, parameter), *self._known_columns(), parameter)

    def _merge(self, X: PackedRows, targets: Targets) -> MergedRows:
        return merge_propositions(X, targets.Y, targets.cost, targets.weight)

    def _prepare(self, rows: MergedRows, targets: Targets, models: list[Self]) -> RuleProblem:
        signs = proposition_signs(
            self._statements, read_directions(self.monotone, *self._known_columns())
        )
        if signs is not None and rows.Y.shape[1] > 1:
            raise InputError("monotone: needs two classes or one target, without tasks.")
        return RuleProblem(self._lattice(rows.X), targets.fixed, signs)

    def _lattice(self, P: PackedRows) -> ConjunctionLattice:
        return ConjunctionLattice(P, base=self.base, max_length=self.max_length)

    def _learn(
        self, shared: RuleProblem, rows: MergedRows, start: Any, report: Callback | None
    ) -> Result:
        return search_of(self).learn(self, shared, rows, start, report)

    def _select(self, shared: RuleProblem, result: Result, rows: MergedRows) -> Ensemble:
        """Keep the conjunctions that matter, and fit the bias to the residuals."""
        found = search_of(self).weigh(self, shared, result, rows)
        values, norms = found.values, found.norms
        largest = norms.max(initial=0.0)
        least = max(max(self.threshold, _LEAST) * largest, _LEAST * np.abs(rows.Y).max())
        kept = np.flatnonzero(norms > least)
        kept = kept[np.argsort(-norms[kept], kind="stable")]
        before = found.score(values)
        masked = np.zeros_like(values)
        masked[kept] = values[kept]
        after = found.score(masked)
        intercept = result.intercept + found.constant
        if self.fit_intercept:
            intercept = self._make_loss().value(after, rows.Y, self.C * rows.cost)[1]
        nodes = [found.nodes[k] for k in kept.tolist()]
        ensemble = Ensemble(nodes, values[kept], norms[kept], intercept, after + intercept)
        shortener = Shortener(self, shared.lattice.bank, rows, shared.signs)
        if self.refit or self.max_rules is not None or self.required is not None:
            ensemble = shortener.shorten(ensemble, result.dual_coef)
        if self.n_resamples:
            ensemble = Resampling(self, shared, result, rows).assess(ensemble, shortener)
        for output, score in shared.fixed.items():
            ensemble.values[:, output], ensemble.scores[:, output] = 0.0, score
            ensemble.intercept[output] = score
        self.n_changed_ = self._count_changes(before + result.intercept, ensemble.scores, rows)
        return ensemble

    def _count_changes(self, before: Floats, after: Floats, rows: MergedRows) -> int:
        """Count training rows that leaving out small rules predicts otherwise."""
        return 0

    def _store(self, shared: RuleProblem, result: Result, rows: MergedRows) -> None:
        lattice, ensemble = shared.lattice, self._select(shared, result, rows)
        search = search_of(self)
        self.intercept_ = ensemble.intercept
        self._store_bounds(result)
        self.n_nodes_ = search.n_nodes(shared, result)
        self._write_rules(ensemble, lattice, rows)
        self._last: Any = search.keep(self, shared, result) if self.warm_start else None
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

    def _n_learned(self, shared: RuleProblem) -> float:
        return np.inf  # all conjunctions are candidates

    def _fold_start(self, shared: RuleProblem, result: Result, rows: MergedRows) -> Any:
        return search_of(self).fold_start(self, shared, result, rows)

    def _fold_limit(self, shared: RuleProblem, result: Result) -> int:
        return fold_solves(result, self.max_iter)

    def _row_values(
        self, shared: RuleProblem, result: Result, rows: MergedRows, test: Indices
    ) -> Floats:
        return self._select(shared, result, rows).scores[test]

    def _outputs(self, X: Any) -> Floats:
        return self._scores(X)

    def _resume(self, shared: RuleProblem, rows: MergedRows) -> Any:
        return search_of(self).resume(self, shared, rows)

    def _continue(self, result: Result, ratio: float) -> Any:
        return search_of(self).proceed(result, ratio)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rules_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.propositions == "auto"
        tags.input_tags.string = tags.input_tags.categorical = self.propositions == "auto"
        return tags
