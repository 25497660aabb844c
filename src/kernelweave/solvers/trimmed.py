"""Trimming: the best case over which rows have wrong labels, by alternation.

References
----------
T. Yang, M. Mahdavi, R. Jin, L. Zhang, Y. Zhou (2012), Multiple kernel learning from noisy labels by
stochastic programming, ICML: the best case that the paper compares its worst case with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats

from .bounds import Result, Step
from .newton_bundle import newton_bundle
from .problem import Limits, Problem, WarmStart


@dataclass(frozen=True)
class TrimmingOptions:
    """Tunable numbers of `trimmed`, chosen by hand."""

    stationary: float = 1e-4  # relative decrease below which the alternation ends
    max_rounds: int = 20


def trimmed(
    problem: Problem, limits: Limits, share: float, options: TrimmingOptions = TrimmingOptions()
) -> Result:
    """Minimise over functions, weights, and the choice of a share of the rows that count.

    Alternates between learning from the chosen rows and choosing those that fit best. Each round
    lowers the objective; the end is a point where neither step does, not a global minimum. No lower
    bound is known: it is minus infinity.

    Parameters
    ----------
    problem : Problem
        With the hinge loss without an intercept, on the simplex.
    limits : Limits
        The tolerance is that of each round.
    share : float
        Share of the summed cost that must be kept, in (0, 1].
    options : TrimmingOptions
        Tunable numbers.
    """
    bank, Y, cost = problem.bank, problem.Y, problem.cost
    kept = np.ones(len(Y))
    last = np.inf
    start: WarmStart | None = None
    best: Result | None = None
    history: list[Step] = []
    solves, converged = 0, False
    for _ in range(options.max_rounds):
        stage = replace(limits, callback=None).after(solves)
        result = newton_bundle(replace(problem, cost=cost * kept[:, None]), stage, start)
        solves += result.history[-1].solves
        fitted = bank.combine(result.weights).exact_product(result.dual_coef)
        losses = (cost * np.maximum(0.0, 1.0 - Y * fitted)).sum(axis=1)
        chosen = _best_fitted(losses, cost.sum(axis=1), share)
        value = result.objective - float((kept - chosen) @ losses)
        top = value if best is None else min(value, best.objective)
        step = Step(top, -np.inf, solves, 0, result.history[-1].n_passes)
        history.append(step)
        if limits.callback is not None:
            limits.callback(step)
        if best is None or value < best.objective:  # a round solved to a tolerance may lose
            best = replace(result, objective=value, lower_bound=-np.inf)
        if last - value <= options.stationary * value or np.array_equal(chosen, kept):
            converged = result.converged
            break
        if solves >= limits.max_iter:
            break
        last, kept = value, chosen
        start = WarmStart.at(result)
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
