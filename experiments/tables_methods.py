"""Methods of the comparison on one table: ours, and those that a user would try first.

Every method takes the same frame of numbers and categories with gaps, and uses one thread. What is
tuned is tuned by three folds of the training rows on the score that is shown.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from kernelweave import MetricKernelClassifier, MetricKernelRegressor

from .tables_data import BINARY, CLASSES, REGRESSION

Values = NDArray[Any]

SCORING = {REGRESSION: "r2", BINARY: "roc_auc", CLASSES: "accuracy"}
BOOSTING_GRID = [
    {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [8, 31], "max_iter": [100, 300]},
    {
        "learning_rate": [0.03],
        "max_leaf_nodes": [4],
        "max_iter": [500],
        "l2_regularization": [1.0],
    },
]
SVM_COSTS = (0.1, 0.5, 2.5, 10.0, 50.0, 250.0)
SVM_WIDTHS = (0.1, 0.3, 1.0)  # gamma, in units of scikit-learn's "scale"
RIDGES = np.geomspace(1e-3, 1e4, 15)
LOGISTIC_COSTS = np.geomspace(1e-3, 1e3, 7)
XRFM_GRID = tuple(product((False, True), (3.0, 10.0, 30.0), (1e-3, 0.1)))  # diagonal, width, ridge
MANY_CLASSES = 20  # above, methods that fit trees for each class a thousand times are left out


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    Parameters
    ----------
    label : str
        Its name in tables.
    make : callable
        Takes the task, returns an estimator for frames.
    ranked : bool
        Whether it is one of the nine that are ranked.
    package : str or None
        What must be installed.
    most_classes : float
        Classes above which the method is left out, since it takes too long.
    """

    label: str
    make: Callable[[str], Any]
    ranked: bool = True
    package: str | None = None
    most_classes: float = np.inf

    @property
    def missing(self) -> bool:
        """Whether the package is not installed."""
        return self.package is not None and importlib.util.find_spec(self.package) is None


def score(task: str, y: Values, prediction: Values) -> float:
    """Return R2, the area under the ROC curve, or accuracy."""
    if task == REGRESSION:
        return float(r2_score(y, prediction))
    if task == BINARY:
        return float(roc_auc_score(y, prediction))
    return float(accuracy_score(y, prediction))


def values_for_score(task: str, model: Any, X: pd.DataFrame) -> Values:
    """Return what `score` needs: predictions, or for two classes the rank of the second."""
    if task != BINARY:
        return np.asarray(model.predict(X)).ravel()
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))[:, 1]
    return np.asarray(model.decision_function(X)).ravel()


def folds(task: str) -> Any:
    """Return the three folds that tune a method."""
    return (KFold if task == REGRESSION else StratifiedKFold)(3, shuffle=True, random_state=0)


def encoder() -> ColumnTransformer:
    """Return an encoder: numbers standardised with indicators of gaps, categories one-hot."""
    return ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(
                    SimpleImputer(strategy="median", add_indicator=True), StandardScaler()
                ),
                make_column_selector(dtype_include="number"),
            ),
            (
                "categories",
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                make_column_selector(dtype_include="category"),
            ),
        ]
    )


def _metric(task: str, **parameters: Any) -> Any:
    make = MetricKernelRegressor if task == REGRESSION else MetricKernelClassifier
    return make(n_jobs=1, **parameters)


class FrontDoor:
    """What `kernelweave fit` does with a table."""

    def __init__(self, task: str) -> None:
        self.task = task

    def fit(self, X: pd.DataFrame, y: Values) -> FrontDoor:
        """Fit the table as the command line does."""
        from kernelweave.tables import fit_table

        frame = self._as_read(X).assign(target=y)
        task = "regression" if self.task == REGRESSION else "classification"
        self.fit_ = fit_table(frame, "target", task=task)
        return self

    def __getattr__(self, name: str) -> Any:
        if name not in ("predict", "predict_proba", "decision_function"):
            raise AttributeError(name)
        found = getattr(self.fit_.model, name)
        return lambda X: found(self._as_read(X))

    @staticmethod
    def _as_read(X: pd.DataFrame) -> pd.DataFrame:
        """Return the frame as a reader of files returns it: text is text."""
        return X.astype(dict.fromkeys(_categories(X), object))


