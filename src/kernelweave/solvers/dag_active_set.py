"""Hierarchical kernel learning on a graph of kernels by an active-set method.

The problem is solved on the active nodes. Then the whole graph is searched for nodes whose price
exceeds what the certificate allows; they are activated with their ancestors. When no such node is
left, the lower bound holds for the whole graph, even if most of it was never visited.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, Algorithms 1 and 3, equation (15).
F. Bach, "Exploring large feature spaces with hierarchical multiple kernel learning", NIPS 2008.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.candidates import KernelDag, Priced

from .bounds import Bounds, Result
from .dag_problem import (
    ActiveProblem,
    DagProblem,
    DualBound,
    RestrictedSolver,
    alternate,
    lower_bound,
)
from .problem import Limits
from .published.mirror_descent import mirror_descent


@dataclass(frozen=True)
class ActiveSetOptions:
    """Constants of `dag_active_set`; chosen by hand on tables of rules with 100 to 1000 rows."""

    inner_gap: float = 0.3  # gap on the active nodes, relative to the tolerance
    search_gap: float = 0.1  # the same while nodes are still found, relative to the gap so far
    roughest: float = 0.1  # largest relative gap on the active nodes to aim at
    growth: float = 0.5  # nodes activated per round, relative to the active ones
    min_growth: int = 50  # nodes activated per round, at least
    batch: int = 10  # priced nodes that are activated together
    # Norms of new nodes begin at this quantile of those above 1e-3 of the largest. Most of them are
    # irrelevant; with the median in its place, tables with C = 10 to 100 take 1.8 times as long.
    newest: float = 0.01
    uncertified_gap: float = 0.03  # on the active nodes, where the graph has more than can be seen
    thin_rounds: int = 2  # rounds of few nodes and no progress before nodes of less price are added
    quick_effort: float = 1 / 16  # of a search that only has to find nodes, not to prove
    near: float = 0.9  # price, relative to the level, that a repeated full search reports
    polish_solves: int = 25  # inner solves of the final polish
    margin: float = 0.99  # share of the tolerance aimed at, so that rounding cannot exceed it
    min_left: float = 0.1  # the same where rounding takes the rest
    progress: float = 0.9  # gap after a round, relative to the one before, that counts as progress


OPTIONS = ActiveSetOptions()
SOLVERS: dict[str, RestrictedSolver] = {"alternate": alternate, "mirror": mirror_descent}


@dataclass(frozen=True)
class DagWarmStart:
    """Where to begin: the solution of a neighbouring problem on the same graph."""

    norms: Floats  # of the functions of the active nodes
    dual_coef: Floats | None = None  # feasible

    @classmethod
    def at(cls, result: Result, factor: float = 1.0) -> DagWarmStart | None:
        """Begin where another fit ended, for costs multiplied by a factor; None if it was zero."""
        if not result.quadratic_forms.any():
            return None
        norms = result.weights * np.sqrt(result.quadratic_forms)
        return cls(norms, result.dual_coef * factor)


def dag_active_set(
    problem: DagProblem,
    limits: Limits,
    *,
    max_nodes: int,
    start: DagWarmStart | None = None,
    solver: str = "alternate",
    certificate: str = "tight",
    polish: float | None = None,
) -> Result:
    """Minimise ``1/2 Omega(f)^2 + loss`` over all kernels of a graph.

    Parameters
    ----------
    problem, limits
        The problem; the tolerance is the relative duality gap over the whole graph.
    max_nodes : int
        Maximum number of active nodes.
    start : DagWarmStart, optional
        Where to begin.
    solver : {"alternate", "mirror"}
        How the problem on the active nodes is solved: `alternate`, or the published
        `mirror_descent`.
    certificate : {"tight", "paper"}
        How inactive nodes are priced: `KernelDag.price`, or the published sufficient condition,
        `KernelDag.price_sources`.
    polish : float or None
        Final relative gap on the active nodes. It brings norms of irrelevant nodes close to zero,
        which the gap over the whole graph alone does not.

    Returns
    -------
    result : Result
        Weights and quadratic forms of the active nodes. The lower bound holds for the whole graph.
    """
    graph, Y, cost, loss = problem.graph, problem.Y, problem.cost, problem.loss
    tol, max_iter, solve = limits.tol, limits.max_iter, SOLVERS[solver]
    bounds = limits.bounds()
    with np.errstate(over="ignore"):
        bounds.scale = loss.zero_loss(Y, cost)
    # Residuals are accurate to about 1e-14, and the smooth losses square them.
    unseen = 1e-28 * bounds.scale if np.isfinite(bounds.scale) else 0.0
    bounds.rounding = unseen
    norms = np.ones(len(graph.nodes)) if start is None else start.norms
    dual_coef = None if start is None else start.dual_coef
    exact = graph.is_exact
    left, still = tol, 0  # tolerance without rounding; rounds without progress
    settled = False  # no further nodes will come, whatever the gap is
    full_up = False  # there is no room for nodes that the tolerance needs
    cut = False  # a full search of the graph reached its limit
    thin = 0  # rounds in a row that activated few nodes and left the gap
    while True:
        bounds.weights = _extended(bounds.weights, len(graph.nodes))
        bounds.quadratic_forms = _extended(bounds.quadratic_forms, len(graph.nodes))
        gap = bounds.gap if bounds.lower > -np.inf else np.inf
        # Early rounds only have to find nodes: a fraction of the present gap is accurate enough.
        rough = min(OPTIONS.roughest, OPTIONS.search_gap * gap)
        if settled:  # nodes without room leave a gap that the active ones cannot close
            rough = min(OPTIONS.uncertified_gap, rough) if full_up else 0.0
        aim = max(_finest(left, cut), rough)
        active = ActiveProblem.of(problem, exact)
        bound, norms = solve(active, bounds, aim, max_iter, norms, dual_coef)
        dual_coef = bound.dual_coef
        # The first search gives some bound; later ones need not while they find enough nodes.
        full = not cut and (settled or bounds.n_passes == 0)
        all_above = thin >= OPTIONS.thin_rounds
        priced = _certify(problem, bounds, bound, left, certificate, full, all_above)
        if not (priced.complete or full or cut) and len(priced.ids) < OPTIONS.batch:
            full = True
            priced = _certify(
                problem, bounds, bound, left, certificate, full, all_above, OPTIONS.near
            )
        if bounds.converged and not exact:
            exact, active = True, replace(active, exact=True)
            bound = active.recompute(bounds, bound)
            priced = _certify(problem, bounds, bound, left, certificate, True)
        cut = cut or (full and not priced.complete)
        bounds.rounding = unseen
        if bounds.converged:
            error = active.upper_rounding(bounds) + active.lower_rounding(bounds, bound)
            bounds.rounding = max(unseen, error)
        bounds.note()
        left = max(tol - 2.0 * bounds.rounding / bounds.size, OPTIONS.min_left * tol)
        enough = OPTIONS.batch if cut else 0
        grows = len(priced.ids) > enough and len(graph.nodes) < max_nodes
        # Without new nodes, a gap that stays shows that only rounding error is left.
        still = 0 if grows or bounds.gap <= OPTIONS.progress * gap else still + 1
        patience = 1 if bounds.rounding > unseen else 0  # one round more to make room for it
        stuck = not grows and (aim <= _finest(left, cut) or still > patience)
        if bounds.converged or bounds.solves >= max_iter or stuck:
            break
        settled = not grows and not (priced.complete and not priced.ids)
        full_up = settled and priced.complete
        few = grows and len(priced.ids) < OPTIONS.batch
        thin = thin + 1 if few and bounds.gap > OPTIONS.progress * gap else 0
        if grows:
            _activate(graph, priced, max_nodes)
            low = float(np.quantile(norms[norms > 1e-3 * norms.max()], OPTIONS.newest))
            norms = np.append(norms, np.full(len(graph.nodes) - len(norms), low))
    if polish is not None and bounds.converged and bounds.solves < max_iter:
        most = min(max_iter, bounds.solves + OPTIONS.polish_solves)
        solve(active, bounds, polish, most, norms, dual_coef)
        bounds.note()
    if not exact:
        active = replace(active, exact=True)
        bound = active.recompute(bounds, bound)
        _certify(problem, bounds, bound, left, certificate, True)
        bounds.note()
    # Never return a model that is worse than the zero function, or may be so by rounding.
    zero = np.zeros_like(Y)
    zero_loss, intercept = loss.value(zero, Y, cost)
    error = active.upper_rounding(bounds)
    if bounds.upper + error > (1.0 + tol) * zero_loss or not bounds.quadratic_forms.any():
        bounds.at_rounding |= bounds.upper < zero_loss
        bounds.upper = np.inf
        no_forms = np.zeros(len(graph.nodes))
        bounds.offer_upper(zero_loss, bounds.weights, zero, intercept, no_forms)
        bounds.note()
        error = active.upper_rounding(bounds)
    bounds.rounding = max(unseen, error + active.lower_rounding(bounds, bound))
    return bounds.result()


def _finest(tol: float, cut: bool) -> float:
    """Return the smallest gap on the active nodes that is worth aiming at."""
    return max(OPTIONS.inner_gap * tol, OPTIONS.uncertified_gap if cut else 0.0)


def _certify(
    problem: DagProblem,
    bounds: Bounds,
    bound: DualBound,
    tol: float,
    certificate: str,
    full: bool,
    all_above: bool = False,
    near: float = 1.0,
) -> Priced:
    """Price the inactive nodes, and offer the lower bound over the whole graph if it is proved.

    ``all_above`` asks for all nodes that the active ones do not outweigh, though the tolerance
    needs fewer: where each round finds a few that the one before had just left out. With ``near``
    below one, nodes that nearly exceed the level are reported beside those that do, since another
    full search for them would cost more than to have them active.
    """
    graph = problem.graph
    # The largest squared dual norm with which the bound would still meet the tolerance.
    wanted = bounds.upper - OPTIONS.margin * tol * bounds.size
    level = bound.dual
    if not all_above:
        level = max(level, 2.0 * (bound.linear - wanted) - bound.ridge)
    V = problem.related(bound.dual_coef)
    limit = max(2 * OPTIONS.min_growth, len(graph.nodes))
    if certificate == "paper":
        priced = graph.price_sources(V, level, limit)
    else:
        priced = graph.price(V, near * level, limit, 1.0 if full else OPTIONS.quick_effort)
        if near < 1.0 and not (priced.prices > level).any():
            priced = replace(priced, ids=[], prices=priced.prices[:0])
    bounds.n_passes += 1
    if priced.complete:
        value = lower_bound(problem.loss, bound.linear, priced.bound, bound.ridge)
        bounds.offer_lower(value)
    return priced


def _activate(graph: KernelDag, priced: Priced, max_nodes: int) -> None:
    before = len(graph.nodes)
    growth = max(OPTIONS.min_growth, int(OPTIONS.growth * before))
    room = min(growth, max_nodes - before)
    for k in range(0, len(priced.ids), OPTIONS.batch):
        graph.add(priced.ids[k : k + OPTIONS.batch], max_nodes - len(graph.nodes))
        if len(graph.nodes) >= before + room:
            break


def _extended(values: Floats, length: int) -> Floats:
    return np.append(values, np.zeros(length - len(values)))
