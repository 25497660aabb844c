"""Weights and tasks reach `fit` and `predict` through pipelines and searches, row by row."""

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave
from kernelweave import (
    RBF,
    HierarchicalMKLRegressor,
    Linear,
    MKLClassifier,
    MKLRegressor,
    RuleEnsembleClassifier,
    RuleEnsembleRegressor,
)
from kernelweave.errors import InputError

RANDOM = np.random.default_rng(0)
N = 60
X = RANDOM.normal(size=(N, 3))
SCORE = X[:, 0] + 0.5 * RANDOM.normal(size=N)
LABELS = np.where(SCORE > 0, "up", "down")
WEIGHT = RANDOM.exponential(size=N) * (RANDOM.random(N) < 0.8)
TASK = np.arange(N) % 2
FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def values(model, X, **more):
    ask = getattr(model, "decision_function", model.predict)
    return ask(X, **more)


WEIGHTED = [
    (MKLClassifier([RBF(1.0), Linear()]), LABELS),
    (MKLRegressor([RBF(1.0), Linear()]), SCORE),
    (RuleEnsembleClassifier(max_length=2), LABELS),
    (RuleEnsembleRegressor(max_length=2), SCORE),
]


@pytest.mark.parametrize(("model", "y"), WEIGHTED, ids=lambda item: type(item).__name__)
def test_weights_through_a_pipeline(model, y):
    asked = clone(model).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked)
    pipeline.fit(X, y, sample_weight=WEIGHT)
    rows = StandardScaler().fit_transform(X)
    direct = clone(model).fit(rows, y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(values(pipeline, X), values(direct, rows))
    without = clone(model).fit(rows, y)
    assert not np.array_equal(values(pipeline, X), values(without, rows))


@pytest.mark.parametrize(("model", "y"), WEIGHTED[:2], ids=lambda item: type(item).__name__)
def test_weights_through_a_search(model, y):
    asked = model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(asked, {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, y, sample_weight=WEIGHT)
    direct = clone(model).set_params(**search.best_params_).fit(X, y, sample_weight=WEIGHT)
    np.testing.assert_array_equal(values(search, X), values(direct, X))
    result = cross_validate(asked, X, y, cv=FOLDS, params={"sample_weight": WEIGHT})
    for (train, test), found in zip(FOLDS.split(X), result["test_score"], strict=True):
        fold = clone(model).fit(X[train], y[train], sample_weight=WEIGHT[train])
        assert found == fold.score(X[test], y[test], sample_weight=WEIGHT[test])


@pytest.mark.parametrize(
    "model",
    [HierarchicalMKLRegressor([Linear(), RBF(1.0)]), RuleEnsembleRegressor(max_length=1)],
    ids=lambda item: type(item).__name__,
)
def test_tasks(model):
    y = np.where(TASK, SCORE, -SCORE)
    asked = model.set_fit_request(task=True).set_predict_request(task=True)
    pipeline = make_pipeline(StandardScaler(), asked).fit(X, y, task=TASK)
    rows = StandardScaler().fit_transform(X)
    direct = clone(model).fit(rows, y, task=TASK)
    np.testing.assert_array_equal(pipeline.predict(X, task=TASK), direct.predict(rows, task=TASK))
    asked.set_score_request(task=True)
    result = cross_validate(asked, X, y, cv=FOLDS, params={"task": TASK})
    for (train, test), found in zip(FOLDS.split(X), result["test_score"], strict=True):
        fold = clone(model).fit(X[train], y[train], task=TASK[train])
        assert found == fold.score(X[test], y[test], task=TASK[test])
    search = GridSearchCV(asked, {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, y, task=TASK)
    chosen = clone(model).set_params(**search.best_params_).fit(X, y, task=TASK)
    np.testing.assert_array_equal(
        search.best_estimator_.predict(X, task=TASK), chosen.predict(X, task=TASK)
    )


def test_scores_of_classes_by_task():
    y = np.where((SCORE > 0) == TASK, "up", "down")
    model = RuleEnsembleClassifier(max_length=1).fit(X, y, task=TASK)
    weight = np.arange(N) + 1.0
    hits = model.predict(X, task=TASK) == y
    assert model.score(X, y, task=TASK) == hits.mean()
    assert model.score(X, y, weight, task=TASK) == pytest.approx(np.average(hits, weights=weight))
    with pytest.raises(InputError, match="predict needs the task of the rows"):
        model.score(X, y)


def test_what_is_not_asked_for_is_refused():
    with pytest.raises(ValueError, match="sample_weight"):
        make_pipeline(StandardScaler(), MKLClassifier()).fit(X, LABELS, sample_weight=WEIGHT)


def test_every_argument_of_fit_can_be_asked_for():
    """Arguments beside X and y are metadata under their own names."""
    for name in kernelweave.__all__:
        kind = getattr(kernelweave, name)
        if not (isinstance(kind, type) and hasattr(kind, "get_metadata_routing")):
            continue
        more = set(inspect.signature(kind.fit).parameters) - {"self", "X", "y"}
        for argument in more & {"sample_weight", "task", "known", "groups"}:
            kind().set_fit_request(**{argument: True})
