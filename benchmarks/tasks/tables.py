"""From a data frame to a chosen model, and what it is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from kernelweave.tables import TableFit, fit_table, make_problem
from kernelweave.tables.methods import make_preparer
from kernelweave.tables.reference_models import boosting as make_boosting

from . import Task

_TEST_ROWS = 2000


def choose(n: int, threads: int) -> Task:
    """Compare models on a mixed table of 20 columns, and fit the best one to all rows."""
    frame, test = _mixed_table(n, 0), _mixed_table(_TEST_ROWS, 1)

    def work() -> TableFit:
        with threadpool_limits(threads):
            return fit_table(frame, "y")

    def tell(found: TableFit) -> dict[str, Any]:
        proba = found.model.predict_proba(test.drop(columns="y"))[:, 1]
        chosen = found.choice.name if found.choice else ""
        return {"chosen": chosen, "auc": float(roc_auc_score(test["y"] == "yes", proba))}

    return Task(work, tell)


def boosting(n: int, threads: int) -> Task:
    """Fit histogram gradient boosting with default parameters to the same table."""
    frame, test = _mixed_table(n, 0), _mixed_table(_TEST_ROWS, 1)
    problem = make_problem(frame, "y")
    table, model = make_preparer(problem, "frame"), make_boosting(problem, None)

    def work() -> Any:
        with threadpool_limits(threads):
            return model.fit(table.fit_transform(problem.X), problem.y)

    def tell(fitted: Any) -> dict[str, Any]:
        proba = fitted.predict_proba(table.transform(test.drop(columns="y")))[:, 1]
        return {"auc": float(roc_auc_score(test["y"] == "yes", proba))}

    return Task(work, tell)


def _mixed_table(n: int, seed: int) -> pd.DataFrame:
    """Return 14 numbers, one of them with gaps, 6 categories and two classes."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 14))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(14)])
    for j in range(6):
        frame[f"c{j}"] = random.choice(list("abcdefgh")[: 3 + j], n)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + (frame["c0"] == "a") * X[:, 4] + X[:, 5] / 2
    frame["y"] = np.where(score + 0.3 * random.normal(size=n) > 0, "yes", "no")
    frame.loc[random.random(n) < 0.05, "x3"] = np.nan
    return frame
