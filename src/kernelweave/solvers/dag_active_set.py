"""Kernel learning on a graph by an active set of kernels; the certificate covers the graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from kernelweave._types import Floats
from kernelweave.candidates import Growing, Grown
from kernelweave.losses import Loss
from kernelweave.weights.dag import Hierarchy

from .bounds import Bounds, Callback, Result
from .dag_problem import ActiveProblem, Bound, Inner, lower_bound, take_turns

_INNER = 0.3  # gap on the active nodes, relative to the tolerance
_SEARCH = (
    0.1  # the same, relative to the gap over the whole graph: early rounds are only to find nodes
)
_ROUGHEST = 0.1
_GROWTH = 0.5  # nodes activated at a time, relative to the active ones
_AT_LEAST = 50
_AT_A_TIME = 10  # nodes found that are let in together
_UNPROVED = 0.03  # gap on the active nodes where the graph is too large for a certificate
_GLANCE = 1 / 16  # effort of a search that need not prove anything, only find nodes
_POLISH = 25  # machines for it at most
_MARGIN = 0.99  # aimed a little below the tolerance, so that rounding cannot undo it
_LEFT = 0.1  # least share of the tolerance to aim at, where rounding takes the rest


@dataclass(frozen=True)
class Start:
    """Where to begin: the solution of a neighbouring problem on the same graph.

    Parameters
    ----------
    norms : ndarray of shape (n_nodes,)
        Norms of the functions of the active nodes.
    dual_coef : ndarray of shape (n_samples, n_outputs) or None
        Dual coefficients, feasible.
    """

    norms: Floats
    dual_coef: Floats | None = None


def grow(
    graph: Growing,
    Y: Floats,
    cost: Floats,
    machine: Loss,
    *,
    rho: float,
    relation: Floats | None = None,
    tol: float,
    max_iter: int,
    max_nodes: int,
    start: Start | None = None,
    inner: Inner = take_turns,
    sufficient: bool = False,
    polish: float | None = None,
    report: Callback | None = None,
) -> Result:
    """Minimise ``1/2 Omega(f)^2 + loss`` over all kernels of a graph.

    ``Omega`` is the norm of `Hierarchy`. The problem is solved on the active nodes. Then the graph
    is searched for nodes whose form exceeds what the certificate allows; they are activated with
    their ancestors.

    Parameters
    ----------
    graph : Growing
        The kernels; grows.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Loss
        The loss.
    rho : float
        Exponent of the norm, in (1, 2].
    relation : ndarray of shape (n_outputs, n_outputs) or None
        How functions of several outputs are related.
    tol : float
        Relative duality gap over the whole graph to stop at.
    max_iter : int
        Maximum number of inner solves.
    max_nodes : int
        No node is activated beyond this number.
    start : Start, optional
        Where to begin.
    inner : callable
        How the problem on the active nodes is solved.
    sufficient : bool
        Whether nodes are judged by the published condition, `Growing.sufficient`, in place of the
        tight one, `Growing.search`.
    polish : float or None
        Relative gap on the active nodes to go on to in the end. Nodes of no use then have norms
        next to nothing, which the gap over the whole graph alone does not bring about.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : Result
        Weights and forms of the active nodes. The lower bound holds for the whole graph.
    """
    bounds = Bounds(tol, report)
    with np.errstate(over="ignore"):
        bounds.scale = machine.zero_loss(Y, cost)
    # Residuals are resolved to 1e-14 or so, and the smooth losses square them.
    bounds.rounding = unseen = 1e-28 * bounds.scale if np.isfinite(bounds.scale) else 0.0
    root = None if relation is None else _root(relation)
    norms = np.ones(len(graph.nodes)) if start is None else start.norms
    dual_coef = None if start is None else start.dual_coef
    exact = graph.is_exact
    left, still = tol, 0  # of the tolerance, besides rounding; rounds without progress
    settled = False  # no further nodes will come, whatever the gap says
    cut = False  # a search of the graph came to its limit
    while True:
        bounds.weights = _extended(bounds.weights, len(graph.nodes))
        bounds.quadratic_forms = _extended(bounds.quadratic_forms, len(graph.nodes))
        hierarchy = Hierarchy(graph.ancestors, graph.costs, rho)
        gap = bounds.gap if bounds.lower > -np.inf else np.inf
        finest = max(_INNER * left, _UNPROVED if cut else 0.0)
        aim = max(finest, 0.0 if settled else min(_ROUGHEST, _SEARCH * gap))
        problem = ActiveProblem(graph, hierarchy, Y, cost, machine, relation, root, exact)
        bound, norms = inner(problem, bounds, aim, max_iter, norms, dual_coef)
        dual_coef = bound.dual_coef
        # The first search gives some bound; later ones need not while they find enough nodes.
        whole = not cut and (settled or bounds.n_passes == 0)
        found = _certify(graph, machine, bounds, bound, root, left, sufficient, whole)
        if not (found.complete or whole or cut) and len(found.nodes) < _AT_A_TIME:
            whole = True
            found = _certify(graph, machine, bounds, bound, root, left, sufficient, whole)
        if bounds.converged and not exact:
            exact, problem = True, replace(problem, exact=True)
            bound = problem.settle(bounds, bound)
            found = _certify(graph, machine, bounds, bound, root, left, sufficient, True)
        cut = cut or (whole and not found.complete)
        bounds.rounding = unseen
        if bounds.converged:
            error = problem.upper_rounding(bounds) + problem.lower_rounding(bounds, bound)
            bounds.rounding = max(unseen, error)
        bounds.note()
        left = max(tol - 2.0 * bounds.rounding / bounds.size, _LEFT * tol)
        grows = len(found.nodes) > (_AT_A_TIME if cut else 0) and len(graph.nodes) < max_nodes
        # Without new nodes a gap that stays shows that rounding error is all that is left.
        still = 0 if grows or bounds.gap <= 0.9 * gap else still + 1
        patience = 1 if bounds.rounding > unseen else 0  # to make room for it
        met = aim <= max(_INNER * left, _UNPROVED if cut else 0.0)
        stuck = not grows and (met or still > patience)
        if bounds.converged or bounds.solves >= max_iter or stuck:
            break
        settled = not grows and not (found.complete and not found.nodes)
        if grows:
            _let_in(graph, found, max_nodes)
            usual = float(np.median(norms[norms > 1e-3 * norms.max()]))
            norms = np.append(norms, np.full(len(graph.nodes) - len(norms), usual))
    if polish is not None and bounds.converged and bounds.solves < max_iter:
        most = min(max_iter, bounds.solves + _POLISH)
        inner(problem, bounds, polish, most, norms, dual_coef)
        bounds.note()
    if not exact:
        problem = replace(problem, exact=True)
        bound = problem.settle(bounds, bound)
        _certify(graph, machine, bounds, bound, root, left, sufficient, True)
        bounds.note()
    # Never return a model that is worse than the zero function, or may be so by rounding.
    nothing = np.zeros_like(Y)
    loss, intercept = machine.value(nothing, Y, cost)
    error = problem.upper_rounding(bounds)
    if bounds.upper + error > (1.0 + tol) * loss or not bounds.quadratic_forms.any():
        bounds.at_rounding = bounds.upper < loss
        bounds.upper = np.inf
        quadratic_forms = np.zeros(len(graph.nodes))
        bounds.offer_upper(loss, bounds.weights, nothing, intercept, quadratic_forms)
        bounds.note()
        error = problem.upper_rounding(bounds)
    bounds.rounding = max(unseen, error + problem.lower_rounding(bounds, bound))
    return bounds.result()


def _certify(
    graph: Growing,
    machine: Loss,
    bounds: Bounds,
    bound: Bound,
    root: Floats | None,
    tol: float,
    sufficient: bool,
    whole: bool,
) -> Grown:
    """Search the graph for nodes that break the bound, and offer what remains of it."""
    wanted = bounds.upper - _MARGIN * tol * bounds.size
    level = max(bound.dual, 2.0 * (bound.linear - wanted) - bound.ridge)
    V = bound.dual_coef if root is None else bound.dual_coef @ root
    most = max(2 * _AT_LEAST, len(graph.nodes))
    if sufficient:
        found = graph.sufficient(V, level, most)
    else:
        found = graph.search(V, level, most, 1.0 if whole else _GLANCE)
    bounds.n_passes += 1
    if found.complete:
        dual = max(level, float(found.ratios.max(initial=0.0)))
        bounds.offer_lower(lower_bound(machine, bound.linear, dual, bound.ridge))
    return found


def _let_in(graph: Growing, found: Grown, max_nodes: int) -> None:
    before = len(graph.nodes)
    room = min(max(_AT_LEAST, int(_GROWTH * before)), max_nodes - before)
    for k in range(0, len(found.nodes), _AT_A_TIME):
        graph.add(found.nodes[k : k + _AT_A_TIME], max_nodes - len(graph.nodes))
        if len(graph.nodes) >= before + room:
            break


def _extended(values: Floats, length: int) -> Floats:
    return np.append(values, np.zeros(length - len(values)))


def _root(relation: Floats) -> Floats:
    """Return ``R`` with ``R R'`` equal to a positive semi-definite matrix."""
    values, vectors = scipy.linalg.eigh(relation)
    keep = values > 1e-14 * values[-1]
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))
