"""A small graph of kernels and its data."""

import numpy as np

from kernelweave import (
    RBF,
    HierarchicalMKLClassifier,
    Linear,
    Polynomial,
)

KERNELS = {
    "line": Linear(),
    "wide": RBF(3.0),
    "narrow": RBF(1.0),
    "square": Polynomial(2),
    "cube": Polynomial(3),
}
PARENTS = {"wide": ["line"], "narrow": ["wide"], "square": ["line"], "cube": ["square", "wide"]}


def table(n=50, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, 0)


X, y = table()
LABELS = np.column_stack([y, X[:, 2] > 0, X[:, 0] + X[:, 3] > 0]).astype(int)
CLASSES = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.4)]


def learner(**options):
    defaults = {"parents": PARENTS, "C": 3.0, "tol": 1e-4}
    return HierarchicalMKLClassifier(KERNELS, **(defaults | options))
