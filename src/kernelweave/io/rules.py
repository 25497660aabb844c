"""Rule ensembles as JSON, and back."""

from __future__ import annotations

from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from kernelweave.errors import ModelFileError
from kernelweave.estimators import (
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
)
from kernelweave.estimators.rule_base import BaseRuleEnsemble
from kernelweave.rules import Proposition, Rule

from .archive import Writer
from .checks import check_array, check_columns, check_record, check_type
from .codec import Decoder, encode

_COMMON = """rules_ norms_ intercept_ propositions_ n_nodes_ n_changed_ objective_ duality_gap_
converged_ n_iter_ history_ n_features_in_ _last""".split()
_SEARCH = ["C_", "cv_results_"]

# What `fit` gave each estimator beyond the common part.
RULE_ENSEMBLES: dict[type[BaseRuleEnsemble], list[str]] = {
    RuleEnsembleClassifier: ["classes_", "_multilabel"],
    RuleEnsembleRegressor: ["_one_output"],
    RuleEnsembleClassifierCV: ["classes_", "_multilabel", *_SEARCH],
    RuleEnsembleRegressorCV: ["_one_output", *_SEARCH],
}
_OPTIONAL = ["feature_names_in_", "tasks_"]


def encode_ensemble(model: BaseRuleEnsemble, writer: Writer) -> dict[str, Any]:
    """Return a fitted rule ensemble as JSON."""
    kind = type(model)
    names = [*_COMMON, *RULE_ENSEMBLES[kind], *(k for k in _OPTIONAL if hasattr(model, k))]
    parameters = model.get_params(deep=False).items()
    return {
        "estimator": kind.__name__,
        "parameters": {name: _parameter(name, value, writer) for name, value in parameters},
        "fitted": {name: encode(getattr(model, name), writer) for name in names},
    }


def _parameter(name: str, value: Any, writer: Writer) -> Any:
    try:
        return encode(value, writer)
    except ModelFileError:
        raise ModelFileError(
            f"The parameter {name}={value!r} cannot be written to a model file; use text, numbers "
            f"or arrays, such as a number of folds, with set_params({name}=...) before save."
        ) from None


def decode_ensemble(node: dict[str, Any], decode: Decoder) -> Any:
    """Return what `encode_ensemble` was given; ValueError and TypeError say what is wrong."""
    kind = next(kind for kind in RULE_ENSEMBLES if kind.__name__ == node["estimator"])
    model = kind(**{name: decode(value) for name, value in node["parameters"].items()})
    model._validate_params()
    fitted = {name: decode(value) for name, value in node["fitted"].items()}
    needed = {*_COMMON, *RULE_ENSEMBLES[kind]}
    if not needed <= set(fitted) <= needed | set(_OPTIONAL):
        raise ValueError(f"the fitted attributes are {sorted(fitted)}")
    model.__dict__.update(fitted)
    check_record(model)
    check_columns(model)
    _check_rules(model)
    _check_outputs(model)
    if hasattr(model, "C_"):
        _check_search(model)
    if model._last is not None:
        _check_last(model)
    return model


def _check_rules(model: Any) -> None:
    check_type("propositions_", model.propositions_, tuple)
    for proposition in model.propositions_:
        check_type("an item of propositions_", proposition, Proposition)
        _check_column(model, proposition)
    check_type("intercept_", model.intercept_, np.ndarray)
    n_outputs = model.intercept_.size
    check_array("intercept_", model.intercept_, "f", (n_outputs,))
    check_type("rules_", model.rules_, list)
    for rule in model.rules_:
        check_type("an item of rules_", rule, Rule)
        if len(rule.weights) != n_outputs or isinstance(rule.weight, tuple) == (n_outputs == 1):
            raise ValueError(f"the rule {rule.text!r} does not have {n_outputs} weights")
        for condition in rule.conditions:
            _check_column(model, condition)
    check_array("norms_", model.norms_, "f", (len(model.rules_),))
    for name in ("n_nodes_", "n_changed_"):
        check_type(name, getattr(model, name), Integral)


def _check_column(model: Any, proposition: Proposition) -> None:
    """Refuse a proposition about a column that the model does not have."""
    position, names = proposition.position, getattr(model, "feature_names_in_", None)
    known = position < model.n_features_in_
    if not known or (names is not None and names[position] != proposition.feature):
        raise ValueError(f"the proposition {proposition.text!r} is about another table")


def _check_outputs(model: Any) -> None:
    n_outputs = len(model.intercept_)
    tasks = getattr(model, "tasks_", None)
    if tasks is not None:
        check_type("tasks_", tasks, np.ndarray)
        check_array("tasks_", tasks, "biufUO", (n_outputs,))
    if is_classifier(model):
        check_type("_multilabel", model._multilabel, bool)
        check_type("classes_", model.classes_, np.ndarray)
        n_classes = model.classes_.size
        check_array("classes_", model.classes_, "biufUO", (n_classes,))
        if tasks is not None:
            fits = n_classes == 2 and not model._multilabel
        else:
            fits = n_outputs == (1 if n_classes == 2 and not model._multilabel else n_classes)
    else:
        check_type("_one_output", model._one_output, bool)
        fits = tasks is not None or not model._one_output or n_outputs == 1
    if not fits or not n_outputs:
        raise ValueError(f"the number of outputs cannot be {n_outputs}")


def _check_search(model: Any) -> None:
    check_type("C_", model.C_, Real)
    if not 0 < model.C_ < np.inf:
        raise ValueError("C_ must be positive")
    results = model.cv_results_
    check_type("cv_results_", results, dict)
    if list(results) != ["C", "mean_score", "std_score", "scores", "n_rules"]:
        raise ValueError(f"cv_results_ has the entries {list(results)}")
    check_type("scores", results["scores"], np.ndarray)
    n_values, n_folds = results["scores"].shape
    for name, values in results.items():
        shape = (n_values, n_folds) if name == "scores" else (n_values,)
        check_array(f"{name} in cv_results_", values, "f", shape)


def _check_last(model: Any) -> None:
    """Refuse what the next fit would start from unless it belongs together."""
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
    check_type("the coefficients to start from", coef, np.ndarray)
    check_array("the coefficients to start from", coef, "f", (len(coef), len(model.intercept_)))
    check_type("the C to start from", C, Real)
    if not 0 < C < np.inf:
        raise ValueError("the C to start from must be positive")
