"""Multiple kernel learning with the conditional value at risk of the hinge loss.

The loss is the mean of the largest hinge losses (`CVaRHinge`). Its weights of losses have a capped
sum. Two methods solve problems in which the cap binds:

- **Rescaling.** With one output, all costs from the smallest at which the cap binds upwards have
  the same solution but for a factor, and the larger the costs, the smaller is the part of the
  objective that depends on the classifier. So the problem is solved at costs where that part is
  large, and the solution carried over.
- **Root search**, for Nystroem features. With one output and mean loss P(c) of ordinary multiple
  kernel learning at costs c, the problem is ``min over gamma of gamma P(c / gamma) + cap (1 -
  gamma)``, and its solution is gamma times that of the ordinary problem. The slope in gamma is the
  share of the cost that ordinary dual coefficients use, less the cap, and it increases.

References
----------
R. T. Rockafellar, S. Uryasev (2000), Optimization of conditional value-at-risk, Journal of Risk 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave.losses import Hinge

from .bounds import Bounds, Result
from .evaluator import Evaluator, make_evaluator
from .mirror_prox import cvar_loss
from .newton_bundle import newton_bundle
from .problem import Limits, Problem, WarmStart
from .smoothing import offer_result, solve_by_smoothing


@dataclass(frozen=True)
class RescalingOptions:
    """Tunable numbers of `cvar_by_rescaling`, chosen by hand."""

    well_scaled: float = 0.05  # one less the multiplier of the cap, from which nothing is gained
    above: float = 1.5  # margin above the costs at which the cap begins to bind
    tightest: float = 1e-3  # least tolerance for the sake of the carried-over bound, in tolerances
    stage_solves: int = 50  # inner solves at other costs; ten are usual there
    share: float = 1e-3  # of the objective, that tolerances of one stage are relative to at least
    least: float = 1e-8  # share of the objective below which the best function counts as zero


def cvar_by_rescaling(
    problem: Problem,
    limits: Limits,
    start: WarmStart | None = None,
    options: RescalingOptions = RescalingOptions(),
) -> Result:
    """Learn weights on the simplex and a classifier, with a `CVaRHinge`."""
    bank, Y, tol = problem.bank, problem.Y, limits.tol
    loss = cvar_loss(problem)
    bounds = Bounds(tol, least=options.least)  # of the problem itself, at scale one
    evaluator = make_evaluator(problem, bounds)
    scale, aim = 1.0, tol  # costs are those of the problem, divided by the scale
    while True:
        cost = problem.cost if scale == 1.0 else problem.cost / scale
        most = limits.max_iter if scale == 1.0 else options.stage_solves
        stage = replace(limits, tol=aim, max_iter=min(most, limits.max_iter - bounds.solves))
        result = newton_bundle(replace(problem, cost=cost), stage.after(0), start)
        bounds.solves += result.history[-1].solves
        spent = bounds.solves >= limits.max_iter or not result.converged
        fitted = bank.combine(result.weights) @ result.dual_coef
        rest = 1.0 - float(loss.thresholds(fitted, Y, cost)[0])
        there = options.above * max(rest, 1e-3) * scale  # nearer to where the cap begins to bind
        nearer = Y.shape[1] == 1 and rest < options.well_scaled and there >= options.least
        nearer = nearer and not spent
        if scale == 1.0 and result.converged and not nearer:
            return result
        if nearer and bank.leaves_out:
            # The part that factors leave out grows with the square of the coefficients. A caller
            # who sees the gap can hold the kernels more exactly; steps here cannot close it.
            left = 0.5 * float(bank.residual_forms(result.dual_coef).max()) * scale / there
            spent = left > tol * options.share * result.objective
        is_zero = _carry_over(evaluator, result, scale)
        if spent or (bounds.converged and (is_zero or not nearer)):
            break
        if not nearer:
            if aim < options.tightest * tol:
                break
            aim, there = 0.05 * aim, scale
        start = WarmStart(result.weights, result.dual_coef * (scale / there))
        scale = there
    evaluator.settle()
    return bounds.result()


def _carry_over(evaluator: Evaluator, result: Result, factor: float) -> bool:
    """Offer a solution for larger costs, and the zero function; return whether that is the best.

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


