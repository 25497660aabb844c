"""Hierarchical kernel learning on the active nodes of a graph, by alternating minimisation.

For fixed kernel weights the functions are those of an SVM; for fixed functions the best shares
``eta`` of the norm and the kernel weights have a closed form. Any dual coefficients bound the
optimum from below through the dual norm, which needs no further SVM.

References
----------
P. Jawanpuria, J. Saketha Nath, G. Ramakrishnan, "Generalized hierarchical kernel learning", JMLR
16, 2015, equations (6), (10), (13) and (14).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg

from kernelweave._types import Floats
from kernelweave.candidates import KernelDag
from kernelweave.inner import solve_multitask
from kernelweave.losses import Loss
from kernelweave.weights.dag import DualNorm, Hierarchy

from .anderson import Alternation, Patience
from .bounds import Bounds
from .rounding import dual_error, form_errors, loss_error


@dataclass(frozen=True)
class AlternationOptions:
    """Constants of `alternate`; chosen by hand on tables of rules with 100 to 1000 rows."""

    floor: float = 0.3  # of shares and weights, relative to the gap aimed at; without one: stalls
    inner_gap: float = 0.1  # gap of an inner solve, relative to the gap aimed at
    smallest: float = 1e-12  # norm or weight, relative to the largest
    last_share: float = 0.3  # of the last dual coefficients in their running mean
    patience: int = 30  # inner solves without lowering the gap by a tenth before plain steps
    plain_share: float = 0.01  # of floor and inner gap once mixed steps have stalled
    bound_error: float = 0.1  # of a lower bound, relative to what it lacks
    failed: float = 10.0  # gap of an inner solve, relative to its tolerance, that counts as failure


OPTIONS = AlternationOptions()


@dataclass(frozen=True)
class DagProblem:
    """``min 1/2 Omega(f)^2 + sum_i cost_i loss(y_i, f(x_i))`` over all kernels of a graph.

    Parameters
    ----------
    graph : KernelDag
        The kernels; nodes are activated in the course of a solve.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    loss : Loss
        The loss.
    rho : float
        Exponent of the norm ``Omega`` (see `Hierarchy`), in (1, 2].
    relation : ndarray of shape (n_outputs, n_outputs) or None
        How functions of several outputs are related: the matrix B of equation (11).
    """

    graph: KernelDag
    Y: Floats
    cost: Floats
    loss: Loss
    rho: float
    relation: Floats | None = None

    @cached_property
    def root(self) -> Floats | None:
        """``R`` with ``R R' = relation``."""
        if self.relation is None:
            return None
        values, vectors = scipy.linalg.eigh(self.relation)
        keep = values > 1e-14 * values[-1]
        return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))

    def related(self, dual_coef: Floats) -> Floats:
        """Return vectors whose quadratic forms are those of coefficients of related outputs."""
        return dual_coef if self.root is None else dual_coef @ self.root


@dataclass(frozen=True)
class DualBound:
    """A lower bound of the objective over the active nodes."""

    value: float
    dual_coef: Floats  # that prove it
    linear: float  # linear part of their dual value
    dual: float  # bound of their squared dual norm
    ridge: float  # ridge part of their dual value
    norm: DualNorm  # how `dual` was found


@dataclass(frozen=True)
class Evaluation:
    """The solution of the inner problem for some kernel weights."""

    bound: DualBound  # that its dual coefficients prove
    value: float  # the objective
    loss: float  # the loss in it
    quadratic_forms: Floats  # of the dual coefficients, for each node
    norms: Floats  # of the functions; ones where all are zero
    solved: bool  # whether the inner solve came near its tolerance


