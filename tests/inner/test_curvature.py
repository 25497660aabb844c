"""The Hessian in the weights of kernels held as features, against that of the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gram_banks import bank_of
from kernelweave import RBF, Linear
from kernelweave.banks import row_source as source
from kernelweave.banks.nystroem import build as large
from kernelweave.banks.nystroem.blocks import LocalBlocks
from kernelweave.banks.nystroem.build import make_feature_bank
from kernelweave.inner import solve_inner
from kernelweave.inner.curvature import feature_hessian, weight_curvature
from kernelweave.losses import EpsilonInsensitive, Hinge, Smoothed
from likelihood_cases import LOSSES, problem_for

KERNELS = [RBF(width=w, columns=[c]) for c in range(2) for w in (1.0, 3.0)] + [Linear(columns=[2])]
WEIGHTS = np.array([0.3, 0.0, 0.2, 0.5, 0.0])


@pytest.fixture
def bank(monkeypatch):
    monkeypatch.setattr(large, "MANY_ROWS", 10)
    monkeypatch.setattr(large, "_MOST_FEATURES", 1.0)
    monkeypatch.setattr(source, "_BLOCK_BYTES", 20_000)  # several blocks
    X = np.random.default_rng(0).normal(size=(400, 3))
    found = make_feature_bank(KERNELS, X, tol=1e-4)
    assert len(found.blocks.blocks) > 2
    return found


def targets(kind, n=400):
    rng = np.random.default_rng(1)
    if kind == "values":
        return rng.normal(size=(n, 2))
    return np.where(rng.random((n, 2)) < 0.4, 1.0, -1.0)


MACHINES = {
    "classes": lambda intercept: Smoothed(Hinge(intercept), 0.5),
    "values": lambda intercept: Smoothed(EpsilonInsensitive(0.1, intercept), 0.5),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", sorted(MACHINES))
def test_equals_what_the_rows_say_and_reads_no_row(bank, kind, intercept, monkeypatch):
    loss, Y, cost = MACHINES[kind](intercept), targets(kind), np.ones((400, 2))
    cost[::7] = 2.0
    kernel, which = bank.combine(WEIGHTS), np.array([0, 2, 3, 4])
    dual_coef = solve_inner(loss, kernel, Y, cost, tol=1e-9).dual_coef
    by_rows = weight_curvature(
        loss, kernel, lambda rows: bank.products(dual_coef, which, rows), dual_coef, Y, cost
    ).hessian
    monkeypatch.setattr(LocalBlocks, "rows", None)
    found = feature_hessian(loss, kernel, which, dual_coef, Y, cost)
    np.testing.assert_allclose(found, by_rows, rtol=1e-9, atol=1e-10 * np.abs(by_rows).max())


def test_is_the_derivative_of_the_forms(bank):
    loss, Y, cost = MACHINES["classes"](True), targets("classes"), np.ones((400, 2))
    which, h = np.arange(5), 1e-5

    def slopes(weights):
        dual_coef = solve_inner(loss, bank.combine(weights), Y, cost, tol=1e-13).dual_coef
        return -0.5 * bank.quadratic_forms(dual_coef), dual_coef

    weights = WEIGHTS + 0.01
    dual_coef = slopes(weights)[1]
    found = feature_hessian(loss, bank.combine(weights), which, dual_coef, Y, cost)
    for j, unit in enumerate(np.eye(5)):
        ahead, behind = slopes(weights + h * unit)[0], slopes(weights - h * unit)[0]
        column = (ahead - behind) / (2 * h)
        # Rows enter and leave their boxes, a few at a time.
        np.testing.assert_allclose(found[:, j], column, atol=0.02 * np.abs(column).max())


def test_few_free_rows_are_looked_at_themselves(bank):
    loss, Y, cost = Hinge(), targets("classes"), np.ones((400, 2))
    kernel, which = bank.combine(WEIGHTS), np.arange(5)
    dual_coef = solve_inner(loss, kernel, Y, cost, tol=1e-9).dual_coef
    by_rows = weight_curvature(
        loss, kernel, lambda rows: bank.products(dual_coef, which, rows), dual_coef, Y, cost
    ).hessian
    found = feature_hessian(loss, kernel, which, dual_coef, Y, cost)
    np.testing.assert_allclose(found, by_rows, rtol=1e-9, atol=1e-12 * np.abs(by_rows).max())


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", LOSSES)
def test_hessian_is_that_of_differences(kind, fit_intercept):
    problem = problem_for(kind, 5, n=30, m=3)
    bank, loss, cost = bank_of(problem.grams), kind(fit_intercept), 3.0 * problem.cost
    weights = np.array([0.5, 0.3, 0.2])

    def solve(weights):
        return solve_inner(loss, bank.combine(weights), problem.Y, cost, tol=1e-14).dual_coef

    best = solve(weights)
    every = np.arange(3)
    found = weight_curvature(
        loss,
        bank.combine(weights),
        lambda rows: bank.products(best, every, rows),
        best,
        problem.Y,
        cost,
    )
    forms = bank.quadratic_forms(best)
    for j in range(3):
        step = 1e-4 * np.eye(3)[j]
        ahead, behind = solve(weights + step), solve(weights - step)
        column = -0.5 * (bank.quadratic_forms(ahead) - bank.quadratic_forms(behind)) / 2e-4
        assert_allclose(found.hessian[:, j], column, atol=1e-5 * (forms / weights).max())
        moved = (ahead - behind) / 2.0
        assert_allclose(found.predict(best, step) - best, moved, atol=1e-4 * np.abs(moved).max())
    spare = np.diag(forms / weights) - found.hessian
    assert np.linalg.eigvalsh(spare)[0] >= -1e-9 * forms.max()
    assert np.linalg.eigvalsh(found.hessian)[0] >= -1e-9 * forms.max()
