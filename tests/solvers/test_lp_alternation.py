"""Alternation for lp norms against conic programming."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernelweave.losses import Hinge
from oracles import random_problem
from solver_cases import CASES, bank_of, compare, solve


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("case", CASES[::4], ids=str)
def test_norms(case, p):
    result, expected = compare(case, p)
    assert np.sum(result.weights**p) == pytest.approx(1)
    assert_allclose(result.weights, expected.weights, atol=2e-2)


@pytest.mark.parametrize("case", CASES[1::4], ids=str)
def test_norm_two(case):
    compare(case, 2.0)


def test_the_objective_falls_as_the_exponent_grows():
    problem = random_problem(25, m=5)
    bank = bank_of(problem.grams)
    values = [
        solve(bank, problem.Y, problem.cost, Hinge(), p).objective for p in (1, 1.2, 2.0, 4.0, 50.0)
    ]
    assert (np.diff(values) < 0).all()
