"""RuleFit against its definition."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave.baselines import RuleFitClassifier, RuleFitRegressor
from kernelweave.baselines.rulefit import tree_rules
from kernelweave.errors import InputError
from kernelweave.rules import Rule, cover_rules


@pytest.mark.slow
@parametrize_with_checks(
    [
        RuleFitClassifier(10, n_penalties=5, random_state=0),
        RuleFitRegressor(10, n_penalties=10, random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def data(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = 2.0 * ((X[:, 0] > 0.3) & (X[:, 1] <= 0.5)) + X[:, 2] - 0.7
    return X, score, rng


def test_rules_of_a_tree_are_its_nodes():
    X, score, _ = data()
    tree = DecisionTreeRegressor(max_leaf_nodes=7, random_state=0).fit(X, score).tree_
    rules = tree_rules(tree, list("abcd"))
    assert len(rules) == tree.node_count - 1
    path = tree.decision_path(X.astype(np.float32)).toarray()[:, 1:]
    covered = cover_rules([Rule(c, 1.0, 0.0) for c in rules], X)
    # Nodes are numbered in another order than rules are found in.
    assert sorted(map(tuple, covered.T.astype(int))) == sorted(map(tuple, path.T.astype(int)))


def test_predictions_are_the_sum_of_rules_and_winsorised_columns():
    X, score, rng = data()
    model = RuleFitRegressor(60, random_state=0).fit(X, score + 0.1 * rng.normal(size=len(X)))
    X_new = 5.0 * data(1)[0]
    low, high = np.quantile(X, [0.025, 0.975], axis=0)
    expected = model.intercept_ + np.clip(X_new, low, high) @ model.linear_coef_
    for rule in model.rules_:
        expected = expected + rule.weight * rule.holds(X_new)
    np.testing.assert_allclose(model.predict(X_new), expected, atol=1e-12)
    assert model.n_rules_ == len(model.rules_) + np.count_nonzero(model.linear_coef_)
    assert model.score(data(2)[0], data(2)[1]) > 0.9
    assert abs(model.linear_coef_[2]) > 0.5


def test_the_classifier_is_a_lasso_of_its_terms():
    """No other coefficients of the terms have a smaller penalised loss at the chosen penalty."""
    X, score, rng = data()
    y = np.where(rng.random(len(X)) < expit(2 * score), "yes", "no")
    model = RuleFitClassifier(30, linear=False, n_penalties=4, random_state=0).fit(X, y)
    terms = cover_rules(model.rules_, X).astype(float)
    weights = np.array([rule.weight for rule in model.rules_])
    codes = (y == "yes").astype(float)
    slopes = terms.T @ (codes - expit(model.decision_function(X)))
    # At the optimum the slopes of all terms in use have the size of the penalty, with their sign.
    penalty = np.median(np.abs(slopes))
    np.testing.assert_allclose(slopes, penalty * np.sign(weights), rtol=0.02)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))
    assert set(model.predict(X)) == {"yes", "no"}


def test_better_than_a_linear_model_where_there_are_conjunctions():
    X, score, rng = data(n=600)
    y = score + 0.3 * rng.normal(size=600) > 0
    model = RuleFitClassifier(100, random_state=0).fit(X[:300], y[:300])
    linear = LogisticRegression().fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > linear.score(X[300:], y[300:]) + 0.03


def test_names_seeds_and_limits():
    X, score, _ = data()
    frame = pd.DataFrame(X, columns=["age", "income", "c", "d"])
    model = RuleFitRegressor(40, max_rules=25, random_state=3).fit(frame, score)
    again = RuleFitRegressor(40, max_rules=25, random_state=3).fit(frame, score)
    assert len(model.rules_) <= 25
    assert {c.feature for rule in model.rules_ for c in rule.conditions} <= set(frame.columns)
    np.testing.assert_array_equal(model.predict(frame), again.predict(frame))
    none = RuleFitRegressor(10, linear=False, random_state=0).fit(X, score)
    assert not none.linear_coef_.any()


def test_classes():
    X = data()[0]
    with pytest.raises(InputError, match="Only binary classification is supported"):
        RuleFitClassifier(5).fit(X, np.arange(300) % 3)
    with pytest.raises(InputError, match="one class only"):
        RuleFitClassifier(5).fit(X, np.zeros(300))
