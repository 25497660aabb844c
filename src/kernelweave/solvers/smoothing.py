"""Multiple kernel learning by continuation on a smoothed loss.

With large n the optimal value is smooth in the weights at the scale of a step, but its pieces are
tiny: the few free coefficients give no curvature to those that become free next. Smoothing gives
more samples non-zero curvature, at an error of the square of its width, which the certificate of
the loss itself includes. With few rows that are alike to the kernels in use the optimal value is
nondifferentiable, because coefficients are not unique; those of a smoothed loss are.

References
----------
Y. Nesterov (2005), Smooth minimization of non-smooth functions, Mathematical Programming 103.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave.losses import Smoothed

from .bounds import Bounds, Callback, Result
from .evaluator import Evaluator, make_evaluator
from .newton_bundle import newton_bundle
from .problem import Limits, Problem, WarmStart


@dataclass(frozen=True)
class SmoothingOptions:
    """Tunable numbers of `solve_by_smoothing`, chosen by hand."""

    first_width: float = 0.2  # in units of the root mean square of the targets
    last_width: float = 1e-5  # of the first, from which the loss itself is solved
    share: float = 0.3  # of the tolerance that the error of smoothing may take
    rough: float = 10.0  # relative gap at the first width, in tolerances: it gives but a start


def solve_by_smoothing(
    problem: Problem,
    limits: Limits,
    start: WarmStart | None = None,
    before: Result | None = None,
    options: SmoothingOptions = SmoothingOptions(),
) -> Result:
    """Learn weights on the simplex by Newton bundle steps on ever less smoothed losses.

    The callback sees the steps of the smoothed problems too.

    Parameters
    ----------
    before : Result, optional
        A result without smoothing, whose bounds and work count.
    """
    Y, cost, loss, tol = problem.Y, problem.cost, problem.loss, limits.tol
    bounds = limits.bounds()
    evaluator = make_evaluator(problem, bounds)
    if before is not None:
        offer_result(evaluator, before)
        _count(bounds, before)
        bounds.history = list(before.history)
    spread = float(np.sqrt((cost * Y**2).sum() / max(float(cost.sum()), 1e-300)))
    width = options.first_width * spread
    last_width = options.last_width * width
    close = False  # whether this may be the last width
    while bounds.solves < limits.max_iter:
        smoothed = Smoothed(loss, width) if width > last_width else loss
        stage = Limits(
            0.5 * tol if close else options.rough * tol,
            limits.max_iter - bounds.solves,
            _counted(limits.callback, bounds.solves),
            provisional=True,
        )
        part = replace(problem, loss=smoothed)
        found = newton_bundle(part, stage, start)
        _count(bounds, found)
        offer_result(evaluator, found)
        bounds.note()
        if bounds.converged or smoothed is loss:
            break
        # The error of smoothing falls with the square of the width.
        ridge, own = (part.ridge_term(found.dual_coef, Y, cost) for part in (smoothed, loss))
        error = 0.5 * ridge - 0.5 * own
        allowed = options.share * tol * bounds.size
        factor = np.sqrt(allowed / error) if error > 0.0 else 1.0
        # Later widths correct the first guess, and few should do.
        width, close = width * float(np.clip(factor, 0.05, 0.2 if close else 0.7)), True
        start = WarmStart.at(found)
    evaluator.settle()
    return bounds.result()


def _count(bounds: Bounds, found: Result) -> None:
    last = found.history[-1]
    bounds.solves += last.solves
    bounds.work += last.work
    bounds.n_passes += last.n_passes + 1


def _counted(callback: Callback | None, solves: int) -> Callback | None:
    """Return a callback for a smoothed problem that counts the solves before it."""
    if callback is None:
        return None
    return lambda step: callback(replace(step, solves=solves + step.solves))


def offer_result(evaluator: Evaluator, found: Result) -> None:
    """Offer the function and the dual coefficients of a neighbouring problem to an evaluator."""
    bank = evaluator.bank
    kernel, every = bank.combine(found.weights), np.arange(bank.n_kernels)
    function = found.function
    fitted = None if function is None else bank.values(function)
    # Smoothing leaves the boxes as they are, so its coefficients are feasible.
    for dual_coef in (found.dual_coef, found.proof):
        if dual_coef is not None:
            solution = evaluator.start(kernel, dual_coef)
            if fitted is not None:
                solution = replace(solution, fitted=fitted, function=function)
            quadratic_forms = bank.quadratic_forms(dual_coef)
            point = evaluator.evaluate(kernel, solution, every, quadratic_forms)
            evaluator.offer_lower(point, quadratic_forms)
