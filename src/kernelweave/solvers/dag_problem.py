"""The learning problem on the active nodes of a graph of kernels, solved by alternation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from kernelweave._types import Floats
from kernelweave.candidates import Growing
from kernelweave.inner import solve_multitask
from kernelweave.losses import Loss
from kernelweave.weights.dag import Hierarchy

from .anderson import Mixer
from .bounds import Bounds
from .rounding import dual_error, form_errors, loss_error

_FLOOR = 0.3  # of the shares, relative to the gap aimed at
_MACHINE = 0.1  # gap of a machine, likewise
_SMALLEST = 1e-12  # of a norm or weight, relative to the largest
_LAST = 0.3  # share of the last coefficients in their mean
_PATIENCE = 30  # machines without lowering the gap by a tenth before trying otherwise


@dataclass(frozen=True)
class Bound:
    """A lower bound from coefficients that were only priced against the active nodes.

    Parameters
    ----------
    value : float
        What no function on these nodes goes below.
    dual_coef : ndarray of shape (n_samples, n_outputs)
        Dual coefficients.
    linear, ridge : float
        Linear and ridge part of their dual value.
    dual : float
        Bound of their squared dual norm.
    """

    value: float
    dual_coef: Floats
    linear: float
    dual: float
    ridge: float


@dataclass(frozen=True)
class Evaluation:
    """What solving the machine for some weights has shown.

    Parameters
    ----------
    bound : Bound
        The lower bound it proves.
    value : float
        The objective.
    loss : float
        Its second part.
    quadratic_forms, norms : ndarray of shape (n_nodes,)
        Forms of the coefficients, and norms of the functions; ones where all are zero.
    """

    bound: Bound
    value: float
    loss: float
    quadratic_forms: Floats
    norms: Floats


@dataclass(frozen=True)
class ActiveProblem:
    """The learning problem on the active nodes.

    Parameters
    ----------
    graph : Growing
        The kernels.
    hierarchy : Hierarchy
        The norm.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets, and the cost of each error.
    machine : Loss
        The loss.
    relation : ndarray of shape (n_outputs, n_outputs) or None
        How functions of several outputs are related.
    root : ndarray of shape (n_outputs, rank) or None
        A matrix whose square is the relation.
    exact : bool
        Whether bounds are those of the exact kernels, whatever the graph holds of them.
    """

    graph: Growing
    hierarchy: Hierarchy
    Y: Floats
    cost: Floats
    machine: Loss
    relation: Floats | None
    root: Floats | None
    exact: bool

    def stand(
        self, bounds: Bounds, weights: Floats, eta: Floats, aim: float, dual_coef: Floats | None
    ) -> Evaluation:
        """Solve the machine for kernel weights; offer and return what follows from it.

        Parameters
        ----------
        bounds : Bounds
            Gets the upper bound.
        weights : ndarray of shape (n_nodes,)
            Kernel weights.
        eta : ndarray of shape (n_nodes,)
            Shares to bound the dual norm with.
        aim : float
            Relative gap that the caller is after.
        dual_coef : ndarray of shape (n_samples, n_outputs) or None
            Dual coefficients to begin with.
        """
        weights = np.where(weights > _SMALLEST * weights.sum(), weights, 0.0)
        kernel = self._combine(weights)
        solution = solve_multitask(
            self.machine,
            kernel,
            self.Y,
            self.cost,
            self.relation,
            tol=_MACHINE * aim,
            start=dual_coef,
        )
        bounds.solves += 1
        bounds.work += solution.work
        dual_coef, quadratic_forms = solution.dual_coef, self._forms(solution.dual_coef)
        value, loss = self._offer(bounds, kernel, weights, dual_coef, quadratic_forms)
        bound = self._bound(dual_coef, quadratic_forms, eta, 0.1 * aim)
        norms = weights * np.sqrt(quadratic_forms)
        if not norms.max(initial=0.0) > 0.0:
            norms = np.ones(len(norms))
        return Evaluation(bound, value, loss, quadratic_forms, norms)

    def settle(self, bounds: Bounds, bound: Bound) -> Bound:
        """Evaluate the best model and a lower bound again, for the exact kernels."""
        weights, dual_coef = bounds.weights, bounds.dual_coef
        bounds.upper, bounds.lower = np.inf, -np.inf
        self._offer(bounds, self._combine(weights), weights, dual_coef, self._forms(dual_coef))
        n = len(self.graph.nodes)
        return self.bound(bound.dual_coef, np.full(n, 1.0 / n), 0.0)

    def upper_rounding(self, bounds: Bounds) -> float:
        """Bound the rounding error of the best objective."""
        weights, dual_coef, quadratic_forms = (
            bounds.weights,
            bounds.dual_coef,
            bounds.quadratic_forms,
        )
        kernel = self._combine(weights)
        diagonal = kernel.diag()
        errors = form_errors(self._related(dual_coef), self.graph.diagonal_sums, diagonal)
        norms = [
            self.hierarchy.norm(weights * np.sqrt(f))
            for f in (quadratic_forms, quadratic_forms + errors)
        ]
        loss = loss_error(
            self.machine,
            self.Y,
            self.cost,
            diagonal,
            dual_coef,
            self._fitted(kernel, dual_coef),
            bounds.intercept,
            self.relation,
        )
        bound = 0.5 * (norms[1] - norms[0]) * (norms[1] + norms[0]) + loss
        return bound if bound >= 0 else np.inf  # not a number where it overflows

    def lower_rounding(self, bounds: Bounds, bound: Bound) -> float:
        """Bound the rounding error of the best lower bound.

        The squared dual norm is the largest weighted sum of forms, so that errors of forms raise it
        by no more than their own. A function of the optimum has an objective no larger than the
        best, which bounds its values and so the bias.
        """
        graph, machine, Y = self.graph, self.machine, self.Y

        def dual_norm(values: Floats, outside: float) -> float:
            eta = np.full(len(values), 1.0 / len(values))
            return max(outside, self.hierarchy.squared_dual_norm(values, eta, enough=0.1))

        V, diagonal = self._related(bound.dual_coef), self._combine(bounds.weights).diag()
        outside = float(form_errors(V, lambda s: np.array(graph.outside_sum(s)), diagonal))
        raised = dual_norm(form_errors(V, graph.diagonal_sums, diagonal), outside)
        ones = np.ones(len(Y))
        largest = dual_norm(graph.diagonal_sums(ones), graph.outside_sum(ones))
        if self.relation is not None:
            largest *= float(self.relation.diagonal().max())
        bias = float(np.abs(Y).max()) + float(np.sqrt(2.0 * bounds.upper * largest))
        rest = dual_error(machine, Y, bound.dual_coef, bound.linear, bound.ridge, bias)
        return 0.5 * raised + rest

    def _combine(self, weights: Floats) -> Any:
        return self.graph.combine(weights, 1 if self.root is None else self.root.shape[1])

    def _related(self, dual_coef: Floats) -> Floats:
        """Return vectors whose forms are those of the coefficients of related outputs."""
        return dual_coef if self.root is None else dual_coef @ self.root

    def _forms(self, dual_coef: Floats) -> Floats:
        V = self._related(dual_coef)
        return self.graph.form_bounds(V) if self.exact else self.graph.quadratic_forms(V)

    def _fitted(self, kernel: Any, dual_coef: Floats) -> Floats:
        # Computed afresh: running sums drift.
        fitted = kernel.exact_product(dual_coef) if self.exact else kernel @ dual_coef
        return np.asarray(fitted if self.relation is None else fitted @ self.relation)

    def _offer(
        self,
        bounds: Bounds,
        kernel: Any,
        weights: Floats,
        dual_coef: Floats,
        quadratic_forms: Floats,
    ) -> tuple[float, float]:
        """Offer the objective of coefficients; return it and the loss in it."""
        loss, intercept = self.machine.value(self._fitted(kernel, dual_coef), self.Y, self.cost)
        value = 0.5 * self.hierarchy.norm(weights * np.sqrt(quadratic_forms)) ** 2 + loss
        bounds.offer_upper(value, weights, dual_coef, intercept, quadratic_forms)
        return value, loss

    def bound(self, dual_coef: Floats, eta: Floats, enough: float) -> Bound:
        """Return the lower bound that coefficients prove; the rest as in `squared_dual_norm`."""
        return self._bound(dual_coef, self._forms(dual_coef), eta, enough)

    def _bound(
        self, dual_coef: Floats, quadratic_forms: Floats, eta: Floats, enough: float
    ) -> Bound:
        linear = self.machine.linear(dual_coef, self.Y, self.cost)
        ridge = self.machine.ridge_term(dual_coef, self.Y, self.cost)
        dual = self.hierarchy.squared_dual_norm(quadratic_forms, eta, enough=enough)
        value = lower_bound(self.machine, linear, dual, ridge)
        return Bound(value, dual_coef, linear, dual, ridge)


Inner: TypeAlias = Callable[
    [ActiveProblem, Bounds, float, int, Floats, Floats | None], tuple[Bound, Floats]
]
"""Solves the problem on the active nodes: `take_turns`, or another with its parameters."""


def take_turns(
    problem: ActiveProblem,
    bounds: Bounds,
    aim: float,
    max_iter: int,
    norms: Floats,
    dual_coef: Floats | None,
) -> tuple[Bound, Floats]:
    """Find machine and weights in turn, each exactly for the other, with mixed steps.

    Parameters
    ----------
    problem : ActiveProblem
        The active nodes.
    bounds : Bounds
        Bounds found so far; gets all upper bounds.
    aim : float
        Relative gap on these nodes to stop at.
    max_iter : int
        Maximum number of inner solves, those before included.
    norms : ndarray of shape (n_nodes,)
        Norms of the functions to begin with.
    dual_coef : ndarray of shape (n_samples, n_outputs) or None
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
        stand = problem.stand(bounds, shares.weights, shares.eta, finer * aim, dual_coef)
        bound, norms = stand.bound, stand.norms
        dual_coef = bound.dual_coef
        if best is None or bound.value > best.value:
            best = bound
        bounds.mean = (
            dual_coef if bounds.mean is None else (1 - _LAST) * bounds.mean + _LAST * dual_coef
        )
        if waited:
            # Where many coefficients are optimal, each turn finds others, and none proves much.
            # Their mean converges.
            joint = problem.bound(bounds.mean, shares.eta, 0.1 * aim)
            best = max(best, joint, key=lambda bound: bound.value)
        gap = (bounds.upper - best.value) / bounds.size
        if gap <= aim or bounds.upper <= bounds.rounding or bounds.solves >= max_iter:
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


def lower_bound(machine: Loss, linear: float, dual: float, ridge: float) -> float:
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
