"""scikit-learn's support vector machine on ready Gram matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

Array = NDArray[np.float64]


def fit_svc(K: Array, y: Array, C: float = 1.0, tol: float = 1e-3) -> SVC:
    """Solve for one Gram matrix."""
    return SVC(C=C, kernel="precomputed", tol=tol).fit(K, y)


def coefficients(svc: SVC, n: int) -> Array:
    """Return the signed dual coefficients of all rows; positive ones belong to label 1."""
    beta = np.zeros(n)
    beta[svc.support_] = svc.dual_coef_[0]
    return beta


def primal(svc: SVC, K: Array, y: Array, C: float = 1.0) -> float:
    """Return ``1/2 |w|^2 + C sum hinge``, the objective of `MKLClassifier` for fixed weights."""
    beta = coefficients(svc, len(y))
    fitted = K @ beta
    return 0.5 * float(beta @ fitted) + C * hinge_sum(fitted, y)


def hinge_sum(fitted: Array, y: Array) -> float:
    """Return the sum of hinge losses at the best bias.

    The sum is convex and piecewise linear in the bias, with kinks at ``y - fitted``; its slope
    falls short of zero until as many kinks are passed as there are positive labels.
    """
    kinks = np.sort(y - fitted)
    positive = int((y > 0).sum())
    bias = kinks[min(max(positive - 1, 0), len(y) - 1)]
    return float(np.maximum(0.0, 1.0 - y * (fitted + bias)).sum())


def objective_at(weights: Array, grams: Array, y: Array, C: float = 1.0) -> float:
    """Return the smallest objective for fixed kernel weights, solved tightly."""
    K = np.tensordot(weights, grams, axes=1)
    return primal(fit_svc(K, y, C, tol=1e-6), K, y, C)
