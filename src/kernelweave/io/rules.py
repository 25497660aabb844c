"""Checks of rule ensembles read from model files: rules belong to columns, outputs to classes."""

from __future__ import annotations

from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np

from kernelweave.rules import LinearTerm, Proposition, Rule

from .checks import check_array, check_rows_and_columns, check_type


def check_rules(model: Any) -> None:
    """Refuse a rule ensemble whose parts do not belong together."""
    check_type("propositions_", model.propositions_, tuple)
    for proposition in model.propositions_:
        check_type("an item of propositions_", proposition, Proposition)
        _check_column(model, proposition)
    n_outputs = model.intercept_.size
    offered = getattr(model, "_linear", ())  # older files lack it
    check_type("_linear", offered, tuple)
    for term in [*offered, *getattr(model, "linear_terms_", ())]:
        check_type("a linear term", term, LinearTerm)
        _check_column(model, term)
    for rule in model.rules_:
        check_type("an item of rules_", rule, Rule)
    for rule in model._added:
        if len(rule.weights) != n_outputs or isinstance(rule.weight, tuple) == (n_outputs == 1):
            raise ValueError(f"the rule {rule.text!r} does not have {n_outputs} weights")
        for condition in rule.conditions:
            _check_column(model, condition)
    _check_outputs(model)
    if "cv_results_" in model._declaration.saved:
        _check_search(model.cv_results_)
    if model._last is not None:
        _check_last(model)


def _check_column(model: Any, proposition: Proposition | LinearTerm) -> None:
    """Refuse a proposition about a column that the model does not have."""
    position, names = proposition.position, getattr(model, "feature_names_in_", None)
    known = position < model.n_features_in_
    if not known or (names is not None and names[position] != proposition.feature):
        raise ValueError(f"the proposition {proposition.text!r} is about another table")


def _check_outputs(model: Any) -> None:
    n_outputs, tasks = model.intercept_.size, hasattr(model, "tasks_")
    if "classes_" in model._declaration.saved:
        one = model.classes_.size == 2 and not model._multilabel
        fits = one if tasks else n_outputs == (1 if one else model.classes_.size)
    else:
        fits = tasks or not model._one_output or n_outputs == 1
    if not fits or not n_outputs:
        raise ValueError(f"the number of outputs cannot be {n_outputs}")


def _check_search(results: dict[str, Any]) -> None:
    rest = ["mean_score", "std_score", "scores", "n_rules"]
    if list(results) not in (["C", *rest], ["C", "max_rules", *rest]):
        raise ValueError(f"cv_results_ has the entries {list(results)}")
    check_type("scores", results["scores"], np.ndarray)
    n_values, n_folds = results["scores"].shape
    for name, values in results.items():
        shape = (n_values, n_folds) if name == "scores" else (n_values,)
        check_array(f"{name} in cv_results_", values, "f", shape)


def _check_last(model: Any) -> None:
    """Refuse a starting point of the next fit unless it is a complete set of conjunctions."""
    statements, nodes, norms, coef, C = model._last
    if statements != model.propositions_:
        raise ValueError("the propositions to start from are not those of the model")
    check_type("the conjunctions to start from", nodes, list)
    for node in nodes:
        check_type("a conjunction to start from", node, tuple)
        if not all(type(c) is int and 0 <= c < len(statements) for c in node):
            raise ValueError("a conjunction to start from has an unknown proposition")
        if list(node) != sorted(set(node)):
            raise ValueError("a conjunction to start from is not in order")
    parents = {parent for node in nodes if node for parent in combinations(node, len(node) - 1)}
    needed = parents | {(c,) for c in range(len(statements))}
    if len(set(nodes)) != len(nodes) or not needed <= set(nodes):
        raise ValueError("the conjunctions to start from are not complete")
    check_array("the norms to start from", norms, "f", (len(nodes),))
    check_rows_and_columns("the coefficients to start from", coef, "f", model.intercept_.size)
    check_type("the C to start from", C, Real)
    if not 0 < C < np.inf:
        raise ValueError("the C to start from must be positive")
