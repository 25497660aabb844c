"""Sets of kernel weights, with their penalties and lower bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from kernelweave._types import Floats


class WeightSet(ABC):
    """A convex set of non-negative kernel weights.

    ``norms`` are the group norms ``|w_j| = theta_j sqrt(q_j)``, ``quadratic_forms``
    ``q_j = tr(B' K_j B)`` those of the dual coefficients.
    """

    is_fixed = False  # the set is one point
    is_sparse = False  # the best weights are mostly zero: steps need a working set

    @abstractmethod
    def start(self, n_kernels: int) -> Floats:
        """Return equal weights on the boundary of the set."""

    @abstractmethod
    def update(self, theta: Floats, norms: Floats) -> Floats:
        """Return the minimiser of ``sum(norms**2 / weights)``; ``theta`` if all norms are zero."""

    @abstractmethod
    def normalise(self, weights: Floats) -> Floats:
        """Return positive weights scaled to the boundary of the set."""

    @abstractmethod
    def penalty(self, norms: Floats) -> float:
        """Return the least ``1/2 sum(norms**2 / weights)`` over the set."""

    @abstractmethod
    def support_value(self, quadratic_forms: Floats) -> float:
        """Return the largest ``weights . quadratic_forms`` over the set."""

    def lower_bound(
        self, linear: float, ridge: float, quadratic_forms: Floats, *, bounded: bool = True
    ) -> float:
        """Return a lower bound of the learning problem from one feasible dual point.

        The point is scaled by the best factor (at most one inside finite boxes), which matters far
        from the solution only.

        Parameters
        ----------
        linear, ridge : float
            Linear and ridge part of the dual value (`Loss.linear`, `Loss.ridge_term`).
        quadratic_forms : ndarray of shape (n_kernels,)
            Quadratic forms, or upper bounds of them.
        bounded : bool
            Whether the coefficients have finite boxes.
        """
        curvature = self.support_value(quadratic_forms) + ridge
        if curvature <= 0.0:
            return max(linear, 0.0) if bounded else 0.0
        scale = max(linear / curvature, 0.0)
        if bounded:
            scale = min(scale, 1.0)
        return float(scale * linear - 0.5 * scale**2 * curvature)


def lp_norm(values: Floats, p: float) -> float:
    """Return the lp norm of non-negative numbers without overflow; p may be infinite."""
    top = float(values.max(initial=0.0))
    if top == 0.0 or np.isinf(p):
        return top
    return float(top * ((values / top) ** p).sum() ** (1.0 / p))
