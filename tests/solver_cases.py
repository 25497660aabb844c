"""Problems for the solvers of one norm, with their conic reference."""

from dataclasses import dataclass

import pytest

from gram_banks import bank_of
from kernelweave.losses import EpsilonInsensitive, Hinge, Huber, Square
from kernelweave.solvers import (
    Limits,
    Problem,
    lp_alternation,
    newton_bundle,
    solve_fixed_weights,
)
from kernelweave.weights import LpBall, Simplex, Uniform
from oracles import random_problem, solve_mkl
from solver_contract import check_solver_result

EPSILON = 0.1
TOL = 1e-7


def loss_for(loss, *, fit_intercept=True):
    return {
        "hinge": Hinge(fit_intercept),
        "epsilon_insensitive": EpsilonInsensitive(EPSILON, fit_intercept),
        "huber": Huber(EPSILON, fit_intercept),
        "square": Square(fit_intercept),
    }[loss]


def solve(bank, Y, cost, loss_function, p, *, tol=TOL, max_iter=300, start=None, callback=None):
    """Pick the solver for an exponent as `learn_weights` does, without smoothing."""
    problem = Problem(bank, Y, cost, loss_function, weight_set_for(p))
    solver = {"uniform": solve_fixed_weights, 1: newton_bundle}.get(p, lp_alternation)
    return solver(problem, Limits(tol, max_iter, callback), start)


def weight_set_for(p):
    return Uniform() if p == "uniform" else Simplex() if p == 1 else LpBall(p)


@dataclass(frozen=True)
class Case:
    """One problem, drawn when the test runs."""

    loss: str
    kind: str
    seed: int
    C: float
    badly_scaled: bool = False
    weighted: bool = False
    fit_intercept: bool = True
    m: int = 5

    def __str__(self):
        flags = [name for name in ("badly_scaled", "weighted") if getattr(self, name)]
        flags += [] if self.fit_intercept else ["no_intercept"]
        return "-".join([self.loss, self.kind, f"C{self.C:g}", *flags])

    def draw(self):
        problem = random_problem(
            self.seed,
            kind=self.kind,
            m=self.m,
            badly_scaled=self.badly_scaled,
            weighted=self.weighted,
        )
        return problem.grams, problem.Y, self.C * problem.cost

    @property
    def loss_function(self):
        return loss_for(self.loss, fit_intercept=self.fit_intercept)


CASES = [
    Case("hinge", "binary", 0, 1e-2),
    Case("hinge", "binary", 1, 1.0),
    Case("hinge", "binary", 2, 100.0),
    Case("hinge", "binary", 3, 1e3, weighted=True),
    Case("hinge", "binary", 4, 1.0, badly_scaled=True),
    Case("hinge", "binary", 5, 1.0, fit_intercept=False),
    Case("hinge", "binary", 6, 5.0, m=12),
    Case("hinge", "multiclass", 7, 1.0),
    Case("hinge", "multiclass", 8, 30.0, weighted=True),
    Case("hinge", "multiclass", 9, 0.1, badly_scaled=True),
    Case("epsilon_insensitive", "regression", 10, 1.0),
    Case("epsilon_insensitive", "regression", 11, 100.0, weighted=True),
    Case("epsilon_insensitive", "regression", 12, 0.1, fit_intercept=False),
    Case("epsilon_insensitive", "regression", 13, 1.0, badly_scaled=True),
    Case("huber", "regression", 14, 1.0),
    Case("huber", "regression", 15, 50.0, weighted=True, m=9),
    Case("square", "regression", 16, 1.0),
    Case("square", "regression", 17, 100.0, weighted=True),
    Case("square", "regression", 18, 0.1, badly_scaled=True, fit_intercept=False),
]


def compare(case, p):
    grams, Y, cost = case.draw()
    expected = solve_mkl(
        grams,
        Y,
        cost,
        p=p,
        loss=case.loss,
        epsilon=EPSILON,
        fit_intercept=case.fit_intercept,
    )
    bank = bank_of(grams)
    result = solve(bank, Y, cost, case.loss_function, p)
    assert result.converged
    check_solver_result(
        result,
        Problem(bank, Y, cost, case.loss_function, weight_set_for(p)),
        tol=TOL,
        reference=(expected.lower, expected.upper),
    )
    assert result.objective == pytest.approx(expected.objective, rel=1e-6)
    return result, expected
