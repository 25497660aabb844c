"""Gaussian blobs with wrong labels, for the tests of label noise."""

import numpy as np


def blobs(n=300, seed=0, rates=(0.2, 0.2), apart=5.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += apart * y
    flipped = rng.random(n) < np.where(y == 1, rates[1], rates[0])
    return X, y, np.where(flipped, 1 - y, y)


def three(n=300, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + 4.0 * np.eye(3)[y]
    flipped = rng.random(n) < noise
    return X, y, np.where(flipped, (y + rng.integers(1, 3, n)) % 3, y)


X, TRUE, NOISY = blobs()
WRONG = TRUE != NOISY
