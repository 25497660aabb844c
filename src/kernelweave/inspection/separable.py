"""Models as sums of products of functions of single columns of the table that users have."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from kernelweave._types import Floats, Indices
from kernelweave.estimators.terms import RuleTerms
from kernelweave.rules import Proposition, Rule, score_rules
from kernelweave.rules.scores import cached_truths

from .anova import Function, Products, Separable

Prepare = Callable[[Any], Any]


def separable_form(model: Any, table: Any) -> Separable | None:
    """Return a model as a sum of products of functions of columns; None where it is none.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model.
    table : table
        Some rows, with the columns of the model.
    """
    if isinstance(model, Pipeline) and len(model) > 1:
        return None
    estimator = model[-1] if isinstance(model, Pipeline) else model
    return separate(estimator._terms(), np.arange(table.shape[1]), lambda rows: rows)


@singledispatch
def separate(terms: Any, owner: Indices, prepare: Prepare) -> Separable | None:
    """Return what ``_terms()`` of an estimator returned as a sum of products, if it is one.

    Parameters
    ----------
    terms : object
        Terms of a model.
    owner : ndarray of int
        For each column that the estimator sees the column of the user's table it comes from.
    prepare : callable
        From the user's table to that of the estimator.
    """
    return None


@separate.register
def separate_rules(terms: RuleTerms, owner: Indices, prepare: Prepare) -> Separable:
    """Return rules on several columns as products of truth values, others as sums."""
    constant = np.array(terms.intercept, dtype=np.float64)
    single: dict[int, list[Rule]] = {}
    several: list[dict[int, list[Proposition]]] = []
    weights: list[tuple[float, ...]] = []
    for rule in terms.rules:
        parts: dict[int, list[Proposition]] = {}
        for condition in rule.conditions:
            parts.setdefault(int(owner[condition.position]), []).append(condition)
        if not parts:
            constant += rule.weights
        elif len(parts) == 1:
            single.setdefault(next(iter(parts)), []).append(rule)
        else:
            several.append(parts)
            weights.append(rule.weights)

    def factor(player: int) -> Function:
        def truths(table: Any) -> Floats:
            checked = terms.check(prepare(table))
            true = cached_truths(checked)
            out = np.ones((len(several), checked.n_rows))
            for row, parts in zip(out, several, strict=True):
                for condition in parts.get(player, ()):
                    row *= true(condition)
            return out

        return truths

    def own(rules: list[Rule]) -> Function:
        zeros = np.zeros(len(constant))
        return lambda table: score_rules(rules, zeros, terms.check(prepare(table)))

    players = sorted({player for parts in several for player in parts})
    products = Products(
        np.array(weights).reshape(len(several), len(constant)), {q: factor(q) for q in players}
    )
    return Separable(
        constant, [products] if several else [], {q: [own(r)] for q, r in single.items()}
    )


def thresholds(model: Any) -> dict[int, list[float]]:
    """Return the numbers at which rules cut each column of the user's table."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return {}
    estimator = model[-1] if isinstance(model, Pipeline) else model
    found: dict[int, list[float]] = {}
    for rule in getattr(estimator, "rules_", ()):
        for condition in rule.conditions:
            if condition.is_numeric:
                found.setdefault(condition.position, []).append(float(condition.value))
    return found
