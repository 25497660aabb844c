"""Fewer rules: merged columns, the strongest rules, and the certificate of the second fit."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from kernelweave import RuleEnsembleClassifier, RuleEnsembleRegressor
from kernelweave.estimators.rule_selection import column_correlations, dice_index
from kernelweave.rules import cover_rules


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X["yes"] = rng.choice(["no", "yes"], n)
    score = 1.5 * (X["a"] > 0) - (X["b"] > 0.5) + (X["yes"] == "yes") * (X["c"] > 0)
    return X, np.where(score + rng.normal(size=n) > 0.4, 1, 0), score.to_numpy()


@pytest.mark.parametrize("rho", [1.0, 1.1, 2.0])
def test_no_mirror_images_are_left(rho):
    X, y, _ = table()
    loss = "logistic" if rho == 1 else "hinge"
    model = RuleEnsembleClassifier(rho, loss=loss, C=10.0, refit=True).fit(X, y)
    columns = cover_rules(model.rules_, X)
    keys = {(c if c[0] else ~c).tobytes() for c in columns.T}
    assert len(keys) == len(model.rules_) > 2
    assert model.refit_gap_ <= 1e-6


def test_both_sides_of_a_cut_stay_without_refit():
    X, y, _ = table()
    model = RuleEnsembleClassifier(C=10.0).fit(X, y)
    columns = cover_rules(model.rules_, X)
    keys = {(c if c[0] else ~c).tobytes() for c in columns.T}
    assert len(keys) < len(model.rules_)
    assert not hasattr(model, "refit_gap_")


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_second_fit_is_optimal(loss):
    X, y, _ = table()
    options = {"C": 5.0, "refit": True, "max_rules": 6}
    model = RuleEnsembleClassifier(1.0 if loss == "logistic" else 1.1, loss=loss, **options)
    model.fit(X, y)
    assert len(model.rules_) == 6
    Z, signs = cover_rules(model.rules_, X).astype(float), 2.0 * y - 1.0
    f, b = cp.Variable(6), cp.Variable()
    margin = cp.multiply(signs, Z @ f + b)
    total = cp.sum(cp.logistic(-margin)) if loss == "logistic" else cp.sum(cp.pos(1 - margin))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(f) + 0.1 * total))
    best = problem.solve(solver=cp.CLARABEL)
    weights = np.array([rule.weight for rule in model.rules_])
    margins = signs * model.decision_function(X)
    losses = np.log1p(np.exp(-margins)) if loss == "logistic" else np.maximum(0, 1 - margins)
    assert 0.5 * weights @ weights + 0.1 * losses.sum() == pytest.approx(best, rel=1e-5)


def test_the_strongest_rules_stay():
    X, _, score = table()
    all_rules = RuleEnsembleRegressor(1.0, C=3.0).fit(X, score)
    columns = cover_rules(all_rules.rules_, X).astype(float)
    sizes = np.abs([rule.weight for rule in all_rules.rules_]) * columns.std(axis=0)
    strongest = {all_rules.rules_[k].text for k in np.argsort(-sizes)[:3]}
    few = RuleEnsembleRegressor(1.0, C=3.0, max_rules=3).fit(X, score)
    assert {rule.text for rule in few.rules_} == strongest
    kept = {rule.text: rule.weight for rule in few.rules_}
    given = {rule.text: rule.weight for rule in all_rules.rules_}
    assert all(kept[text] == pytest.approx(given[text]) for text in kept)
    refitted = RuleEnsembleRegressor(1.0, C=3.0, max_rules=3, refit=True).fit(X, score)
    assert {rule.text for rule in refitted.rules_} == strongest
    assert refitted.score(X, score) > few.score(X, score)


def test_correlations_and_dice():
    Z = np.array([[0, 1, 0], [1, 0, 0], [1, 0, 1], [0, 1, 1.0]])
    expected = np.abs(np.corrcoef(Z.T))
    np.testing.assert_allclose(column_correlations(Z, Z), expected, atol=1e-12)
    assert column_correlations(np.ones((4, 1)), Z).tolist() == [[0.0, 0.0, 0.0]]
    assert dice_index(Z, Z) == 1.0
    assert dice_index(Z[:, :1], Z[:, 1:2]) == 1.0
    assert dice_index(Z[:, :1], Z[:, 2:]) == 0.0
    assert dice_index(Z[:, :2], Z[:, [1, 2]]) == 0.75
    assert dice_index(Z[:, :0], Z[:, :0]) == 1.0
    assert dice_index(Z[:, :0], Z) == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_the_second_fit_is_optimal_up_to_its_gap(seed):
    """With weights of very different size, where coefficients and weights of rules differ."""
    rng = np.random.default_rng(seed)
    X = (rng.random((50, 3)) < 0.5).astype(float)
    y = (X[:, 0] + rng.normal(size=50) > 0.5).astype(int)
    weight = 10.0 ** rng.uniform(-5, 5, 50)
    model = RuleEnsembleClassifier(
        1.0, loss="logistic", propositions="given", refit=True, random_state=0
    ).fit(X, y, weight)
    Z, sign = cover_rules(model.rules_, X).astype(float), np.where(y, 1.0, -1.0)

    def objective(v):
        margins = sign * (Z @ v[:-1] + v[-1])
        return 0.5 * v[:-1] @ v[:-1] + 0.1 * weight @ np.logaddexp(0, -margins)

    here = np.append([rule.weights[0] for rule in model.rules_], model.intercept_)
    value = objective(here)
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000}
    best = minimize(objective, here, method="Nelder-Mead", options=options).fun
    assert model.refit_gap_ <= 1e-6
    assert value - best <= model.refit_gap_ * value


def test_half_samples_without_a_class_are_fitted():
    rng = np.random.default_rng(0)
    X = (rng.random((40, 3)) < 0.5).astype(float)
    y = np.minimum(np.arange(40), 3)  # three classes of one row
    model = RuleEnsembleClassifier(
        1.1, loss="logistic", propositions="given", refit=True, n_resamples=10, random_state=0
    ).fit(X, y)
    assert np.isfinite(model.stability_).all()


def test_an_intercept_alone_has_no_gap():
    X = np.zeros((20, 1))
    with pytest.warns(UserWarning, match="no column of X gives a proposition"):
        model = RuleEnsembleClassifier(refit=True).fit(X, np.arange(20) % 2)
    assert model.refit_gap_ == 0.0
