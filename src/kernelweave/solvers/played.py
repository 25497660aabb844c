"""The kernels of a graph that are in play: machine and weights found in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kernelweave._types import Floats
from kernelweave.candidates import Growing
from kernelweave.machines import Machine, solve_tasks
from kernelweave.weights.dag import Hierarchy

from .mixing import Mixer
from .result import Account

_FLOOR = 0.3  # of the shares, relative to the gap aimed at
_MACHINE = 0.1  # gap of a machine, likewise
_SMALLEST = 1e-12  # of a norm or weight, relative to the largest
_PATIENCE = 30  # machines without lowering the gap by a tenth before trying otherwise


@dataclass(frozen=True)
class Bound:
    """A lower bound from coefficients that were only priced against the nodes in play.

    Parameters
    ----------
    value : float
        What no function on these nodes goes below.
    coef : ndarray of shape (n_samples, n_outputs)
        Dual coefficients.
    linear, ridge : float
        Linear and ridge part of their dual value.
    dual : float
        Bound of their squared dual norm.
    """

    value: float
    coef: Floats
    linear: float
    dual: float
    ridge: float


@dataclass(frozen=True)
class Stand:
    """What solving the machine for some weights has shown.

    Parameters
    ----------
    bound : Bound
        The lower bound it proves.
    value : float
        The objective.
    loss : float
        Its second part.
    forms, norms : ndarray of shape (n_nodes,)
        Forms of the coefficients, and norms of the functions; ones where all are zero.
    """

    bound: Bound
    value: float
    loss: float
    forms: Floats
    norms: Floats


@dataclass(frozen=True)
class Played:
    """The learning problem on the nodes in play.

    Parameters
    ----------
    graph : Growing
        The kernels.
    hierarchy : Hierarchy
        The norm.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Machine
        The loss.
    relation : ndarray of shape (n_outputs, n_outputs) or None
        How functions of several outputs are related.
    root : ndarray of shape (n_outputs, rank) or None
        A matrix whose square is the relation.
    """

    graph: Growing
    hierarchy: Hierarchy
    Y: Floats
    cost: Floats
    machine: Machine
    relation: Floats | None
    root: Floats | None

    def stand(
        self, account: Account, weights: Floats, eta: Floats, aim: float, coef: Floats | None
    ) -> Stand:
        """Solve the machine for kernel weights; offer and return what follows from it.

        Parameters
        ----------
        account : Account
            Gets the upper bound.
        weights : ndarray of shape (n_nodes,)
            Kernel weights.
        eta : ndarray of shape (n_nodes,)
            Shares to bound the dual norm with.
        aim : float
            Relative gap that the caller is after.
        coef : ndarray of shape (n_samples, n_outputs) or None
            Dual coefficients to begin with.
        """
        hierarchy, machine = self.hierarchy, self.machine
        weights = np.where(weights > _SMALLEST * weights.sum(), weights, 0.0)
        n_related = 1 if self.root is None else self.root.shape[1]
        kernel = self.graph.combine(weights, n_related)
        solution = solve_tasks(
            machine, kernel, self.Y, self.cost, self.relation, tol=_MACHINE * aim, start=coef
        )
        account.solves += 1
        account.work += solution.work
        coef = solution.coef
        forms = self.graph.forms(coef if self.root is None else coef @ self.root)
        fitted = kernel @ coef  # fresh: running sums drift
        if self.relation is not None:
            fitted = fitted @ self.relation
        loss, intercept = machine.loss(fitted, self.Y, self.cost)
        norms = weights * np.sqrt(forms)
        value = 0.5 * hierarchy.norm(norms) ** 2 + loss
        account.offer_upper(value, weights, coef, intercept, forms)
        linear = machine.linear(coef, self.Y)
        ridge = machine.ridge_term(coef, self.cost, self.Y)
        dual = hierarchy.squared_dual_norm(forms, eta, enough=0.1 * aim)
        lower = lower_bound(machine, linear, dual, ridge)
        if not norms.max(initial=0.0) > 0.0:
            norms = np.ones(len(norms))
        return Stand(Bound(lower, coef, linear, dual, ridge), value, loss, forms, norms)


Inner: TypeAlias = Callable[
    [Played, Account, float, int, Floats, Floats | None], tuple[Bound, Floats]
]
"""Solves the problem on the nodes in play: `take_turns`, or another with its parameters."""


def take_turns(
    problem: Played,
    account: Account,
    aim: float,
    max_iter: int,
    norms: Floats,
    coef: Floats | None,
) -> tuple[Bound, Floats]:
    """Find machine and weights in turn, each exactly for the other, with mixed steps.

    Parameters
    ----------
    problem : Played
        The nodes in play.
    account : Account
        Bounds found so far; gets all upper bounds.
    aim : float
        Relative gap on these nodes to stop at.
    max_iter : int
        Machines solved at most, with those of the account.
    norms : ndarray of shape (n_nodes,)
        Norms of the functions to begin with.
    coef : ndarray of shape (n_samples, n_outputs) or None
        Dual coefficients to begin with.

    Returns
    -------
    bound : Bound
        The best lower bound.
    norms : ndarray of shape (n_nodes,)
        Norms of the functions.
    """
    x = _logs(norms)
    mixer, plain, accepted = Mixer(), None, np.inf
    best: Bound | None = None
    finer, mark, waited, mix = 1.0, np.inf, 0, True
    while True:
        shares = problem.hierarchy.shares(np.exp(x), _FLOOR * finer * aim)
        stand = problem.stand(account, shares.weights, shares.eta, finer * aim, coef)
        bound, norms = stand.bound, stand.norms
        coef = bound.coef
        if best is None or bound.value > best.value:
            best = bound
        gap = (account.upper - best.value) / account.size
        if gap <= aim or account.upper <= account.rounding or account.solves >= max_iter:
            return best, norms
        if gap <= 0.9 * mark:
            mark, waited = gap, 0
        elif (waited := waited + 1) >= _PATIENCE:
            if not mix:
                return best, norms
            mix, finer, waited = False, 0.01, 0  # plain steps cannot fail
        if plain is not None and stand.value > accepted * (1.0 + 1e-12):
            x, plain, mixer = plain, None, Mixer()  # worse than what it was mixed from
            continue
        accepted, plain = stand.value, _logs(norms)
        x = mixer.mix(x, plain, np.sqrt(norms / norms.max())) if mix else plain


def lower_bound(machine: Machine, linear: float, dual: float, ridge: float) -> float:
    """Return the best lower bound that multiples of the coefficients prove."""
    curved = dual + ridge
    if curved <= 0.0:
        return linear
    scale = linear / curved
    if machine.bounded:
        scale = min(1.0, scale)
    return scale * linear - 0.5 * scale**2 * curved


def _logs(norms: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(norms, _SMALLEST * norms.max())))
