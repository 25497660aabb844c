"""The square loss is kernel ridge regression."""

import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

from gram_banks import kernel_of
from kernelweave.inner import solve_inner
from kernelweave.losses import Square
from oracles import random_problem


def test_square_is_kernel_ridge():
    problem = random_problem(7, kind="regression")
    gram = problem.grams[0]
    found = solve_inner(Square(False), kernel_of(gram), problem.Y, 4.0 * problem.cost, tol=1e-3)
    reference = KernelRidge(alpha=0.25, kernel="precomputed").fit(gram, problem.y)
    assert_allclose(found.dual_coef[:, 0], reference.dual_coef_, rtol=1e-6, atol=1e-8)
    assert found.gap == pytest.approx(0, abs=1e-10 * found.primal)