@dataclass(frozen=True)
class ActiveProblem:
    """The problem restricted to the active nodes, equation (14)."""

    problem: DagProblem
    hierarchy: Hierarchy  # the norm on the active nodes
    exact: bool  # whether bounds hold for the exact kernels, whatever the graph stores of them

    @classmethod
    def of(cls, problem: DagProblem, exact: bool) -> ActiveProblem:
        """Restrict a problem to the nodes that are active now."""
        graph = problem.graph
        return cls(problem, Hierarchy(graph.ancestors, graph.costs, problem.rho), exact)

    def evaluate(
        self,
        bounds: Bounds,
        weights: Floats,
        eta: Floats,
        aim: float,
        start: Floats | None,
        known: float,
    ) -> Evaluation:
        """Solve the inner problem for kernel weights, and offer its objective to the bounds.

        ``eta`` are the shares from which the dual norm is bounded, ``aim`` is the relative gap that
        the caller is after, ``start`` are dual coefficients, ``known`` is the best lower bound.
        """
        problem = self.problem
        weights = np.where(weights > OPTIONS.smallest * weights.sum(), weights, 0.0)
        kernel = self._combine(weights)
        solution = solve_multitask(
            problem.loss,
            kernel,
            problem.Y,
            problem.cost,
            problem.relation,
            tol=OPTIONS.inner_gap * aim,
            start=start,
        )
        bounds.solves += 1
        bounds.work += solution.work
        dual_coef, quadratic_forms = solution.dual_coef, self._forms(solution.dual_coef)
        value, loss = self._offer(bounds, kernel, weights, dual_coef, quadratic_forms)
        useful = known, bounds.upper - aim * bounds.size
        bound = self._bound(dual_coef, quadratic_forms, eta, 0.1 * aim, useful)
        norms = weights * np.sqrt(quadratic_forms)
        if not norms.max(initial=0.0) > 0.0:
            norms = np.ones(len(norms))
        missed = solution.gap > OPTIONS.failed * OPTIONS.inner_gap * aim * abs(solution.primal)
        return Evaluation(bound, value, loss, quadratic_forms, norms, not missed)

    def recompute(self, bounds: Bounds, bound: DualBound) -> DualBound:
        """Evaluate the best model and a lower bound again, for the exact kernels."""
        weights, dual_coef = bounds.weights, bounds.dual_coef
        bounds.upper, bounds.lower = np.inf, -np.inf
        self._offer(bounds, self._combine(weights), weights, dual_coef, self._forms(dual_coef))
        n = len(self.problem.graph.nodes)
        return self.bound(bound.dual_coef, np.full(n, 1.0 / n), 0.0)

    def upper_rounding(self, bounds: Bounds) -> float:
        """Bound the rounding error of the best objective."""
        problem, weights = self.problem, bounds.weights
        kernel = self._combine(weights)
        diagonal, dual_coef = kernel.diag(), bounds.dual_coef
        V = problem.related(dual_coef)
        errors = form_errors(V, problem.graph.diagonal_sums, diagonal)
        low, high = (
            self.hierarchy.norm(weights * np.sqrt(q))
            for q in (bounds.quadratic_forms, bounds.quadratic_forms + errors)
        )
        fitted = self._fitted(kernel, dual_coef)
        data = problem.loss, problem.Y, problem.cost
        loss = loss_error(*data, diagonal, dual_coef, fitted, bounds.intercept, problem.relation)
        bound = 0.5 * (high - low) * (high + low) + loss
        return bound if bound >= 0 else np.inf  # NaN after overflow

    def lower_rounding(self, bounds: Bounds, bound: DualBound) -> float:
        """Bound the rounding error of the best lower bound.

        The squared dual norm is the largest weighted sum of quadratic forms, so errors of these
        raise it by no more than their own dual norm. An optimal function has an objective no larger
        than the best known, which bounds its values by Cauchy-Schwarz and so the intercept.
        """
        problem, graph, Y = self.problem, self.problem.graph, self.problem.Y

        def dual_norm(values: Floats, inactive: float) -> float:
            eta = np.full(len(values), 1.0 / len(values))
            return max(inactive, self.hierarchy.squared_dual_norm(values, eta, enough=0.1))

        def inactive_sum(shares: Floats) -> Floats:
            return np.array(graph.inactive_diagonal_sum(shares))

        V, diagonal = problem.related(bound.dual_coef), self._combine(bounds.weights).diag()
        inactive = float(form_errors(V, inactive_sum, diagonal))
        raised = dual_norm(form_errors(V, graph.diagonal_sums, diagonal), inactive)
        ones = np.ones(len(Y))
        largest = dual_norm(graph.diagonal_sums(ones), graph.inactive_diagonal_sum(ones))
        if problem.relation is not None:
            largest *= float(problem.relation.diagonal().max())
        bias = float(np.abs(Y).max()) + float(np.sqrt(2.0 * bounds.upper * largest))
        rest = dual_error(problem.loss, Y, bound.dual_coef, bound.linear, bound.ridge, bias)
        return 0.5 * raised + rest

    def bound(
        self,
        dual_coef: Floats,
        eta: Floats,
        enough: float,
        useful: tuple[float, float] = (-np.inf, -np.inf),
    ) -> DualBound:
        """Return the lower bound that coefficients prove; the rest as in `squared_dual_norm`.

        ``useful`` are the best lower bound so far and the one that is wanted: a bound that cannot
        exceed the first, or by far not the second, is not worked out in full.
        """
        return self._bound(dual_coef, self._forms(dual_coef), eta, enough, useful)

    def _bound(
        self,
        dual_coef: Floats,
        quadratic_forms: Floats,
        eta: Floats,
        enough: float,
        useful: tuple[float, float],
    ) -> DualBound:
        loss, Y, cost = self.problem.loss, self.problem.Y, self.problem.cost
        linear, ridge = loss.linear(dual_coef, Y, cost), loss.ridge_term(dual_coef, Y, cost)
        known, wanted = useful

        def suffices(low: float, high: float) -> bool:
            if high - low <= enough * high:
                return True
            most, least = (lower_bound(loss, linear, dual, ridge) for dual in (low, high))
            return most <= known or most - least <= OPTIONS.bound_error * (wanted - most)

        norm = self.hierarchy.bound_dual_norm(quadratic_forms, eta, suffices)
        value = lower_bound(loss, linear, norm.value, ridge)
        return DualBound(value, dual_coef, linear, norm.value, ridge, norm)

    def _combine(self, weights: Floats) -> Any:
        root = self.problem.root
        return self.problem.graph.combine(weights, 1 if root is None else root.shape[1])

    def _forms(self, dual_coef: Floats) -> Floats:
        V, graph = self.problem.related(dual_coef), self.problem.graph
        return graph.form_bounds(V) if self.exact else graph.quadratic_forms(V)

    def _fitted(self, kernel: Any, dual_coef: Floats) -> Floats:
        # Computed afresh: running sums of the inner solver drift.
        relation = self.problem.relation
        fitted = kernel.exact_product(dual_coef) if self.exact else kernel @ dual_coef
        return np.asarray(fitted if relation is None else fitted @ relation)

    def _offer(
        self,
        bounds: Bounds,
        kernel: Any,
        weights: Floats,
        dual_coef: Floats,
        quadratic_forms: Floats,
    ) -> tuple[float, float]:
        """Offer the objective of coefficients; return it and the loss in it."""
        problem = self.problem
        fitted = self._fitted(kernel, dual_coef)
        loss, intercept = problem.loss.value(fitted, problem.Y, problem.cost)
        value = 0.5 * self.hierarchy.norm(weights * np.sqrt(quadratic_forms)) ** 2 + loss
        bounds.offer_upper(value, weights, dual_coef, intercept, quadratic_forms)
        return value, loss


