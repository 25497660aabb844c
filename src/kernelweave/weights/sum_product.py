"""The penalty on the weights of the products of a sum-product network.

With ``u = log beta`` the weight of path m is ``g_m = exp(sum_v a_mv u_v)``. For fixed functions the
objective is a sum of exponentials of linear functions of u, which Newton's method minimises. Lower
bounds come from tangents of ``g_m`` in the powers ``beta_v^p_v``, in which it is concave.

References
----------
Regularization for multiple kernel learning via sum-product networks (2014), arXiv:1402.3032,
problem (2) and equations (4) and (7), with ``c_v = sum_m a_mv``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.linalg

from kernelweave._types import Floats
from kernelweave.banks.paths import PathForms

_LOWEST = -69.0  # logarithm of a weight, about 1e-30: zero would never be left again
_REACH = 30.0  # largest change of a logarithm in one update
_NEWTON_STEPS = 100
_LONGEST = 5.0  # change of a logarithm in one Newton step
_DECREMENT = 1e-12  # Newton decrement at the end, relative to the value
_TANGENTS = 10
_CONVEX = 1e-9  # rounding error of a sum of exponents


@dataclass(frozen=True)
class SumProduct:
    """The penalty ``lam sum_v c_v beta_v^p_v`` on the weights of products.

    Together with ``1/2 sum_m |w_m|^2 / g_m(beta)`` it is jointly convex in functions and powers of
    the weights where the sum of ``a_mv / p_v`` is at most one on every path.
    """

    counts: Floats  # (n_nodes,): ``c_v = sum_m a_mv``
    p: Floats  # (n_nodes,): exponents, positive
    lam: float  # positive

    def penalty(self, u: Floats) -> float:
        """Return the penalty of the weights ``exp(u)``."""
        return float(self._terms(u).sum())

    def _terms(self, u: Floats) -> Floats:
        return np.asarray(self.lam * self.counts * np.exp(self.p * u))

    def lower_bound(self, linear: float, forms: PathForms, u: Floats) -> float:
        """Return the lower bound that a dual point proves by the tangent at ``exp(u)``.

        ``linear`` is the linear part of its dual value, ``forms`` are its quadratic forms.
        """
        return self._bound(linear, *forms.sums(u), u)

    def best_bound(self, linear: float, forms: PathForms, u: Floats) -> float:
        """Return the largest of the lower bounds from several tangents.

        They are taken at ``u`` and at weights that approach the balance for the dual point,
        ``1/2 sum_m a_mv g_m q_m = lam p_v c_v beta_v^p_v``, where its bound is best.
        """
        best = -np.inf
        for _ in range(_TANGENTS):
            with np.errstate(over="ignore", invalid="ignore"):
                total, nodes = forms.sums(u)
            if not np.isfinite(total):
                break
            best = max(best, self._bound(linear, total, nodes, u))
            with np.errstate(divide="ignore", over="ignore"):
                balanced = np.log(nodes / (2.0 * self.lam * self.p * self.counts)) / self.p
            before, u = u, np.maximum(balanced, _LOWEST)
            if np.abs(u - before).max() < 1e-6:
                break
        return best

    def _bound(self, linear: float, total: float, nodes: Floats, u: Floats) -> float:
        # The tangent is below the penalty once the dual point is scaled such that the slope in no
        # power exceeds lam c_v; what is left of the quadratic term is a constant.
        with np.errstate(over="ignore", divide="ignore"):
            kappa = np.exp(np.log(nodes / self.p) - self.p * u)  # zero where nothing is added
            scale = min(1.0, float(np.sqrt(2.0 * self.lam * self.counts / kappa).min()))
        rest = 0.5 * max(total - float((nodes / self.p).sum()), 0.0)
        if rest > 1e-14 * total:
            scale = min(scale, linear / (2.0 * rest))
        bound = scale * linear - scale**2 * rest
        if (self.p > 1.0).all():
            # Then the tangent in the weights themselves is bounded without scaling, by the
            # conjugate of the power.
            with np.errstate(over="ignore", divide="ignore"):
                level = np.exp(np.log(nodes) - u) / (2.0 * self.lam * self.counts * self.p)
                best = self.counts * (self.p - 1.0) * level ** (self.p / (self.p - 1.0))
            bound = max(bound, linear - self.lam * float(best.sum()))
        return float(bound)

    def update(self, u: Floats, forms: PathForms) -> Floats:
        """Return the logarithms of the best weights for fixed functions, those found at ``u``.

        By Newton's method, or by L-BFGS where there is no Hessian.
        """
        lowest = np.maximum(u - _REACH, _LOWEST)
        with np.errstate(over="ignore"):  # in curvatures; steps then follow the slope
            value, _, hessian = forms.half_norm(u, u)
        if not value > 0.0:
            return np.full_like(u, _LOWEST)
        if hessian is None:

            def objective(v: Floats) -> tuple[float, Floats]:
                value, gradient, _ = self._objective(u, v, forms)
                return value, gradient

            found: Any = scipy.optimize.minimize(
                objective,
                u,
                jac=True,
                method="L-BFGS-B",
                bounds=list(zip(lowest, u + _REACH, strict=True)),
                options={"maxiter": 200, "ftol": 1e-13, "gtol": 1e-9 * value},
            )
            return np.asarray(found.x)
        here = u.copy()
        for _ in range(_NEWTON_STEPS):
            value, gradient, hessian = self._objective(u, here, forms)
            assert hessian is not None
            free = (here > lowest) | (gradient < 0.0)  # others are at their bound
            step = np.zeros_like(here)
            step[free] = _newton(gradient[free], hessian[np.ix_(free, free)])
            slope = float(step @ gradient)
            if -slope <= _DECREMENT * value:
                return np.maximum(here + step, lowest)
            step *= min(1.0, _LONGEST / float(np.abs(step).max()))
            length = 1.0
            while length > 1e-10:
                trial = np.maximum(here + length * step, lowest)
                if self._objective(u, trial, forms)[0] <= value + 1e-4 * length * slope:
                    break
                length *= 0.5
            else:
                break
            here = trial
        return here

    def _objective(
        self, old: Floats, u: Floats, forms: PathForms
    ) -> tuple[float, Floats, Floats | None]:
        with np.errstate(over="ignore"):
            value, gradient, hessian = forms.half_norm(old, u)
            terms = self._terms(u)
            if hessian is not None:
                hessian = hessian + np.diag(self.p**2 * terms)
            return value + float(terms.sum()), gradient + self.p * terms, hessian


def is_convex(exponents: Floats) -> bool:
    """Tell whether sums of ``a_mv / p_v``, one per path, allow a certificate."""
    return bool((exponents <= 1.0 + _CONVEX).all())


def _newton(gradient: Floats, hessian: Floats) -> Floats:
    """Return the Newton step, in variables in which the diagonal is one."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))
    scaled = scale[:, None] * hessian * scale
    scaled[np.diag_indices_from(scaled)] += 1e-12
    try:
        factor = scipy.linalg.cho_factor(scaled, check_finite=False)
        return np.asarray(-scale * scipy.linalg.cho_solve(factor, scale * gradient))
    except np.linalg.LinAlgError:
        return np.asarray(-scale * scale * gradient)
