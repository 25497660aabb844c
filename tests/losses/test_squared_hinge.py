"""The squared hinge loss is that of scikit-learn's linear SVM, and its box never binds."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from gram_banks import kernel_of
from kernelweave.inner import solve_inner
from kernelweave.losses import SquaredHinge


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_equals_liblinear(C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)[:, None]
    cost = np.full((60, 1), 2.0 * C)  # liblinear has no factor one half
    found = solve_inner(SquaredHinge(False), kernel_of(X @ X.T), y, cost, tol=1e-10)
    reference = LinearSVC(C=C, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y[:, 0])
    margins = y * (X @ reference.coef_.T)
    expected = 0.5 * np.sum(reference.coef_**2) + C * np.sum(np.maximum(1 - margins, 0) ** 2)
    assert found.primal == pytest.approx(expected, rel=1e-7)
    assert (np.abs(found.dual_coef) < SquaredHinge(False).box(y, cost).upper.max()).all()


def test_written_out():
    Y, fitted = np.array([[1.0], [1.0], [-1.0]]), np.array([[3.0], [-1.0], [0.2]])
    losses = SquaredHinge(False).row_losses(fitted, Y, np.array([[1.0], [1.0], [3.0]]))
    assert losses[:, 0] == pytest.approx([0.0, 2.0, 1.5 * 1.2**2])
