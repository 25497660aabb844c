"""Descent of criteria with a radius."""

import numpy as np
import pytest

from kernelweave import RBF, Linear
from kernelweave.banks import make_bank
from kernelweave.inner import unsolved
from kernelweave.solvers.problem import Limits
from kernelweave.solvers.radius.criteria import RadiusMargin
from kernelweave.solvers.radius.descent import _projection, gradient_projection, lbfgs
from kernelweave.solvers.radius.search import RadiusProblem


def careless(loss, K, Y, cost, **options):
    """An inner solver that returns the largest coefficients."""
    dual_coef = loss.repair(Y * cost, Y, cost)
    return unsolved(dual_coef, K @ dual_coef)


@pytest.mark.parametrize("solve", [lbfgs, gradient_projection])
def test_no_model_is_worse_than_the_zero_function(solve, monkeypatch):
    monkeypatch.setattr("kernelweave.solvers.radius.criteria.solve_inner", careless)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), np.where(np.arange(20) % 2, 1.0, -1.0)[:, None]
    bank = make_bank([RBF(1.0), Linear()], X, normalize="radius", tol=1e-9)
    cost = np.full((20, 1), 100.0)
    problem = RadiusProblem(bank, Y, cost, RadiusMargin(), norm=1.0)
    result = solve(problem, Limits(1e-3, 5), np.full(2, 0.5))
    assert result.objective == pytest.approx(cost.sum(), rel=1e-12)
    assert not result.dual_coef.any()


def test_projections_onto_sets_of_weights():
    onto = {norm: _projection(norm) for norm in (None, 1, 2)}
    x = np.array([3.0, -4.0, 4.0])
    np.testing.assert_allclose(onto[None](x), [3.0, 0.0, 4.0])
    np.testing.assert_allclose(onto[1](x), [0.0, 0.0, 1.0])
    np.testing.assert_allclose(onto[2](x), [0.6, 0.0, 0.8])
    np.testing.assert_allclose(onto[2](np.array([-3.0, -1.0])), [0.0, 1.0])  # the nearest point
