"""Fixed kernel weights: one inner problem, no outer loop."""

from __future__ import annotations

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.losses import Loss
from kernelweave.weights import WeightSet

from .bounds import Bounds, Callback, Result, WarmStart
from .evaluator import Evaluator
from .sample import start_from_sample


def one_shot(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    loss: Loss,
    weight_set: WeightSet,
    *,
    tol: float,
    start: WarmStart | None = None,
    report: Callback | None = None,
) -> Result:
    """Solve the machine for the starting weights of a set that holds nothing else.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    weight_set : WeightSet
        A set of one point, or any set when there is one kernel.
    tol : float
        Relative duality gap to stop at.
    start : WarmStart, optional
        Coefficients to begin from.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        The weights with the loss's certificate.
    """
    bounds = Bounds(tol, report)
    evaluator = Evaluator(bank, Y, cost, loss, weight_set, bounds)
    weights = weight_set.start(bank.n_kernels)
    kernel = bank.combine(weights)
    if start is None:
        begin = start_from_sample(evaluator, kernel)
    else:
        begin = evaluator.start(kernel, loss.repair(start.dual_coef, Y, cost))
    point = evaluator.evaluate(kernel, evaluator.solve(kernel, tol=0.5 * tol, start=begin))
    for share in (0.05, 0.005):
        evaluator.offer_lower(point, point.quadratic_forms)
        bounds.note()
        if evaluator.verify():
            break
        # Drift, or what factored kernels leave out, took the rest of the tolerance.
        closer = evaluator.solve(kernel, tol=share * tol, start=point.solution)
        point = evaluator.evaluate(kernel, closer)
    evaluator.offer_lower(point, point.quadratic_forms)
    bounds.note()
    evaluator.settle()
    return bounds.result()
