"""Several outputs whose functions are related: the machine of the kernel ``B(t, t') k(x, x')``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._types import Floats

from .base import DualShape, Machine, Solution
from .support import SupportMachine

_SWEEPS = 1000


@dataclass(frozen=True)
class _Shifted(SupportMachine):
    """A machine whose targets were moved; its boxes belong to the targets as they were."""

    machine: Machine
    given: Floats
    fit_intercept: bool

    @property
    def bounded(self) -> bool:  # type: ignore[override]
        return self.machine.bounded

    def shape(self, Y: Floats, cost: Floats) -> DualShape:
        return self.machine.shape(self.given, cost)


def solve_tasks(
    machine: Machine,
    K: Any,
    Y: Floats,
    cost: Floats,
    relation: Floats | None,
    *,
    tol: float,
    start: Floats | None = None,
) -> Solution:
    """Solve for all outputs together, one after the other in turn.

    Parameters
    ----------
    machine : Machine
        The loss.
    K : kernel with ``@`` and ``scaled``
        The kernel of the inputs.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets and costs.
    relation : ndarray of shape (n_outputs, n_outputs) or None
        ``B``, positive semi-definite with a positive diagonal; None for unrelated outputs.
    tol : float
        Relative gap to stop at.
    start : ndarray of shape (n_samples, n_outputs), optional
        Coefficients to begin with.

    Returns
    -------
    solution : Solution
        ``fitted`` is ``K @ coef @ B``.
    """
    if relation is None:
        begin = None if start is None else Solution(start, np.zeros(0), K @ start, np.inf, -np.inf)
        return machine.solve(K, Y, cost, tol=tol, start=begin)
    n_outputs = Y.shape[1]
    coef = np.zeros_like(Y) if start is None else start.copy()
    multiples = {factor: K.scaled(factor) for factor in relation.diagonal().tolist()}
    own = [multiples[factor] for factor in relation.diagonal().tolist()]
    products = K @ coef
    work, precision, last = 0, 0.3 * tol, np.inf
    for _ in range(_SWEEPS):
        for t in range(n_outputs):
            others = products @ relation[:, t] - relation[t, t] * products[:, t]
            column = slice(t, t + 1)
            moved = Y[:, column] - others[:, None]
            inner = machine
            if isinstance(machine, SupportMachine):
                inner = _Shifted(machine, Y[:, column], machine.fit_intercept)
            begin = Solution(
                coef[:, column], np.zeros(1), relation[t, t] * products[:, column], np.inf, -np.inf
            )
            part = inner.solve(own[t], moved, cost[:, column], tol=precision, start=begin)
            coef[:, t] = part.coef[:, 0]
            products[:, t] = (K @ part.coef)[:, 0]
            work += part.work
        fitted = products @ relation
        quadratic = float(np.vdot(coef, fitted))
        loss, intercept = machine.loss(fitted, Y, cost)
        ridge = machine.ridge_term(coef, cost, Y)
        primal = 0.5 * quadratic + loss
        dual = machine.linear(coef, Y) - 0.5 * (quadratic + ridge)
        if primal - dual <= tol * abs(primal):
            break
        if primal - dual > 0.9 * last:  # the parts, not their order, may hold it up
            precision = max(1e-12, 0.3 * precision)
        last = primal - dual
    return Solution(coef, intercept, fitted, primal, dual, work)
