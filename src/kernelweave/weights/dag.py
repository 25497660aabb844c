"""The norm of hierarchical kernel learning: a kernel is active only if all its ancestors are.

``Omega(f) = sum_v d_v (sum over descendants w of v of Q_w^rho)^(1/rho)``, where ``Q_w`` is the norm
of the function of node w. Its square is a minimum over shares ``eta`` on the simplex of weighted
l_rho norms, which gives kernel weights in closed form and bounds of the dual norm.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, equations (4), (6), (9) and (13).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from kernelweave._types import Floats

_MIN_SHARE = 1e-6  # share of a node in a bound, relative to an equal one
_OVERRELAXATION = 1.5  # of the steps of a bound; up to 2 they nearly always stay an ascent


@dataclass(frozen=True)
class Shares:
    """The minimisers of the variational form of the norm."""

    eta: Floats  # share of every node's term, on the simplex
    weights: Floats  # kernel weights for which functions with norms Q solve the inner problem


@dataclass(frozen=True)
class DualNorm:
    """An upper bound of the squared dual norm."""

    value: float
    eta: Floats  # shares at which its improvement ended
    is_cut: bool  # whether that was because the steps were used up


@dataclass(frozen=True)
class Hierarchy:
    """The norm of functions on a graph of kernels."""

    ancestors: csr_array[np.float64]  # one at ``[w, v]`` where ``v`` is ``w`` or an ancestor of it
    costs: Floats  # (n_nodes,): ``d_v``, positive
    rho: float  # in (1, 2]; 2 is hierarchical kernel learning, smaller values select more sharply

    def norm(self, Q: Floats) -> float:
        """Return the norm of functions with the norms ``Q``."""
        return float(self.costs @ self._radii(Q))

    def shares(self, Q: Floats, floor: float) -> Shares:
        """Return the minimisers of the variational form at norms ``Q``, not all zero.

        ``floor`` is the least share of a node, relative to an equal one. It keeps the dual
        coefficients unique, without which their bound stalls, and moves the optimum by at most half
        as much.
        """
        eta = fill_up(self.costs * self._radii(Q), floor / len(Q))
        return Shares(eta, self.weights(Q, self.omega(eta), floor))

    def weights(self, Q: Floats, omega: Floats, floor: float) -> Floats:
        """Return the best kernel weights for fixed shares, given by their `omega`."""
        rho = self.rho
        split = fill_up(omega * (Q / Q.max()) ** rho, floor / len(Q))
        return np.asarray(split ** ((2.0 - rho) / rho) * omega ** (-2.0 / rho))

    def fixed_norm(self, Q: Floats, omega: Floats) -> float:
        """Return the norm for fixed shares; never below `norm`."""
        scale = float(Q.max(initial=0.0)) or 1.0
        return float(scale * (omega @ (Q / scale) ** self.rho) ** (1.0 / self.rho))

    def fixed_dual(self, quadratic_forms: Floats, omega: Floats) -> float:
        """Return the squared dual norm for fixed shares; never above `squared_dual_norm`."""
        scale = float(quadratic_forms.max(initial=0.0)) or 1.0
        zeta = omega ** (1.0 / (1.0 - self.rho))
        return float(scale * (zeta @ (quadratic_forms / scale) ** self.power) ** (1.0 / self.power))

    def squared_dual_norm(
        self, quadratic_forms: Floats, eta: Floats, *, enough: float = 0.0, max_steps: int = 50
    ) -> float:
        """Return an upper bound of the squared dual norm; see `bound_dual_norm`."""
        return self.bound_dual_norm(
            quadratic_forms, eta, lambda low, high: high - low <= enough * high, max_steps
        ).value

    def bound_dual_norm(
        self,
        quadratic_forms: Floats,
        eta: Floats,
        suffices: Callable[[float, float], bool],
        max_steps: int = 50,
    ) -> DualNorm:
        """Bound the squared dual norm from quadratic forms ``tr(V' K_w V)``.

        Any shares ``eta`` give a bound, ``max_v G_v^(1/rhobar)``, and the best shares the norm
        itself; they are improved until ``suffices`` accepts a lower and an upper bound of it.
        """
        power = self.power
        best = np.inf
        for step in range(max_steps + 1):
            slopes = self.slopes(quadratic_forms, eta)
            top = float(slopes.max())
            best = min(best, top)
            if top <= 0.0:
                break
            # N(eta) of equation (13) is a lower bound of the squared dual norm.
            reached = top * float(eta @ (slopes / top) ** power) ** (1.0 / power)
            if suffices(reached, best):
                break
            if step == max_steps:
                return DualNorm(best, eta, True)
            # The maximiser of a minorant of the concave problem in eta, over-relaxed.
            eta = eta * (slopes / top) ** (_OVERRELAXATION * power / self.rho)
            eta = fill_up(eta, _MIN_SHARE / len(eta))
        return DualNorm(best, eta, False)

    @property
    def power(self) -> float:
        """Half the exponent of the dual norm, ``rhobar`` in the paper."""
        return self.rho / (2.0 * (self.rho - 1.0))

    @cached_property
    def _descendants(self) -> csr_array[np.float64]:
        """One at ``[v, w]`` where ``v`` is ``w`` or an ancestor of it."""
        return self.ancestors.T.tocsr()

    @cached_property
    def _powered_costs(self) -> Floats:
        return np.asarray(self.costs**self.rho)

    def omega(self, eta: Floats) -> Floats:
        """Return the weight of ``Q_w^rho`` of every node in the norm for fixed shares."""
        return np.asarray(self.ancestors @ (self._powered_costs * eta ** (1.0 - self.rho)))

    def slopes(self, quadratic_forms: Floats, eta: Floats) -> Floats:
        """Return ``G_v^(1/rhobar)``; at the best shares all with a positive share are equal."""
        terms = quadratic_forms / self.omega(eta) ** 2
        scale = float(terms.max(initial=0.0))
        if scale <= 0.0:
            return np.zeros_like(quadratic_forms)
        sums = np.asarray(self._descendants @ (terms / scale) ** self.power)
        ratios = (self.costs / eta) ** (self.rho / self.power)
        return np.asarray(ratios * scale * sums ** (1.0 / self.power))

    def _radii(self, Q: Floats) -> Floats:
        """Return the inner norm of every node's term."""
        scale = float(Q.max(initial=0.0))
        if scale <= 0.0:
            return np.zeros_like(Q)
        sums = np.asarray(self._descendants @ (Q / scale) ** self.rho)
        return np.asarray(scale * sums ** (1.0 / self.rho))


def fill_up(x: Floats, least: float) -> Floats:
    """Return ``max(least, c x)`` with the ``c`` that makes the sum one.

    It minimises ``sum x_i^k / y_i^(k-1)`` over the simplex under that floor.
    """
    largest = float(x.max(initial=0.0))
    if not largest > 0.0:
        return np.full(len(x), 1.0 / len(x))
    x = x / largest
    above = x
    while True:
        # With these above the floor, c follows. Dropping those that c leaves below it lowers c, so
        # none of them comes back.
        factor = (1.0 - least * (len(x) - len(above))) / above.sum()
        kept = above[factor * above >= least]
        if not len(kept):
            return np.full(len(x), 1.0 / len(x))
        if len(kept) == len(above):
            break
        above = kept
    total = np.cumsum(np.sort(above)[::-1])[-1]  # does not depend on the order of the values
    return np.asarray(np.maximum(least, (1.0 - least * (len(x) - len(above))) / total * x))
