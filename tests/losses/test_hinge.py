"""The hinge loss is that of support vector classification."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import SVC

from gram_banks import kernel_of
from kernelweave.inner import solve_inner
from kernelweave.losses import Hinge
from oracles import random_problem


def test_hinge_is_libsvm():
    problem = random_problem(5, n=60)
    gram, y = problem.grams.sum(axis=0), problem.Y[:, 0]
    found = solve_inner(Hinge(), kernel_of(gram), problem.Y, 2.0 * problem.cost, tol=1e-8)
    reference = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(gram, y)
    expected = np.zeros(60)
    expected[reference.support_] = reference.dual_coef_[0]
    assert_allclose(found.dual_coef[:, 0], expected, atol=1e-3)
    assert found.intercept == pytest.approx(reference.intercept_, abs=1e-3)
