"""Minimise smooth criteria of the kernel weights: L-BFGS and gradient projection.

Both minimise over non-negative weights, with or without a norm. L-BFGS sees a norm through
``theta = x / |x|``; gradient projection returns to the set after every step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.banks import KernelBank
from kernelweave.solvers.bounds import Bounds, Callback, Result

from .criteria import Assessment, Criterion, RadiusMargin
from .cutting_planes import Cuts, Lowest

_INNER = 1e-3  # inner gap, relative to the outer tolerance
_RETRIES = 4  # times the inner gap is tightened when a line search fails
_ARMIJO = 1e-2
_HALVINGS = 40
_DOUBT = 4  # evaluations without a third off the certified gap until points are put together
_PATIENCE = 15  # evaluations without a third off the certified gap until it counts as stuck


@dataclass(frozen=True)
class RadiusResult(Result):
    """A learned combination of kernels, with the ball around the data.

    Parameters
    ----------
    weights, coef, intercept, forms, objective, lower_bound, size, history, converged
        As in `Result`; the coefficients are those of the weighted kernel as it is.
    squared_radius : float
        Of the ball around the training points, in the weighted kernel.
    at_rounding, function, landmark_gap, proof : False, None, nan and None
        As in `Result`; kernels are never held as features here.
    """

    squared_radius: float

    def rescaled(self, factors: Floats, norm: float | None) -> RadiusResult:
        """Return the same function for kernels divided by ``factors``, weights of norm one.

        Without a norm the weights are such that the ball has unit radius.
        """
        weights = self.weights * factors
        size = self.squared_radius if norm is None else _size(weights, norm)
        return replace(
            self,
            weights=weights / size,
            dual_coef=self.dual_coef * size,
            quadratic_forms=self.quadratic_forms * (size**2 / factors),
            squared_radius=self.squared_radius / size,
        )


class _Done(Exception):
    """The search is over."""


class _Stalled(Exception):
    """The certified gap does not move: the gradient jumps near here."""


class _Search:
    """Judges weights, keeps count, and ends the search when the certificate or the limit says."""

    def __init__(
        self,
        bank: KernelBank,
        Y: Floats,
        cost: Floats,
        criterion: Criterion,
        norm: float | None,
        tol: float,
        max_iter: int,
        report: Callback | None,
    ) -> None:
        self.bank, self.Y, self.cost, self.criterion = bank, Y, cost, criterion
        # A scale-free criterion has no norm to hold; that would only bend the coordinates.
        self.norm = None if criterion.scale_free else norm
        self.max_iter = max_iter
        self.bounds = Bounds(tol, report)
        self.inner = max(_INNER * tol, 1e-12)
        self.best: Assessment | None = None
        self.stationary = False
        self.patient = False  # whether to go on however long the gap stays
        self.cuts: Cuts | None = None  # where it is worth collecting them
        self._mark = (np.inf, 0)

    def judge(self, theta: Floats) -> tuple[float, Floats]:
        """Return value and gradient along the set; raise `_Done` when that ends the search."""
        if self.bounds.solves >= self.max_iter:
            raise _Done
        kernel = self.bank.combine(theta)
        assessed = self.criterion.judge(kernel, self.Y, self.cost, tol=self.inner, start=self.best)
        self.bounds.solves += 1
        self.bounds.work += assessed.solution.work
        self.bounds.n_passes += 2.0
        if self.cuts is not None:
            self.cuts.add(
                assessed,
                self.criterion.machine.linear(assessed.solution.dual_coef, self.Y, self.cost),
            )
        self._offer(assessed)
        self.bounds.note()
        self.stop_if_certified()
        self._watch()
        gradient = self._tangent(theta, assessed.gradient)
        if assessed.lower == -np.inf:
            # What moving all weight to the steepest kernel promises: the gap, were this convex.
            total = theta.sum()
            if self.norm is None:  # weights near zero are far from those that matter beside 1 / C
                total = max(total, 1.0 / float(self.cost.max()))
            promise = total * -gradient.min(initial=0.0) + theta @ np.maximum(gradient, 0.0)
            self.stationary = bool(promise <= self.bounds.tol * assessed.value)
            if self.stationary:
                raise _Done
        return assessed.value, gradient

    def _watch(self) -> None:
        """Look for a better bound if the gap stays, and raise `_Stalled` if it goes on to."""
        if self.bounds.gap <= 0.67 * self._mark[0]:
            self._mark = (self.bounds.gap, self.bounds.solves)
        if self.patient:
            return
        waited = self.bounds.solves - self._mark[1]
        if waited >= _PATIENCE:
            raise _Stalled
        if waited >= _DOUBT:
            self.mix()

    def mix(self) -> Lowest | None:
        """Offer the bound that all points so far prove together; None if nothing came of it."""
        assert self.cuts is not None
        assert self.best is not None
        assert isinstance(self.criterion, RadiusMargin)
        lowest = self.cuts.minimise(self.best.value)
        if lowest is not None:
            self.bounds.offer_lower(
                self.criterion.bound(self.bank, lowest.dual_coef, lowest.centre, self.Y, self.cost)
            )
            self.bounds.n_passes += 2.0
            self.stop_if_certified()
        return lowest

    def _tangent(self, theta: Floats, gradient: Floats) -> Floats:
        """Return the derivative of the criterion at ``x / |x|`` in x, at x = theta of norm one."""
        if self.norm is None:
            return gradient
        normal = np.ones_like(theta) if self.norm == 1 else theta
        return gradient - normal * float(theta @ gradient)

    def _offer(self, assessed: Assessment) -> None:
        solution = assessed.solution
        self.bounds.offer_lower(assessed.lower)
        weights = assessed.kernel.weights
        if self.bounds.offer_upper(
            assessed.value,
            weights,
            solution.dual_coef,
            solution.intercept,
            assessed.quadratic_forms,
        ):
            self.best = assessed

    def stop_if_certified(self) -> None:
        """Raise `_Done` if the gap meets the tolerance for the exact kernels."""
        if self.bounds.converged:
            self.settle()
            if self.bounds.converged:
                raise _Done

    def settle(self) -> None:
        """Recompute the best value from the exact kernels."""
        assert self.best is not None
        self.bounds.upper = np.inf
        self._offer(self.criterion.verified(self.best, self.Y, self.cost))
        self.bounds.note()

    def _offer_nothing(self) -> None:
        """Offer no function but a bias, at the best weights."""
        assert self.best is not None
        best, criterion, nothing = self.best, self.criterion, np.zeros_like(self.Y)
        cost = criterion.machine_cost(best.kernel, best.ball, self.cost)
        loss, bias = criterion.machine.value(nothing, self.Y, cost)
        value, quadratic_forms = (
            criterion.value(loss, best.ball),
            np.zeros_like(best.quadratic_forms),
        )
        if self.bounds.offer_upper(value, best.kernel.weights, nothing, bias, quadratic_forms):
            self.bounds.note()

    def result(self) -> RadiusResult:
        """Return the best point, its value that of the exact kernels."""
        assert self.best is not None
        self.best = self.criterion.finished(self.best, self.cost, tol=self.inner)
        self.settle()
        self._offer_nothing()
        result = self.bounds.result()
        return RadiusResult(
            **(vars(result) | {"converged": result.converged or self.stationary}),
            squared_radius=self.best.ball.squared_radius,
        )


def lbfgs(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    criterion: Criterion,
    *,
    norm: float | None,
    start: Floats,
    tol: float,
    max_iter: int,
    report: Callback | None = None,
    sizes: Floats | None = None,
) -> RadiusResult:
    """Minimise a criterion over kernel weights by L-BFGS with bounds.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets of +-1, and the cost of each error.
    criterion : Criterion
        What to minimise.
    norm : float or None
        Norm of the weights that is held at one; None: no constraint.
    start : ndarray of shape (n_kernels,)
        Where to begin, not negative.
    tol : float
        Relative gap to stop at; for criteria without a bound, what the gradient still promises,
        relative to the value.
    max_iter : int
        Evaluations of the criterion at most.
    report : callable, optional
        Called with every `Step`.
    sizes : ndarray of shape (n_kernels,), optional
        Sizes of the kernels, where those are not alike: the search moves ``weights * sizes``.

    Returns
    -------
    result : RadiusResult
        The best weights found.
    """
    search = _Search(bank, Y, cost, criterion, norm, tol, max_iter, report)
    sizes = np.ones(bank.n_kernels) if sizes is None else sizes

    def along(x: Floats) -> tuple[float, Floats]:
        theta = x / sizes
        length = 1.0 if search.norm is None else _size(theta, search.norm)
        if not (length > 0 and theta.any()):
            return 10.0 * abs(search.bounds.upper), np.zeros_like(x)  # no kernel at all
        value, gradient = search.judge(theta / length)
        return value, gradient / (sizes * length)

    begin = start * sizes
    # All weights at zero would be no kernel at all.
    lowest = 0.0 if norm is not None or criterion.scale_free else 1e-12 * float(begin.mean())
    if isinstance(criterion, RadiusMargin):
        search.cuts = Cuts.begin(bank)
    search.patient = search.cuts is None
    with suppress(_Done):
        with suppress(_Stalled):
            for _ in range(_RETRIES):
                before = search.bounds.solves
                minimize(
                    along,
                    begin,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=[(lowest, None)] * bank.n_kernels,
                    options={"maxcor": 20, "ftol": 0.0, "gtol": 0.0, "maxfun": 10 * max_iter},
                )
                if search.bounds.solves == before or search.best is None:
                    break
                # The line search failed: the values are not exact enough for it.
                search.inner = max(0.1 * search.inner, 1e-12)
                begin = search.best.kernel.weights * sizes
        if search.cuts is not None:
            _by_cuts(search)
    return search.result()


def _by_cuts(search: _Search) -> None:
    """Go on where the gradient of the radius-margin criterion jumps.

    Half way from the best weights to those where all cuts are lowest is where to look next: all
    the way, cutting planes wander.
    """
    search.patient = True
    while (lowest := search.mix()) is not None:
        assert search.best is not None
        here = search.best.kernel.weights / search.best.ball.squared_radius
        theta = 0.5 * (here + lowest.weights)
        # Halving alone would never make a weight zero.
        leaving = (lowest.weights == 0) & (theta <= 1e-2 * search.bounds.tol * theta.sum())
        search.judge(np.where(leaving, 0.0, theta))


def gradient_projection(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    criterion: Criterion,
    *,
    norm: float | None,
    start: Floats,
    tol: float,
    max_iter: int,
    report: Callback | None = None,
) -> RadiusResult:
    """Minimise a criterion by gradient steps back onto the set, with Armijo's rule.

    The algorithm of Gai, Chen and Zhang (2010); `lbfgs` needs fewer evaluations.

    Parameters
    ----------
    bank, Y, cost, criterion, norm, start, tol, max_iter, report
        As in `lbfgs`.

    Returns
    -------
    result : RadiusResult
        The best weights found.
    """
    search = _Search(bank, Y, cost, criterion, norm, tol, max_iter, report)
    search.patient = True
    project = _projection(norm)
    theta = project(start)
    with suppress(_Done):
        value, gradient = search.judge(theta)
        step = 0.5 * float(np.linalg.norm(theta)) / max(float(np.abs(gradient).max()), 1e-300)
        retries = 0
        while retries < _RETRIES:
            at_once = False
            for halving in range(_HALVINGS):
                trial = project(theta - step * gradient)
                promised = float(gradient @ (theta - trial))
                if trial.any():
                    new_value, new_gradient = search.judge(trial)
                    if value - new_value >= _ARMIJO * promised:
                        at_once = halving == 0
                        break
                step *= 0.5
            else:
                # No step is short enough: look closer, then try again.
                retries += 1
                search.inner = max(0.1 * search.inner, 1e-12)
                value, gradient = search.judge(theta)
                step = (
                    0.5 * float(np.linalg.norm(theta)) / max(float(np.abs(gradient).max()), 1e-300)
                )
                continue
            theta, value, gradient = trial, new_value, new_gradient
            step *= 2.0 if at_once else 1.0
            total = float(theta.sum())
            if norm is None and not 1e-3 <= total <= 1e3:
                # Every step lengthens the weights, which changes nothing but the numbers.
                theta, gradient, step = theta / total, gradient * total, step / total**2
    return search.result()


def _size(x: Floats, norm: float) -> float:
    return float(np.linalg.norm(x, norm))


def _projection(norm: float | None) -> Callable[[Floats], Floats]:
    """Return the way back to the set of weights."""
    if norm is None:
        return lambda x: np.maximum(x, 0.0)
    if norm == 1:
        return lambda x: _core.project_simplex(np.ascontiguousarray(x))

    def onto_sphere(x: Floats) -> Floats:
        positive = np.maximum(x, 0.0)
        if not positive.any():
            positive[np.argmax(x)] = 1.0
        return np.asarray(positive / np.linalg.norm(positive))

    return onto_sphere


def judge_fixed(
    bank: KernelBank,
    Y: Floats,
    cost: Floats,
    criterion: Criterion,
    weights: Floats,
    *,
    tol: float,
    report: Callback | None = None,
) -> RadiusResult:
    """Return the function of given weights; the certificate is that of these weights.

    Parameters
    ----------
    bank : KernelBank
        The kernels.
    Y, cost : ndarray of shape (n_samples, n_outputs)
        Targets of +-1, and the cost of each error.
    criterion : Criterion
        Whose lower bound is that of these weights.
    weights : ndarray of shape (n_kernels,)
        Not negative.
    tol : float
        Relative gap to stop at.
    report : callable, optional
        Called with every `Step`.

    Returns
    -------
    result : RadiusResult
        With the given weights.
    """
    search = _Search(bank, Y, cost, criterion, None, tol, 4, report)
    search.inner, search.patient = 0.3 * tol, True
    with suppress(_Done):
        while True:
            search.judge(weights)
            search.inner *= 0.1
    return search.result()
