"""Starts of inner solves, from a warm start or from the solution on a sample of the rows.

A Nystroem fit begins from the function of a sample, which fits in memory wherever the rows are: a
table in memory, in a file and in the parts of Dask goes the same way from there. So does a fit of a
smooth loss, whose Newton steps begin from any function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Indices
from kernelweave.banks import WeightedSum
from kernelweave.inner import Solution, solve_inner, unsolved
from kernelweave.inner.curvature import is_smooth

from .bounds import Result
from .evaluator import Evaluator
from .problem import Problem, WarmStart


@dataclass(frozen=True)
class SampleOptions:
    """Tunable numbers of samples, chosen by hand."""

    share: int = 4  # every fourth row, or fewer, so that there are no more than
    max_rows: int = 25_000
    share_on_demand: int = 8  # of kernels on demand, whose sample is stored
    max_stored: int = 6250
    min_class_rows: int = 250  # least number of rows taken of a class, where it has that many
    max_classes: int = 50  # distinct targets from which on these are quantities
    min_rows: int = 1000  # from which a sample is worth taking
    tol: float = 0.1  # relative gap, far below the error of a sample


_OPTIONS = SampleOptions()


def take_sample(problem: Problem) -> tuple[Problem, Indices]:
    """Return the same problem over some of the rows, and these rows.

    Rows are evenly spaced among those of equal targets; small classes are taken whole. Costs are
    raised so that errors weigh against the norm as they do on all rows.
    """
    Y, options = problem.Y, _OPTIONS
    order = np.lexsort(Y.T)
    if problem.bank.workspace is None:
        share = max(options.share, -(-len(Y) // options.max_rows))
    else:
        share = max(options.share_on_demand, -(-len(Y) // options.max_stored))
    changes = np.flatnonzero((np.diff(Y[order], axis=0) != 0).any(axis=1)) + 1
    groups = np.split(order, changes) if len(changes) < options.max_classes else [order]
    few = max(1, min(options.min_class_rows, len(Y) // (options.share * len(groups))))
    rows, raised = [], []
    for group in groups:
        some = group[:: max(1, min(share, len(group) // few))]
        rows.append(some)
        raised.append(np.full(len(some), len(group) / len(some)))
    index, factors = np.concatenate(rows), np.concatenate(raised)
    in_order = np.argsort(index)
    index, factors = index[in_order], factors[in_order]
    part = replace(
        problem,
        bank=problem.bank.take(index),
        Y=np.ascontiguousarray(Y[index]),
        cost=factors[:, None] * problem.cost[index],
    )
    return part, index


def first_solution(
    evaluator: Evaluator, kernel: WeightedSum, start: WarmStart | None
) -> Solution | None:
    """Return the first start of an inner solver; None for a cold one."""
    if start is not None:
        repaired = evaluator.loss.repair(start.dual_coef, evaluator.Y, evaluator.cost)
        return evaluator.start(kernel, repaired)
    if not _starts_from_sample(evaluator, kernel) or len(evaluator.Y) < _OPTIONS.min_rows:
        return None
    part, index = take_sample(evaluator.problem)
    sampled = part.bank.combine(kernel.weights)
    found = solve_inner(part.loss, sampled, part.Y, part.cost, tol=_OPTIONS.tol)
    return start_from_sample(evaluator, kernel, found, index)


def start_from_sample(
    evaluator: Evaluator, kernel: WeightedSum, sample: Solution | Result, index: Indices
) -> Solution | None:
    """Return the start of an inner solver from the function that was found on some rows, if any."""
    if not _starts_from_sample(evaluator, kernel):
        return None
    nothing = np.zeros_like(evaluator.Y)
    if sample.function is not None:
        start = unsolved(nothing, evaluator.bank.values(sample.function))
        return replace(start, function=sample.function)
    if kernel.features() is not None:
        return None
    # Coefficients outside their box: Newton steps need only the function that belongs to them.
    nothing[index] = sample.dual_coef
    return evaluator.start(kernel, nothing)


def _starts_from_sample(evaluator: Evaluator, kernel: WeightedSum) -> bool:
    return kernel.features() is not None or is_smooth(evaluator.loss, kernel)