class GapsAsLevels(TransformerMixin, BaseEstimator):
    """Make the gaps of categories a level: boosting takes levels it has not seen for gaps."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> GapsAsLevels:
        """Nothing is learned."""
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """Fill the gaps of categories."""
        return X.assign(**{c: X[c].cat.add_categories("gap").fillna("gap") for c in _categories(X)})

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _categories(X: pd.DataFrame) -> list[str]:
    return [c for c in X.columns if X[c].dtype == "category"]


def _boosting(task: str) -> Any:
    return make_pipeline(GapsAsLevels(), _plain_boosting(task))


def _plain_boosting(task: str) -> Any:
    make = HistGradientBoostingRegressor if task == REGRESSION else HistGradientBoostingClassifier
    return make(random_state=0)


def _tuned_boosting(task: str) -> Any:
    search = GridSearchCV(
        _plain_boosting(task), BOOSTING_GRID, scoring=SCORING[task], cv=folds(task)
    )
    return make_pipeline(GapsAsLevels(), search)


class LightGBM:
    """LightGBM with default parameters; it refuses names with punctuation."""

    def __init__(self, task: str) -> None:
        from lightgbm import LGBMClassifier, LGBMRegressor

        make = LGBMRegressor if task == REGRESSION else LGBMClassifier
        self.model = make(n_jobs=1, verbose=-1, random_state=0)

    def fit(self, X: pd.DataFrame, y: Values) -> LightGBM:
        """Fit with plain names of columns."""
        self.model.fit(self._renamed(X), y)
        return self

    def predict(self, X: pd.DataFrame) -> Values:
        """Predict with the same names."""
        return np.asarray(self.model.predict(self._renamed(X)))

    def predict_proba(self, X: pd.DataFrame) -> Values:
        """Return probabilities of the classes."""
        return np.asarray(self.model.predict_proba(self._renamed(X)))

    @staticmethod
    def _renamed(X: pd.DataFrame) -> pd.DataFrame:
        return X.set_axis([f"c{at}" for at in range(X.shape[1])], axis=1)


class CatBoost:
    """CatBoost with default parameters; it wants categories as text without gaps."""

    def __init__(self, task: str) -> None:
        from catboost import CatBoostClassifier, CatBoostRegressor

        make = CatBoostRegressor if task == REGRESSION else CatBoostClassifier
        self.model = make(verbose=0, thread_count=1, random_seed=0, allow_writing_files=False)

    def fit(self, X: pd.DataFrame, y: Values) -> CatBoost:
        """Fit with native categories."""
        self.model.fit(self._as_text(X), y, cat_features=_categories(X))
        return self

    def predict(self, X: pd.DataFrame) -> Values:
        """Predict."""
        return np.asarray(self.model.predict(self._as_text(X))).ravel()

    def predict_proba(self, X: pd.DataFrame) -> Values:
        """Return probabilities of the classes."""
        return np.asarray(self.model.predict_proba(self._as_text(X)))

    @staticmethod
    def _as_text(X: pd.DataFrame) -> pd.DataFrame:
        texts = {
            c: X[c].astype(object).where(X[c].notna(), "gap").astype(str) for c in _categories(X)
        }
        return X.assign(**texts)


class UnitSpread(TransformerMixin, BaseEstimator):
    """Divide all columns by one number, after which gamma = 1 is scikit-learn's "scale"."""

    def fit(self, X: Values, y: Any = None) -> UnitSpread:
        """Take the number from the training rows."""
        self.spread_ = float(np.sqrt(X.shape[1] * X.var())) or 1.0
        return self

    def transform(self, X: Values) -> Values:
        """Divide."""
        return np.asarray(X / self.spread_)


def _svm(task: str) -> Any:
    last = SVR() if task == REGRESSION else SVC()
    model: Any = Pipeline([("encoder", encoder()), ("spread", UnitSpread()), ("svm", last)])
    prefix = "svm__"
    if task == REGRESSION:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
        prefix = "regressor__svm__"
    grid = {f"{prefix}C": SVM_COSTS, f"{prefix}gamma": SVM_WIDTHS}
    return GridSearchCV(model, grid, scoring=SCORING[task], cv=folds(task))


def _linear(task: str) -> Any:
    if task == REGRESSION:
        return make_pipeline(encoder(), RidgeCV(RIDGES))
    logistic = GridSearchCV(
        LogisticRegression(max_iter=2000),
        {"C": LOGISTIC_COSTS},
        scoring="neg_log_loss",
        cv=folds(task),
    )
    return make_pipeline(encoder(), logistic)


