"""Weights of norm p > 1 by alternating minimisation with Anderson acceleration.

For fixed functions the best weights have a closed form (`LpBall.update`, Kloft et al. 2011), which
minimises a majoriser of the optimal value, so a plain step never raises the objective. Steps are
mixed in the logarithms of the weights, which halves their number.

References
----------
M. Kloft, U. Brefeld, S. Sonnenburg, A. Zien (2011), lp-norm multiple kernel learning, JMLR 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .anderson import Alternation, Patience
from .bounds import Result
from .evaluator import make_evaluator
from .problem import Limits, Problem, WarmStart
from .sample import first_solution


@dataclass(frozen=True)
class LpOptions:
    """Tunable numbers of `lp_alternation`, chosen by hand."""

    patience: int = 30  # inner solves without lowering the gap by a tenth before giving up
    failed: float = 10.0  # gap of an inner solve, relative to its tolerance, that counts as failure
    smallest: float = 1e-14  # weights below this are held there in the logarithms, and may revive


def lp_alternation(
    problem: Problem,
    limits: Limits,
    start: WarmStart | None = None,
    options: LpOptions = LpOptions(),
) -> Result:
    """Learn weights in an lp ball; the result lies on its boundary."""
    bank, weight_set, tol = problem.bank, problem.weight_set, limits.tol
    bounds = limits.bounds()
    evaluator = make_evaluator(problem, bounds)
    everything = np.arange(bank.n_kernels)
    weights = weight_set.start(bank.n_kernels)
    if start is not None:
        weights = weight_set.normalise(np.maximum(start.weights, options.smallest))
    kernel = bank.combine(weights)
    begin = first_solution(evaluator, kernel, start)
    without = np.zeros(bank.n_kernels, dtype=bool)
    constant = bank.is_constant if problem.loss.fit_intercept else without
    alternation, patience = Alternation(), Patience(0.9, options.patience)
    tighter = 1.0
    while bounds.solves < limits.max_iter:
        before = bounds.gap
        inner = max(min(0.1, 0.3 * before if np.isfinite(before) else 0.1), 0.2 * tol) * tighter
        solution = evaluator.solve(kernel, tol=inner, start=begin)
        point = evaluator.evaluate(kernel, solution, everything)
        evaluator.offer_lower(point, point.quadratic_forms)
        bounds.note()
        solved = solution.gap <= options.failed * inner * abs(solution.primal)
        if evaluator.verify() or patience.is_exhausted(bounds.gap, bounds.solves, solved):
            bounds.at_rounding |= patience.is_at_rounding
            break
        if bounds.gap > 0.8 * before:
            # A loose inner solve or a bad mixture is in the way: rule out both.
            tighter = max(1e-3, 0.5 * tighter)
            alternation.restart()
        norms = point.weights * np.sqrt(point.quadratic_forms)
        value = weight_set.penalty(norms) + point.loss_value
        plain = alternation.fallback(value, slack=1e-3 * bounds.gap)
        if plain is not None:
            weights = plain
        else:
            # The quadratic form of a constant kernel is rounding, whose root would be a weight.
            forms = np.where(constant, 0.0, point.quadratic_forms)
            plain = weight_set.update(weights, weights * np.sqrt(forms))
            here, there = (np.log(np.maximum(w, options.smallest)) for w in (weights, plain))
            mixed = alternation.advance(here, there, np.sqrt(plain), keep=plain)
            weights = weight_set.normalise(np.exp(mixed))
        kernel = bank.combine(weights)
        begin = point.start_at(kernel)
    evaluator.settle()
    return bounds.result()
