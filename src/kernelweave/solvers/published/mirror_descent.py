"""Mirror descent on the shares of a hierarchy, as published (gHKL, Algorithm 2).

For fixed shares the inner problem and the weights alternate; at ``rho = 2`` one inner solve is
enough. Step ``i`` multiplies the shares by ``exp(-sqrt(log n / i) g / max |g|)``, g being the
gradient. Unlike in the publication, the duality gap decides when to stop.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, Algorithm 2 and equation (24).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._types import Floats
from kernelweave.solvers.anderson import Patience
from kernelweave.solvers.bounds import Bounds
from kernelweave.solvers.dag_problem import ActiveProblem, DualBound, DualStart, Evaluation


@dataclass(frozen=True)
class MirrorDescentOptions:
    """Constants of `mirror_descent`, chosen by hand."""

    smoothing: float = 0.3  # equal shares mixed in, relative to the gap aimed at
    patience: int = 150  # inner solves without lowering the gap by a tenth
    max_rounds: int = 30  # inner solves for the same shares


OPTIONS = MirrorDescentOptions()


def mirror_descent(
    active: ActiveProblem,
    bounds: Bounds,
    aim: float,
    max_iter: int,
    norms: Floats,
    dual_coef: Floats | None,
) -> tuple[DualBound, Floats]:
    """Descend along the gradient in the shares, in the geometry of the entropy.

    Parameters and return values are those of `alternate`.
    """
    hierarchy = active.hierarchy
    floor = OPTIONS.smoothing * aim
    eta = hierarchy.shares(norms, floor).eta
    best: DualBound | None = None
    start = DualStart()
    step, patience = 0, Patience(0.9, OPTIONS.patience)
    patience.renew(np.inf, bounds.solves)
    while True:
        smooth = (1.0 - floor) * eta + floor / len(eta)
        omega = hierarchy.omega(smooth)
        for _ in range(OPTIONS.max_rounds):
            weights = hierarchy.weights(norms, omega, floor)
            known = -np.inf if best is None else best.value
            start_eta = start.choose(smooth)
            found = active.evaluate(bounds, weights, start_eta, aim, dual_coef, known)
            start.note(found.bound)
            norms, dual_coef = found.norms, found.bound.dual_coef
            if best is None or found.bound.value > best.value:
                best = found.bound
            gap = bounds.upper - best.value
            met = gap <= aim * bounds.size or bounds.upper <= bounds.rounding
            stalled = patience.is_exhausted(gap, bounds.solves, found.solved)
            if met or bounds.solves >= max_iter or stalled:
                bounds.at_rounding = patience.is_at_rounding
                return best, norms
            if hierarchy.rho == 2.0 or _fixed_gap(active, found, omega) <= floor * bounds.size:
                break
        step += 1
        slopes = hierarchy.slopes(found.quadratic_forms, smooth)
        if slopes.any():
            # The gradient (24) is the slopes raised to a power, times a negative number.
            downhill = (slopes / slopes.max()) ** hierarchy.power
            eta = eta * np.exp(np.sqrt(np.log(max(len(eta), 2)) / step) * downhill)
            eta /= eta.sum()


def _fixed_gap(active: ActiveProblem, found: Evaluation, omega: Floats) -> float:
    """Return the duality gap of the problem for fixed shares."""
    hierarchy, bound = active.hierarchy, found.bound
    primal = 0.5 * hierarchy.fixed_norm(found.norms, omega) ** 2 + found.loss
    dual = bound.linear - 0.5 * (hierarchy.fixed_dual(found.quadratic_forms, omega) + bound.ridge)
    return primal - dual
