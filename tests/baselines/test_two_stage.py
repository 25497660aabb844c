"""HKL followed by l1 weights: the second stage solves its problem on the rules of the first."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import Propositions
from kernelweave.baselines import HKLTwoStageClassifier
from kernelweave.datasets import make_balance_scale, make_monks
from kernelweave.rules import cover_rules


@pytest.mark.slow
@parametrize_with_checks([HKLTwoStageClassifier(Cs=[1.0], cv=2, n_jobs=1)])
# Some of its tables have one row of a class, which two folds cannot share.
@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def robots():
    data = make_monks(3, n_samples=80, noise=0.05, random_state=0)
    return data.X, data.y.to_numpy()


def test_the_second_stage_minimises_the_squared_l1_norm(robots):
    cvxpy = pytest.importorskip("cvxpy")
    X, y = robots
    model = HKLTwoStageClassifier(Cs=[1.0], tol=1e-5, n_jobs=1).fit(X, y)
    Z = cover_rules(model.first_.rules_, X).astype(float)
    signs = np.where(y == model.classes_[1], 1.0, -1.0)
    f, b = cvxpy.Variable(Z.shape[1]), cvxpy.Variable()
    hinge = cvxpy.sum(cvxpy.pos(1 - cvxpy.multiply(signs, Z @ f + b)))
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.square(cvxpy.norm1(f)) + hinge))
    problem.solve(solver="CLARABEL")
    assert model.second_.objective_ == pytest.approx(problem.value, rel=1e-4)
    norm = sum(abs(rule.weight) for rule in model.rules_)
    loss = np.maximum(0, 1 - signs * model.decision_function(X)).sum()
    assert 0.5 * norm**2 + loss == pytest.approx(problem.value, rel=1e-2)


def test_it_keeps_some_rules_of_the_first_stage(robots):
    X, y = robots
    model = HKLTwoStageClassifier(Cs=[0.1, 1.0, 10.0], n_jobs=1).fit(X, y)
    known = {rule.conditions for rule in model.first_.rules_}
    assert 0 < len(model.rules_) <= len(known)
    assert {rule.conditions for rule in model.rules_} <= known
    assert model.converged_
    assert model.C_ in (0.1, 1.0, 10.0)
    weights = [abs(rule.weight) for rule in model.rules_]
    assert weights == sorted(weights, reverse=True)
    truth = make_monks(3)
    assert model.score(truth.X, truth.y) > 0.9


def test_propositions_as_given_are_those_of_the_table(robots):
    X, y = robots
    P = Propositions().fit_transform(X)
    one = HKLTwoStageClassifier(Cs=[1.0], n_jobs=1).fit(X, y)
    other = HKLTwoStageClassifier(Cs=[1.0], propositions="given", n_jobs=1).fit(P, y)
    assert len(one.first_.rules_) == len(other.first_.rules_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(P), atol=1e-6)


def test_several_classes():
    data = make_balance_scale()
    rows = np.random.default_rng(0).permutation(len(data.y))[:100]
    X, y = data.X.iloc[rows], data.y.iloc[rows]
    model = HKLTwoStageClassifier(Cs=[0.3, 1.0], n_jobs=1).fit(X, y)
    assert model.decision_function(data.X).shape == (625, 3)
    assert all(len(rule.weight) == 3 for rule in model.rules_)
    assert model.score(data.X, data.y) > 0.75


def test_without_a_rule_the_intercept_decides():
    X = np.zeros((12, 2), dtype=bool)
    X[:, 0] = True
    y = np.array(["a"] * 8 + ["b"] * 4)
    with pytest.warns(UserWarning, match="intercept alone"):
        model = HKLTwoStageClassifier(Cs=[1.0], n_jobs=1).fit(X, y)
    assert model.rules_ == []
    assert model.second_ is None
    assert set(model.predict(X)) == {"a"}
