"""Smooth losses on one kernel: Newton steps in the dual coefficients.

With coefficients ``a`` of the function ``f = K a``, second derivatives ``W`` of the loss and its
derivatives ``-beta`` at the best bias, a step is ``d = r - E (K r + 1 db)`` where ``r = beta - a``,
``E = (K + W^-1)^-1``, and ``db`` makes the coefficients sum to zero. ``beta`` is feasible in the
dual, so every step has both bounds for one product with the kernel; near the solution so is ``a``,
with a smaller gap. No inverse of W is formed: rows at the ends of their box need no special case.

References
----------
C. E. Rasmussen, C. K. I. Williams (2006), Gaussian processes for machine learning, MIT Press:
algorithms 3.1 (one output) and 3.3 (coupled outputs).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._linalg import all_finite
from kernelweave._types import Floats, Stored
from kernelweave.banks import KernelOperator
from kernelweave.losses.base import Loss, Tangent

from .solution import Solution
from .systems import CurvedSystem, make_system, rough_product


@dataclass(frozen=True)
class DenseNewtonOptions:
    """Tunable numbers of `solve_newton`, chosen by hand."""

    max_steps: int = 100
    max_halvings: int = 20
    moderate: float = 1e4  # cost times the mean of the diagonal from which a cold start approaches,
    growth: float = 100.0  # in stages of so much more,
    rough: float = 0.1  # each to this relative gap, which takes few steps
    stage_steps: int = 25  # of a stage; where they do not suffice, larger costs would be worse
    moved: float = 1e-13  # change of a coefficient by rounding, relative to the largest cost
    lost: float = 1e3  # objective of a start, in losses of the zero function, that is not worth it


_OPTIONS = DenseNewtonOptions()


def solve_newton(
    loss: Loss,
    K: KernelOperator,
    Y: Floats,
    cost: Floats,
    *,
    tol: float,
    floor: float = 0.0,
    start: Solution | None = None,
    enough: float = np.inf,
) -> Solution:
    """Solve for one kernel; see `solve_inner`. Outputs that are not coupled are solved in turn."""
    n_outputs = Y.shape[1]
    together = [slice(None)] if loss.is_coupled else [slice(o, o + 1) for o in range(n_outputs)]
    if K.workspace is None:
        K.dense()  # every row has a coefficient
    parts = []
    for outputs in together:
        target, own = (np.ascontiguousarray(part[:, outputs]) for part in (Y, cost))
        solver = _Newton(loss, K, target, own)
        if start is not None:
            solver.a, solver.f = start.dual_coef[:, outputs], start.fitted[:, outputs]
        if start is None or solver.is_lost(start.intercept[outputs]):
            solver.approach()
        share = floor / len(together)
        parts.append(solver.run(tol, share, enough if len(together) == 1 else np.inf))
    return Solution(
        dual_coef=np.hstack([part.dual_coef for part in parts]),
        intercept=np.concatenate([part.bias for part in parts]),
        fitted=np.hstack([part.fitted for part in parts]),
        primal=sum(part.primal for part in parts),
        dual=sum(part.dual for part in parts),
        work=sum(part.work for part in parts),
    )


class _Newton:
    """Outputs being solved: coefficients ``a`` with values ``f = K a``, and the best bounds."""

    def __init__(self, loss: Loss, K: KernelOperator, Y: Floats, cost: Floats) -> None:
        self.loss, self.K, self.Y, self.cost = loss, K, Y, cost
        self.a, self.f = np.zeros_like(Y), np.zeros_like(Y)
        self.primal, self.dual = np.inf, -np.inf
        self.dual_coef, self.fitted = self.a, self.f
        self.bias = np.zeros(Y.shape[1])
        self.here: Tangent | None = None  # of a start
        self.work = 0
        self.sketch: Stored | None = None  # Z with Z Z' near K, once needed
        self.exact = False  # whether steps by iterations failed
        self.at_rounding = False  # whether no step lowers the objective any more

    def is_lost(self, bias: Floats) -> bool:
        """Return to the zero function where rounding made a start far worse; tell whether."""
        zero = self.loss.zero_loss(self.Y, self.cost)
        here = self.loss.tangent(self.f, self.Y, self.cost, bias)
        if 0.5 * float(np.vdot(self.a, self.f)) + here.value <= _OPTIONS.lost * zero:
            self.here = here
            return False
        self.a, self.f = np.zeros_like(self.Y), np.zeros_like(self.Y)
        return True

    def approach(self) -> None:
        """Begin from the function of smaller costs, where these are so large that steps are short.

        Costs matter in units of the kernel: the smallest make the problem nearly quadratic.
        """
        scale = float(self.cost.max(initial=0.0)) * float(self.K.diag().mean())
        while scale > _OPTIONS.moderate:
            part = _Newton(self.loss, self.K, self.Y, self.cost * (_OPTIONS.moderate / scale))
            part.a, part.f = self.a, self.f
            part.run(_OPTIONS.rough, 0.0, np.inf, _OPTIONS.stage_steps)
            self.a, self.f, scale = part.a, part.f, scale / _OPTIONS.growth
            if part.at_rounding or not part._is_enough(_OPTIONS.rough, 0.0, np.inf):
                break  # larger costs would only magnify what rounding or iterations leave

    def run(
        self, tol: float, floor: float, enough: float, max_steps: int = _OPTIONS.max_steps
    ) -> _Newton:
        loss, Y, cost = self.loss, self.Y, self.cost
        here = self.here or loss.tangent(self.f, Y, cost)
        value = 0.5 * float(np.vdot(self.a, self.f)) + here.value
        for _ in range(max_steps):
            self._offer_own(here, max(tol * abs(value), floor), enough)
            if self._is_enough(tol, floor, enough):
                break
            fitted = self._offer(here.dual_coef, here.bias)
            if self._is_enough(tol, floor, enough):
                break
            r, Kr = here.dual_coef - self.a, fitted - self.f
            system = self._system(here.weights)
            d, Kd = system.direction(r, Kr, self.a)
            usable = all_finite(d) and all_finite(Kd)
            for _ in range(_OPTIONS.max_halvings if usable else 0):
                a, f = self.a + d, self.f + Kd
                there = loss.tangent(f, Y, cost, here.bias)
                new = 0.5 * float(np.vdot(a, f)) + there.value
                if new < value:
                    break
                d, Kd = 0.5 * d, 0.5 * Kd
            else:
                if not (self.exact or system.is_exact):
                    self.exact = True  # the step may have been too rough
                    continue
                self.at_rounding = True
                break
            self.a, self.f, self.work = a, f, self.work + 1
            here, value = there, new
        return self

    def _is_enough(self, tol: float, floor: float, enough: float) -> bool:
        if not np.isfinite(self.primal):
            return False
        gap = self.primal - self.dual
        return gap <= max(tol * abs(self.primal), floor) or self.dual >= enough

    def _offer_own(self, here: Tangent, allowed: float, enough: float) -> None:
        """Offer the coefficients of the step, made feasible, where their gap may be small enough.

        Their gap is what the inequality of Fenchel and Young leaves, summed over the rows: about
        ``r' W^-1 r / 2``. That of ``beta`` has the eigenvalues of ``K W`` as a factor. Where
        `repair` changes little, the values of the step tell it without a product.
        """
        own = self.loss.repair(self.a, self.Y, self.cost)
        linear, product = self.loss.linear(own, self.Y, self.cost), float(np.vdot(own, self.f))
        if here.value + product - linear <= allowed or linear - 0.5 * product >= enough:
            moved = float(np.abs(own - self.a).max()) > _OPTIONS.moved * float(self.cost.max())
            self._offer(own, here.bias, None if moved else self.f)

    def _offer(self, dual_coef: Floats, bias: Floats, fitted: Floats | None = None) -> Floats:
        """Keep the bounds of feasible coefficients if they are the best; return their values."""
        # Bounds that count are evaluated by the caller.
        fitted = rough_product(self.K, dual_coef) if fitted is None else fitted
        quadratic = float(np.vdot(dual_coef, fitted))
        there = self.loss.tangent(fitted, self.Y, self.cost, bias)
        primal, bias = 0.5 * quadratic + there.value, there.bias
        dual = self.loss.linear(dual_coef, self.Y, self.cost) - 0.5 * quadratic
        if primal - dual < self.primal - self.dual:
            self.primal, self.dual, self.bias = primal, dual, bias
            self.dual_coef, self.fitted = dual_coef, fitted
        return fitted

    def _system(self, weights: Floats) -> CurvedSystem:
        coupled, intercept = self.loss.is_coupled, self.loss.fit_intercept
        system = make_system(
            self.K, weights, coupled, intercept, sketched=self.sketch, exact=self.exact
        )
        self.sketch = system.sketch
        return system
