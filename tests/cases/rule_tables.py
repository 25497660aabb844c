"""Small tables of propositions."""

import numpy as np


def table(n=120, p=6, seed=0):
    return (np.random.default_rng(seed).random((n, p)) < 0.5).astype(float)


def noisy(X, seed=0, rate=0.1):
    wrong = np.random.default_rng(seed).random(len(X)) < rate
    return ((X[:, 0] * X[:, 2] > 0) ^ wrong).astype(int)


def covers(X, rule):
    return np.array([all(row[c] == 1 for c in rule) for row in X])