class DualStart:
    """Shares from which dual norms are bounded: where the last bound ended, once one was cut.

    The best shares move little from one inner solve to the next. Begun afresh, a bound that needs
    more steps than it may take would never become tight.
    """

    def __init__(self) -> None:
        self._last: Floats | None = None

    def choose(self, eta: Floats) -> Floats:
        """Return the shares to begin with, given those of the weights."""
        return eta if self._last is None else self._last

    def note(self, bound: DualBound) -> None:
        """Keep where a bound ended."""
        if self._last is not None or bound.norm.is_cut:
            self._last = bound.norm.eta


RestrictedSolver: TypeAlias = Callable[
    [ActiveProblem, Bounds, float, int, Floats, Floats | None], tuple[DualBound, Floats]
]
"""Solves the problem on the active nodes: `alternate`, or another with its parameters."""


def alternate(
    active: ActiveProblem,
    bounds: Bounds,
    aim: float,
    max_iter: int,
    norms: Floats,
    dual_coef: Floats | None,
) -> tuple[DualBound, Floats]:
    """Alternate between the inner problem and the weights, with Anderson acceleration.

    Parameters
    ----------
    active : ActiveProblem
        The active nodes.
    bounds : Bounds
        Bounds found so far; gets all upper bounds.
    aim : float
        Relative gap on the active nodes to stop at.
    max_iter : int
        Maximum number of inner solves, earlier ones included.
    norms : ndarray of shape (n_nodes,)
        Norms of the functions to begin with.
    dual_coef : ndarray of shape (n_samples, n_outputs) or None
        Dual coefficients to begin with.

    Returns
    -------
    bound : DualBound
        The best lower bound.
    norms : ndarray of shape (n_nodes,)
        Norms of the functions.
    """
    x = _logs(norms)
    alternation, patience = Alternation(), Patience(0.9, OPTIONS.patience)
    patience.renew(np.inf, bounds.solves)
    best: DualBound | None = None
    mix, finer = True, 1.0
    start = DualStart()
    while True:
        shares = active.hierarchy.shares(np.exp(x), OPTIONS.floor * finer * aim)
        known = -np.inf if best is None else best.value
        eta = start.choose(shares.eta)
        found = active.evaluate(bounds, shares.weights, eta, finer * aim, dual_coef, known)
        start.note(found.bound)
        norms, dual_coef = found.norms, found.bound.dual_coef
        if best is None or found.bound.value > best.value:
            best = found.bound
        last = OPTIONS.last_share
        mean = dual_coef if bounds.mean is None else (1 - last) * bounds.mean + last * dual_coef
        bounds.mean = mean
        if bounds.solves - 1 > patience.since:
            # Where dual solutions are not unique, each round finds another and none proves much.
            # Their mean is feasible too (the dual set is convex) and converges.
            joint = active.bound(
                mean, shares.eta, 0.1 * aim, (best.value, bounds.upper - aim * bounds.size)
            )
            best = max(best, joint, key=lambda bound: bound.value)
        gap = (bounds.upper - best.value) / bounds.size
        if gap <= aim or bounds.upper <= bounds.rounding or bounds.solves >= max_iter:
            bounds.at_rounding = False
            return best, norms
        if patience.is_exhausted(gap, bounds.solves, found.solved):
            if not mix:
                bounds.at_rounding = patience.is_at_rounding
                return best, norms
            mix, finer = False, OPTIONS.plain_share  # plain steps never raise the objective
            patience.renew(patience.gap, bounds.solves)
        plain = alternation.fallback(found.value)
        if plain is not None:
            x = plain
            continue
        x = alternation.advance(x, _logs(norms), np.sqrt(norms / norms.max()), mix=mix)


def lower_bound(loss: Loss, linear: float, dual: float, ridge: float) -> float:
    """Return the best lower bound that multiples of dual coefficients prove.

    ``s * linear - s^2 / 2 * (dual + ridge)`` is maximised over s, at most one in a bounded box.
    """
    curvature = dual + ridge
    if curvature <= 0.0:
        return linear
    scale = linear / curvature
    if loss.bounded:
        scale = min(1.0, scale)
    return scale * linear - 0.5 * scale**2 * curvature


def _logs(norms: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(norms, OPTIONS.smallest * norms.max())))
