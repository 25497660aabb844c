"""Reference models of scikit-learn for a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from kernelweave.io import TablePreparer

from .methods import EPSILON
from .problem import Problem

PEERS = ("svm", "boosting", "linear")
_COSTS = [0.1, 1.0, 10.0, 100.0]


def plain_svm(problem: Problem, C: float) -> Pipeline:
    """Return a Gaussian SVM with scikit-learn's defaults.

    Parameters
    ----------
    problem : Problem
        The columns, and what they hold.
    C : float
        Cost of errors; for a quantity in units of its standard deviation.
    """
    unit = float(problem.y.std()) if problem.regression else 1.0
    svm = SVR(C=C * unit, epsilon=EPSILON * unit) if problem.regression else SVC(C=C)
    return make_pipeline(*_encoded(problem), svm)


def make_peer(problem: Problem, name: str, folds: Any) -> Any:
    """Return a method of scikit-learn that chooses its options by cross-validation.

    Parameters
    ----------
    problem : Problem
        The columns, and what they hold.
    name : {"svm", "boosting", "linear"}
        Gaussian support vector machine; gradient boosting on histograms; logistic or ridge
        regression.
    folds : splitter
        For the choice.
    """
    model: Any
    if name == "svm":
        model, grid = plain_svm(problem, 1.0), {}
        step = model.steps[-1][0]
        grid = {f"{step}__C": [C * model[-1].C for C in _COSTS]}
    elif name == "boosting":
        seed: dict[str, Any] = {"random_state": 0}
        kind = (
            HistGradientBoostingRegressor if problem.regression else HistGradientBoostingClassifier
        )
        model = make_pipeline(*_encoded(problem), kind(**seed))
        grid = {f"{model.steps[-1][0]}__learning_rate": [0.03, 0.1]}
    else:
        linear = Ridge() if problem.regression else LogisticRegression(max_iter=1000)
        model = make_pipeline(*_encoded(problem), linear)
        name = model.steps[-1][0]
        grid = {f"{name}__alpha" if problem.regression else f"{name}__C": _COSTS}
    return GridSearchCV(model, grid, cv=folds)


def _encoded(problem: Problem) -> tuple[TablePreparer, ColumnTransformer]:
    """Return steps that make a matrix of a table: numbers, one column per category, word counts."""
    table = TablePreparer(
        missing="fill", dates={c.name: c.format for c in problem.kinds if c.format} or None
    )
    parts: list[Any] = [
        ("numbers", StandardScaler(), problem.columns("number", "date")),
        (
            "categories",
            OneHotEncoder(handle_unknown="ignore", min_frequency=3, sparse_output=False),
            problem.columns("category"),
        ),
    ]
    for name in problem.columns("text"):
        parts.append((name, make_pipeline(HashingVectorizer(n_features=512), _DENSE), name))
    return table, ColumnTransformer(parts, sparse_threshold=0.0)


def _to_dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


_DENSE = FunctionTransformer(_to_dense, accept_sparse=True)