class XRFM:
    """xRFM with the encoding of its page, and a fifth of the rows to validate on.

    Parameters
    ----------
    task : str
        What is predicted.
    grid : sequence of (bool, float, float)
        Whether the metric is diagonal, width and ridge; the best on the validation rows is kept.
    """

    def __init__(self, task: str, grid: Sequence[tuple[bool, float, float]]) -> None:
        self.task = task
        self.grid = grid

    def fit(self, X: pd.DataFrame, y: Values) -> XRFM:
        """Fit every setting to four fifths of the rows and keep the best on the others."""
        import torch

        torch.set_num_threads(1)
        self.classes_ = None if self.task == REGRESSION else np.unique(y.astype(str))
        codes = y if self.classes_ is None else np.searchsorted(self.classes_, y.astype(str))
        train, check = train_test_split(
            np.arange(len(y)),
            test_size=0.2,
            random_state=0,
            stratify=None if self.classes_ is None else codes,
        )
        self.encoder_ = encoder().fit(X.iloc[train])
        self.shift_, self.scale_ = 0.0, 1.0
        if self.classes_ is None:
            self.shift_, self.scale_ = float(codes[train].mean()), float(codes[train].std())
            codes = ((codes - self.shift_) / self.scale_).astype(np.float32)
        rows = [self._encode(X.iloc[part]) for part in (train, check)]
        best = -np.inf
        for setting in self.grid:
            model = self._make(rows[0].shape[1], *setting)
            model.fit(rows[0], codes[train], rows[1], codes[check])
            if len(self.grid) == 1:
                self.model_ = model
                break
            self.model_, previous = model, getattr(self, "model_", None)
            reached = score(self.task, y[check], values_for_score(self.task, self, X.iloc[check]))
            if reached > best:
                best = reached
            else:
                self.model_ = previous
        return self

    def predict(self, X: pd.DataFrame) -> Values:
        """Predict numbers or classes."""
        if self.classes_ is None:
            found = np.asarray(self.model_.predict(self._encode(X))).ravel()
            return found * self.scale_ + self.shift_
        return np.asarray(self.classes_)[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: pd.DataFrame) -> Values:
        """Return probabilities of the classes."""
        return np.asarray(self.model_.predict_proba(self._encode(X)))

    def _encode(self, X: pd.DataFrame) -> Values:
        return np.asarray(self.encoder_.transform(X), dtype=np.float32)

    def _make(self, n_columns: int, diagonal: bool, width: float, ridge: float) -> Any:
        import torch
        from xrfm import xRFM

        start = self.encoder_.output_indices_["categories"].start
        groups = []
        categories = self.encoder_.named_transformers_["categories"]
        for levels in getattr(categories, "categories_", ()):
            groups.append(torch.arange(start, start + len(levels)))
            start += len(levels)
        info = {
            "numerical_indices": torch.arange(0, n_columns - sum(map(len, groups))),
            "categorical_indices": groups,
            "categorical_vectors": [torch.eye(len(group)) for group in groups],
        }
        parameters = {
            "model": {
                "kernel": "l2",
                "bandwidth": width,
                "exponent": 1.0,
                "diag": diagonal,
                "bandwidth_mode": "constant",
            },
            "fit": {"reg": ridge, "iters": 5, "verbose": False, "early_stop_rfm": True},
        }
        return xRFM(
            rfm_params=parameters,
            device=torch.device("cpu"),
            tuning_metric="mse" if self.task == REGRESSION else "brier",
            categorical_info=info if groups else None,
            n_threads=1,
            random_state=0,
            verbose=False,
        )


METHODS = {
    "metric": Method("learned metric", _metric),
    "plain": Method("plain metric", partial(_metric, n_steps=0), ranked=False),
    "fit": Method("kernelweave fit", FrontDoor, ranked=False),
    "hgb": Method("HGB", _boosting),
    "hgb-t": Method("HGB, tuned", _tuned_boosting, most_classes=MANY_CLASSES),
    "lgb": Method("LightGBM", LightGBM, package="lightgbm"),
    "cat": Method("CatBoost", CatBoost, package="catboost", most_classes=MANY_CLASSES),
    "svm": Method("SVM, tuned", _svm),
    "linear": Method("linear", _linear),
    "xrfm": Method("xRFM", partial(XRFM, grid=((False, 10.0, 1e-3),)), package="xrfm"),
    "xrfm-t": Method("xRFM, tuned", partial(XRFM, grid=XRFM_GRID), package="xrfm"),
}
