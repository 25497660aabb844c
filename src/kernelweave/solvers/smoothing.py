"""Weights learned with the corners of the loss rounded, less and less.

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
from kernelweave.machines import Machine
from kernelweave.machines.smoothed import Smoothed
from kernelweave.weights import WeightSet

from .bounds import Account, Report, Result, Warm
from .evaluator import Learner

_FIRST = 0.2  # width of the first rounding, in units of the spread of the targets
_SHARE = 0.3  # of the tolerance, that rounding may take
_ROUGH = 10.0  # of the first width, whose weights are but a start
_LEAST = 1e-5  # width at which rounding is no help any more


def learn_rounded(
    bank: KernelBank | FeatureBank,
    Y: Floats,
    cost: Floats,
    machine: Machine,
    weight_set: WeightSet,
    solve: Any,
    *,
    tol: float,
    max_iter: int,
    start: Warm | None = None,
    report: Report | None = None,
    before: Result | None = None,
) -> Result:
    """Learn weights over many rows, or where few rows make kinks.

    Parameters
    ----------
    bank : FeatureBank or KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Machine
        The loss.
    weight_set : WeightSet
        Where weights live.
    solve : callable
        `newton_bundle`, or another with its parameters.
    tol : float
        Relative duality gap to stop at, of the loss as it is.
    max_iter : int
        Machines solved at most.
    start : Warm, optional
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
    account = Account(tol, report)
    learner = Learner(bank, Y, cost, machine, weight_set, account)
    if before is not None:
        offer_function(learner, before)
        _count(account, before)
        account.history = list(before.history)
    width = _FIRST * float(np.sqrt((cost * Y**2).sum() / max(float(cost.sum()), 1e-300)))
    least = _LEAST * width
    close = False  # whether this may be the last width
    while account.solves < max_iter:
        rounded = Smoothed(machine, width) if width > least else machine
        found = solve(
            bank,
            Y,
            cost,
            rounded,
            tol=0.5 * tol if close else _ROUGH * tol,
            max_iter=max_iter - account.solves,
            start=start,
            report=_heard(report, account.solves),
            provisional=True,
        )
        _count(account, found)
        offer_function(learner, found)
        account.note()
        if account.converged or rounded is machine:
            break
        # The error of rounding falls with the square of the width.
        error = 0.5 * rounded.ridge_term(found.coef, cost, Y) - 0.5 * machine.ridge_term(
            found.coef, cost, Y
        )
        allowed = _SHARE * tol * account.size
        factor = np.sqrt(allowed / error) if error > 0.0 else 1.0
        # Later widths are there for what the first guess missed, and few should do.
        width, close = width * float(np.clip(factor, 0.05, 0.2 if close else 0.7)), True
        start = Warm(found.weights, found.coef)
    learner.settle()
    return account.result()


def _count(account: Account, found: Result) -> None:
    last = found.history[-1]
    account.solves += last.solves
    account.work += last.work
    account.readings += last.readings + 1


def _heard(report: Report | None, solves: int) -> Report | None:
    """Let a listener follow a rounded problem, whose gap is near that of the loss as it is."""
    if report is None:
        return None
    return lambda step: report(replace(step, solves=solves + step.solves))


def offer_function(learner: Learner, found: Result) -> None:
    """Look at the function and the coefficients of a neighbouring problem in that of a learner."""
    kernel, every = learner.bank.combine(found.weights), np.arange(learner.bank.n_kernels)
    function = found.function
    fitted = None if function is None else learner.bank.blocks.times(function)
    # Rounding leaves the boxes as they are, so its coefficients are feasible.
    for coef in (found.coef, found.proof):
        if coef is not None:
            solution = learner.start(kernel, coef)
            if fitted is not None:
                solution = replace(solution, fitted=fitted, function=function)
            forms = learner.bank.forms(coef)
            point = learner.evaluate(kernel, solution, every, forms)
            learner.offer_lower(point, forms)
