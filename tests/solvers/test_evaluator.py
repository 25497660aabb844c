"""Bounds of an evaluator for kernels that are stored in single precision."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.banks import KernelBank, make_bank
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.kernels import ARD, RBF, Laplacian, Linear
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.bounds import Bounds
from kernelweave.solvers.evaluator import make_evaluator
from kernelweave.weights import LpBall, Simplex

KERNELS = [RBF(1.0), RBF(2.0), Laplacian(2.0), ARD([1.0] * 4), ARD([3.0] * 4)]


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("weight_set", [Simplex(), LpBall(2.0)], ids=["simplex", "l2"])
def test_lower_bounds_hold_for_kernels_stored_in_single_precision(monkeypatch, weight_set, tol):
    """Where a bound of the storage error is too much, kernels are evaluated; elsewhere not."""
    monkeypatch.setattr("kernelweave.banks.build._SMALL", 10)  # float32 from there on
    evaluated, too_high = [], 0
    whole = KernelBank.exact_forms
    monkeypatch.setattr(
        KernelBank, "exact_forms", lambda *args: evaluated.append(args) or whole(*args)
    )
    rng, cost = np.random.default_rng(0), np.ones((150, 1))
    for _ in range(20):
        X = rng.normal(size=(150, 4))
        Y = np.sign(X[:, :1] + 0.3 * rng.normal(size=(150, 1)))
        bank, exact = make_bank(KERNELS, X), make_bank(KERNELS, X, tol=1e-7)
        exact = replace(exact, scales=bank.scales)  # which are rounded, too
        assert bank.rounded.all()
        evaluator = make_evaluator(Problem(bank, Y, cost, Hinge(), weight_set), Bounds(tol))
        evaluator.exact = True
        weights = np.eye(5)[rng.integers(5)]
        dual_coef = Hinge().repair(rng.random((150, 1)) * Y, Y, cost)
        point = evaluator.at(weights, dual_coef)
        stored = bank.quadratic_forms(dual_coef)
        evaluator.offer_lower(point, stored)
        right = evaluator.lower_bound(point, exact.quadratic_forms(dual_coef))
        size, rounding = evaluator.bounds.size, 1e-11 * abs(right)
        assert right - 0.1 * tol * size - rounding <= evaluator.bounds.lower <= right + rounding
        too_high += evaluator.lower_bound(point, stored) > right + rounding
    assert too_high  # storage must count
    assert bool(evaluated) == (tol < 1e-6)


@pytest.mark.parametrize("drift", [0.0, 1e-3])
def test_upper_bounds_of_features_are_those_of_the_function(monkeypatch, drift):
    """Inner solvers keep running sums of the values, which may drift."""
    monkeypatch.setattr(large, "MANY_ROWS", 10)
    monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    Y = np.sign(X[:, :1] + 0.3 * rng.normal(size=(90, 1)))
    problem = Problem(
        make_feature_bank([Linear()], X, tol=1e-6), Y, np.ones((90, 1)), Hinge(), Simplex()
    )
    evaluator = make_evaluator(problem, Bounds(1e-3))
    evaluator.exact = False
    kernel = problem.bank.combine(np.ones(1))
    solution = evaluator.solve(kernel, tol=1e-6)
    wrong = replace(solution, fitted=solution.fitted * (1 + drift))
    point = evaluator.evaluate(kernel, wrong)
    evaluator.offer_lower(point, point.quadratic_forms)
    evaluator.settle()
    function = problem.bank.function(solution.function)
    fitted = function.values(problem.bank.kernels, problem.bank.source.views)
    slack = [np.maximum(0, 1 - Y * (fitted + b)).sum() for b in np.linspace(-1, 1, 20_001)]
    squared = float(np.sum(problem.bank.norms(solution.function) ** 2))
    assert evaluator.bounds.upper == pytest.approx(0.5 * squared + min(slack), rel=1e-6)
    assert evaluator.bounds.upper >= 0.5 * squared + min(slack) - 1e-3


@pytest.mark.parametrize("weight_set", [Simplex(), LpBall(1.5), LpBall(3.0)], ids=str)
def test_penalties_count_the_rounding_of_forms_near_zero(weight_set):
    """At the best weights of a function, a form near zero counts by a power below one."""
    rng, cost = np.random.default_rng(0), np.full((40, 1), 1e-3)
    wide, largest = 1e7, 0.0  # values differ from one in their last digits only
    for _ in range(20):
        X = rng.normal(size=(40, 2))
        Y = np.sign(rng.normal(size=(40, 1)))
        bank = make_bank([RBF(1.0), RBF(wide)], X, normalize=None)
        evaluator = make_evaluator(Problem(bank, Y, cost, Hinge(), weight_set), Bounds(1e-6))
        dual_coef = Hinge().repair(1e-3 * rng.random((40, 1)) * Y, Y, cost)
        weights = weight_set.start(2)
        point = evaluator.at(weights, dual_coef)
        evaluator.measure_rounding()
        a = dual_coef[:, 0].astype(np.longdouble)
        exponent = -((X[:, None] - X) ** 2).sum(axis=2).astype(np.longdouble) / 2
        forms = a @ np.exp(exponent) @ a, a.sum() ** 2 + a @ np.expm1(exponent / wide**2) @ a
        right = weight_set.penalty(weights * np.sqrt(np.maximum(forms, 0)))
        stated = weight_set.penalty(weights * np.sqrt(np.maximum(point.quadratic_forms, 0)))
        assert abs(right - stated) <= evaluator.bounds.rounding
        largest = max(largest, abs(right - stated) / (np.finfo(float).eps * right))
    assert largest > 1e3  # rounding must count for more than a few units in the last place
