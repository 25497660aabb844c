"""Mirror descent on the shares of a hierarchy, as published (gHKL, Algorithm 2)."""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats
from kernelweave.solvers.bounds import Bounds
from kernelweave.solvers.dag_problem import ActiveProblem, Bound, Evaluation

_SMOOTH = 0.3  # equal shares mixed in, relative to the gap aimed at
_PATIENCE = 150  # machines without lowering the gap by a tenth before giving up
_MOST_TURNS = 30  # inner solves for the same shares


def mirror_descent(
    problem: ActiveProblem,
    bounds: Bounds,
    aim: float,
    max_iter: int,
    norms: Floats,
    dual_coef: Floats | None,
) -> tuple[Bound, Floats]:
    """Descend along the gradient in the shares, in the geometry of the entropy.

    For fixed shares machine and weights are found in turn; at ``rho = 2`` one machine is enough.
    Step ``i`` multiplies the shares by ``exp(-sqrt(log n / i) g / max |g|)``, g being the
    gradient. Unlike in the publication, the duality gap decides when to stop.

    Parameters
    ----------
    problem, bounds, aim, max_iter, norms, coef
        As in `take_turns`.

    Returns
    -------
    bound : Bound
        The best lower bound.
    norms : ndarray of shape (n_nodes,)
        Norms of the functions.

    References
    ----------
    .. [1] P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel
           learning", JMLR 16, 2015, Algorithm 2 and equation (24).
    """
    hierarchy = problem.hierarchy
    floor = _SMOOTH * aim
    eta = hierarchy.shares(norms, floor).eta
    best: Bound | None = None
    step, mark = 0, (np.inf, bounds.solves)  # where the gap was last seen to shrink
    while True:
        smooth = (1.0 - floor) * eta + floor / len(eta)
        omega = hierarchy.omega(smooth)
        for _ in range(_MOST_TURNS):
            weights = hierarchy.weights(norms, omega, floor)
            stand = problem.stand(bounds, weights, smooth, aim, dual_coef)
            norms, dual_coef = stand.norms, stand.bound.dual_coef
            if best is None or stand.bound.value > best.value:
                best = stand.bound
            met = bounds.upper - best.value <= aim * bounds.size
            if met or bounds.upper <= bounds.rounding or bounds.solves >= max_iter:
                return best, norms
            gap = bounds.upper - best.value
            if gap <= 0.9 * mark[0]:
                mark = gap, bounds.solves
            elif bounds.solves - mark[1] >= _PATIENCE:
                return best, norms
            if hierarchy.rho == 2.0 or _gap(problem, stand, omega) <= floor * bounds.size:
                break
        step += 1
        slopes = hierarchy.slopes(stand.quadratic_forms, smooth)
        if slopes.any():
            # The gradient is the slopes raised to a power, times a negative number.
            downhill = (slopes / slopes.max()) ** hierarchy.power
            eta = eta * np.exp(np.sqrt(np.log(max(len(eta), 2)) / step) * downhill)
            eta /= eta.sum()


def _gap(problem: ActiveProblem, stand: Evaluation, omega: Floats) -> float:
    """Return the gap of the problem for fixed shares."""
    hierarchy, bound = problem.hierarchy, stand.bound
    primal = 0.5 * hierarchy.fixed_norm(stand.norms, omega) ** 2 + stand.loss
    dual = bound.linear - 0.5 * (hierarchy.fixed_dual(stand.quadratic_forms, omega) + bound.ridge)
    return primal - dual
