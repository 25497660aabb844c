"""Data and kernels that several benchmarks share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from kernelweave import rbf_ladder
from kernelweave.datasets import make_additive
from kernelweave.kernels.ladders import KernelFamily

Array = NDArray[np.float64]

WIDTHS = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)
TEST_ROWS = 1000


@dataclass(frozen=True)
class Problem:
    """Training and test rows with labels -1 and 1."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def additive(n: int, d: int = 20) -> Problem:
    """Return ``make_additive(n, d, random_state=0)``, with test rows from another seed."""
    X, y = make_additive(n, d, random_state=0)
    X_test, y_test = make_additive(TEST_ROWS, d, random_state=1)
    return Problem(X, y.astype(float), X_test, y_test.astype(float))


def cancer(n: int = 398) -> Problem:
    """Return breast cancer, standardised, 70 % of the rows (or the first ``n`` of them)."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, 2.0 * y - 1, train_size=398, random_state=0)
    scaler = StandardScaler().fit(X)
    return Problem(scaler.transform(X)[:n], y[:n], scaler.transform(X_test), y_test)


DATA = {"additive": additive, "cancer": cancer}


def families(which: str) -> list[KernelFamily]:
    """Return ten widths on all features together ("all"), on each alone ("each"), or both."""
    wide, narrow = rbf_ladder(WIDTHS), rbf_ladder(WIDTHS, per_feature=True)
    return {"all": [wide], "each": [narrow], "both": [wide, narrow]}[which]


def centred_size(gram: Array) -> float:
    """Return the mean diagonal of the centred Gram matrix."""
    n = len(gram)
    return float(np.trace(gram) / n - gram.sum() / n**2)


@dataclass(frozen=True)
class Grams:
    """Dense Gram matrices whose training blocks have a mean centred diagonal of one."""

    train: Array  # (m, n, n)
    test: Array  # (m, n_test, n)


def grams(problem: Problem, m: int) -> Grams:
    """Return ten Gaussian kernels on all features, then ten on each feature alone, the first m."""
    n, d = problem.X.shape
    chosen = [(list(range(d)), width) for width in WIDTHS]
    chosen += [([feature], width) for feature in range(d) for width in WIDTHS]
    train = np.empty((m, n, n))
    test = np.empty((m, len(problem.X_test), n))
    for j, (columns, width) in enumerate(chosen[:m]):
        gamma = 0.5 / width**2
        train[j] = rbf_kernel(problem.X[:, columns], gamma=gamma)
        test[j] = rbf_kernel(problem.X_test[:, columns], problem.X[:, columns], gamma=gamma)
        scale = 1.0 / centred_size(train[j])
        train[j] *= scale
        test[j] *= scale
    return Grams(train, test)
