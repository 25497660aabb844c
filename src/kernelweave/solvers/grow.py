"""Kernels in a graph: learn with few of them, then let in those that would be worth their cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from kernelweave._types import Floats
from kernelweave.candidates import Growing, Grown
from kernelweave.machines import Machine, solve_tasks
from kernelweave.weights.dag import Hierarchy

from .mixing import Mixer
from .result import Account, Report, Result

_INNER = 0.3  # gap on the nodes in play, relative to the tolerance
_SEARCH = (
    0.1  # the same, relative to the gap over the whole graph: early rounds are only to find nodes
)
_ROUGHEST = 0.1
_FLOOR = 0.3  # of the shares, relative to the gap aimed at
_MACHINE = 0.1  # gap of a machine, likewise
_GROWTH = 0.5  # nodes let in at a time, relative to those in play
_AT_LEAST = 50
_MARGIN = 0.99  # aimed a little below the tolerance, so that rounding cannot undo it
_SMALLEST = 1e-12  # of a norm or weight, relative to the largest
_PATIENCE = 30  # machines without lowering the gap by a tenth before trying otherwise


@dataclass(frozen=True)
class Start:
    """Where to begin: the solution of a neighbouring problem on the same graph.

    Parameters
    ----------
    norms : ndarray of shape (n_nodes,)
        Norms of the functions of the nodes in play.
    coef : ndarray of shape (n_samples, n_outputs) or None
        Dual coefficients, feasible.
    """

    norms: Floats
    coef: Floats | None = None


@dataclass(frozen=True)
class _Bound:
    """A lower bound from coefficients that were only priced against the nodes in play."""

    value: float
    coef: Floats
    linear: float
    dual: float
    ridge: float


def grow(
    graph: Growing,
    Y: Floats,
    cost: Floats,
    machine: Machine,
    *,
    rho: float,
    relation: Floats | None = None,
    tol: float,
    max_iter: int,
    max_nodes: int,
    start: Start | None = None,
    report: Report | None = None,
) -> Result:
    """Minimise ``1/2 Omega(f)^2 + loss`` over all kernels of a graph.

    ``Omega`` is the norm of `Hierarchy`. On the nodes in play, machine and weights are found in
    turn, each exactly for the other, with mixed steps. Then the graph is searched for nodes whose
    form exceeds what the certificate allows; they come into play with their ancestors.

    Parameters
    ----------
    graph : Growing
        The kernels; grows.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Machine
        The loss.
    rho : float
        Exponent of the norm, in (1, 2].
    relation : ndarray of shape (n_outputs, n_outputs) or None
        How functions of several outputs are related.
    tol : float
        Relative duality gap over the whole graph to stop at.
    max_iter : int
        Machines solved at most.
    max_nodes : int
        No more nodes come into play once there are so many.
    start : Start, optional
        Where to begin.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        Weights and forms of the nodes in play. The lower bound holds for the whole graph.
    """
    account = Account(tol, report)
    root = None if relation is None else _root(relation)
    norms = np.ones(len(graph.nodes)) if start is None else start.norms
    coef = None if start is None else start.coef
    while True:
        account.weights = _extended(account.weights, len(graph.nodes))
        account.forms = _extended(account.forms, len(graph.nodes))
        hierarchy = Hierarchy(graph.ancestors, graph.costs, rho)
        gap = account.gap if account.lower > -np.inf else np.inf
        aim = max(_INNER * tol, min(_ROUGHEST, _SEARCH * gap))
        inner = _Inner(graph, hierarchy, Y, cost, machine, relation, root)
        bound, norms = inner.run(account, aim, max_iter, norms, coef)
        coef = bound.coef
        found = _certify(graph, machine, account, bound, root, tol)
        account.note()
        full = not found.nodes or len(graph.nodes) >= max_nodes
        if account.converged or account.solves >= max_iter or (full and aim <= _INNER * tol):
            break
        if not full:
            _let_in(graph, found, max_nodes)
            usual = float(np.median(norms[norms > 1e-3 * norms.max()]))
            norms = np.append(norms, np.full(len(graph.nodes) - len(norms), usual))
    return account.result()


def _certify(
    graph: Growing,
    machine: Machine,
    account: Account,
    bound: _Bound,
    root: Floats | None,
    tol: float,
) -> Grown:
    """Search the graph for nodes that break the bound, and offer what remains of it."""
    wanted = account.upper - _MARGIN * tol * account.size
    level = max(bound.dual, 2.0 * (bound.linear - wanted) - bound.ridge)
    V = bound.coef if root is None else bound.coef @ root
    found = graph.search(V, level, max(2 * _AT_LEAST, len(graph.nodes)))
    account.readings += 1
    if found.complete:
        dual = max(level, float(found.ratios.max(initial=0.0)))
        account.offer_lower(_lower_bound(machine, bound.linear, dual, bound.ridge))
    return found


def _let_in(graph: Growing, found: Grown, max_nodes: int) -> None:
    before = len(graph.nodes)
    room = min(max(_AT_LEAST, int(_GROWTH * before)), max_nodes - before)
    for k in range(0, len(found.nodes), 10):
        graph.add(found.nodes[k : k + 10])
        if len(graph.nodes) >= before + room:
            break


class _Inner:
    """The problem on the nodes in play."""

    def __init__(
        self,
        graph: Growing,
        hierarchy: Hierarchy,
        Y: Floats,
        cost: Floats,
        machine: Machine,
        relation: Floats | None,
        root: Floats | None,
    ) -> None:
        self.graph, self.hierarchy = graph, hierarchy
        self.Y, self.cost, self.machine = Y, cost, machine
        self.relation, self.root = relation, root

    def run(
        self, account: Account, aim: float, max_iter: int, norms: Floats, coef: Floats | None
    ) -> tuple[_Bound, Floats]:
        """Alternate until the gap on these nodes is at most ``aim``; return bound and norms."""
        x = _logs(norms)
        mixer, plain, accepted = Mixer(), None, np.inf
        best: _Bound | None = None
        finer, mark, waited, mix = 1.0, np.inf, 0, True
        while True:
            bound, value, norms = self._step(account, x, finer * aim, coef)
            coef = bound.coef
            if best is None or bound.value > best.value:
                best = bound
            gap = (account.upper - best.value) / account.size
            if gap <= aim or account.solves >= max_iter:
                return best, norms
            if gap <= 0.9 * mark:
                mark, waited = gap, 0
            elif (waited := waited + 1) >= _PATIENCE:
                if not mix:
                    return best, norms
                mix, finer, waited = False, 0.01, 0  # plain steps cannot fail
            if plain is not None and value > accepted * (1.0 + 1e-12):
                x, plain, mixer = plain, None, Mixer()  # worse than what it was mixed from
                continue
            accepted, plain = value, _logs(norms)
            x = mixer.mix(x, plain, np.sqrt(norms / norms.max())) if mix else plain

    def _step(
        self, account: Account, x: Floats, aim: float, coef: Floats | None
    ) -> tuple[_Bound, float, Floats]:
        """Solve the machine for the norms ``exp(x)``; offer and return what follows from it."""
        hierarchy, machine = self.hierarchy, self.machine
        shares = hierarchy.shares(np.exp(x), _FLOOR * aim)
        weights = shares.weights
        weights = np.where(weights > _SMALLEST * weights.sum(), weights, 0.0)
        kernel = self.graph.combine(weights)
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
        dual = hierarchy.squared_dual_norm(forms, shares.eta, enough=0.1 * aim)
        lower = _lower_bound(machine, linear, dual, ridge)
        if not norms.max(initial=0.0) > 0.0:
            norms = np.ones(len(norms))
        return _Bound(lower, coef, linear, dual, ridge), value, norms


def _lower_bound(machine: Machine, linear: float, dual: float, ridge: float) -> float:
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


def _extended(values: Floats, length: int) -> Floats:
    return np.append(values, np.zeros(length - len(values)))


def _root(relation: Floats) -> Floats:
    """Return ``R`` with ``R R'`` equal to a positive semi-definite matrix."""
    values, vectors = scipy.linalg.eigh(relation)
    keep = values > 1e-14 * values[-1]
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))
