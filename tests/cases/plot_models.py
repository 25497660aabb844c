"""A small problem, and models of it to draw."""

import numpy as np

from kernelweave import (
    MKLClassifier,
    rbf_ladder,
)

X = np.random.default_rng(0).normal(size=(40, 3))
Y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) > 0, 1, -1)


def fitted(norm):
    return MKLClassifier([rbf_ladder(per_feature=True)], norm=norm).fit(X, Y)
