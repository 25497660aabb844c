"""Small problems of learning from pairs."""

import numpy as np

from kernelweave.pairs import draw_pairs


def metric_problem(n=40, m=4, n_pairs=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, m)) * rng.uniform(0.5, 2, m) + 2 * y[:, None] * np.eye(m)[0]
    pairs, labels = draw_pairs(y, n, n_pairs, seed)
    return X, pairs, labels, X[pairs[:, 0]] - X[pairs[:, 1]]


def kernel_problem(n=25, n_pairs=30, seed=0, m=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, m)) + 2 * y[:, None]
    pairs, labels = draw_pairs(y, n, n_pairs, seed)
    flip = rng.random(len(labels)) < 0.2
    return X, pairs, np.where(flip, -labels, labels)


def blobs(n=150, seed=0, apart=6.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 5)) * [1, 1, 1, 5, 5]
    X[:, :3] += apart * np.eye(3)[y]
    return X, y, *draw_pairs(y, n, 200, seed)
