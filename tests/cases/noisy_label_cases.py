"""Data with wrong labels."""

import numpy as np

from kernelweave import (
    RBF,
    Linear,
    Polynomial,
)

KERNELS = [RBF(0.8), Linear(), Polynomial(2), RBF(0.5, columns=0)]


def make_data(n=50, n_classes=2, seed=0, wrong=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = np.sin(2 * X[:, 0]) + 0.6 * X[:, 1] * X[:, 2]
    y = np.digitize(signal, [0.0] if n_classes == 2 else [-0.4, 0.5])
    y = np.where(rng.random(n) < wrong, rng.integers(0, n_classes, n), y)
    return X, np.array(["no", "yes", "very"])[y]
