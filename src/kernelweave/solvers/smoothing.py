"""Multiple kernel learning by continuation on a smoothed loss.

With many rows the optimal value is smooth in the weights at the scale of a step, but its pieces are
tiny: the few rows inside their box say nothing about the next ones to come in. Rounding the corners
lets many rows speak, at an error of the square of the width, which the certificate of the true loss
includes. With few rows that look alike to the kernels in use the optimal value has kinks, because
coefficients are not unique; with rounded corners they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.banks.nystroem.bank import FeatureBank
from kernelweave.losses import Loss, Smoothed
from kernelweave.weights import WeightSet

from .bounds import Bounds, Callback, Result, WarmStart
from .evaluator import Evaluator

_FIRST = 0.2  # width of the first rounding, in units of the spread of the targets
_SHARE = 0.3  # of the tolerance, that rounding may take
_ROUGH = 10.0  # of the first width, whose weights are but a start
_LEAST = 1e-5  # width at which rounding is no help any more


def learn_rounded(
    bank: KernelBank | FeatureBank,
    Y: Floats,
    cost: Floats,
    loss: Loss,
    weight_set: WeightSet,
    solve: Any,
    *,
    tol: float,
    max_iter: int,
    start: WarmStart | None = None,
    report: Callback | None = None,
    before: Result | None = None,
) -> Result:
    """Learn weights over many rows, or where few rows make kinks.

    Parameters
    ----------
    bank : FeatureBank or KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    weight_set : WeightSet
        Where weights live.
    solve : callable
        `newton_bundle`, or another with its parameters.
    tol : float
        Relative duality gap to stop at, of the loss as it is.
    max_iter : int
        Maximum number of inner solves.
    start : WarmStart, optional
        Weights and coefficients to begin from.
    report : callable, optional
        Called with every `Step`, those of the rounded problems among them.
    before : Result, optional
        What was found without rounding; its bounds and work are counted.

    Returns
    -------
    result : Result
        Weights with a certificate for the loss as it is.
    """
    bounds = Bounds(tol, report)
    evaluator = Evaluator(bank, Y, cost, loss, weight_set, bounds)
    if before is not None:
        offer_function(evaluator, before)
        _count(bounds, before)
        bounds.history = list(before.history)
    width = _FIRST * float(np.sqrt((cost * Y**2).sum() / max(float(cost.sum()), 1e-300)))
    least = _LEAST * width
    close = False  # whether this may be the last width
    while bounds.solves < max_iter:
        rounded = Smoothed(loss, width) if width > least else loss
        found = solve(
            bank,
            Y,
            cost,
            rounded,
            tol=0.5 * tol if close else _ROUGH * tol,
            max_iter=max_iter - bounds.solves,
            start=start,
            report=_heard(report, bounds.solves),
            provisional=True,
        )
        _count(bounds, found)
        offer_function(evaluator, found)
        bounds.note()
        if bounds.converged or rounded is loss:
            break
        # The error of rounding falls with the square of the width.
        ridge, own = (part.ridge_term(found.dual_coef, Y, cost) for part in (rounded, loss))
        error = 0.5 * ridge - 0.5 * own
        allowed = _SHARE * tol * bounds.size
        factor = np.sqrt(allowed / error) if error > 0.0 else 1.0
        # Later widths are there for what the first guess missed, and few should do.
        width, close = width * float(np.clip(factor, 0.05, 0.2 if close else 0.7)), True
        start = WarmStart(found.weights, found.dual_coef)
    evaluator.settle()
    return bounds.result()


def _count(bounds: Bounds, found: Result) -> None:
    last = found.history[-1]
    bounds.solves += last.solves
    bounds.work += last.work
    bounds.n_passes += last.n_passes + 1


def _heard(report: Callback | None, solves: int) -> Callback | None:
    """Let a listener follow a rounded problem, whose gap is near that of the loss as it is."""
    if report is None:
        return None
    return lambda step: report(replace(step, solves=solves + step.solves))


def offer_function(evaluator: Evaluator, found: Result) -> None:
    """Offer the function and the dual coefficients of a neighbouring problem to an evaluator."""
    kernel, every = evaluator.bank.combine(found.weights), np.arange(evaluator.bank.n_kernels)
    function = found.function
    fitted = None if function is None else evaluator.bank.blocks.times(function)
    # Rounding leaves the boxes as they are, so its coefficients are feasible.
    for dual_coef in (found.dual_coef, found.proof):
        if dual_coef is not None:
            solution = evaluator.start(kernel, dual_coef)
            if fitted is not None:
                solution = replace(solution, fitted=fitted, function=function)
            quadratic_forms = evaluator.bank.quadratic_forms(dual_coef)
            point = evaluator.evaluate(kernel, solution, every, quadratic_forms)
            evaluator.offer_lower(point, quadratic_forms)
