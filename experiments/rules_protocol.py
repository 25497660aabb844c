"""The protocol of the rule ensembles: systems, the choice of C, what is measured.

Every system learns from the same propositions, except those that say otherwise, and chooses what
it has to choose by three-fold cross-validation on the training rows, by the score that is reported:
the mean of the F1 of both classes for two classes, accuracy for more.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from kernelweave import RuleEnsembleClassifierCV
from kernelweave.baselines import (
    EnderClassifier,
    HKLTwoStageClassifier,
    RuleFitClassifier,
    SlipperClassifier,
)

from .rules_data import SOURCES, Division, open_division
from .store import Record

GRID = tuple(float(f"{C:g}") for C in np.logspace(-3, 3, 7))
N_FOLDS = 3
TOL = 1e-2
N_TREES = 500  # of RuleFit, at most, as published
BOUNDS = ("ghkl-1.5", "ghkl-1.1")  # whose rules are counted for SLIPPER and ENDER


@dataclass(frozen=True)
class Setting:
    """Options of a system besides the rows."""

    scoring: str
    grid: tuple[float, ...]
    seed: int
    n_rules: int = 1  # the larger number of rules of the two with a small rho


@dataclass(frozen=True)
class Answer:
    """Predictions of a system for test rows, and its rules."""

    predicted: NDArray[Any]
    scores: NDArray[Any] | None = None  # for the second class of two, on any scale
    rules: float | None = None
    length: float | None = None
    more: dict[str, Any] = field(default_factory=dict)


Run = Callable[[Division, Setting], Answer]


@dataclass(frozen=True)
class Method:
    """A system.

    Parameters
    ----------
    label : str
        Its name in tables.
    run : callable
        Learns from a division and answers.
    published : str or None
        The column of the paper.
    binary_only : bool
        Whether it is left out where there are more than two classes.
    needs : tuple of str
        Systems whose numbers of rules it must know.
    quick : bool
        Whether it is part of a short run.
    """

    label: str
    run: Run
    published: str | None = None
    binary_only: bool = False
    needs: tuple[str, ...] = ()
    quick: bool = False


def _ensemble(rho: float, *, raw: bool = False, max_length: int | None = None) -> Run:
    def run(part: Division, setting: Setting) -> Answer:
        model = RuleEnsembleClassifierCV(
            rho,
            Cs=setting.grid,
            cv=N_FOLDS,
            scoring=setting.scoring,
            selection="best",
            loss="hinge",
            max_rules=None,
            refit=False,
            n_cuts=4,
            propositions="auto" if raw else "given",
            max_length=max_length,
            tol=TOL,
            n_jobs=1,
        )
        model.fit(part.X if raw else part.P, part.y)
        more = {
            "C": float(model.C_),
            "gap": float(model.duality_gap_ / model.objective_),
            "n_nodes": int(model.n_nodes_),
            "n_changed": int(model.n_changed_),
            "n_fits": N_FOLDS * len(setting.grid) + 1,
        }
        return _read_rules(model, part.X_test if raw else part.P_test, more)

    return run


def _two_stage(part: Division, setting: Setting) -> Answer:
    model = HKLTwoStageClassifier(
        Cs=setting.grid,
        cv=N_FOLDS,
        scoring=setting.scoring,
        propositions="given",
        tol=TOL,
        n_jobs=1,
    ).fit(part.P, part.y)
    more = {
        "C": float(model.C_),
        "gap": float(model.first_.duality_gap_ / model.first_.objective_),
        "n_fits": 2 * (N_FOLDS * len(setting.grid) + 1),
    }
    return _read_rules(model, part.P_test, more)


def _read_rules(model: Any, X_test: Any, more: dict[str, Any]) -> Answer:
    lengths = [rule.length for rule in model.rules_]
    return Answer(
        model.predict(X_test),
        model.decision_function(X_test),
        len(lengths),
        float(np.mean(lengths)) if lengths else None,
        more,
    )


def _slipper(part: Division, setting: Setting) -> Answer:
    model = SlipperClassifier(setting.n_rules, random_state=setting.seed).fit(part.P, part.y)
    return _read_votes(model, part)


def _ender(part: Division, setting: Setting) -> Answer:
    return _many_rules(setting.n_rules)(part, setting)


def _many_rules(n_rules: int) -> Run:
    def run(part: Division, setting: Setting) -> Answer:
        model = EnderClassifier(n_rules, random_state=setting.seed).fit(part.P, part.y)
        return _read_votes(model, part)

    return run


def _read_votes(model: Any, part: Division) -> Answer:
    return Answer(
        model.predict(part.P_test),
        model.decision_function(part.P_test),
        model.n_rules_,
        model.mean_length_ if model.n_rules_ else None,
    )


def has_imodels() -> bool:
    """Return whether the package with RuleFit can be imported; it needs six, undeclared."""
    return find_spec("imodels") is not None and find_spec("six") is not None


def _rulefit(part: Division, setting: Setting) -> Answer:
    model = RuleFitClassifier(N_TREES, random_state=setting.seed).fit(part.P, part.y)
    return _read_votes(model, part)


def _imodels(part: Division, setting: Setting) -> Answer:
    from imodels import RuleFitClassifier as OtherRuleFit

    classes, codes = np.unique(part.y, return_inverse=True)
    model = OtherRuleFit(random_state=setting.seed).fit(part.P.astype(float), codes)
    P_test = part.P_test.astype(float)
    scores = np.ravel(model._predict_continuous_output(P_test))
    n_linear = int(np.count_nonzero(model.dual_coef[: part.P.shape[1]]))
    lengths = [str(rule).count(" and ") + 1 for rule in model.rules_] + [1] * n_linear
    # Its predict asks for log odds above 1/2, where even odds would be zero; both are kept.
    even = classes[(scores > 0).astype(int)]
    return Answer(
        classes[np.asarray(model.predict(P_test), dtype=int)],
        scores,
        len(lengths),
        float(np.mean(lengths)) if lengths else None,
        {"even": float(f1_score(part.y_test, even, average="macro"))},
    )


def _tree(part: Division, setting: Setting) -> Answer:
    grid = {"max_leaf_nodes": [2, 3, 4, 6, 8, 12, 16, 32]}
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=setting.seed),
        grid,
        cv=N_FOLDS,
        scoring=setting.scoring,
    ).fit(part.P, part.y)
    tree = search.best_estimator_.tree_
    return _read_odds(search, part.P_test, tree.n_leaves, _mean_depth(tree))


def _mean_depth(tree: Any) -> float:
    """Return the mean number of conditions on the way to a leaf."""
    depths = np.zeros(tree.node_count)
    for node in range(tree.node_count):  # parents come before their children
        for child in (tree.children_left[node], tree.children_right[node]):
            if child >= 0:
                depths[child] = depths[node] + 1
    return float(depths[tree.children_left < 0].mean())


def _boosting(part: Division, setting: Setting) -> Answer:
    # On propositions: of categories it leaves out those with fewer than ten rows.
    model = HistGradientBoostingClassifier(
        max_iter=50, early_stopping=False, random_state=setting.seed
    )
    grid = {"min_samples_leaf": [2, 5, 10]}
    search = GridSearchCV(model, grid, cv=N_FOLDS, scoring=setting.scoring).fit(part.P, part.y)
    return _read_odds(search, part.P_test)


def _majority(part: Division, setting: Setting) -> Answer:
    return _read_odds(DummyClassifier().fit(part.P, part.y), part.P_test)


def _read_odds(
    model: Any, X_test: Any, rules: float | None = None, length: float | None = None
) -> Answer:
    odds = model.predict_proba(X_test)
    rules = None if rules is None else float(rules)
    return Answer(np.asarray(model.predict(X_test)), odds[:, 1], rules, length)


METHODS = {
    "ghkl-2": Method("rho = 2 (HKL)", _ensemble(2.0), "rho=2", quick=True),
    "ghkl-1.5": Method("rho = 1.5", _ensemble(1.5), "rho=1.5", quick=True),
    "ghkl-1.1": Method("rho = 1.1", _ensemble(1.1), "rho=1.1", quick=True),
    "hkl-l1": Method("HKL-l1-MKL", _two_stage, "HKL-l1", binary_only=True),
    "rulefit": Method("RuleFit", _rulefit, "RuleFit", binary_only=True),
    "rulefit-imodels": Method("RuleFit of imodels", _imodels, binary_only=True),
    "slipper": Method("SLIPPER", _slipper, "SLIPPER", needs=BOUNDS),
    "ender": Method("ENDER", _ender, "ENDER", needs=BOUNDS, quick=True),
    "ghkl-1.1-own": Method("rho = 1.1, cuts of training rows", _ensemble(1.1, raw=True)),
    "ghkl-1.1-single": Method("rho = 1.1, no conjunctions", _ensemble(1.1, max_length=1)),
    "ender-200": Method("ENDER, 200 rules", _many_rules(200)),
    "tree": Method("decision tree", _tree, quick=True),
    "boosting": Method("boosted trees", _boosting),
    "majority": Method("majority", _majority, quick=True),
}


def evaluate(
    data: str,
    split: int,
    method: str,
    grid: tuple[float, ...] = GRID,
    seed: int = 0,
    n_rules: int = 1,
) -> Record:
    """Learn one system from one division, and measure it on the test rows."""
    part = open_division(data, split, seed)
    binary = SOURCES[data].binary
    scoring = "f1_macro" if binary else "accuracy"
    setting = Setting(scoring, grid, seed + split, max(1, n_rules))
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = METHODS[method].run(part, setting)
    seconds = time.process_time() - start
    accuracy = accuracy_score(part.y_test, answer.predicted)
    record = {
        "data": data,
        "split": split,
        "method": method,
        "score": float(accuracy),
        "accuracy": float(accuracy),
        "rules": answer.rules,
        "length": answer.length,
        "n_train": len(part.y),
        "n_test": len(part.y_test),
        "n_propositions": part.P.shape[1],
        "n_unfinished": sum(issubclass(w.category, ConvergenceWarning) for w in caught),
        "seconds": round(seconds, 4),
    } | answer.more
    if binary:
        record["score"] = float(f1_score(part.y_test, answer.predicted, average="macro"))
        if answer.scores is not None:
            second = part.y_test == np.unique(part.y)[1]
            record["auc"] = float(roc_auc_score(second, answer.scores))
    return record
