"""The contract of machines catches what is broken, and says what it is."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from kernelweave.banks import make_bank
from kernelweave.kernels import Precomputed
from kernelweave.machines import Hinge, Square
from kernelweave.testing import check_machine
from oracles import random_problem


@pytest.fixture(scope="module")
def problem():
    return random_problem(3, n=40, m=3)


@pytest.fixture(scope="module")
def bank(problem):
    index = np.arange(40)[:, None]
    return make_bank([Precomputed(gram) for gram in problem.grams], index, normalize=None)


def changed(**changes):
    """Return a hinge machine whose solutions are changed field by field."""

    @dataclass(frozen=True)
    class Broken(Hinge):
        def solve(self, *args, **options):
            solution = super().solve(*args, **options)
            return replace(solution, **{name: change(solution) for name, change in changes.items()})

    return Broken()


class Lazy(Hinge):
    """Stops at a tenth whatever is asked."""

    def solve(self, *args, tol, floor=0.0, **options):
        return super().solve(*args, tol=max(tol, 0.1), floor=floor, **options)


class Wasteful(Hinge):
    """Spends more on a warm start than on a cold one."""

    def solve(self, *args, start=None, **options):
        solution = super().solve(*args, start=start, **options)
        return replace(solution, work=solution.work if start is None else 10**9)


class BiasOff(Hinge):
    def loss(self, fitted, Y, cost):
        total, bias = super().loss(fitted, Y, cost)
        return total, bias + 0.3


class LossOff(Square):
    """Forgets the factor one half that the dual shape implies."""

    def loss(self, fitted, Y, cost):
        total, bias = super().loss(fitted, Y, cost)
        return 2.0 * total, bias


class Unbalanced(Hinge):
    def repair(self, dual_coef, Y, cost):
        shape = self.shape(Y, cost)
        return np.clip(dual_coef, shape.lower, shape.upper)


class InPlace(Hinge):
    def repair(self, dual_coef, Y, cost):
        dual_coef *= 0.5
        return super().repair(dual_coef, Y, cost)


class HalfCurvature(Hinge):
    def curvature(self, *args):
        found = super().curvature(*args)
        return replace(found, hessian=0.5 * found.hessian)


class WrongResponse(Hinge):
    def curvature(self, *args):
        found = super().curvature(*args)
        return replace(found, response=[-3.0 * part for part in found.response])


class HalfLinear(Square):
    def linear(self, dual_coef, Y):
        return 0.9 * super().linear(dual_coef, Y)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (changed(primal=lambda s: 0.5 * s.primal), "above the primal|primal value"),
        (changed(dual=lambda s: 1.01 * s.primal), "above the primal"),
        (changed(dual=lambda s: 0.9 * s.dual), "dual value"),
        (changed(intercept=lambda s: s.intercept + 0.5), "intercept"),
        (changed(dual_coef=lambda s: s.dual_coef + 0.1), "leave their set"),
        (changed(fitted=lambda s: 1.1 * s.fitted), "fitted"),
        (Lazy(), "gap"),
        (Wasteful(), "updates"),
        (BiasOff(), "bias|loss"),
        (LossOff(), "loss|primal|gap"),
        (Unbalanced(), "repair"),
        (InPlace(), "repair writes"),
        (HalfCurvature(), "Hessian"),
        (WrongResponse(), "predict"),
        (HalfLinear(), "gap"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_broken_machines(machine, message, bank, problem):
    with pytest.raises(AssertionError, match=message):
        check_machine(machine, bank, problem.Y, 2.0 * problem.cost)


def test_wrong_slopes_are_caught(bank, problem):
    """A bank whose forms are off gives slopes that contradict the optimal values."""

    class Crooked(type(bank)):
        def quadratic_forms(self, V, which=None):
            out = super().quadratic_forms(V, which).copy()
            out[-1] *= 1.01
            return out

    fields = {name: getattr(bank, name) for name in bank.__dataclass_fields__}
    with pytest.raises(AssertionError):
        check_machine(Hinge(), Crooked(**fields), problem.Y, problem.cost)
