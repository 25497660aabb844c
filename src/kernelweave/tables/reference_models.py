"""Reference models of scikit-learn for a table."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
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

_COSTS = [0.1, 1.0, 10.0, 100.0]
_MOST_LEVELS = 255  # of a category in scikit-learn's gradient boosting
_WORDS = 256  # columns that count the words of a text


def svm_baseline(problem: Problem, C: float) -> Pipeline:
    """Return a Gaussian SVM with scikit-learn's defaults; C as in `fit_table`."""
    unit = float(problem.y.std()) if problem.regression else 1.0
    svm = SVR(C=C * unit, epsilon=EPSILON * unit) if problem.regression else SVC(C=C)
    return make_pipeline(*_encoded(problem), svm)


def reference_models(problem: Problem, folds: Any) -> dict[str, GridSearchCV]:
    """Return models of scikit-learn that choose their options by cross-validation on ``folds``."""
    svm: Any = svm_baseline(problem, 1.0)
    boosting: Any
    linear: Any
    if problem.regression:
        boosting, linear = HistGradientBoostingRegressor(random_state=0), Ridge()
        names, penalty = ("SVR", "gradient boosting", "ridge regression"), "alpha"
    else:
        boosting, linear = (
            HistGradientBoostingClassifier(random_state=0),
            LogisticRegression(max_iter=1000),
        )
        names, penalty = ("SVC", "gradient boosting", "logistic regression"), "C"
    choices = [
        (svm, "C", [C * svm[-1].C for C in _COSTS]),
        (make_pipeline(*_encoded(problem), boosting), "learning_rate", [0.03, 0.1]),
        (make_pipeline(*_encoded(problem), linear), penalty, _COSTS),
    ]
    return {
        name: GridSearchCV(model, {f"{model.steps[-1][0]}__{option}": values}, cv=folds)
        for name, (model, option, values) in zip(names, choices, strict=True)
    }


def _encoded(problem: Problem) -> tuple[TablePreparer, ColumnTransformer]:
    """Return steps that make a matrix of a table: numbers, one column per category, word counts."""
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
    table = TablePreparer(missing="fill", dates=problem.dates)
    return table, ColumnTransformer(parts, sparse_threshold=0.0)


def boosting(problem: Problem, rows: Any) -> Pipeline:
    """Return gradient boosting with scikit-learn's defaults, on rows of the form "frame"."""
    kind = HistGradientBoostingRegressor if problem.regression else HistGradientBoostingClassifier
    model = kind(random_state=0, categorical_features="from_dtype")
    return make_pipeline(TypedColumns(tuple(problem.columns("text"))), model)


class TypedColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Make categories of text, days of dates and counts of words of long texts."""

    def __init__(self, texts: tuple[str, ...] = ()) -> None:
        self.texts = texts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the levels of the categories."""
        words = X.drop(columns=list(self.texts)).select_dtypes(exclude=["number", "datetime"])
        self.levels_ = {name: sorted(set(words[name].dropna())) for name in words}
        return self

    def transform(self, X: Any) -> Any:
        """Return columns of numbers and categories."""
        import pandas as pd

        parts = []
        for name in X.columns.drop(list(self.texts)):
            column = X[name]
            if column.dtype.kind == "M":
                column = (column - pd.Timestamp(2000, 1, 1)) / pd.Timedelta(days=1)
            elif name in self.levels_:
                column = pd.Series(pd.Categorical(column, self.levels_[name]), X.index, name=name)
                if len(self.levels_[name]) > _MOST_LEVELS:
                    column = column.cat.codes
            parts.append(column)
        for name in self.texts:
            counts = HashingVectorizer(n_features=_WORDS).fit_transform(X[name].fillna(""))
            names = [f"{name} {k}" for k in range(_WORDS)]
            parts.append(pd.DataFrame(counts.toarray(), X.index, names))
        return pd.concat(parts, axis=1)


def _to_dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


_DENSE = FunctionTransformer(_to_dense, accept_sparse=True)
