"""Newton's method for smooth losses."""

import pytest

from gram_banks import bank_of
from kernelweave.losses import Logistic
from kernelweave.testing import check_loss
from likelihood_cases import LOSSES, problem_for
from oracles import random_problem


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("kind", LOSSES)
def test_contract(kind, C, fit_intercept):
    problem = problem_for(kind, 3, n=40, m=3)
    check_loss(kind(fit_intercept), bank_of(problem.grams), problem.Y, C * problem.cost)


@pytest.mark.parametrize("kind", LOSSES)
def test_contract_with_weighted_and_absent_rows(kind):
    problem = problem_for(kind, 1, n=40, m=3, weighted=True)
    check_loss(kind(), bank_of(problem.grams), problem.Y, 3.0 * problem.cost)


def test_contract_with_several_outputs():
    problem = random_problem(4, kind="multiclass", n=40, m=3)
    check_loss(Logistic(), bank_of(problem.grams), problem.Y, problem.cost)
