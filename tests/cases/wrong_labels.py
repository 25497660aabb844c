"""Blobs with wrong labels."""

import numpy as np

from kernelweave import (
    NoiseTolerantKernelClassifier,
)


def blobs(n=400, seed=0, rates=(0.0, 0.0), apart=6.0, n_columns=5):
    """Return rows, true labels and observed labels of two Gaussian blobs."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, n_columns))
    X[:, 0] += apart * y
    flipped = rng.random(n) < np.where(y == 1, rates[1], rates[0])
    return X, y, np.where(flipped, 1 - y, y)


X, TRUE, NOISY = blobs(150, rates=(0.1, 0.3), apart=3.0)
NEW = blobs(60, seed=9, apart=3.0)[0]


def fitted(table=X, y=NOISY, **options):
    return NoiseTolerantKernelClassifier(**options).fit(table, y)
