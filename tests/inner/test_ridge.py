"""The square loss is kernel ridge regression."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

from gram_banks import kernel_of
from kernelweave.banks import build, make_bank
from kernelweave.inner import solve_inner, systems
from kernelweave.kernels import RBF
from kernelweave.losses import Square
from oracles import random_problem


def test_square_is_kernel_ridge():
    problem = random_problem(7, kind="regression")
    gram = problem.grams[0]
    found = solve_inner(Square(False), kernel_of(gram), problem.Y, 4.0 * problem.cost, tol=1e-3)
    reference = KernelRidge(alpha=0.25, kernel="precomputed").fit(gram, problem.y)
    assert_allclose(found.dual_coef[:, 0], reference.dual_coef_, rtol=1e-6, atol=1e-8)
    assert found.gap == pytest.approx(0, abs=1e-10 * found.primal)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, 1e4])
def test_on_demand_it_is_the_same_by_iterations(C, held, monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.3 * rng.normal(size=(300, 2))
    Y += 100.0
    cost = C * rng.choice([0.0, 0.5, 1.0, 2.0], size=Y.shape)
    monkeypatch.setattr(build, "_SMALL", 10)
    whole = replace(build.ON_DEMAND, whole_bytes=16.0 if held else np.inf)
    monkeypatch.setattr(build, "ON_DEMAND", whole)
    monkeypatch.setattr(systems, "MAX_FREE", 50)  # as with thousands of rows
    for intercept in (True, False):
        loss = Square(intercept)
        banks = [make_bank([RBF(width=1.5)], X, tol=1e-9, on_demand=on) for on in (True, False)]
        one, other = (replace(b, scales=banks[1].scales).combine(np.ones(1)) for b in banks)
        assert one.workspace is not None
        exact = solve_inner(loss, other, Y, cost, tol=1e-3)
        found = solve_inner(loss, one, Y, cost, tol=1e-3)
        assert found.gap <= 1e-3 * found.primal
        assert found.dual <= exact.primal * (1 + 1e-6)
        assert exact.dual <= found.primal * (1 + 1e-6)
        assert not found.dual_coef[cost == 0].any()
        if intercept:
            assert_allclose(found.dual_coef.sum(axis=0), 0.0, atol=1e-9 * C * 300)
        assert_allclose(found.fitted, other @ found.dual_coef, atol=1e-5 * np.abs(Y).max())
        again = solve_inner(loss, one, Y, cost, tol=1e-3, start=found)
        assert again.work == 0
