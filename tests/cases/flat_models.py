"""Problems and models of flat kernel learning."""

import numpy as np

from kernelweave import (
    RBF,
    Laplacian,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Polynomial,
)

KERNELS = [RBF(0.8), Linear(), Polynomial(2), RBF(0.5, columns=0), Laplacian(1.0, columns=[1, 2])]
TIGHT = 1e-6


def make_data(task, n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    signal = np.sin(2 * X[:, 0]) + 0.6 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    if task == "binary":
        return X, np.where(signal > 0, "yes", "no")
    if task == "multiclass":
        return X, np.digitize(signal, [-0.5, 0.5])
    return X, signal


def make_model(task, kernels=None, *, tol=TIGHT, C=2.0, **options):
    kernels = KERNELS if kernels is None else kernels
    if task in ("binary", "multiclass"):
        return MKLClassifier(kernels, tol=tol, C=C, **options)
    return MKLRegressor(kernels, loss=task, tol=tol, C=C, **options)
