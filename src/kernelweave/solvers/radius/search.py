"""Evaluations of a radius criterion with their certificate: the part that all descents share."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.solvers.anderson import Patience
from kernelweave.solvers.bounds import Result
from kernelweave.solvers.problem import Limits

from .criteria import Assessment, Criterion
from .cutting_planes import Cuts, Lowest


@dataclass(frozen=True)
class SearchOptions:
    """Constants of `Search`; chosen by hand on ladders of Gaussians."""

    inner_gap: float = 1e-3  # gap of SVM and ball, relative to the outer tolerance
    progress: float = 0.67  # gap relative to an earlier one that counts as progress
    doubt: int = 4  # evaluations without progress until all points are combined in one bound
    patience: int = 15  # evaluations without progress until the search counts as stalled


OPTIONS = SearchOptions()


@dataclass(frozen=True)
class RadiusProblem:
    """Minimise a criterion over the weights of kernels."""

    bank: KernelBank  # the kernels
    # Y, cost (n_samples, n_outputs): targets of +-1, and the cost of each error
    Y: Floats
    cost: Floats
    criterion: Criterion
    norm: float | None = None  # norm of the weights that is held at one; None: no constraint


@dataclass(frozen=True)
class RadiusResult(Result):
    """A learned combination of kernels, with the ball around the data."""

    # Of the ball around the training points, in the weighted kernel. Everything else is as in
    # `Result`; the dual coefficients are those of the weighted kernel as it is.
    squared_radius: float

    def rescaled(self, factors: Floats, norm: float | None) -> RadiusResult:
        """Return the same function for kernels divided by ``factors``, weights of norm one.

        Without a norm the weights are such that the ball has unit radius.
        """
        weights = self.weights * factors
        size = self.squared_radius if norm is None else float(np.linalg.norm(weights, norm))
        return replace(
            self,
            weights=weights / size,
            dual_coef=self.dual_coef * size,
            quadratic_forms=self.quadratic_forms * (size**2 / factors),
            squared_radius=self.squared_radius / size,
        )


class SearchEnded(Exception):
    """The tolerance is met, or the limit of inner solves reached."""


class Stalled(Exception):
    """The certified gap does not fall: the gradient jumps near here."""


class Search:
    """Evaluates weights, keeps the bounds, and ends a descent by an exception."""

    def __init__(self, problem: RadiusProblem, limits: Limits) -> None:
        self.problem, self.criterion = problem, problem.criterion
        # A scale-free criterion needs no norm, which would only curve the coordinates.
        self.norm = None if self.criterion.scale_free else problem.norm
        self.max_iter = limits.max_iter
        self.bounds = limits.bounds()
        self.inner = max(OPTIONS.inner_gap * limits.tol, 1e-12)
        self.best: Assessment | None = None
        self.stationary = False
        self.patient = False  # whether to go on however long the gap stays
        self.cuts: Cuts | None = None  # where it is worth collecting them
        self._patience = Patience(OPTIONS.progress, OPTIONS.patience)

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient along the set; raise `SearchEnded` when that is the end."""
        problem, bounds = self.problem, self.bounds
        if bounds.solves >= self.max_iter:
            raise SearchEnded
        kernel = problem.bank.combine(theta)
        point = self.criterion.evaluate(
            kernel, problem.Y, problem.cost, tol=self.inner, start=self.best
        )
        bounds.solves += 1
        bounds.work += point.solution.work
        bounds.n_passes += 2.0
        if self.cuts is not None:
            dual_coef = point.solution.dual_coef
            self.cuts.add(point, self.criterion.loss.linear(dual_coef, problem.Y, problem.cost))
        self._offer(point)
        bounds.note()
        self.stop_if_certified()
        self._watch()
        gradient = self._tangent(theta, point.gradient)
        if point.lower == -np.inf:
            # The decrease promised by moving all weight to the steepest kernel: the gap of
            # Frank and Wolfe, were the criterion convex.
            total = theta.sum()
            if self.norm is None:  # weights near zero are far from those that matter beside 1 / C
                total = max(total, 1.0 / float(problem.cost.max()))
            promise = total * -gradient.min(initial=0.0) + theta @ np.maximum(gradient, 0.0)
            self.stationary = bool(promise <= bounds.tol * point.value)
            if self.stationary:
                raise SearchEnded
        return point.value, gradient

    def _watch(self) -> None:
        """Look for a better bound if the gap stays, and raise `Stalled` if it goes on to."""
        exhausted = self._patience.is_exhausted(self.bounds.gap, self.bounds.solves)
        if self.patient:
            return
        if exhausted:
            raise Stalled
        if self.bounds.solves - self._patience.since >= OPTIONS.doubt:
            self.combine_cuts()

    def combine_cuts(self) -> Lowest | None:
        """Offer the bound that all points prove together; None if there is no such bound."""
        assert self.cuts is not None
        assert self.best is not None
        lowest = self.cuts.minimise(self.best.value)
        if lowest is not None:
            problem, coef, centre = self.problem, lowest.dual_coef, lowest.centre
            bound = self.criterion.joint_bound(problem.bank, coef, centre, problem.Y, problem.cost)
            self.bounds.offer_lower(bound)
            self.bounds.n_passes += 2.0
            self.stop_if_certified()
        return lowest

    def _tangent(self, theta: Floats, gradient: Floats) -> Floats:
        """Return the derivative of the criterion at ``x / |x|`` in x, at x = theta of norm one."""
        if self.norm is None:
            return gradient
        normal = np.ones_like(theta) if self.norm == 1 else theta
        return gradient - normal * float(theta @ gradient)

    def _offer(self, point: Assessment) -> None:
        solution, weights = point.solution, point.kernel.weights
        self.bounds.offer_lower(point.lower)
        if self.bounds.offer_upper(
            point.value, weights, solution.dual_coef, solution.intercept, point.quadratic_forms
        ):
            self.best = point

    def stop_if_certified(self) -> None:
        """Raise `SearchEnded` if the gap meets the tolerance for the exact kernels."""
        if self.bounds.converged:
            self._recompute()
            if self.bounds.converged:
                raise SearchEnded

    def _recompute(self) -> None:
        """Recompute the best value from the exact kernels."""
        assert self.best is not None
        self.bounds.upper = np.inf
        self._offer(self.criterion.verified(self.best, self.problem.Y, self.problem.cost))
        self.bounds.note()

    def _offer_zero(self) -> None:
        """Offer the zero function with its best intercept, at the best weights."""
        assert self.best is not None
        best, criterion, Y = self.best, self.criterion, self.problem.Y
        zero, no_forms = np.zeros_like(Y), np.zeros_like(best.quadratic_forms)
        cost = criterion.inner_cost(best.kernel, best.ball, self.problem.cost)
        loss, intercept = criterion.loss.value(zero, Y, cost)
        value, weights = criterion.value(loss, best.ball), best.kernel.weights
        if self.bounds.offer_upper(value, weights, zero, intercept, no_forms):
            self.bounds.note()

    def result(self) -> RadiusResult:
        """Return the best point, its value that of the exact kernels."""
        assert self.best is not None
        self.best = self.criterion.finished(self.best, self.problem.cost, tol=self.inner)
        self._recompute()
        self._offer_zero()
        result = self.bounds.result()
        return RadiusResult(
            **(vars(result) | {"converged": result.converged or self.stationary}),
            squared_radius=self.best.ball.squared_radius,
        )


def evaluate_fixed(problem: RadiusProblem, limits: Limits, weights: Floats) -> RadiusResult:
    """Return the function of given weights; the certificate is that of these weights."""
    search = Search(replace(problem, norm=None), replace(limits, max_iter=4))
    search.inner, search.patient = 0.3 * limits.tol, True
    with suppress(SearchEnded):
        while True:
            search.evaluate(weights)
            search.inner *= 0.1
    return search.result()
