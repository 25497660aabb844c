"""Descent of criteria with a radius."""

from dataclasses import dataclass

import numpy as np
import pytest

from kernelweave import RBF, Linear
from kernelweave.banks import make_bank
from kernelweave.machines import Hinge, Solution
from kernelweave.solvers.radius.criteria import RadiusMargin
from kernelweave.solvers.radius.descent import gradient_projection, lbfgs


class Careless(Hinge):
    """A machine that answers with the largest coefficients."""

    def solve(self, K, Y, cost, **options):
        dual_coef = self.repair(Y * cost, Y, cost)
        return Solution(dual_coef, np.zeros(1), K @ dual_coef, np.inf, -np.inf)


@dataclass(frozen=True)
class CarelessMargin(RadiusMargin):
    @property
    def machine(self):
        return Careless(self.fit_intercept)


@pytest.mark.parametrize("solve", [lbfgs, gradient_projection])
def test_no_model_is_worse_than_the_zero_function(solve):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), np.where(np.arange(20) % 2, 1.0, -1.0)[:, None]
    bank = make_bank([RBF(1.0), Linear()], X, normalize="radius", tol=1e-9)
    criterion, cost, start = CarelessMargin(), np.full((20, 1), 100.0), np.full(2, 0.5)
    result = solve(bank, Y, cost, criterion, norm=1.0, start=start, tol=1e-3, max_iter=5)
    assert result.objective == pytest.approx(cost.sum(), rel=1e-12)
    assert not result.dual_coef.any()
