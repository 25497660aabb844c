"""Data and models of the losses of the flat estimators."""

import numpy as np

from kernelweave import (
    RBF,
    Linear,
    MKLRegressor,
)

RANDOM = np.random.default_rng(5)
N = 120
X = RANDOM.normal(size=(N, 4))
SCORE = np.sin(2 * X[:, 0]) + X[:, 1] + 0.6 * RANDOM.normal(size=N)
WEIGHT = RANDOM.uniform(0.2, 2.0, size=N)
KERNELS = [Linear(), *(RBF(w, columns=[j]) for j in range(4) for w in (0.7, 2.0))]
NORMS = [1.0, 1.5, 2.0, "uniform"]
SMOOTH = [Linear(), *(RBF(w, columns=[j]) for j in range(4) for w in (1.0, 3.0))]
MANY = np.random.default_rng(1).normal(size=(300, 4))
MANY_SCORE = np.sin(2 * MANY[:, 0]) + MANY[:, 1] + 0.6 * np.random.default_rng(2).normal(size=300)


def quantile(level, **options):
    options = {"target_scale": None, **options}
    return MKLRegressor(KERNELS, loss="quantile", quantile=level, **options)
