"""Data and models of the radius criterion."""

import numpy as np

from kernelweave import (
    RBF,
    Laplacian,
    Linear,
    Polynomial,
)

KERNELS = [RBF(0.8), 1e4 * Linear(), 1e-3 * Polynomial(2), RBF(0.5, columns=0), Laplacian(1.0)]
FAMILIES = ["width", "ard", "mixture"]


def make_data(n=50, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = np.sin(2 * X[:, 0]) + 0.6 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    y = np.digitize(signal, [0.0] if n_classes == 2 else [-0.5, 0.5])
    return X, np.array(["no", "yes", "very"])[y]


def signed(model, y):
    """Return the targets of every output."""
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    return np.where(np.asarray(y)[:, None] == classes, 1.0, -1.0)


def coefficients(model, n):
    dual_coef = np.zeros((n, len(model.dual_coef_)))
    dual_coef[model.support_] = model.dual_coef_.T
    return dual_coef


def decide(model, X):
    values = model.decision_function(X)
    return values.reshape(len(values), -1)


def assert_same_decisions(one, two, X, rtol=1e-3):
    values = decide(one, X)
    np.testing.assert_allclose(decide(two, X), values, atol=rtol * (1 + np.abs(values).max()))
