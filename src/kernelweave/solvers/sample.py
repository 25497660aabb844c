"""A start from the solution on a sample of the rows.

A fit of many rows begins from the function of a sample, which fits in memory wherever the rows are:
a table in memory, in a file and in the parts of Dask goes the same way from there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import CombinedKernel
from kernelweave.inner import Solution, solve_inner

from .evaluator import Evaluator, moved

_SHARE = 4  # every fourth row, or fewer, so that there are no more than
_MOST = 25_000
_FEW = 250  # rows of a class that are all taken, or so many of them at least, where rows are many
_CLASSES = 50  # different targets from which on these are quantities
_ROWS = 1000  # from which a sample is worth taking
_TOL = 0.1  # relative gap, far below what a sample leaves open


def take_sample(bank: Any, Y: Floats, cost: Floats) -> tuple[Any, Floats, Floats]:
    """Return the same kernels, targets and costs over some of the rows.

    Rows are evenly spaced among those of equal targets, of which few are all there, so that every
    class is; their cost is raised so that errors weigh against the norm as they do on all rows.
    """
    order = np.lexsort(Y.T)
    share = max(_SHARE, -(-len(Y) // _MOST))
    changes = np.flatnonzero((np.diff(Y[order], axis=0) != 0).any(axis=1)) + 1
    groups = np.split(order, changes) if len(changes) < _CLASSES else [order]
    few = max(1, min(_FEW, len(Y) // (_SHARE * len(groups))))
    rows, raised = [], []
    for group in groups:
        some = group[:: max(1, min(share, len(group) // few))]
        rows.append(some)
        raised.append(np.full(len(some), len(group) / len(some)))
    index, factors = np.concatenate(rows), np.concatenate(raised)
    in_order = np.argsort(index)
    index, factors = index[in_order], factors[in_order]
    return bank.take(index), np.ascontiguousarray(Y[index]), factors[:, None] * cost[index]


def start_from_sample(evaluator: Evaluator, kernel: CombinedKernel) -> Solution | None:
    """Return where a machine on features of many rows begins: at the function of some of them.

    None where there are few rows, or no features; it then begins from nothing.
    """
    if not evaluator.bank.by_features or len(evaluator.Y) < _ROWS:
        return None
    bank, Y, cost = take_sample(evaluator.bank, evaluator.Y, evaluator.cost)
    found = solve_inner(evaluator.loss, bank.combine(kernel.weights), Y, cost, tol=_TOL)
    return start_from_function(evaluator, found.function)


def start_from_function(evaluator: Evaluator, function: Floats | None) -> Solution | None:
    """Return where a machine begins from a function of features, if there is one."""
    if function is None:
        return None
    start = moved(np.zeros_like(evaluator.Y), evaluator.bank.blocks.times(function))
    return replace(start, function=function)
