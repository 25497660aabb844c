"""Rule ensembles: a search for C on boards of tic-tac-toe, and fits on many rows."""

from __future__ import annotations

from dataclasses import dataclass
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
CUT = 0.4307  # a third of the normal distribution is above it, a third below its negative


def ours(split: int, threads: int, rho: float = 1.1) -> Task:
    """Choose C by three folds and fit, all to a certified gap of one per cent."""
    P, y, P_test, y_test = _boards(split)
    model = RuleEnsembleClassifierCV(
        rho,
        Cs=GRID,
        cv=3,
        scoring=SCORING,
        selection="best",
        loss="hinge",
        max_rules=None,
        refit=False,
        max_length=None,
        propositions="given",
        tol=1e-2,
        n_jobs=threads,
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
        n_linear = int(np.count_nonzero(best.dual_coef[: P.shape[1]]))
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


def row_blocks(n: int, threads: int, propositions: str = "given", C: float = 1.0) -> Task:
    """Fit to ``n`` rows that are made block by block and never there together."""
    parts = _Blocks(n, propositions)
    y = np.concatenate([parts.make(k)[1] for k in range(parts.count)])
    model = RuleEnsembleClassifier(
        C=C, propositions=propositions, n_cuts=2, tol=1e-2, n_jobs=threads
    )

    def tell(fitted: RuleEnsembleClassifier) -> dict[str, Any]:
        X, labels = parts.make(parts.count)
        return {
            "gap": float(fitted.duality_gap_ / fitted.objective_),
            "converged": bool(fitted.converged_),
            "rules": len(fitted.rules_),
            "nodes": int(fitted.n_nodes_),
            "solves": int(fitted.n_iter_),
            "accuracy": float(fitted.score(X, labels)),
        }

    return Task(lambda: model._fit_parts(parts, y), tell)


@dataclass(frozen=True)
class _Blocks:
    """Forty truth values, or ten normal columns to be cut in two places each, drawn on demand."""

    n_rows: int
    propositions: str
    size: int = 50_000

    @property
    def count(self) -> int:
        return -(-self.n_rows // self.size)

    @property
    def head(self) -> Array:
        return self.make(0)[0][:10]

    def make(self, number: int) -> tuple[Array, Array]:
        """Return one block and its labels; the one after the last is for testing."""
        random = np.random.default_rng(number)
        left = self.n_rows - number * self.size
        m = min(self.size, left) if left > 0 else 5000
        X: Array
        if self.propositions == "given":
            X = random.random((m, 40)) < 0.5
            true = X
        else:
            X = random.standard_normal((m, 10))
            true = np.where(np.arange(10) % 2, X > CUT, X > -CUT)
        label = (true[:, 0] & true[:, 1]) | (true[:, 2] & true[:, 3] & ~true[:, 4])
        return X, label ^ (random.random(m) < FLIPPED)

    def map(self, function: Any, *args: Any, by_row: Array | None = None) -> list[Any]:
        """Call a function on every block; see `kernelweave.rules.packing.RowParts`."""
        firsts = range(0, self.n_rows, self.size)
        own = [None if by_row is None else by_row[i : i + self.size] for i in firsts]
        return [function(self.make(k)[0], first, own[k], *args) for k, first in enumerate(firsts)]


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
    X = random.standard_normal((n, N_COLUMNS))
    parts = [X <= -CUT, X > -CUT, X <= CUT, X > CUT]
    P = np.stack(parts, axis=2).reshape(n, 4 * N_COLUMNS)
    first = (X[:, 0] > -CUT) & (X[:, 1] > -CUT)
    second = (X[:, 2] > CUT) & (X[:, 3] <= CUT) & (X[:, 4] > -CUT)
    third = (X[:, 5] <= -CUT) & (X[:, 6] <= CUT)
    flip = random.random(n) < FLIPPED
    return np.ascontiguousarray(P), np.where((first | second | third) ^ flip, "yes", "no")
