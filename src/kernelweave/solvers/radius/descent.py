"""Minimise a smooth criterion over non-negative kernel weights: L-BFGS and gradient projection.

L-BFGS takes a norm into account by ``theta = x / |x|``; gradient projection returns to the set
after every step. Near points where the gradient of the radius jumps, L-BFGS goes on by cutting
planes.

References
----------
K. Gai, G. Chen, C. Zhang, "Learning kernels with radiuses of minimum enclosing balls", NIPS 23,
2010, section 4 (gradient projection with Armijo's rule).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy

from kernelweave import _core
from kernelweave._types import Floats
from kernelweave.solvers.problem import Limits

from .cutting_planes import Cuts
from .search import RadiusProblem, RadiusResult, Search, SearchEnded, Stalled


@dataclass(frozen=True)
class DescentOptions:
    """Constants of `lbfgs` and `gradient_projection`, chosen by hand."""

    retries: int = 4  # times the inner gap is tightened when a line search fails
    armijo: float = 1e-2  # share of the promised decrease that a step has to bring
    halvings: int = 40  # of a step


OPTIONS = DescentOptions()


def lbfgs(
    problem: RadiusProblem, limits: Limits, start: Floats, *, sizes: Floats | None = None
) -> RadiusResult:
    """Minimise a criterion over kernel weights by L-BFGS with bounds, from weights ``start``.

    For criteria without a bound the tolerance is the decrease that the gradient still promises,
    relative to the value. ``sizes`` of kernels that are not alike scale the search: it moves
    ``weights * sizes``.
    """
    search, criterion = Search(problem, limits), problem.criterion
    n_kernels = problem.bank.n_kernels
    sizes = np.ones(n_kernels) if sizes is None else sizes

    def along(x: Floats) -> tuple[float, Floats]:
        theta = x / sizes
        length = 1.0 if search.norm is None else float(np.linalg.norm(theta, search.norm))
        if not (length > 0 and theta.any()):
            return 10.0 * abs(search.bounds.upper), np.zeros_like(x)  # no kernel at all
        value, gradient = search.evaluate(theta / length)
        return value, gradient / (sizes * length)

    begin, most = start * sizes, 10 * limits.max_iter
    # All weights at zero would be no kernel at all.
    free = problem.norm is None and not criterion.scale_free
    lowest = 1e-12 * float(begin.mean()) if free else 0.0
    if criterion.has_cuts:
        search.cuts = Cuts.begin(problem.bank)
    search.patient = search.cuts is None
    with suppress(SearchEnded):
        with suppress(Stalled):
            for _ in range(OPTIONS.retries):
                before = search.bounds.solves
                scipy.optimize.minimize(
                    along,
                    begin,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=[(lowest, None)] * n_kernels,
                    options={"maxcor": 20, "ftol": 0.0, "gtol": 0.0, "maxfun": most},
                )
                if search.bounds.solves == before or search.best is None:
                    break
                # The line search failed: the values are not exact enough for it.
                search.inner = max(0.1 * search.inner, 1e-12)
                begin = search.best.kernel.weights * sizes
        if search.cuts is not None:
            _follow_cuts(search)
    return search.result()


def _follow_cuts(search: Search) -> None:
    """Go on where the gradient of the radius-margin criterion jumps.

    The next point is half way from the best weights to those where all cuts are lowest: all the
    way, cutting planes oscillate.
    """
    search.patient = True
    while (lowest := search.combine_cuts()) is not None:
        assert search.best is not None
        here = search.best.kernel.weights / search.best.ball.squared_radius
        theta = 0.5 * (here + lowest.weights)
        # Halving alone would never make a weight zero.
        leaving = (lowest.weights == 0) & (theta <= 1e-2 * search.bounds.tol * theta.sum())
        search.evaluate(np.where(leaving, 0.0, theta))


def gradient_projection(problem: RadiusProblem, limits: Limits, start: Floats) -> RadiusResult:
    """Minimise a criterion by gradient steps back onto the set, with Armijo's rule.

    Parameters are those of `lbfgs`, which needs fewer evaluations.
    """
    search, norm = Search(problem, limits), problem.norm
    search.patient = True
    project = _projection(norm)
    theta = project(start)
    with suppress(SearchEnded):
        value, gradient = search.evaluate(theta)
        step = _first_step(theta, gradient)
        retries = 0
        while retries < OPTIONS.retries:
            at_once = False
            for halving in range(OPTIONS.halvings):
                trial = project(theta - step * gradient)
                promised = float(gradient @ (theta - trial))
                if trial.any():
                    new_value, new_gradient = search.evaluate(trial)
                    if value - new_value >= OPTIONS.armijo * promised:
                        at_once = halving == 0
                        break
                step *= 0.5
            else:
                # No step is short enough: evaluate more accurately, then try again.
                retries += 1
                search.inner = max(0.1 * search.inner, 1e-12)
                value, gradient = search.evaluate(theta)
                step = _first_step(theta, gradient)
                continue
            theta, value, gradient = trial, new_value, new_gradient
            step *= 2.0 if at_once else 1.0
            total = float(theta.sum())
            if norm is None and not 1e-3 <= total <= 1e3:
                # Every step lengthens the weights, which changes nothing but their scale.
                theta, gradient, step = theta / total, gradient * total, step / total**2
    return search.result()


def _first_step(theta: Floats, gradient: Floats) -> float:
    return 0.5 * float(np.linalg.norm(theta)) / max(float(np.abs(gradient).max()), 1e-300)


def _projection(norm: float | None) -> Callable[[Floats], Floats]:
    """Return the projection onto the set of weights."""
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
