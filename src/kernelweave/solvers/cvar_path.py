"""The conditional value at risk for large n: a root search along ordinary kernel learning.

With one output the capped problem is ``min over gamma of gamma P(lam gamma) + cap (1 - gamma)``,
where ``P(lam)`` is the optimal value of plain multiple kernel learning with mean loss, and its
solution is gamma times that of the plain problem at ``lam gamma``. The slope in gamma is the share
of the cost that the plain dual coefficients use, less the cap, and it increases. So the loss
that is solved is the ordinary one, on features wherever these are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks.nystroem.bank import FeatureBank
from kernelweave.losses import CVaRHinge, Hinge
from kernelweave.weights import Simplex

from .bounds import Bounds, Callback, Result, WarmStart
from .evaluator import Evaluator
from .newton_bundle import newton_bundle
from .smoothing import learn_rounded, offer_function

_STEPS = 25
_LEAST = 1e-4  # share of the objective that gaps are relative to at least: features are rounded
_DEAREST = 1e3  # cost from which on their rounding shows in a plain problem
_SMALL = 0.01  # gamma from which on the best function may well be zero
_FACTOR = 0.3  # of gamma, until the root lies in between
_INNER = 0.2  # share of the tolerance that the plain problem is solved to first
_NARROW = 0.01  # how near both ends are, relatively, when it is solved more exactly
_TIGHTEST = 1e-3  # how far below the tolerance is gone


def solve_capped_on_path(
    bank: FeatureBank,
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
    """Learn weights on the simplex and a classifier of one output; see `solve_capped`.

    Parameters
    ----------
    bank : FeatureBank
        The kernels.
    Y, box, loss, lam, tol, max_iter, start, report
        As in `solve_capped`, with one output.

    Returns
    -------
    result : Result
        In units of the support vector loss: values are divided by ``lam``.
    """
    bounds = Bounds(tol, report, least=_LEAST)
    evaluator = Evaluator(bank, Y, box / lam, loss, Simplex(), bounds)
    (cap,) = loss.shares
    aim = _INNER * tol
    gamma, low, high = 1.0, (0.0, -cap), (1.0, 1.0 - cap)  # ends, with slopes
    for _ in range(_STEPS):
        cost = box / (lam * gamma)
        found = learn_rounded(
            bank,
            Y,
            cost,
            Hinge(fit_intercept=False),
            Simplex(),
            newton_bundle,
            tol=aim,
            max_iter=max(1, max_iter - bounds.solves),
            start=start,
        )
        last = found.history[-1]
        bounds.solves += last.solves
        bounds.work += last.work
        bounds.n_passes += last.n_passes
        assert found.function is not None
        assert found.proof is not None
        carried = replace(
            found,
            dual_coef=loss.repair(gamma * found.dual_coef, Y, box / lam),
            proof=loss.repair(gamma * found.proof, Y, box / lam),
            function=gamma * found.function,
        )
        offer_function(evaluator, carried)
        spent = bounds.solves >= max_iter or float(cost.max()) > _DEAREST
        if gamma < _SMALL or spent:
            offer_function(evaluator, replace(carried, function=np.zeros_like(found.function)))
        bounds.note()
        slope = float(np.abs(found.dual_coef).sum() / cost.sum()) - cap
        low, high = (low, (gamma, slope)) if slope > 0 else ((gamma, slope), high)
        idle = gamma == 1.0 and slope <= 0  # the cap does nothing
        if idle or spent or bounds.converged:
            break
        if low[0] and high[0] < (1.0 + _NARROW) * low[0] and aim > _TIGHTEST * tol:
            # Slopes were not known well enough to tell the sides of the root.
            aim, wider = 0.1 * aim, 1.0 + 2.0 * _NARROW
            low, high = (low[0] / wider, low[1]), (min(1.0, high[0] * wider), high[1])
        gamma, before = _between(low, high), gamma
        start = WarmStart(found.weights, found.dual_coef * (before / gamma))
    evaluator.settle()
    return bounds.result()


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return where to look for a root next, given two values of gamma with their slopes."""
    if not low[0]:
        return _FACTOR * high[0]
    # By logarithms, and some way off both ends: slopes are known to the tolerance only.
    share = float(np.clip(-low[1] / (high[1] - low[1]), 0.1, 0.9))
    return float(low[0] * (high[0] / low[0]) ** share)