@dataclass(frozen=True)
class RootSearchOptions:
    """Tunable numbers of `cvar_by_root_search`, chosen by hand."""

    max_steps: int = 25
    least: float = 1e-4  # share of the objective that gaps are relative to: features are rounded
    max_cost: float = 1e3  # of the ordinary problem, from which on their rounding is visible
    small: float = 0.01  # gamma from which on the best function may well be zero
    factor: float = 0.3  # of gamma, until the root is bracketed
    inner: float = 0.2  # tolerance of the ordinary problem at first, in tolerances
    narrow: float = 0.01  # relative width of the bracket at which it is solved more exactly
    tightest: float = 1e-3  # least tolerance of the ordinary problem, in tolerances


def cvar_by_root_search(
    problem: Problem,
    limits: Limits,
    start: WarmStart | None = None,
    options: RootSearchOptions = RootSearchOptions(),
) -> Result:
    """Learn weights on the simplex and a classifier of one output from Nystroem features."""
    Y, loss = problem.Y, cvar_loss(problem)
    bounds = Bounds(limits.tol, limits.callback, least=options.least)
    evaluator = make_evaluator(problem, bounds)
    (cap,) = loss.shares
    aim = options.inner * limits.tol
    gamma, low, high = 1.0, (0.0, -cap), (1.0, 1.0 - cap)  # ends of the bracket, with slopes
    ordinary = replace(problem, loss=Hinge(fit_intercept=False))
    for _ in range(options.max_steps):
        cost = problem.cost / gamma
        stage = Limits(aim, limits.max_iter).after(bounds.solves)
        found = solve_by_smoothing(replace(ordinary, cost=cost), stage, start)
        last = found.history[-1]
        bounds.solves += last.solves
        bounds.work += last.work
        bounds.n_passes += last.n_passes
        assert found.function is not None
        assert found.proof is not None
        carried = replace(
            found,
            dual_coef=loss.repair(gamma * found.dual_coef, Y, problem.cost),
            proof=loss.repair(gamma * found.proof, Y, problem.cost),
            function=gamma * found.function,
        )
        offer_result(evaluator, carried)
        spent = bounds.solves >= limits.max_iter or float(cost.max()) > options.max_cost
        if gamma < options.small or spent:
            offer_result(evaluator, replace(carried, function=np.zeros_like(found.function)))
        bounds.note()
        slope = float(np.abs(found.dual_coef).sum() / cost.sum()) - cap
        low, high = (low, (gamma, slope)) if slope > 0 else ((gamma, slope), high)
        idle = gamma == 1.0 and slope <= 0  # the cap does not bind
        if idle or spent or bounds.converged:
            break
        narrow = low[0] and high[0] < (1.0 + options.narrow) * low[0]
        if narrow and aim > options.tightest * limits.tol:
            # Slopes were not known well enough to tell the sides of the root.
            aim, wider = 0.1 * aim, 1.0 + 2.0 * options.narrow
            low, high = (low[0] / wider, low[1]), (min(1.0, high[0] * wider), high[1])
        gamma, before = _between(low, high, options), gamma
        start = WarmStart(found.weights, found.dual_coef * (before / gamma))
    evaluator.settle()
    return bounds.result()


def _between(
    low: tuple[float, float], high: tuple[float, float], options: RootSearchOptions
) -> float:
    """Return where to look for a root next, given two values of gamma with their slopes."""
    if not low[0]:
        return options.factor * high[0]
    # Linear in the logarithms, and some way off both ends: slopes are known to the tolerance only.
    share = float(np.clip(-low[1] / (high[1] - low[1]), 0.1, 0.9))
    return float(low[0] * (high[0] / low[0]) ** share)
