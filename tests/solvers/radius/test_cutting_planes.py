"""The linear program over point points, against the optimum by conic programming."""

import numpy as np
import pytest

from kernelweave import Precomputed
from kernelweave.banks import make_bank
from kernelweave.solvers.radius.criteria import RadiusMargin
from kernelweave.solvers.radius.cutting_planes import Cuts
from quick import first
from radius_oracles import random_radius_problem, solve_radius


def point_at_random(seed, n_points):
    """Return a problem, its bank of unit size, the criterion and the cuts of some points."""
    problem = random_radius_problem(seed, n=14, m=4, n_classes=2 + seed % 2)
    n = len(problem.y)
    bank = make_bank(
        [Precomputed(gram) for gram in problem.grams],
        np.arange(n)[:, None],
        normalize="radius",
        tol=1e-9,
    )
    criterion = RadiusMargin()
    cuts = Cuts.begin(bank)
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_points):
        kernel = bank.combine(10 * rng.dirichlet(np.full(4, 0.5)))
        point = criterion.evaluate(kernel, problem.Y, problem.cost, tol=1e-6)
        cuts.add(point, criterion.loss.linear(point.solution.dual_coef, problem.Y, problem.cost))
        values.append(point.value)
    return problem, bank, criterion, cuts, min(values)


@pytest.mark.parametrize("seed", first(3, range(8)))
@pytest.mark.parametrize("n_points", [1, 3, 30])
def test_mixtures_never_prove_too_much(seed, n_points):
    problem, bank, criterion, cuts, upper = point_at_random(seed, n_points)
    value, _ = solve_radius(problem.grams, problem.Y, problem.cost)
    lowest = cuts.minimise(upper)
    assert (lowest.weights >= 0).all()
    assert (lowest.centre >= 0).all()
    assert lowest.centre.sum() == pytest.approx(1)
    bound = criterion.joint_bound(bank, lowest.dual_coef, lowest.centre, problem.Y, problem.cost)
    assert bound <= value * (1 + 1e-8)
    # A mixture is worth at least what the cuts say: both functions are on its side.
    heights = np.array(cuts.linears) - 0.5 * np.array(cuts.quadratic_forms) @ lowest.weights
    assert bound >= heights.max() - 1e-6 * upper
    assert (np.array(cuts.spreads) @ lowest.weights).max() <= 1 + 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_going_on_from_the_lowest_point_ends_at_the_optimum(seed):
    problem, bank, criterion, cuts, upper = point_at_random(seed, 2)
    value, _ = solve_radius(problem.grams, problem.Y, problem.cost)
    for _ in range(80):
        lowest = cuts.minimise(upper)
        bound = criterion.joint_bound(
            bank, lowest.dual_coef, lowest.centre, problem.Y, problem.cost
        )
        if upper - bound <= 1e-6 * upper:
            break
        kernel = bank.combine(lowest.weights)
        point = criterion.evaluate(kernel, problem.Y, problem.cost, tol=1e-9)
        cuts.add(point, criterion.loss.linear(point.solution.dual_coef, problem.Y, problem.cost))
        upper = min(upper, point.value)
    assert upper == pytest.approx(value, rel=2e-6)
    assert bound == pytest.approx(value, rel=2e-6)
