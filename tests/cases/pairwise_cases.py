"""Problems of learning kernel weights from pairs."""

import numpy as np

from kernelweave import (
    PairwiseKernelLearner,
)


def make_documents(seed=0, n=90, m=30, classes=3, wrong=0.15):
    """Return rows of zeros and ones, classes, pairs, their labels, and the true ones."""
    random = np.random.default_rng(seed)
    y = random.integers(classes, size=n)
    rate = np.where(np.arange(m)[None] % (2 * classes) == y[:, None], 0.5, 0.12)
    X = (random.random((n, m)) < rate).astype(float)
    X[:, -1] = 0.0
    pairs = random.integers(n, size=(1500, 2))
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    _, first = np.unique(pairs[:, 0] * n + pairs[:, 1], return_index=True)
    pairs = pairs[np.sort(first)]
    true = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)
    labels = np.where(random.random(len(pairs)) < wrong, -true, true)
    return X, y, pairs, labels, true


X, Y, PAIRS, LABELS, TRUE = make_documents()
RATES = (np.mean(TRUE[LABELS > 0] > 0), np.mean(TRUE[LABELS < 0] < 0))
LINKS = PAIRS[TRUE > 0][::2]
SHRINK = {"method": "shrink", "gamma": 0.5, "alpha": 0.5, "rho": 1.0, "steps": 1, "n_resample": 2}


def fit(rows=X, pairs=PAIRS, labels=LABELS, kernels=None, **options):
    model = PairwiseKernelLearner(kernels, **{"lam": 1e-3, "tol": 1e-10, **options})
    return model.fit(rows, pairs=pairs, labels=labels)


def shrunk(rows=X, pairs=LINKS, labels=None, **options):
    model = PairwiseKernelLearner(**{**SHRINK, "random_state": 0, **options})
    return model.fit(rows, pairs=pairs, labels=labels)


def check_same(one, other, factor=1.0):
    scale = np.abs(one.weights_).max()
    np.testing.assert_allclose(other.weights_ * factor, one.weights_, rtol=0, atol=1e-7 * scale)
