"""Models with a path over C."""

import numpy as np

from kernelweave import (
    Linear,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    rbf_ladder,
)

KERNELS = [rbf_ladder([0.5, 2.0]), Linear()]
CS = [0.01, 1.0, 100.0]
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
TARGET = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=80)
LABELS = np.where(TARGET > 0, "ill", "well")
PAIRS = [
    (MKLClassifierCV(KERNELS, Cs=CS, tol=1e-6), MKLClassifier(KERNELS, tol=1e-6), LABELS),
    (MKLRegressorCV(KERNELS, Cs=CS, tol=1e-6), MKLRegressor(KERNELS, tol=1e-6), TARGET),
]
