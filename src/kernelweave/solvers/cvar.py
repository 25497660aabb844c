"""The conditional value at risk of the hinge loss (mean of its largest values), rescaled.

Where a cap binds for one output, all values of ``lam`` from the largest at which it does not bind
upwards have the same solution but for a factor, and the larger ``lam``, the smaller is the part of
the objective that depends on the classifier. So the problem is solved at a ``lam`` where that part
is large, and the solution carried over.
"""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.losses import CVaRHinge
from kernelweave.weights import Simplex

from .bounds import Bounds, Callback, Result, WarmStart
from .evaluator import Evaluator
from .newton_bundle import newton_bundle

_WELL_SCALED = 0.05  # one less the multiplier of the cap, from which nothing is gained
_ABOVE = 1.5  # how far above the end of its range the other lam is chosen
_TIGHTEST = 1e-3  # how far below the tolerance is gone for the sake of the carried-over bound
_STAGE = 50  # inner solves at another lam; ten are usual there
_SHARE = 1e-3  # of the objective, that tolerances of one stage are relative to at least
_LEAST = 1e-8  # share of the objective below which the best function counts as zero


def solve_capped(
    bank: KernelBank,
    Y: Floats,
    box: Floats,
    loss: CVaRHinge,
    *,
    lam: float,
    tol: float,
    max_iter: int,
    start: WarmStart | None = None,
    report: Callback | None = None,
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
    loss : CVaRHinge
        The loss.
    lam : float
        Weight of the squared norm.
    tol : float
        Relative gap to stop at.
    max_iter : int
        Maximum number of inner solves.
    start : WarmStart, optional
        Weights and coefficients to begin from.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        In units of the support vector loss: values are divided by ``lam``.
    """
    bounds = Bounds(tol, least=_LEAST)  # of the problem that was asked for
    evaluator = Evaluator(bank, Y, box / lam, loss, Simplex(), bounds)
    here, aim = lam, tol
    while True:
        result = newton_bundle(
            bank,
            Y,
            box / here,
            loss,
            tol=aim,
            max_iter=max(1, min(max_iter if here == lam else _STAGE, max_iter - bounds.solves)),
            start=start,
            report=report,
        )
        bounds.solves += result.history[-1].solves
        spent = bounds.solves >= max_iter or not result.converged
        fitted = bank.combine(result.weights) @ result.dual_coef
        rest = 1.0 - float(loss.thresholds(fitted, Y, box / here)[0])
        there = _ABOVE * max(rest, 1e-3) * here  # nearer to where the cap begins to bind
        nearer = Y.shape[1] == 1 and rest < _WELL_SCALED and there >= _LEAST * lam and not spent
        if here == lam and result.converged and not nearer:
            return result
        if nearer and bank.leaves_out:
            # What factors leave out grows with the square of the coefficients. A caller who sees
            # the gap can hold the kernels more exactly; steps here cannot close it.
            left = 0.5 * float(bank.residual_forms(result.dual_coef).max()) * here / there
            spent = left > tol * _SHARE * result.objective
        is_zero = _carry_over(evaluator, result, here / lam)
        if spent or (bounds.converged and (is_zero or not nearer)):
            break
        if not nearer:
            if aim < _TIGHTEST * tol:
                break
            aim, there = 0.05 * aim, here
        start = WarmStart(result.weights, result.dual_coef * (here / there))
        here = there
    evaluator.settle()
    return bounds.result()


def _carry_over(evaluator: Evaluator, result: Result, factor: float) -> bool:
    """Offer a solution for a smaller ``lam``, and no function; tell whether that is the best.

    Both problems share their feasible coefficients but for the factor. A gap between the objective
    of no function and the bound that coefficients prove shrinks with it, too.
    """
    Y, cost, loss = evaluator.Y, evaluator.cost, evaluator.loss
    assert result.proof is not None
    evaluator.at(result.weights, loss.repair(factor * result.dual_coef, Y, cost))
    proof = loss.repair(factor * result.proof, Y, cost)
    evaluator.offer_lower(
        evaluator.at(result.weights, proof), evaluator.bank.quadratic_forms(proof)
    )
    evaluator.at(result.weights, np.zeros_like(Y))
    evaluator.bounds.note()
    return not evaluator.bounds.dual_coef.any()
