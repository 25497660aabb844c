"""C of rule ensembles chosen by cross-validation."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import KFold

from kernelweave import (
    RuleEnsembleClassifier,
    RuleEnsembleClassifierCV,
    RuleEnsembleRegressor,
    RuleEnsembleRegressorCV,
)
from kernelweave.errors import InputError
from kernelweave.estimators.rule_selection import default_score
from rule_use_cases import NEW, SCORE, TRAIN, TWO, N

# The search of the paper: every C gives one model, and the best score wins.
PAPER = {"rho": 1.1, "n_cuts": 4, "max_rules": None, "refit": False, "selection": "best"}
SHORT = {"rho": 1.0, "linear_terms": True, "n_cuts": 8, "max_length": 3, "refit": True, "tol": 1e-3}


def test_the_best_C_is_fitted_to_all_rows():
    model = RuleEnsembleClassifierCV(
        Cs=[10.0, 0.01, 1.0], cv=KFold(3), loss="hinge", scoring="accuracy", **PAPER
    ).fit(TRAIN, TWO)
    results = model.cv_results_
    assert results["C"].tolist() == [0.01, 1.0, 10.0]
    assert "max_rules" not in results
    assert results["scores"].shape == (3, 3)
    np.testing.assert_allclose(results["scores"].mean(axis=1), results["mean_score"])
    np.testing.assert_allclose(results["scores"].std(axis=1), results["std_score"])
    assert model.C_ == results["C"][results["mean_score"].argmax()]
    assert model.C == model.C_
    plain = RuleEnsembleClassifier(C=model.C_, max_length=3, tol=1e-3).fit(TRAIN, TWO)
    assert model.rules_ == plain.rules_
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW))
    assert model.to_sql() == plain.to_sql()
    assert (results["n_rules"] > 0).all()


def test_scores_on_folds_are_those_of_fits_to_the_others():
    model = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=KFold(2), **{**PAPER, "tol": 1e-4})
    model.fit(TRAIN, SCORE)
    for k, (train, test) in enumerate(KFold(2).split(TRAIN)):
        for c, C in enumerate([0.1, 1.0]):
            plain = RuleEnsembleRegressor(C=C, max_length=3, tol=1e-4)
            plain.fit(TRAIN.iloc[train], SCORE[train])
            expected = plain.score(TRAIN.iloc[test], SCORE[test])
            assert model.cv_results_["scores"][c, k] == pytest.approx(expected, abs=0.01)


def test_C_and_the_number_of_rules_are_chosen_on_one_path():
    model = RuleEnsembleRegressorCV(Cs=[0.1, 1.0], cv=KFold(3), max_rules=4).fit(TRAIN, SCORE)
    results = model.cv_results_
    assert results["C"].tolist() == [0.1] * 4 + [1.0] * 4
    assert results["max_rules"].tolist() == [1, 2, 3, 4] * 2
    assert (results["n_rules"] <= results["max_rules"]).all()
    folds = list(KFold(3).split(TRAIN))
    for k in (1, 6):  # the models of the folds never see the held-out rows
        plain = RuleEnsembleRegressor(
            C=results["C"][k], max_rules=int(results["max_rules"][k]), **SHORT
        )
        for fold, (train, test) in enumerate(folds):
            fitted = clone(plain).fit(TRAIN.iloc[train], SCORE[train])
            expected = fitted.score(TRAIN.iloc[test], SCORE[test])
            assert results["scores"][k, fold] == pytest.approx(expected, abs=0.02)
    n_terms = len(model.rules_) + len(model.linear_terms_)
    assert n_terms <= 4
    assert 0.0 <= model.fold_similarity_ <= 1.0
    final = RuleEnsembleRegressor(C=model.C_, max_rules=n_terms, **SHORT).fit(TRAIN, SCORE)
    assert final.rules_ == model.rules_
    assert final.linear_terms_ == model.linear_terms_


@pytest.mark.parametrize(
    ("selection", "best"),
    [("best", 2), (0, 2), (0.5, 2), (1, 1), ("one_standard_error", 1), (40, 0)],
)
def test_fewest_rules_within_standard_errors(selection, best):
    model = RuleEnsembleClassifierCV(selection=selection)
    scores = np.array([[0.70, 0.60, 0.80], [0.78, 0.70, 0.88], [0.80, 0.69, 0.90]])
    sizes = np.array([[1, 1, 1], [5, 5, 5], [20, 20, 20]])  # 1 and 30 standard errors are lost
    assert model._best(scores, sizes) == best
    # The same means, but the difference is the same on every fold: it is no chance.
    sure = np.array([[0.70, 0.59, 0.80], [0.79, 0.68, 0.89], [0.80, 0.69, 0.90]])
    assert model._best(sure, sizes) == 2


def test_the_path_ends_where_there_are_too_many_rules():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(int)
    model = RuleEnsembleClassifierCV(Cs=[1.0, 10.0, 100.0, 1000.0], cv=2, max_rules=3).fit(X, y)
    assert model.cv_results_["C"].max() < 1000.0
    assert len(model.rules_) <= 3


def test_unequal_classes_are_not_scored_by_accuracy():
    """One positive row in ten: every model predicts zeros, but some order rows better."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (rng.random(600) < 0.03 + 0.25 * (X[:, 0] > 1)).astype(int)
    for options in ({}, {"rho": 1.1, "loss": "hinge", "refit": False}):
        model = RuleEnsembleClassifierCV(Cs=[0.001, 10.0], cv=3, **options).fit(X, y)
        assert roc_auc_score(y, model.decision_function(X)) > 0.65
        assert any(rule.text.startswith("column 0") for rule in model.rules_)


