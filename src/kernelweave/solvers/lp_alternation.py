"""Weights of norm p > 1: closed-form updates with Anderson acceleration.

The update of the weights minimises a majoriser, so a plain step never raises the objective;
Anderson mixing of the last steps, in the logarithms of the weights, halves their number. A mixed
step that does raise the objective is replaced by the plain one.
"""

from __future__ import annotations

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.losses import Loss
from kernelweave.weights import LpBall

from .anderson import Mixer
from .bounds import Bounds, Callback, Result, WarmStart
from .evaluator import Evaluator
from .sample import start_from_sample

_PATIENCE = 30  # solves without lowering the gap by a tenth before giving up
_FLOOR = 1e-14  # weights below this are held there in the logarithms, and revive if wanted


def closed_form(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    loss: Loss,
    weight_set: LpBall,
    *,
    tol: float,
    max_iter: int,
    start: WarmStart | None = None,
    report: Callback | None = None,
) -> Result:
    """Learn weights by alternating with their closed-form update.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    weight_set : LpBall
        Where weights live, with an exponent above one.
    tol : float
        Relative duality gap to stop at.
    max_iter : int
        Maximum number of inner solves.
    start : WarmStart, optional
        Weights and coefficients to begin from.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        Weights on the boundary of the set, with a certificate.
    """
    bounds = Bounds(tol, report)
    evaluator = Evaluator(bank, Y, cost, loss, weight_set, bounds)
    everything = np.arange(bank.n_kernels)
    weights = weight_set.start(bank.n_kernels)
    if start is not None:
        weights = weight_set.normalise(np.maximum(start.weights, _FLOOR))
    kernel = bank.combine(weights)
    if start is None:
        begin = start_from_sample(evaluator, kernel)
    else:
        begin = evaluator.start(kernel, loss.repair(start.dual_coef, Y, cost))
    void = bank.is_constant if loss.fit_intercept else np.zeros(bank.n_kernels, dtype=bool)
    mixer = Mixer()
    plain: Floats | None = None  # the safe step in hand while a mixed one is tried
    accepted = np.inf
    tighter = 1.0
    mark_gap, mark_solves = np.inf, 0
    while bounds.solves < max_iter:
        before = bounds.gap
        inner = max(min(0.1, 0.3 * before if np.isfinite(before) else 0.1), 0.2 * tol) * tighter
        point = evaluator.evaluate(
            kernel, evaluator.solve(kernel, tol=inner, start=begin), everything
        )
        evaluator.offer_lower(point, point.quadratic_forms)
        bounds.note()
        if evaluator.verify():
            break
        if bounds.gap <= 0.9 * mark_gap:
            mark_gap, mark_solves = bounds.gap, bounds.solves
        elif bounds.solves - mark_solves >= _PATIENCE:
            break  # as far as numbers go
        if bounds.gap > 0.8 * before:
            # A loose inner solve or a bad mixture is in the way: rule out both.
            tighter = max(1e-3, 0.5 * tighter)
            mixer = Mixer()
        value = (
            weight_set.penalty(point.weights * np.sqrt(point.quadratic_forms)) + point.loss_value
        )
        if plain is not None and value > (1.0 + 1e-3 * bounds.gap) * accepted:
            weights, plain = plain, None
            mixer = Mixer()
        else:
            accepted = value
            # The form of a constant kernel is rounding, and its root would be a weight to see.
            quadratic_forms = np.where(void, 0.0, point.quadratic_forms)
            plain = weight_set.update(weights, weights * np.sqrt(quadratic_forms))
            here, there = (np.log(np.maximum(part, _FLOOR)) for part in (weights, plain))
            weights = weight_set.normalise(np.exp(mixer.mix(here, there, np.sqrt(plain))))
        kernel = bank.combine(weights)
        begin = point.start_at(kernel)
    evaluator.settle()
    return bounds.result()
