"""Rule ensembles: a search for C on boards of tic-tac-toe, and fits on many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit

from kernelweave import Propositions, RuleEnsembleClassifier, RuleEnsembleClassifierCV
from kernelweave.datasets import make_tic_tac_toe

from . import Task

Array = NDArray[Any]

GRID = np.logspace(-3, 3, 7)
SCORING = "f1_macro"
N_COLUMNS, N_CUTS = 15, 2  # 60 propositions
FLIPPED = 0.05


def ours(split: int, threads: int, rho: float = 1.1) -> Task:
    """Choose C by three folds and fit, all to a certified gap of one per cent."""
    P, y, P_test, y_test = _boards(split)
    model = RuleEnsembleClassifierCV(
        rho, Cs=GRID, cv=3, scoring=SCORING, propositions="given", tol=1e-2, n_jobs=threads
    )
    model.fit(P[:40], y[:40])  # what is loaded late is there before the clock starts

    def tell(fitted: RuleEnsembleClassifierCV) -> dict[str, Any]:
        return {
            "score": float(f1_score(y_test, fitted.predict(P_test), average="macro")),
            "rules": len(fitted.rules_),
            "gap": float(fitted.duality_gap_ / fitted.objective_),
            "chosen": float(fitted.C_),
        }

    return Task(lambda: model.fit(P, y), tell)


def rulefit(split: int, threads: int, search: str = "alpha") -> Task:
    """Choose the penalty of imodels' RuleFit by the same folds, or let it choose by itself."""
    from imodels import RuleFitClassifier

    P, y, P_test, y_test = _boards(split)
    model: Any = RuleFitClassifier(random_state=0)
    if search == "alpha":
        model = GridSearchCV(
            RuleFitClassifier(max_rules=None, random_state=0),
            {"alpha": GRID.tolist()},
            cv=3,
            scoring=SCORING,
            n_jobs=1,
        )
    P, P_test = P.astype(float), P_test.astype(float)
    RuleFitClassifier(random_state=0, alpha=1.0, max_rules=None).fit(P[:40], y[:40])

    def tell(fitted: Any) -> dict[str, Any]:
        best = fitted.best_estimator_ if search == "alpha" else fitted
        n_linear = int(np.count_nonzero(best.coef[: P.shape[1]]))
        return {
            "score": float(f1_score(y_test, fitted.predict(P_test), average="macro")),
            "rules": len(best.rules_) + n_linear,
            "chosen": float(fitted.best_params_["alpha"]) if search == "alpha" else None,
        }

    return Task(lambda: model.fit(P, y), tell)


def many_rows(n: int, threads: int, rho: float = 1.1, C: float = 1.0) -> Task:
    """Fit to ``n`` rows of 60 propositions with one C."""
    P, y = _conjunctions(n, 0)
    P_test, y_test = _conjunctions(5000, 1)
    model = RuleEnsembleClassifier(rho, C=C, propositions="given", tol=1e-2, n_jobs=threads)

    def tell(fitted: RuleEnsembleClassifier) -> dict[str, Any]:
        return {
            "gap": float(fitted.duality_gap_ / fitted.objective_),
            "converged": bool(fitted.converged_),
            "rules": len(fitted.rules_),
            "nodes": int(fitted.n_nodes_),
            "solves": int(fitted.n_iter_),
            "accuracy": float(fitted.score(P_test, y_test)),
        }

    return Task(lambda: model.fit(P, y), tell)


def _boards(split: int) -> tuple[Array, Array, Array, Array]:
    """Divide all boards as the experiment does: a tenth for training."""
    boards = make_tic_tac_toe()
    P, y = Propositions().fit_transform(boards.X), (boards.y == "positive").to_numpy().astype(int)
    parts = StratifiedShuffleSplit(1, train_size=0.1, random_state=split)
    train, test = next(parts.split(P, y))
    return P[train], y[train], P[test], y[test]


def _conjunctions(n: int, seed: int) -> tuple[Array, Array]:
    """Draw normal columns cut at their thirds, and a label that three conjunctions decide."""
    random = np.random.default_rng(seed)
    cut = 0.4307  # a third of the normal distribution is above it, a third below its negative
    X = random.standard_normal((n, N_COLUMNS))
    parts = [X <= -cut, X > -cut, X <= cut, X > cut]
    P = np.stack(parts, axis=2).reshape(n, 4 * N_COLUMNS)
    first = (X[:, 0] > -cut) & (X[:, 1] > -cut)
    second = (X[:, 2] > cut) & (X[:, 3] <= cut) & (X[:, 4] > -cut)
    third = (X[:, 5] <= -cut) & (X[:, 6] <= cut)
    flip = random.random(n) < FLIPPED
    return np.ascontiguousarray(P), np.where((first | second | third) ^ flip, "yes", "no")
