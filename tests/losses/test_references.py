"""Both bounds of every loss enclose the value that a conic solver finds."""

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave.banks import make_bank
from kernelweave.kernels import Precomputed
from kernelweave.losses import Logistic, Quantile, Softmax, SquaredHinge
from kernelweave.solvers import Limits, Problem, learn_weights
from kernelweave.weights import LpBall, Simplex, Uniform
from loss_oracles import reference
from oracles import random_problem

LEVELS = (0.1, 0.5, 0.8)
CASES = {
    "logistic": ("binary", Logistic),
    "one against the rest": ("multiclass", Logistic),
    "softmax": ("multiclass", Softmax),
    "squared_hinge": ("binary", SquaredHinge),
    "quantile": ("regression", lambda fit_intercept: Quantile((0.7,), fit_intercept)),
    "quantiles": ("regression", lambda fit_intercept: Quantile(LEVELS, fit_intercept)),
}
SETS = {1.0: Simplex(), 1.5: LpBall(1.5), 2.0: LpBall(2.0), "uniform": Uniform()}


@pytest.mark.parametrize("norm", SETS)
@pytest.mark.parametrize("name", CASES)
def test_bounds_enclose_the_reference(name, norm):
    kind, make = CASES[name]
    seed = sorted(CASES).index(name) * 10 + list(SETS).index(norm)
    rng = np.random.default_rng(seed)
    C, fit_intercept = 10.0 ** rng.uniform(-1, 1.5), bool(seed % 2)
    problem = random_problem(seed, kind=kind, n=18, m=4)
    Y, cost = problem.Y, C * rng.uniform(0.2, 2.0, size=(18, 1)) * problem.cost
    levels = LEVELS if name == "quantiles" else (0.7,)
    if name == "quantiles":
        Y, cost = np.repeat(Y, 3, axis=1), np.repeat(cost, 3, axis=1)
    bank = make_bank(
        [Precomputed(g) for g in problem.grams], np.arange(18)[:, None], normalize=None
    )
    loss = make(fit_intercept=fit_intercept)
    found = learn_weights(Problem(bank, Y, cost, loss, SETS[norm]), Limits(1e-9, 500))
    formula = {"one against the rest": "logistic", "quantiles": "quantile"}.get(name, name)
    options = {"norm": norm, "fit_intercept": fit_intercept, "levels": levels}
    value, decision = reference(formula, problem.grams, Y, cost, **options)
    assert found.converged
    assert found.objective >= value * (1 - 1e-8)
    assert found.lower_bound <= value * (1 + 1e-8)
    assert found.gap <= 2e-9 * found.objective
    if "quantile" not in name:
        weights = bank.combine(found.weights)
        values = weights @ found.dual_coef + found.intercept
        spread = decision - values
        if name == "softmax" and fit_intercept:  # biases are determined up to a constant
            spread = spread - spread.mean(axis=1, keepdims=True)
        assert np.abs(spread).max() < 2e-3


@pytest.mark.parametrize("norm", SETS)
@pytest.mark.parametrize("name", CASES)
def test_no_feasible_point_proves_more_than_any_function(name, norm):
    kind, make = CASES[name]
    problem, rng = random_problem(3, kind=kind, n=18, m=4), np.random.default_rng(7)
    Y, cost = problem.Y, rng.uniform(0.2, 5.0, size=(18, 1)) * problem.cost
    if name == "quantiles":
        Y, cost = np.repeat(Y, 3, axis=1), np.repeat(cost, 3, axis=1)
    loss, weight_set, lowest, highest = make(fit_intercept=True), SETS[norm], np.inf, -np.inf
    bank = make_bank(
        [Precomputed(g) for g in problem.grams], np.arange(18)[:, None], normalize=None
    )
    near = learn_weights(Problem(bank, Y, cost, loss, weight_set), Limits(1e-2, 100))
    for size in np.repeat([0.0, 1e-3, 0.1, 1.0, 30.0], 20):
        B = loss.repair(near.dual_coef + size * rng.normal(size=Y.shape), Y, cost)
        forms = bank.quadratic_forms(B)
        linear, ridge = loss.linear(B, Y, cost), loss.ridge_term(B, Y, cost)
        lower = weight_set.lower_bound(linear, ridge, forms, bounded=loss.bounded)
        highest = max(highest, lower)
        norms = near.weights * np.sqrt(forms)  # of the function with these coefficients
        fitted = bank.combine(near.weights) @ B
        lowest = min(lowest, weight_set.penalty(norms) + loss.value(fitted, Y, cost)[0])
    assert 0.9 * lowest < highest <= lowest * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_the_estimator_solves_this_problem(loss):
    problem = random_problem(4, kind="binary", n=24, m=4)
    index = np.arange(24)[:, None]
    kernels = [Precomputed(gram) for gram in problem.grams]
    model = MKLClassifier(kernels, loss=loss, C=2.0, tol=1e-8, normalize=None)
    model.fit(index, problem.y)
    value, _ = reference(loss, problem.grams, problem.Y, 2.0 * problem.cost)
    assert model.objective_ == pytest.approx(value, rel=1e-7)
    assert model.objective_ - model.duality_gap_ <= value * (1 + 1e-8)


def test_the_regressor_solves_this_problem():
    problem = random_problem(5, kind="regression", n=24, m=4)
    index = np.arange(24)[:, None]
    kernels = [Precomputed(gram) for gram in problem.grams]
    options = {"C": 3.0, "tol": 1e-8, "normalize": None, "target_scale": None}
    model = MKLRegressor(kernels, loss="quantile", quantile=LEVELS, **options)
    model.fit(index, problem.y)
    Y = np.repeat(problem.Y, 3, axis=1)
    value, _ = reference("quantile", problem.grams, Y, np.full_like(Y, 3.0), levels=LEVELS)
    assert model.objective_ == pytest.approx(value, rel=1e-7)
