"""C of rule ensembles chosen by cross-validation."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
)
from kernelweave.errors import InputError
from rule_use_cases import NEW, SCORE, TRAIN, TWO, N


def test_the_best_C_is_fitted_to_all_rows():
    model = RuleEnsembleClassifierCV(Cs=[10.0, 0.01, 1.0], cv=KFold(3)).fit(TRAIN, TWO)
    results = model.cv_results_
    assert results["C"].tolist() == [0.01, 1.0, 10.0]
    assert results["scores"].shape == (3, 3)
    np.testing.assert_allclose(results["scores"].mean(axis=1), results["mean_score"])
    np.testing.assert_allclose(results["scores"].std(axis=1), results["std_score"])
    assert model.C_ == results["C"][results["mean_score"].argmax()]
    assert model.C == model.C_
    plain = RuleEnsembleClassifier(C=model.C_).fit(TRAIN, TWO)
    assert model.rules_ == plain.rules_
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    assert model.to_sql() == plain.to_sql()
    assert (results["n_rules"] > 0).all()


def test_scores_on_folds_are_those_of_fits_to_the_others():
    model = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=KFold(2), tol=1e-4).fit(TRAIN, SCORE)
    for k, (train, test) in enumerate(KFold(2).split(TRAIN)):
        for c, C in enumerate([0.1, 1.0]):
            plain = RuleEnsembleRegressor(C=C, tol=1e-4).fit(TRAIN.iloc[train], SCORE[train])
            expected = plain.score(TRAIN.iloc[test], SCORE[test])
            assert model.cv_results_["scores"][c, k] == pytest.approx(expected, abs=0.01)


def test_the_smaller_C_wins_a_tie():
    P = np.repeat([[0, 1], [1, 0]], 10, axis=0)
    model = RuleEnsembleClassifierCV(Cs=[1000.0, 100.0, 10.0]).fit(P, P[:, 0])
    assert model.C_ == 10.0


@pytest.mark.parametrize("scoring", ["f1_macro", lambda model, X, y: -float(len(model.rules_))])
def test_other_scores(scoring):
    model = RuleEnsembleClassifierCV(Cs=[0.1, 30.0], cv=2, scoring=scoring).fit(TRAIN, TWO)
    assert model.C_ in (0.1, 30.0)
    if callable(scoring):
        np.testing.assert_allclose(model.cv_results_["mean_score"], -model.cv_results_["n_rules"])


def test_search_with_tasks_weights_and_labels():
    task, weight = np.arange(N) % 2, np.arange(N) % 3 + 0.5
    model = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, TWO, weight, task=task)
    assert model.tasks_.tolist() == [0, 1]
    assert model.predict(NEW, 1).shape == (N,)
    values = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, SCORE, weight, task=task)
    assert values.predict(NEW, 1).shape == (N,)
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    several = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, Y)
    assert several.predict(NEW).shape == (N, 2)
    with pytest.raises(InputError, match="scoring: must be None where tasks are given"):
        RuleEnsembleClassifierCV(Cs=[1.0], cv=2, scoring="f1").fit(TRAIN, TWO, task=task)


def test_scores_that_cannot_be_compared():
    model = RuleEnsembleClassifierCV(Cs=[1.0], cv=2, scoring=lambda model, X, y: np.nan)
    with pytest.raises(InputError, match=r"scoring: gives .*nan.* on fold 1, which cannot"):
        model.fit(TRAIN, TWO)


def test_cross_validated_models_are_clones_and_pickles():
    model = RuleEnsembleClassifierCV(Cs=[0.1, 1.0], cv=2).fit(TRAIN, TWO)
    again = pickle.loads(pickle.dumps(model))
    assert again.C_ == model.C_
    assert again.rules_ == model.rules_
    assert clone(model).get_params().keys() == model.get_params().keys()
    assert "C" not in model.get_params()
