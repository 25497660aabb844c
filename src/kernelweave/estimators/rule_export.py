"""Fitted rules and linear terms, and their use: scores, explanations, tables, SQL and Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelweave import _core
from kernelweave._threads import threads
from kernelweave._types import Floats
from kernelweave.candidates.lattice import ConjunctionLattice
from kernelweave.errors import InputError
from kernelweave.rules import (
    Explanation,
    LinearTerm,
    Link,
    Proposition,
    Rule,
    Scorecard,
    essential,
    explain_rows,
    score_rules,
    to_python,
    to_sql,
)
from kernelweave.rules.export import check_model
from kernelweave.rules.linear import Term
from kernelweave.rules.scorecard import make_scorecard
from kernelweave.rules.table import check_table

from .duplicates import MergedRows
from .rule_selection import Ensemble
from .terms import RuleTerms

if TYPE_CHECKING:
    import pandas as pd


class RuleExport:
    """Mixin for estimators whose fitted model consists of rules and an intercept."""

    rules_: list[Rule]
    norms_: Floats
    linear_terms_: list[LinearTerm]
    linear_norms_: Floats
    intercept_: Floats
    propositions_: tuple[Proposition, ...]
    refit: bool
    n_jobs: int | None
    _linear: tuple[LinearTerm, ...]

    def _write_rules(
        self, ensemble: Ensemble, lattice: ConjunctionLattice, rows: MergedRows
    ) -> None:
        """Turn conjunctions into rules; equivalent ones are merged."""
        statements = self.propositions_
        linear = np.array([lattice.bank.is_linear(node) for node in ensemble.conjunctions], bool)
        self._write_linear(ensemble.kept(linear))
        ensemble = ensemble.kept(~linear)
        counts = np.ones(len(rows.Y)) if rows.weight is None else rows.weight
        merged: dict[
            frozenset[Proposition], tuple[tuple[Proposition, ...], Floats, float, int]
        ] = {}
        for k, (node, value, norm) in enumerate(
            zip(ensemble.conjunctions, ensemble.values, ensemble.norms, strict=True)
        ):
            conditions = essential([statements[c] for c in node])
            key = frozenset(conditions)
            if key in merged:
                _, other, size, first = merged[key]
                merged[key] = (conditions, other + value, size + norm, first)
            else:
                merged[key] = (conditions, value, norm, k)
        found = sorted(merged.values(), key=lambda item: -item[2])
        order = [k for *_, k in found]
        bits = lattice.bank.columns_of([ensemble.conjunctions[k] for k in order])
        covered = _core.bit_sums(bits, counts[:, None])[:, 0] / counts.sum()
        one = len(ensemble.intercept) == 1
        self.rules_ = [
            Rule(conditions, float(value[0]) if one else tuple(value.tolist()), min(1.0, share))
            for (conditions, value, _, _), share in zip(found, covered.tolist(), strict=True)
        ]
        self.norms_ = np.array([norm for _, _, norm, _ in found])
        for name in ("refit_gap_", "stability_"):
            self.__dict__.pop(name, None)
        if self.refit:
            self.refit_gap_ = float(ensemble.gap)
        if ensemble.stability is not None:
            self.stability_ = ensemble.stability[order]

    def _write_linear(self, ensemble: Ensemble) -> None:
        """Turn columns of numbers into linear terms, those of the largest norm first."""
        ensemble = ensemble.kept(np.argsort(-ensemble.norms, kind="stable"))
        one, first = len(ensemble.intercept) == 1, len(self.propositions_)
        self.linear_terms_ = []
        for (number,), value in zip(ensemble.conjunctions, ensemble.values, strict=True):
            column = self._linear[number - first]
            weights = tuple((value * column.weights[0]).tolist())
            self.linear_terms_.append(replace(column, weight=weights[0] if one else weights))
        self.linear_norms_ = ensemble.norms
        self.__dict__.pop("linear_stability_", None)
        if ensemble.stability is not None:
            self.linear_stability_ = ensemble.stability

    @property
    def _added(self) -> list[Term]:
        """The rules and linear terms, in the order in which scores add them up."""
        return [*self.rules_, *getattr(self, "linear_terms_", ())]  # older model files lack them

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        check_table(self, X, reset=False)
        with threads(self.n_jobs):
            return score_rules(self._added, self.intercept_, X)

    def _terms(self) -> RuleTerms:
        """Return the rules and linear terms that the scores add up."""
        return RuleTerms(
            tuple(self._added), self.intercept_, partial(check_table, self, reset=False)
        )

    def explain(self, X: Any) -> tuple[Explanation, ...]:
        """Return for each row which rules hold, what linear terms add, and the sum of all.

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
        return explain_rows(self._added, self.intercept_, X)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of all rules, heaviest first, and of the linear terms after them.

        Returns
        -------
        frame : pandas.DataFrame
            ``rule`` (text), a weight for each output, ``coverage`` (share of the training rows),
            ``length`` and ``norm`` (what the rule counts in the objective). The weight of a linear
            term is that of one unit of its column, and its coverage NaN.
        """
        check_is_fitted(self)
        import pandas as pd

        names = self._weight_names()
        terms = self._added
        n_linear = len(terms) - len(self.rules_)
        weights = {name: [term.weights[t] for term in terms] for t, name in enumerate(names)}
        return pd.DataFrame(
            {
                "rule": [term.name for term in terms],
                **weights,
                "coverage": [rule.coverage for rule in self.rules_] + [np.nan] * n_linear,
                "length": [term.length for term in terms],
                "norm": np.append(self.norms_, getattr(self, "linear_norms_", ())),
            }
        )

    def _weight_names(self) -> list[str]:
        n_outputs = len(self.intercept_)
        return ["weight"] if n_outputs == 1 else [f"weight_{t}" for t in range(n_outputs)]

    def _export(self, probability: bool) -> dict[str, Any]:
        check_is_fitted(self)
        one = len(self.intercept_) == 1
        return {
            "rules": self._added,
            "intercept": float(self.intercept_[0]) if one else self.intercept_.tolist(),
            "classes": self._classes(),
            "separate": self._separate(),
            "link": self._link() if probability else None,
        }

    def _classes(self) -> list[Any] | None:
        """Return the classes that outputs choose from; None for regression."""
        return None

    def _separate(self) -> bool:
        """Return whether each output chooses between two classes."""
        return False

    def _link(self) -> Link:
        """Return how scores become probabilities, or refuse."""
        raise InputError("probability: a regression has no probabilities.")

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
            ``keep``, ``rename``, ``dates``, ``score`` and ``prediction`` of
            `kernelweave.rules.to_sql`; and ``probability``, the name of the probability of
            ``classes_[1]`` (several classes or labels: of each) for models that have one.

        Returns
        -------
        query : str
            It returns the score and the prediction of every row. Labels and tasks have a score and
            a prediction each, numbered from 0.
        """
        model = self._export("probability" in options)
        return to_sql(**model, dialect=dialect, table=table, **options)

    def to_python(self, name: str = "predict", *, probability: bool = False, **options: Any) -> str:
        """Write the model as a Python function that needs no package.

        Parameters
        ----------
        name : str, default="predict"
            Name of the function.
        probability : bool, default=False
            Whether the function also returns probabilities, for models that have some.
        **options
            ``rename`` and ``dates`` of `kernelweave.rules.to_python`.

        Returns
        -------
        code : str
            Text of the function.
        """
        return to_python(**self._export(probability), name=name, **options)

    def to_scorecard(self, X: Any = None, *, points: int | None = None) -> Scorecard:
        """Round the weights of the rules to whole points that can be added up by hand.

        A linear term has points for bands of its column.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features), default=None
            Rows on which the effect of rounding is measured, such as the training rows.
        points : int, default=None
            Points of the heaviest rule. None: the first of 5, 10, 20, 50, 100, 200, 500 and 1000
            with which at most 1 % of the decisions for ``X`` change (regression: with which
            predictions change by 1 % of their standard deviation at most); 100 without ``X``.

        Returns
        -------
        card : Scorecard
            ``print`` shows it; ``to_html()``, ``to_csv()`` and ``to_frame()`` give other forms, and
            ``changed`` is the share of decisions that rounding changes.
        """
        model = self._export(False)
        checked = check_model(
            model["rules"],
            model["intercept"],
            model["classes"],
            None,
            separate=model["separate"],
        )
        if X is not None:
            check_table(self, X, reset=False)
        names = [name.removeprefix("weight ") for name in self._weight_names()]
        return make_scorecard(checked, names, X, points)