def test_default_scores_of_several_kinds():
    X, three = TRAIN, np.digitize(SCORE, [0.0, 1.0])
    model = RuleEnsembleClassifier(1.0, loss="logistic", C=5.0).fit(X, three)
    log_p = model.predict_log_proba(X)
    place = np.searchsorted(model.classes_, three)
    expected = log_p[np.arange(len(three)), place].mean()
    assert default_score(model, X, three) == pytest.approx(expected)
    hinge = RuleEnsembleClassifier(C=5.0).fit(X, three)
    expected = balanced_accuracy_score(three, hinge.predict(X))
    assert default_score(hinge, X, three) == pytest.approx(expected)
    two = RuleEnsembleClassifier(C=5.0).fit(X, TWO)
    expected = roc_auc_score(TWO == two.classes_[1], two.decision_function(X))
    assert default_score(two, X, TWO) == pytest.approx(expected)
    Y = np.column_stack([SCORE > 0, SCORE > 0.5]).astype(int)
    labels = RuleEnsembleClassifier(1.0, loss="logistic", C=5.0).fit(X, Y)
    assert -1.0 < default_score(labels, X, Y) < 0.0
    plain = RuleEnsembleClassifier(C=5.0).fit(X, Y)
    assert 0.5 < default_score(plain, X, Y) <= 1.0


def test_the_smaller_C_wins_a_tie():
    P = np.repeat([[0, 1], [1, 0]], 10, axis=0)
    model = RuleEnsembleClassifierCV(Cs=[1000.0, 100.0, 10.0]).fit(P, P[:, 0])
    assert model.C_ == 10.0
    assert len(model.rules_) == 1


@pytest.mark.parametrize("scoring", ["f1_macro", lambda model, X, y: -float(len(model.to_frame()))])
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


def test_linear_terms_are_used_where_they_are_possible():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=200)
    model = RuleEnsembleRegressorCV(Cs=[1.0, 10.0], cv=3, max_rules=3).fit(X, y)
    assert [term.position for term in model.linear_terms_] == [0]
    assert model.cv_results_["n_rules"].max() <= 3
    alone = RuleEnsembleRegressorCV(Cs=[1.0, 10.0], cv=3, max_rules=3, linear_terms=False)
    alone.fit(X, y)
    assert alone.linear_terms_ == []
    assert model.cv_results_["mean_score"].max() > alone.cv_results_["mean_score"].max() + 0.05
    for options in ({"rho": 1.1}, {"propositions": "given"}):
        other = RuleEnsembleRegressorCV(Cs=[1.0], cv=3, **options).fit(X > 0, y)
        assert other.linear_terms_ == []
