"""Newton's method for smooth losses."""

import numpy as np
import pytest

from gram_banks import bank_of
from kernelweave.banks import build, make_bank
from kernelweave.inner import newton, solve_inner, systems
from kernelweave.kernels import RBF
from kernelweave.losses import Logistic, Softmax
from kernelweave.testing import check_loss
from likelihood_cases import LOSSES, problem_for
from oracles import random_problem


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", LOSSES)
def test_contract(kind, C, fit_intercept):
    problem = problem_for(kind, 3, n=40, m=3)
    check_loss(kind(fit_intercept), bank_of(problem.grams), problem.Y, C * problem.cost)


@pytest.mark.parametrize("kind", LOSSES)
def test_contract_with_weighted_and_absent_rows(kind):
    problem = problem_for(kind, 1, n=40, m=3, weighted=True)
    check_loss(kind(), bank_of(problem.grams), problem.Y, 3.0 * problem.cost)


def test_contract_with_several_outputs():
    problem = random_problem(4, kind="multiclass", n=40, m=3)
    check_loss(Logistic(), bank_of(problem.grams), problem.Y, problem.cost)


@pytest.mark.parametrize("kind", LOSSES)
def test_coefficients_of_a_step_prove_more_than_the_slopes_of_the_loss(monkeypatch, kind):
    problem = problem_for(kind, 3, n=60, m=1)
    K, cost = bank_of(problem.grams).combine(np.ones(1)), 10.0 * problem.cost
    exact = solve_inner(kind(), K, problem.Y, cost, tol=1e-12)
    found = solve_inner(kind(), K, problem.Y, cost, tol=1e-3)
    assert found.gap <= 1e-3 * found.primal
    assert found.dual <= exact.primal * (1 + 1e-12)
    assert found.primal >= exact.dual * (1 - 1e-12)
    np.testing.assert_allclose(K @ found.dual_coef, found.fitted, atol=1e-9)
    np.testing.assert_allclose(found.dual_coef.sum(axis=0), 0.0, atol=1e-12 * cost.sum())
    monkeypatch.setattr(newton._Newton, "_offer_own", lambda *args: None)
    other = solve_inner(kind(), K, problem.Y, cost, tol=1e-3)
    assert (found.work, found.gap) < (other.work, 0.1 * other.gap)


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_iterations_converge_at_large_costs_too(C, monkeypatch):
    monkeypatch.setattr(systems, "MAX_FREE", 50)  # as with thousands of rows
    monkeypatch.setattr(build, "_SMALL", 10)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    Y = np.where(np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:3] > 0, 1.0, -1.0)
    K = make_bank([RBF(width=1.5)], X).combine(np.ones(1))
    assert K.dtype == np.float32
    found = solve_inner(Logistic(), K, Y, np.full_like(Y, C), tol=1e-3)
    assert found.gap <= 1e-3 * found.primal


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("most", [None, 10])
def test_steps_whose_iterations_overflow_are_not_taken(monkeypatch, kind, most):
    """Factors give the steps in their place, but for more rows than these are meant for."""
    problem = problem_for(kind, 3, n=60, m=1)
    options = systems.IterativeOptions(least_rows=2, least_coupled=2, most_curved=np.inf)
    monkeypatch.setattr(systems, "_ITERATIVE", options)
    if most is not None:
        monkeypatch.setattr(systems, "MAX_FREE", most)

    def overflow(self, V):
        return np.full(V.shape, np.inf), np.full(V.shape, np.nan)

    monkeypatch.setattr(systems.IterativeSystem, "apply_and_multiply", overflow)
    K = bank_of(problem.grams).combine(np.ones(1))
    found = solve_inner(kind(), K, problem.Y, problem.cost, tol=1e-6)
    assert np.isfinite([found.primal, found.dual]).all()
    assert found.dual <= found.primal
    assert (found.gap <= 1e-6 * found.primal) == (most is None)


def test_stages_that_come_to_nothing_end_early(monkeypatch):
    """A cold start at large costs goes through stages, but not where iterations do not suffice."""
    monkeypatch.setattr(systems, "MAX_FREE", 10)
    monkeypatch.setattr(
        systems.IterativeSystem, "direction", lambda self, r, Kr, a: (1e-12 * r, 1e-12 * Kr)
    )
    steps = []
    run = newton._Newton.run

    def counting(self, *args):
        found = run(self, *args)
        steps.append(found.work)
        return found

    monkeypatch.setattr(newton._Newton, "run", counting)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    gram = 1e12 * (1.0 + 1e-4 * np.exp(-((x[:, None] - x) ** 2).sum(axis=2)))
    Y = rng.choice([-1.0, 1.0], size=(60, 1))
    K = bank_of(gram[None]).combine(np.ones(1))
    found = solve_inner(Logistic(False), K, Y, np.ones_like(Y), tol=1e-3)
    assert steps[0] == newton._OPTIONS.stage_steps
    assert len(steps) == 2  # that stage, and the problem itself
    assert found.dual <= found.primal


@pytest.mark.parametrize("kind", [Logistic, Softmax])
def test_iterations_are_accurate_enough_for_large_curvature(monkeypatch, kind):
    """Of a kernel far above the loss, a step is a small difference of large numbers."""
    monkeypatch.setattr(systems, "MAX_FREE", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6))
    labels = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3] if kind is Softmax else [0.0])
    Y = 2.0 * np.eye(3 if kind is Softmax else 2)[labels][:, 0 if kind is Softmax else 1 :] - 1.0
    K = bank_of((1e4 * RBF(width=0.7)(X))[None]).combine(np.ones(1))
    found = solve_inner(kind(True), K, Y, np.full_like(Y, 0.3), tol=1e-3)
    assert found.gap <= 1e-3 * found.primal
    assert found.work <= 25
