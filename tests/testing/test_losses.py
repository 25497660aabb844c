"""The contract of losses catches what is broken, and says what it is."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.inner import solve_inner, weight_curvature
from kernelweave.kernels import Precomputed
from kernelweave.losses import Hinge, Square
from kernelweave.testing import check_loss
from oracles import random_problem


@pytest.fixture(scope="module")
def problem():
    return random_problem(3, n=40, m=3)


@pytest.fixture(scope="module")
def bank(problem):
    index = np.arange(40)[:, None]
    return make_bank([Precomputed(gram) for gram in problem.grams], index, normalize=None)


def changed(**changes):
    """Return an inner solver whose solutions are changed field by field."""

    def solve(*args, **options):
        solution = solve_inner(*args, **options)
        return replace(solution, **{name: change(solution) for name, change in changes.items()})

    return {"solve": solve}


def lazy(*args, tol, floor=0.0, **options):
    """Stop at a tenth whatever is asked."""
    return solve_inner(*args, tol=max(tol, 0.1), floor=floor, **options)


def wasteful(*args, start=None, **options):
    """Spend more on a warm start than on a cold one."""
    solution = solve_inner(*args, start=start, **options)
    return replace(solution, work=solution.work if start is None else 10**9)


def half_curvature(*args):
    found = weight_curvature(*args)
    return replace(found, hessian=0.5 * found.hessian)


def wrong_response(*args):
    found = weight_curvature(*args)
    return replace(found, response=[-3.0 * part for part in found.response])


class BiasOff(Hinge):
    def value(self, fitted, Y, cost):
        total, bias = super().value(fitted, Y, cost)
        return total, bias + 0.3


class LossOff(Square):
    """Forgets the factor one half that the box implies."""

    def value(self, fitted, Y, cost):
        total, bias = super().value(fitted, Y, cost)
        return 2.0 * total, bias


class Unbalanced(Hinge):
    def repair(self, dual_coef, Y, cost):
        box = self.box(Y, cost)
        return np.clip(dual_coef, box.lower, box.upper)


class InPlace(Hinge):
    def repair(self, dual_coef, Y, cost):
        dual_coef *= 0.5
        return super().repair(dual_coef, Y, cost)


class HalfLinear(Square):
    def linear(self, dual_coef, Y, cost):
        return 0.9 * super().linear(dual_coef, Y, cost)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (changed(primal=lambda s: 0.5 * s.primal), "above the primal|primal value"),
        (changed(dual=lambda s: 1.01 * s.primal), "above the primal"),
        (changed(dual=lambda s: 0.9 * s.dual), "dual value"),
        (changed(intercept=lambda s: s.intercept + 0.5), "intercept"),
        (changed(dual_coef=lambda s: s.dual_coef + 0.1), "leave their set"),
        (changed(fitted=lambda s: 1.1 * s.fitted), "fitted"),
        ({"solve": lazy}, "gap"),
        ({"solve": wasteful}, "updates"),
        ({"loss": BiasOff()}, "bias|loss"),
        ({"loss": LossOff()}, "loss|primal|gap"),
        ({"loss": Unbalanced()}, "repair"),
        ({"loss": InPlace()}, "repair writes"),
        ({"curvature": half_curvature}, "Hessian"),
        ({"curvature": wrong_response}, "predict"),
        ({"loss": HalfLinear()}, "gap"),
    ],
)
def test_a_broken_part_is_named(broken, message, bank, problem):
    with pytest.raises(AssertionError, match=message):
        check_loss(**({"loss": Hinge()} | broken), bank=bank, Y=problem.Y, cost=2.0 * problem.cost)


def test_wrong_slopes_are_caught(bank, problem):
    """A bank whose forms are off gives slopes that contradict the optimal values."""

    class Crooked(type(bank)):
        def quadratic_forms(self, V, which=None):
            out = super().quadratic_forms(V, which).copy()
            out[-1] *= 1.01
            return out

    fields = {name: getattr(bank, name) for name in bank.__dataclass_fields__}
    with pytest.raises(AssertionError):
        check_loss(Hinge(), Crooked(**fields), problem.Y, problem.cost)
