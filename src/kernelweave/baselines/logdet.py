"""Solvers of ITML: the LogDet-nearest metric under bounds of squared distances, with slack.

References
----------
Davis, Kulis, Jain, Sra and Dhillon (2007), Information-theoretic metric learning, ICML 24,
Algorithm 1 (with the step size corrected).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from kernelweave._types import Floats

from .pair_base import minimize_to_gap

_STRETCH = 16.0  # scale of the variables: the first step of L-BFGS, of length one, stays regular


class LogDet:
    """A metric and multipliers of its bounds, with objective and duality gap.

    ``V`` holds the differences of the pairs, none of them zero; ``labels`` are +1 for upper and -1
    for lower bounds, ``start`` the bounds without slack, ``gamma`` the cost of slack.
    """

    def __init__(self, V: Floats, labels: Floats, start: Floats, gamma: float) -> None:
        self.V, self.labels, self.start, self.gamma = V, labels, start, gamma
        self.metric: Floats = np.asfortranarray(np.eye(V.shape[1]))
        self.multipliers: Floats = np.zeros(len(V))
        self.evaluate()

    def needed(self, p: Floats) -> Floats:
        """Return the slack that squared distances need, in units of the bounds."""
        ratio = p / self.start
        return np.where(self.labels > 0, np.maximum(ratio, 1.0), np.minimum(ratio, 1.0))

    def evaluate(self) -> None:
        """Set the objective of the metric with the slack it needs, and the relative duality gap."""
        A, m = self.metric, len(self.metric)
        ratio = self.needed(np.sum((self.V @ A) * self.V, axis=1))
        slack = float((ratio - np.log(ratio) - 1.0).sum())
        self.objective = float(np.trace(A)) - np.linalg.slogdet(A)[1] - m + self.gamma * slack
        signed = self.labels * self.multipliers
        values = np.linalg.eigvalsh(np.eye(m) + self.V.T @ (self.V * signed[:, None]))
        left = 1.0 - signed * self.start / self.gamma
        dual = -np.inf
        if values[0] > 0 and left.min(initial=1.0) > 0:
            dual = float(np.log(values).sum()) + self.gamma * float(np.log(left).sum())
        self.gap = float(max(0.0, self.objective - dual) / max(self.objective, 1e-300))


class Projections(LogDet):
    """Cyclic projections onto the constraints."""

    def run(self, tol: float, max_iter: int) -> int:
        """Sweep over the constraints until the gap is small; return the number of sweeps."""
        sweeps = 0
        while self.gap > tol and sweeps < max_iter:
            self._sweep()
            self.evaluate()
            sweeps += 1
        return sweeps

    def _sweep(self) -> None:
        A, gamma = self.metric, self.gamma
        share = gamma / (gamma + 1.0)
        signs, now = self.labels.tolist(), self.multipliers.tolist()
        # Reciprocal slack, to which a projection adds.
        inverse = (1.0 / self.start - self.labels * self.multipliers / gamma).tolist()
        for i, v in enumerate(self.V):
            Av = blas.dsymv(1.0, A, v)
            p, delta = float(v @ Av), signs[i]
            step = min(now[i], delta * share * (1.0 / p - inverse[i]))
            if step == 0.0:
                continue
            now[i] -= step
            inverse[i] += delta * step / gamma
            beta = delta * step / (1.0 - delta * step * p)
            A = blas.dsyr(beta, Av, a=A, overwrite_a=True)  # the upper triangle only
        self.metric = np.asfortranarray(np.triu(A) + np.triu(A, 1).T)
        self.multipliers = np.array(now)


class Descent(LogDet):
    """L-BFGS over a square factor of the metric, with the optimal slack of each metric."""

    def run(self, tol: float, max_iter: int) -> int:
        """Descend until the gap is small; return the number of steps."""
        m = len(self.metric)
        if self.gap <= tol:
            return 0

        def descend(flat: Floats) -> tuple[float, Floats]:
            W = flat.reshape(m, m) / _STRETCH
            VW = self.V @ W
            ratio = self.needed(np.sum(VW**2, axis=1))
            pull = self.gamma * (1.0 - 1.0 / ratio) / self.start
            value = float(np.sum(W**2)) - 2.0 * float(np.linalg.slogdet(W)[1]) - m
            value += self.gamma * float((ratio - np.log(ratio) - 1.0).sum())
            grad = W - np.linalg.inv(W).T + self.V.T @ (VW * pull[:, None])
            return value, (2.0 / _STRETCH) * grad.ravel()

        def gap(flat: Floats) -> float:
            self._move_to(flat.reshape(m, m) / _STRETCH)
            return self.gap

        start = _STRETCH * np.eye(m).ravel()
        options = {"maxiter": max_iter, "maxfun": 4 * max_iter}
        flat, steps = minimize_to_gap(descend, start, gap, tol, **options)
        gap(flat)
        return steps

    def _move_to(self, W: Floats) -> None:
        """Set the metric of a factor, and the multipliers of its slack."""
        self.metric = W @ W.T
        ratio = self.needed(np.sum((self.V @ W) ** 2, axis=1))
        signed = self.gamma * (1.0 - 1.0 / ratio) / self.start
        self.multipliers = self.labels * signed
        self.evaluate()
