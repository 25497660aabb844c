"""The best case of unknown wrong labels: trimming by alternation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.losses import Hinge

from .bounds import Callback, Result, Step, WarmStart
from .newton_bundle import newton_bundle

_STATIONARY = 1e-4  # relative decrease below which the alternation ends
_ROUNDS = 20


def trimmed(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    *,
    share: float,
    tol: float,
    max_iter: int,
    report: Callback | None = None,
) -> Result:
    """Minimise over functions, weights, and the choice of a share of the rows that count.

    Alternates between learning from the chosen rows and choosing those that fit best. Each round
    lowers the objective; the end is a point where neither step does, not a global minimum.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Signs, and the cost of each error.
    share : float
        Share of the summed cost that must be kept, in (0, 1].
    tol : float
        Relative gap to which each round is solved.
    max_iter : int
        Maximum number of inner solves.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        No lower bound is known: it is minus infinity.
    """
    loss = Hinge(fit_intercept=False)
    kept = np.ones(len(Y))
    last = np.inf
    start: WarmStart | None = None
    best: Result | None = None
    history: list[Step] = []
    solves, converged = 0, False
    for _ in range(_ROUNDS):
        result = newton_bundle(
            bank,
            Y,
            cost * kept[:, None],
            loss,
            tol=tol,
            max_iter=max(1, max_iter - solves),
            start=start,
        )
        solves += result.history[-1].solves
        fitted = bank.combine(result.weights).exact_product(result.dual_coef)
        losses = (cost * np.maximum(0.0, 1.0 - Y * fitted)).sum(axis=1)
        chosen = _best_fitted(losses, cost.sum(axis=1), share)
        value = result.objective - float((kept - chosen) @ losses)
        top = value if best is None else min(value, best.objective)
        step = Step(top, -np.inf, solves, 0, result.history[-1].n_passes)
        history.append(step)
        if report is not None:
            report(step)
        if best is None or value < best.objective:  # a round solved to a tolerance may lose
            best = replace(result, objective=value, lower_bound=-np.inf)
        if last - value <= _STATIONARY * value or np.array_equal(chosen, kept):
            converged = result.converged
            break
        if solves >= max_iter:
            break
        last, kept = value, chosen
        start = WarmStart(result.weights, result.dual_coef)
    assert best is not None
    return replace(best, history=tuple(history), converged=converged)


def _best_fitted(losses: Floats, sizes: Floats, share: float) -> Floats:
    """Return the part of each row that is kept: the rows of smallest loss per cost first."""
    rates = np.divide(losses, sizes, out=np.full_like(losses, np.inf), where=sizes > 0)
    order = np.argsort(rates, kind="stable")
    room = sizes[order]
    left = share * sizes.sum() - (np.cumsum(room) - room)
    kept = np.zeros_like(losses)
    kept[order] = np.clip(np.divide(left, room, out=np.zeros_like(room), where=room > 0), 0.0, 1.0)
    return kept
