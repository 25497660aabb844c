"""SimpleMKL on scikit-learn's SVC, written from the published algorithm.

Rakotomamonjy, Bach, Canu and Grandvalet (2008), SimpleMKL, JMLR 9, algorithm 1: a reduced gradient
over the simplex, whose step is pushed to the border as long as the objective falls and then found
by golden section, with an SVM solved for every trial. It stands in for the public Python ports,
which are Python 2 sources and install nowhere today. Three points:

- Algorithm 1 prints ``D_mu <- D_mu - D_nu`` when a weight reaches zero; only a plus keeps the sum
  of the direction at zero, and so it is here.
- The line search is relative to the longest step, at first to a tenth and ten times finer whenever
  it finds no descent.
- SVC cannot start from an earlier solution, so every solve is a cold one; in exchange the golden
  section makes one solve per shrinking of the interval, and only kernels with weight are summed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

Array = NDArray[np.float64]

_GOLD = (np.sqrt(5.0) - 1.0) / 2.0
_ZERO = 1e-8  # weights below this are zero
_FINEST = 1e-8  # of the line search


@dataclass(frozen=True)
class Point:
    """An SVM solved for some weights."""

    weights: Array
    value: float  # J(d)
    beta: Array  # signed dual coefficients
    svc: SVC


class SimpleMKL:
    """Binary classification with kernel weights on the simplex.

    Parameters
    ----------
    C : float
        Cost of errors.
    tol : float
        Relative duality gap to stop at; the authors' toolbox uses 0.01.
    svc_tol : float
        Tolerance of the SVM solver.
    max_iter : int
        Gradient steps at most.
    """

    def __init__(
        self, C: float = 1.0, tol: float = 0.01, svc_tol: float = 1e-4, max_iter: int = 1000
    ) -> None:
        self.C = C
        self.tol = tol
        self.svc_tol = svc_tol
        self.max_iter = max_iter

    def fit(self, grams: Array, y: Array) -> SimpleMKL:
        """Learn from Gram matrices of shape (m, n, n) and labels -1 and 1."""
        self._grams, self._y = grams, np.asarray(y, dtype=float)
        self.n_solves_ = 0
        fineness = 0.1
        point = self._solve(np.full(len(grams), 1.0 / len(grams)))
        self.n_iter_ = 0
        while True:
            quadratic_forms = np.einsum("mi,i->m", grams @ point.beta, point.beta)
            self.gap_ = self._gap(point, quadratic_forms)
            if self.gap_ <= self.tol or self.n_iter_ >= self.max_iter:
                break
            self.n_iter_ += 1
            better = self._step(point, -0.5 * quadratic_forms, fineness)
            if better.value < point.value:
                point = better
            elif fineness > _FINEST:
                fineness *= 0.1
            else:
                break
        self.weights_, self.svc_, self.objective_ = point.weights, point.svc, point.value
        return self

    def _gap(self, point: Point, quadratic_forms: Array) -> float:
        """Return the duality gap relative to the objective, as if the SVM were solved exactly."""
        return float(0.5 * (quadratic_forms.max() - point.weights @ quadratic_forms) / point.value)

    def _step(self, point: Point, gradient: Array, fineness: float) -> Point:
        """Go down the reduced gradient: past weights that reach zero, then by line search."""
        mu = int(point.weights.argmax())
        direction = _reduced(point.weights, gradient, mu)
        while (direction < -1e-14 * np.abs(direction).max()).any():
            shrinking = np.flatnonzero(direction < 0)
            steps = -point.weights[shrinking] / direction[shrinking]
            longest = float(steps.min())
            nu = int(shrinking[steps.argmin()])
            border = self._solve(_tidy(point.weights + longest * direction, nu))
            if border.value >= point.value:
                return self._search(point, direction, longest, border, fineness)
            point = border
            if nu == mu:
                break
            direction[mu] += direction[nu]
            direction[nu] = 0.0
        return point

    def _search(
        self, point: Point, direction: Array, longest: float, border: Point, fineness: float
    ) -> Point:
        """Golden section between a point and the border; return the best point met."""
        low, high = 0.0, longest
        best = min(point, border, key=lambda p: p.value)
        left, right = high - _GOLD * (high - low), low + _GOLD * (high - low)
        at_left = self._solve(_tidy(point.weights + left * direction))
        at_right = self._solve(_tidy(point.weights + right * direction))
        while True:
            best = min(best, at_left, at_right, key=lambda p: p.value)
            if high - low <= fineness * longest:
                return best
            if at_left.value < at_right.value:
                high, right, at_right = right, left, at_left
                left = high - _GOLD * (high - low)
                at_left = self._solve(_tidy(point.weights + left * direction))
            else:
                low, left, at_left = left, right, at_right
                right = low + _GOLD * (high - low)
                at_right = self._solve(_tidy(point.weights + right * direction))

    def _solve(self, weights: Array) -> Point:
        self.n_solves_ += 1
        K = np.zeros(self._grams.shape[1:])
        for j in np.flatnonzero(weights):
            K += weights[j] * self._grams[j]
        svc = SVC(C=self.C, kernel="precomputed", tol=self.svc_tol).fit(K, self._y)
        beta = np.zeros(len(self._y))
        beta[svc.support_] = svc.dual_coef_[0]
        value = float(np.abs(beta).sum() - 0.5 * beta @ (K @ beta))
        return Point(weights, value, beta, svc)


def _reduced(weights: Array, gradient: Array, mu: int) -> Array:
    """Return the descent direction of the paper's equation (12)."""
    direction = gradient[mu] - gradient
    direction[(weights <= 0) & (direction < 0)] = 0.0
    direction[mu] = 0.0
    direction[mu] = -direction.sum()
    return direction


def _tidy(weights: Array, zero: int | None = None) -> Array:
    """Return weights without rounding dust, on the simplex."""
    weights = np.where(weights < _ZERO, 0.0, weights)
    if zero is not None:
        weights[zero] = 0.0
    return weights / weights.sum()
