"""Projected gradients on sum-product weights."""

import pytest

from kernelweave.solvers.published.projected_gradient import projected_gradient
from quick import every
from structure_cases import INSTANCES, optimum, problem, run


@pytest.mark.parametrize("name", every(2, INSTANCES))
def test_projected_gradients_reach_the_same_objective(name):
    prob, sol = problem(name), optimum(name)
    result = prob.run(update=projected_gradient(prob.weights), mix=False)
    assert result.converged
    assert result.gap <= 1e-3 * result.objective
    assert sol.lower * (1 - 1e-9) <= result.objective <= sol.value * (1 + 1e-3)
    assert result.lower_bound <= sol.upper * (1 + 1e-9)
    assert result.objective == pytest.approx(run(name, True).objective, rel=1e-3)


def test_projected_gradients_cost_no_more_machines_than_exact_steps():
    projected = 0
    for name in INSTANCES:
        prob = problem(name)
        result = prob.run(update=projected_gradient(prob.weights), mix=False)
        projected += result.history[-1].solves
    assert projected <= 1.1 * sum(run(name, False).history[-1].solves for name in INSTANCES)
