"""Linear systems of curved rows."""

import numpy as np
import pytest

from kernelweave._linalg import solve_positive
from kernelweave.banks import make_bank
from kernelweave.inner import weight_curvature
from kernelweave.kernels import Precomputed
from kernelweave.losses import Hinge


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_curvature_where_no_kernel_in_use_reaches_the_free_rows(fit_intercept):
    """Rules as kernels: the block of the free rows is zero, and what follows must stay finite."""
    covered = np.array([1.0, 1.0, 0.0, 0.0])
    grams = [Precomputed(np.outer(covered, covered)), Precomputed(np.eye(4))]
    bank = make_bank(grams, np.arange(4)[:, None], normalize=None)
    Y = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    dual_coef = np.array([[1.0], [-1.0], [0.5], [-0.5]])  # the last two lie inside their box
    both = np.arange(2)
    found = weight_curvature(
        Hinge(fit_intercept),
        bank.combine(np.array([1.0, 0.0])),
        lambda rows: bank.products(dual_coef, both, rows),
        dual_coef,
        Y,
        np.ones((4, 1)),
    )
    assert np.isfinite(found.hessian).all()
    assert found.hessian[1, 1] > 0 == found.hessian[0, 0]


@pytest.mark.parametrize("least", [1e-3, -1e-9, -1e-5, -1e-3, -10.0])
def test_systems_that_rounding_made_indefinite_are_solved_nearby(least):
    random = np.random.default_rng(0)
    Q = np.linalg.qr(random.normal(size=(30, 30)))[0]
    values = np.append(np.linspace(0.5, 2.0, 29), least)
    M, b = Q @ np.diag(values) @ Q.T, random.normal(size=(30, 2))
    found = solve_positive(M.copy(), b)
    assert np.isfinite(found).all()
    if least > 0:
        np.testing.assert_allclose(M @ found, b, atol=1e-9)
    elif least > -1e-2:  # the good directions are solved all the same
        good = Q[:, :29]
        np.testing.assert_allclose(good.T @ M @ found, good.T @ b, atol=0.1)
