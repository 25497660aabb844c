"""Fixed kernel weights: one inner problem, no outer loop."""

from __future__ import annotations

from .bounds import Result
from .evaluator import make_evaluator
from .problem import Limits, Problem, WarmStart
from .sample import first_solution


def solve_fixed_weights(problem: Problem, limits: Limits, start: WarmStart | None = None) -> Result:
    """Solve for the starting weights of a set of one point, or of any set with one kernel."""
    bounds, tol = limits.bounds(), limits.tol
    evaluator = make_evaluator(problem, bounds)
    kernel = problem.bank.combine(problem.weight_set.start(problem.bank.n_kernels))
    begin = first_solution(evaluator, kernel, start)
    point = evaluator.evaluate(kernel, evaluator.solve(kernel, tol=0.5 * tol, start=begin))
    for share in (0.05, 0.005):
        evaluator.offer_lower(point, point.quadratic_forms)
        bounds.note()
        if evaluator.verify():
            break
        # Drift, or the part that factored kernels leave out, took the rest of the tolerance.
        closer = evaluator.solve(kernel, tol=share * tol, start=point.solution)
        point = evaluator.evaluate(kernel, closer)
    evaluator.offer_lower(point, point.quadratic_forms)
    bounds.note()
    evaluator.settle()
    return bounds.result()
