"""Losses of the rows that fit worst, solved where the problem is well scaled.

Where a cap binds for one output, all values of ``lam`` from the largest at which it does not bind
upwards have the same solution but for a factor, and the larger ``lam``, the smaller is the part of
the objective that depends on the classifier. So the problem is solved at a ``lam`` where that part
is large, and the solution carried over.
"""

from __future__ import annotations

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.machines import CappedHinge
from kernelweave.weights import Simplex

from .newton_bundle import newton_bundle
from .point import Learner
from .result import Account, Report, Result, Warm

_WELL_SCALED = 0.05  # one less the multiplier of the cap, from which nothing is gained
_ABOVE = 1.5  # how far above the end of its range the other lam is chosen
_TIGHTEST = 1e-3  # how far below the tolerance is gone for the sake of the carried-over bound
_LEAST = 1e-9  # share of the objective below which the best function counts as zero


def solve_capped(
    bank: KernelBank,
    Y: Floats,
    box: Floats,
    machine: CappedHinge,
    *,
    lam: float,
    tol: float,
    max_iter: int,
    start: Warm | None = None,
    report: Report | None = None,
) -> Result:
    """Learn weights on the simplex and a classifier.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y : ndarray of shape (n_samples, n_outputs)
        Signs.
    box : ndarray of shape (n_samples, n_outputs)
        The largest dual coefficients, times ``lam``.
    machine : CappedHinge
        The loss.
    lam : float
        Weight of the squared norm.
    tol : float
        Relative gap to stop at.
    max_iter : int
        Machines solved at most.
    start : Warm, optional
        Weights and coefficients to begin from.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        In units of the support vector machine: values are divided by ``lam``.
    """
    here, solves, aim = lam, 0, tol
    while True:
        result = newton_bundle(
            bank,
            Y,
            box / here,
            machine,
            tol=aim,
            max_iter=max(1, max_iter - solves),
            start=start,
            report=report,
        )
        solves += result.history[-1].solves
        spent = solves >= max_iter or not result.converged
        fitted = bank.combine(result.weights) @ result.coef
        rest = 1.0 - float(machine.thresholds(fitted, Y, box / here)[0])
        there = _ABOVE * max(rest, 1e-3) * here  # nearer to where the cap begins to bind
        nearer = Y.shape[1] == 1 and rest < _WELL_SCALED and there >= _LEAST * lam and not spent
        if not nearer and here == lam:
            return result
        if not nearer:
            carried = _carried_over(bank, Y, box / lam, machine, result, here / lam, tol, solves)
            if carried.converged or spent or aim < _TIGHTEST * tol:
                return carried
            aim, there = 0.05 * aim, here  # the two bounds came from different coefficients
        start = Warm(result.weights, result.coef * (here / there))
        here = there


def _carried_over(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    machine: CappedHinge,
    result: Result,
    factor: float,
    tol: float,
    solves: int,
) -> Result:
    """Return a solution for a smaller ``lam``, judged in the problem that was asked for."""
    account = Account(tol, least=_LEAST)
    account.solves = solves
    learner = Learner(bank, Y, cost, machine, Simplex(), account)
    coef = machine.repair(factor * result.coef, Y, cost)
    point = learner.at(result.weights, coef)
    learner.offer_lower(point, bank.forms(coef))
    account.note()
    learner.settle()
    return account.result()
