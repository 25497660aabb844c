"""Huber's loss."""

import pytest
from numpy.testing import assert_allclose

from gram_banks import kernel_of
from kernelweave.inner import solve_inner
from kernelweave.losses import Huber, Square
from oracles import random_problem


def test_huber_with_a_large_threshold_is_the_square_loss():
    problem = random_problem(8, kind="regression")
    kernel = kernel_of(problem.grams.sum(axis=0))
    huber = solve_inner(Huber(1e3), kernel, problem.Y, problem.cost, tol=1e-9)
    square = solve_inner(Square(), kernel, problem.Y, problem.cost, tol=1e-9)
    assert huber.primal == pytest.approx(square.primal, rel=1e-8)
    assert_allclose(huber.dual_coef, square.dual_coef, atol=1e-4)
