"""Reference models for a table: scikit-learn's, and gradient boosting of other packages."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.metaestimators import available_if

from kernelweave.io import TablePreparer

from .methods import EPSILON, make_preparer
from .problem import Problem

_COSTS = [0.1, 1.0, 10.0, 100.0]
_MOST_LEVELS = 255  # of a category in scikit-learn's gradient boosting
_WORDS = 256  # columns that count the words of a text


def svm_baseline(problem: Problem, C: float) -> Pipeline:
    """Return a Gaussian SVM with scikit-learn's defaults; C as in `fit_table`."""
    unit = float(problem.y.std()) if problem.regression else 1.0
    svm = SVR(C=C * unit, epsilon=EPSILON * unit) if problem.regression else SVC(C=C)
    return make_pipeline(*_encoded(problem), svm)


def reference_models(problem: Problem, folds: Any) -> dict[str, Any]:
    """Return rivals that choose their options by cross-validation on ``folds``.

    CatBoost, LightGBM and xRFM, with their defaults, are added where they are installed.
    """
    svm: Any = svm_baseline(problem, 1.0)
    frame = make_preparer(problem, "frame")
    trees: Any = make_pipeline(frame, *boosting(problem, None))
    linear: Any = Ridge() if problem.regression else LogisticRegression(max_iter=1000)
    penalty = "alpha" if problem.regression else "C"
    choices = {
        "SVM": (svm, "C", [C * svm[-1].C for C in _COSTS]),
        "gradient boosting": (trees, "learning_rate", [0.03, 0.1]),
        "linear model": (make_pipeline(*_encoded(problem), linear), penalty, _COSTS),
    }
    score = "r2" if problem.regression else "accuracy"
    if not problem.regression and problem.y.nunique() == 2:
        score = "roc_auc"
    found: dict[str, Any] = {
        name: GridSearchCV(
            model, {f"{model.steps[-1][0]}__{option}": values}, cv=folds, scoring=score
        )
        for name, (model, option, values) in choices.items()
    }
    return found | installed_rivals(problem)


def installed_rivals(problem: Problem) -> dict[str, Any]:
    """Return CatBoost, LightGBM and xRFM with their defaults, as far as they are installed."""
    found: dict[str, Any] = {}
    kind = "Regressor" if problem.regression else "Classifier"
    frame = make_preparer(problem, "frame")
    texts, categories = tuple(problem.columns("text")), problem.columns("category")
    if find_spec("lightgbm") is not None:
        model = getattr(import_module("lightgbm"), f"LGBM{kind}")(n_jobs=1, verbose=-1)
        found["LightGBM"] = make_pipeline(clone(frame), TypedColumns(texts), model)
    if find_spec("catboost") is not None:
        options = {"cat_features": categories, "thread_count": 1, "verbose": False}
        model = getattr(import_module("catboost"), f"CatBoost{kind}")(**options)
        found["CatBoost"] = make_pipeline(clone(frame), TypedColumns(texts, as_text=True), model)
    if find_spec("xrfm") is not None:
        found["xRFM"] = make_pipeline(*_encoded(problem), RecursiveFeatures(problem.regression))
    return found


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

    def __init__(self, texts: tuple[str, ...] = (), as_text: bool = False) -> None:
        self.texts = texts
        self.as_text = as_text  # whether categories stay text, without gaps

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
            elif name in self.levels_ and self.as_text:
                column = column.astype(object).fillna("(missing)").map(str)
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


class RecursiveFeatures(BaseEstimator):  # type: ignore[misc]
    """xRFM as its page recommends it: a fifth of the rows chooses the number of iterations."""

    def __init__(self, regression: bool) -> None:
        self.regression = regression

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to a matrix of encoded rows."""
        torch, xrfm = import_module("torch"), import_module("xrfm")
        y = np.asarray(y)
        if self.regression:
            self.shift_, self.scale_ = float(y.mean()), float(y.std())
            codes: Any = ((y - self.shift_) / self.scale_).astype(np.float32)
        else:
            self.classes_, codes = np.unique(y, return_inverse=True)
        apart = (
            not self.regression
            and np.bincount(codes).min() > 1
            and len(self.classes_) < len(y) // 5
        )
        train, check = train_test_split(
            np.arange(len(y)), test_size=0.2, random_state=0, stratify=codes if apart else None
        )
        X = np.asarray(X, dtype=np.float32)
        kernel = {"kernel": "l2", "bandwidth": 10.0, "exponent": 1.0, "diag": False}
        options = {"reg": 1e-3, "iters": 5, "verbose": False, "early_stop_rfm": True}
        self.model_ = xrfm.xRFM(
            rfm_params={"model": kernel | {"bandwidth_mode": "constant"}, "fit": options},
            device=torch.device("cpu"),
            tuning_metric="mse" if self.regression else "brier",
            n_threads=1,
            random_state=0,
            verbose=False,
        )
        self.model_.fit(X[train], codes[train], X[check], codes[check])
        return self

    def predict(self, X: Any) -> Any:
        """Return numbers or classes."""
        if not self.regression:
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        found = self.model_.predict(np.asarray(X, dtype=np.float32))
        return np.ravel(found) * self.scale_ + self.shift_

    @available_if(lambda self: not self.regression)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""
        return np.asarray(self.model_.predict_proba(np.asarray(X, dtype=np.float32)))


def _to_dense(rows: Any) -> Any:
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


_DENSE = FunctionTransformer(_to_dense, accept_sparse=True)
